#!/bin/sh
# Makes the Debian packages from what `make build python` has built, and has lintian check them: deb.sh VERSION
set -eu
cd "$(dirname "$0")/.."
export SOURCE="$PWD"
missing=''
for package in debhelper dh-python lintian; do
    dpkg-query -W -f '${Status}' $package 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -z "$missing" ] || {
    echo "make deb: missing packages. Type: apt-get install --no-install-recommends$missing" >&2
    exit 1
}

rm -rf target/deb
mkdir -p target/deb/foreread
cp -r packaging/debian target/deb/foreread/
cd target/deb/foreread
cat >debian/changelog <<END
foreread ($1) unstable; urgency=medium

  * See CHANGELOG.md in foreread's sources.

 -- $(sed -n 's/^Maintainer: //p' debian/control)  $(date -R)
END
dpkg-buildpackage --build=binary --unsigned-changes --no-pre-clean >../build.log 2>&1 || {
    tail -30 ../build.log >&2
    exit 1
}
cd ..
rm -rf foreread
lintian --fail-on error,warning ./*.changes
ls ./*.deb | sed 's|^\.|target/deb|'
