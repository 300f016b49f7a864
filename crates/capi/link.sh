#!/bin/sh
# Links libforeread.so of libforeread.a: link.sh ARCHIVE SHARED
#
# cargo could make a shared library itself, but not one with versioned symbols: rustc hands the
# linker a version script of its own, and linkers take one. The library stays loaded once it is
# (nodelete): its threads run its code.
set -eu
here=$(dirname "$0")
exec "${CC:-cc}" -shared -o "$2" \
	-Wl,--whole-archive "$1" -Wl,--no-whole-archive \
	-Wl,--version-script="$here/foreread.map" -Wl,-soname,libforeread.so.1 \
	-Wl,--gc-sections -Wl,--no-undefined -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now \
	-lgcc_s -lpthread -ldl -lm -lc
