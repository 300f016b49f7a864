#!/bin/sh
# Makes a tarball that install.sh installs, from what `make build` has built: tarball.sh VERSION
set -eu
cd "$(dirname "$0")/.."
name=foreread-$1-linux-$(uname -m)
folder=target/tarball/$name

rm -rf target/tarball
mkdir -p "$folder"
# install.sh puts the real prefix in the place of this one.
${MAKE:-make} -s install DESTDIR="$PWD/$folder" PREFIX=/@PREFIX@
mv "$folder/@PREFIX@" "$folder/files"
# Built only where somebody asked for them; the translator needs the Clang that it was built with.
rm -rf "$folder/files/lib/foreread/sqlite" "$folder/files/lib/foreread/foreread-slice" \
    "$folder"/files/lib/libforeread_preexec.a "$folder"/files/include/foreread_preexec.h \
    "$folder"/files/include/foreread_counter.h
install -m 755 packaging/install.sh "$folder/"
install -m 644 README.md LICENSE-MIT LICENSE-APACHE "$folder/"
tar -C target/tarball --owner=0 --group=0 -czf "target/$name.tar.gz" "$name"
rm -rf target/tarball
echo "target/$name.tar.gz"
