#!/bin/sh
# Installs foreread from its tarball, or removes what was installed. A prefix of one's own needs no root.
#
#     ./install.sh [PREFIX]               PREFIX is ~/.local unless given
#     ./install.sh --remove [PREFIX]
set -eu

failed() {
    echo "install.sh: $*" >&2
    exit 2
}
remove=false
case ${1:-} in
    --remove) remove=true; shift ;;
    -*) sed -n '2,6s/^# \{0,1\}//p' "$0"; [ "$1" = --help ] || exit 2; exit ;;
esac
prefix=${1:-${HOME:?is not set: name a PREFIX}/.local}
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
files=$(cd "$(dirname "$0")" && pwd)/files
[ -d "$files" ] || failed "no folder $files: run install.sh where the tarball was unpacked"

if $remove; then
    (cd "$files" && find . ! -type d) | while read -r file; do rm -f "$prefix/$file"; done
    # Folders of foreread's own, and others that are empty now.
    (cd "$files" && find . -mindepth 1 -depth -type d) | while read -r folder; do
        rmdir "$prefix/$folder" 2>/dev/null || true
    done
    echo "foreread is removed from $prefix"
    exit
fi

mkdir -p "$prefix" || failed "cannot make $prefix"
(cd "$files" && tar -cf - .) | tar -C "$prefix" -xf - --no-same-owner --no-overwrite-dir ||
    failed "cannot write to $prefix"
for file in lib/pkgconfig/foreread.pc lib/systemd/system/forereadd.service lib/systemd/system/foreread@.service; do
    sed "s|/@PREFIX@|$prefix|g" "$files/$file" >"$prefix/$file"
done
version=$("$prefix/bin/foreread" --version) || failed "$prefix/bin/foreread does not run on this system"
echo "$version is installed in $prefix"
case :$PATH: in
    *:"$prefix/bin":*) ;;
    *) echo "Add it to your PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
