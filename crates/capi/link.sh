#!/bin/sh
# Links libforeread.a into libforeread.so: link.sh ARCHIVE SHARED
#
# cargo cannot make a shared library with versioned symbols: rustc passes the linker a version script
# of its own, and linkers accept only one. The library is never unloaded (nodelete), because its
# threads run its code.
set -eu
here=$(dirname "$0")
exec "${CC:-cc}" -shared -o "$2" \
	-Wl,--whole-archive "$1" -Wl,--no-whole-archive \
	-Wl,--version-script="$here/foreread.map" -Wl,-soname,libforeread.so.1 \
	-Wl,--gc-sections -Wl,--no-undefined -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now \
	-lgcc_s -lpthread -ldl -lm -lc
