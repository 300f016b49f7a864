#!/bin/sh
# feature.sh: prints the cargo options that build the observer in the kernel, or on standard error what is missing for that.
set -u

missing=''
command -v "${FOREREAD_CLANG:-clang-19}" >/dev/null || missing="$missing clang-19"
command -v pkg-config >/dev/null || missing="$missing pkgconf"
# Headers and archives alike: the program is linked statically.
has() {
    printf '#include <%s>\nint main(void) { return 0; }\n' "$1" | cc -x c - -static -o /dev/null "-l$2" 2>/dev/null
}
has gelf.h elf || missing="$missing libelf-dev"
has zlib.h z || missing="$missing zlib1g-dev"
if [ -z "$missing" ]; then
    echo '--features foreread/ebpf'
else
    echo "without the observer in the kernel (eBPF); missing:$missing" >&2
fi
