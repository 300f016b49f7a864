#!/bin/sh
# Installs a tarball in an empty home, tries what it has, removes it, and checks that nothing is left: test-tarball.sh FILE
set -eu
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
tar -C "$home" -xzf "$1"
unpacked=$(echo "$home"/foreread-*)
export HOME="$home/home"
mkdir "$HOME"
PATH=$HOME/.local/bin:$PATH

"$unpacked/install.sh"
[ "$(command -v foreread)" = "$HOME/.local/bin/foreread" ]
cp /etc/passwd "$HOME/input"
foreread run -- cat "$HOME/input" | cmp - "$HOME/input"
# The preload library was found: the record has the file.
foreread show --json | grep -q "$HOME/input"
foreread doctor >/dev/null || [ $? = 1 ]

cat >"$HOME/program.c" <<'END'
#include <foreread.h>
#include <stdio.h>
int main(void) { return puts(foreread_version()) < 0; }
END
export PKG_CONFIG_PATH="$HOME/.local/lib/pkgconfig"
cc -o "$HOME/program" "$HOME/program.c" $(pkg-config --cflags --libs foreread) -Wl,-rpath,"$HOME/.local/lib"
"$HOME/program"

"$unpacked/install.sh" --remove
left=$(find "$HOME/.local" -name '*foreread*' ! -path '*/share/foreread*')
[ -z "$left" ] || { echo "left behind: $left" >&2; exit 1; }
echo 'test-tarball: passed'
