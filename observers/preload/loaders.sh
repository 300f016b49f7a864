#!/bin/sh
# Lays out, in DIR, what LD_PRELOAD names as DIR/$LIB/libforeread_preload.so, and the other libraries beside that.
#
#     loaders.sh DIR LIBRARY...
#
# Each loader puts its own word for $LIB there, so that each finds a library of its own kind: those for these libraries'
# processor a link to LIBRARY, which lies beside DIR, those of 32-bit programs an empty library. A loader that
# finds none, or one of another kind, would say so on the program's standard error. musl's takes the path as it stands,
# finds nothing, and says nothing. Without an assembler for 32-bit programs, or on another processor, nothing is laid out.
set -eu
dir=$1
shift

rm -rf "$dir"
[ "$(uname -m)" = x86_64 ] || exit 0
own=$(/lib64/ld-linux-x86-64.so.2 --list-diagnostics 2>/dev/null | sed -n 's/^dl_dst_lib="\(.*\)"$/\1/p')
[ -n "$own" ] || exit 0
empty=$(mktemp)
trap 'rm -f "$empty" "$empty.o"' EXIT
: | as --32 -o "$empty.o" - 2>/dev/null && ld -m elf_i386 -shared -o "$empty" "$empty.o" 2>/dev/null || exit 0

# Where 64-bit programs have their libraries in lib64, those in lib are 32-bit.
wide="lib lib64 lib/x86_64-linux-gnu"
narrow="lib32 libx32 lib/i386-linux-gnu"
[ "$own" != lib64 ] || wide="lib64 lib/x86_64-linux-gnu" narrow="lib $narrow"
for word in $own $wide; do
    mkdir -p "$dir/$word"
    for library; do
        name=${library##*/}
        ln -sf "$(echo "$word" | sed 's|[^/]*|..|g')/../$name" "$dir/$word/$name"
    done
done
for word in $narrow; do
    mkdir -p "$dir/$word"
    for library; do
        install -m 644 "$empty" "$dir/$word/${library##*/}"
    done
done
