#!/bin/sh
# Creates the folders and files of DIR that LD_PRELOAD names as DIR/$LIB/libforeread_preload.so, and the same for other libraries.
#
#     loaders.sh DIR LIBRARY...
#
# Each loader replaces $LIB by a word of its own, so that each finds a library of its own kind: loaders of 64-bit programs a link
# to LIBRARY, which is beside DIR, and loaders of 32-bit programs an empty library. A loader that finds no library, or one of
# another kind, would print an error on the program's standard error. musl's loader uses the path as it is, finds nothing, and
# prints nothing. Without an assembler for 32-bit programs, or on another processor, no files are created.
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

# If the libraries of 64-bit programs are in lib64, those in lib are for 32-bit programs.
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
