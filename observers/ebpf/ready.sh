#!/bin/sh
# ready.sh: succeeds if the observer in the kernel can be built here. Otherwise prints the missing packages on standard error.
set -u

missing=''
command -v "${FOREREAD_CLANG:-clang-19}" >/dev/null || missing="$missing clang-19"
command -v pkg-config >/dev/null || missing="$missing pkgconf"
has() {
    printf '#include <%s>\nint main(void) { return 0; }\n' "$1" | cc -x c - -o /dev/null "-l$2" 2>/dev/null
}
has gelf.h elf || missing="$missing libelf-dev"
has zlib.h z || missing="$missing zlib1g-dev"
[ -n "$missing" ] || exit 0
echo "built without the observer in the kernel (eBPF); missing packages:$missing" >&2
exit 1
