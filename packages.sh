#!/bin/sh
# packages.sh TARGET: has the Debian packages of packages.txt that `make TARGET` needs, and Rust, or says how to get
# them. TARGET is `build`, `demo`, `test`, or `deps` for all of them.
#
# Missing packages are installed by root, or by sudo where it asks for no password. Otherwise one line names them and a command
# that installs them. The exit status is 1 if the target cannot do without something that is still missing.
# So it is if there is no room for what is built, or the registry of crates does not answer and crates are missing.
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

# Whether a package is there: by the command that it brings, which is to be found; else by dpkg, or by what it brings.
present() {
    case $2 in
        /* | '<'* | *:) dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed' && return ;;
    esac
    case $2 in
        /*) [ -e "$2" ] ;;
        '<'*) echo "#include $2" | cc -E - >/dev/null 2>&1 ;;
        *:) python3 -c "import ${2%:}" 2>/dev/null ;;
        *) PATH=$PATH:/usr/sbin:/sbin command -v "$2" >/dev/null ;;
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
    echo "make $target: installs missing Debian packages:$missing$useful"
    install $as_root || echo "make $target: apt-get failed" >&2
    look
fi

# Whether there is room to build in, and cargo has the crates, or gets them now.
can_build() {
    cd "$(dirname "$0")" || return
    case $target in
        demo) room=500 crates='-p foreread' ;;
        build) room=1500 crates='-p foreread -p foreread-tools -p foreread-daemon -p foreread-capi' ;;
        test) room=6000 crates='' ;;
        deps) return ;;
    esac
    left=$(df -Pk . | awk 'NR == 2 { print int($4 / 1024) }')
    if [ ! -d target/release/deps ] && [ "$left" -lt $room ]; then
        echo "make $target: the disk of $(pwd) is full: $left MB are left. Free $room MB, and type: make $target" >&2
        return 1
    fi
    "${CARGO:-cargo}" tree -q $crates -e normal,build >/dev/null 2>&1 && return
    echo "make $target: crates are missing, and crates.io does not answer. Go online, or name a proxy:" \
        "HTTPS_PROXY=http://HOST:PORT make $target" >&2
    return 1
}

if [ -z "$missing$useful$rust" ]; then
    [ "$target" != deps ] || echo 'all packages are installed'
    can_build
    exit
fi

# One line that says what is missing, and one command that installs it.
[ -z "$useful" ] || echo "make $target: left out is what needs these packages:$useful" >&2
command=$rust
if [ -n "$missing$useful" ]; then
    if command -v apt-get >/dev/null; then
        command="apt-get update && apt-get install -y --no-install-recommends$missing$useful"
        if [ "$(id -u)" = 0 ]; then :
        elif command -v sudo >/dev/null; then command="sudo sh -c '$command'"
        else command="su - -c '$command'"
        fi
        command="$command${rust:+ && $rust}"
    else
        command="your system's command for packages of such names${rust:+ and $rust}"
    fi
fi
echo "make $target: missing:$missing$useful${rust:+ Rust 1.$minor or later (cargo)}. Type: $command" >&2
[ -z "$missing$rust" ] && can_build
