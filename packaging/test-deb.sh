#!/bin/bash
# Installs the packages of a folder in a clean Debian, tries each of them, removes them, and checks that nothing is left behind.
#
#     test-deb.sh FOLDER
#
# As root, with mmdebstrap, on Debian and with its mirror. Where one of these is missing the test is skipped, with the reason.
set -euo pipefail

packages=$(realpath "$1")
skipped() {
    echo "test-deb: skipped: $*"
    exit 0
}
[ "$(id -u)" = 0 ] || skipped 'needs root'
command -v mmdebstrap >/dev/null || skipped 'no mmdebstrap'
. /etc/os-release
[ "${ID:-}" = debian ] || skipped 'no Debian'

root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
# What the packages depend on, and what tries them.
mmdebstrap --quiet --mode=root --variant=minbase \
    --include=gcc,libc6-dev,pkgconf,python3,libelf1,zlib1g "$VERSION_CODENAME" "$root"
mkdir "$root/try"
cp "$packages"/*.deb "$root/try/"

cat >"$root/try/program.c" <<'END'
#include <foreread.h>
#include <stdio.h>
int main(void) { return puts(foreread_version()) < 0; }
END

cat >"$root/try/try.sh" <<'END'
set -eux
export HOME=/try/home PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
mkdir -p $HOME
everything() {
    find / -xdev \( -path /try -o -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /var/lib/dpkg \
        -o -path /var/log -o -path /var/cache -o -path '*/__pycache__' \) -prune -o -print | sort
}
everything >/try/before
dpkg -i /try/*.deb

foreread --version
foreread run -- true
foreread run -- cat /etc/os-release | cmp - /etc/os-release
foreread list --json | grep -q '"cat"'
test -s /usr/share/man/man1/foreread-run.1.gz
test -s /usr/share/bash-completion/completions/foreread

for how in '' --static; do
    cc -o /try/program /try/program.c $(test -z "$how" || echo -static) $(pkg-config --cflags --libs $how foreread)
    /try/program
done

python3 -c 'import foreread; print(foreread.__version__)'

foreread daemon start
foreread daemon status
foreread daemon stop

dpkg --purge foreread forereadd libforeread1 libforeread-dev python3-foreread
everything >/try/after
diff /try/before /try/after
END

# A view of its own of processes and mounts, which goes with it.
unshare --mount --pid --fork sh -euc "
    mount -t proc proc '$root/proc'
    mount -t sysfs sysfs '$root/sys'
    mount --rbind /dev '$root/dev'
    mount -t tmpfs tmpfs '$root/run'
    exec chroot '$root' sh /try/try.sh"
echo 'test-deb: passed'
