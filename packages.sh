#!/bin/sh
# packages.sh TARGET: has the Debian packages of packages.txt that `make TARGET` needs, and Rust, or says how to get
# them. TARGET is `build`, `demo`, `test`, or `deps` for all of them.
#
# Missing packages are installed by root, or by sudo where it asks for no password. Otherwise one command is printed
# that installs them. The exit status is 1 if the target cannot do without something that is still missing.
set -u

target=$1
list=$(dirname "$0")/packages.txt
case $target in
    build) needed=' build ' wanted=$needed ;;
    demo) needed=' build demo ' wanted=$needed ;;
    test) needed=' build demo test ' wanted="${needed}more " ;;
    deps) needed=' build demo test more ' wanted=$needed ;;
    *) echo "packages.sh: build, demo, test or deps, not: $target" >&2; exit 2 ;;
esac
rustup='curl -sSf https://sh.rustup.rs | sh -s -- -y'
# As Cargo.toml has it.
minor=$(sed -n 's/^rust-version = "1\.\([0-9]*\)"/\1/p' "$(dirname "$0")/Cargo.toml")

# Whether a package is there: by dpkg, or by what it brings.
present() {
    dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed' && return
    case $2 in
        /*) [ -e "$2" ] ;;
        '<'*) echo "#include $2" | cc -E - >/dev/null 2>&1 ;;
        *:) python3 -c "import ${2%:}" 2>/dev/null ;;
        *) command -v "$2" >/dev/null ;;
    esac
}

# Sets $missing to the packages that the target cannot do without, $useful to others that it would use, and $rust to
# the command that installs Rust, if that is missing.
look() {
    missing='' useful='' rust=''
    while read -r use package sign; do
        case $use in '' | '#'*) continue ;; esac
        case $wanted in *" $use "*) ;; *) continue ;; esac
        present "$package" "$sign" && continue
        case $needed in
            *" $use "*) missing="$missing $package" ;;
            *) useful="$useful $package" ;;
        esac
    done <"$list"
    cargo=$("${CARGO:-cargo}" --version 2>/dev/null | sed -n 's/^cargo 1\.\([0-9]*\).*/\1/p')
    [ "${cargo:-0}" -ge "$minor" ] && return
    rust=$rustup
    command -v curl >/dev/null || missing="$missing curl ca-certificates"
}

# Several words, as lines of at most 80 columns.
words() {
    echo "$@" | fold -s -w 76 | sed 's/^/    /; s/ *$//'
}

# Installs, by the command given, the missing packages that there are here.
install() {
    "$@" apt-get update -q || return
    here=''
    for package in $missing $useful; do
        if apt-cache show "$package" >/dev/null 2>&1; then here="$here $package"
        else echo "make $target: no package $package here"
        fi
    done
    [ -z "$here" ] ||
        "$@" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $here
}

look
as_root=nobody
if [ "$(id -u)" = 0 ]; then as_root=
elif sudo -n true 2>/dev/null; then as_root='sudo -n'
fi
if [ -n "$missing$useful" ] && [ "$as_root" != nobody ] && command -v apt-get >/dev/null; then
    echo "make $target: these Debian packages are missing and are installed now:"
    words $missing $useful
    install $as_root || echo "make $target: apt-get failed" >&2
    look
fi
if [ -z "$missing$useful$rust" ]; then
    [ "$target" != deps ] || echo 'all packages are installed'
    exit 0
fi

{
    if [ -n "$missing" ]; then
        echo "make $target needs these Debian packages, which are missing:"
        words $missing
    fi
    if [ -n "$useful" ]; then
        echo "make $target leaves out what needs these Debian packages, which are missing:"
        words $useful
    fi
    [ -z "$rust" ] || echo "make $target needs Rust 1.$minor or later (cargo), which is missing."
    command=$rust
    if [ -n "$missing$useful" ]; then
        if command -v apt-get >/dev/null; then
            command="apt-get update && apt-get install -y --no-install-recommends$missing$useful"
            if [ -z "$as_root" ]; then :
            elif command -v sudo >/dev/null; then command="sudo sh -c '$command'"
            else command="su - -c '$command'"
            fi
            command="$command${rust:+ && $rust}"
        else
            echo 'There is no apt-get here: other systems have them by similar names.'
        fi
    fi
    if [ -n "$command" ]; then
        echo 'This command installs what is missing:'
        echo
        echo "    $command"
        echo
    fi
} >&2
[ -z "$missing$rust" ]
