//! Releases of OpenSSH, each patched from the one before and compiled: section 4.5 of the paper, with the releases that
//! Debian's archive has in place of SSH 1.2.18 to 1.2.31.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::data::write;
use super::predicted_sources::{patch_series, patched, toolchain};
use crate::case::{Data, Job, Size};
use crate::tools::{Tools, shell};

/// Releases with the SHA-256 of their sources, the oldest first: those of Debian 11, 12 and 13, and a later one.
const WANTED: &str = "\
8.4p1 5a01d22e407eb1c05ba8a8f7c654d388a13e9f226e4ed33bd38748dafa1d2b24
9.2p1 3f66dbf1655fb45f50e1c56da62ab01218c228807b21338d634ebcdf9d71cf46
10.0p1 021a2e709a0edf4250b1256bd5a9e500411a90dddabea830ed59cef90eb9d85c
10.3p1 56682a36bb92dcf4b4f016fd8ec8e74059b79a8de25c15d670d731e7d18e45f4
";

/// Fetches the sources by apt, from the mirror that this machine's own packages come from, with lists of its own: the
/// machine's are left alone. Suites and releases that the mirror does not have are left out.
const FETCH: &str = r#"
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | sort -u | head -n 1)
if test -z "$mirror"; then
  echo 'apt has no list of a mirror of Debian: run apt-get update' >&2
  exit 1
fi
mkdir -p apt/lists/partial apt/cache/archives/partial fetched trees
for suite in bullseye bookworm trixie trixie-backports sid; do
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
done > apt/sources.list
options="-q -o APT::Sandbox::User=root -o Dir::Etc::sourcelist=$PWD/apt/sources.list -o Dir::Etc::sourceparts=-
  -o Dir::State::lists=$PWD/apt/lists -o Dir::Cache=$PWD/apt/cache"
apt-get $options update || true
apt-cache $options showsrc openssh | sed -n 's/^Version: //p' > apt/versions
number=0
while read -r release sum; do
  version=$(grep "^1:$release-" apt/versions | tail -n 1)
  test -n "$version" || continue
  sources=fetched/openssh_$release.orig.tar.gz
  (cd fetched; apt-get $options source --download-only --tar-only "openssh=$version")
  echo "$sum  $sources" | sha256sum --check --quiet
  mkdir trees/$number
  tar xf "$sources" -C trees/$number --no-same-owner --strip-components=1
  echo "$release" >> releases
  number=$((number + 1))
done < wanted
if test $number -lt 2; then
  echo "fewer than two of OpenSSH's releases $(cut -d ' ' -f 1 wanted | xargs) can be fetched from $mirror" >&2
  exit 1
fi
rm -rf apt fetched
"#;

/// Configures each release, and leaves all that a build uses. Patches make no empty files: the headers that configure leaves empty
/// get an empty line.
const CONFIGURE: &str = r#"
for tree in trees/*; do
  (cd $tree; ./configure CC=gcc CFLAGS='-O0 -w' > said)
  rm -rf $tree/said $tree/regress $tree/contrib $tree/config.log $tree/config.status $tree/.git*
  for header in $(find $tree -name '*.h' -empty); do echo > $header; done
done
"#;

/// The libraries that it is linked with, beside those of every C program.
const LIBRARIES: &str = r#"
for name in libcrypto.so libz.so libcrypt.so; do
  cp -L --parents "$(readlink -f "$(dirname "$(gcc -print-file-name=$name)")")/$name" tools
done
rm -rf trees
"#;

/// Compiles the tree anew.
const COMPILE: &str = r#"
compile() {
  find work -name '*.[oa]' -delete
  make -s -C work BUILDDIR=$PWD/work CC="gcc --sysroot=$PWD/tools" LD="gcc --sysroot=$PWD/tools" > build/said
}
"#;

/// The releases that could be fetched, a line each.
const FETCHED: &str = "releases";

fn fetched(dir: &Path) -> Result<String> {
    let path = dir.join(FETCHED);
    fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

pub(super) static SSH: Data = Data {
    name: "ssh",
    make: |dir, _, _| {
        write(dir, "wanted", WANTED)?;
        shell(dir, &format!("{FETCH}{CONFIGURE}"))?;
        patch_series(dir, "ssh.sh", COMPILE)?;
        let units: Vec<String> = (0..fetched(dir)?.lines().count())
            .flat_map(|number| {
                let tree = format!("trees/{number}");
                let beside = format!("{tree}/openbsd-compat");
                let flags = format!("-w -DHAVE_CONFIG_H -I {tree} -I {beside}/include");
                [
                    format!("{tree}/*.c {flags}"),
                    format!("{beside}/*.c -I {beside} {flags}"),
                ]
            })
            .collect();
        toolchain(
            dir,
            &units.join("\n"),
            &["make", "patch", "sed", "awk", "find", "ranlib"],
        )?;
        shell(dir, LIBRARIES)
    },
};

pub(super) fn ssh(dir: &Path, _: &Path, size: Size, _: &Tools) -> Result<Job> {
    let releases = fetched(dir)?;
    let releases: Vec<&str> = releases.lines().collect();
    let last = size.pick(1, releases.len() - 1);
    let mut job = patched(dir, "ssh.sh", last, &["work/ssh", "work/sshd"])?;
    let (learnt, measured) = (releases[0], releases[1..=last].join(", "));
    job.notes
        .push(format!("OpenSSH: {learnt} learnt, {measured} measured"));
    Ok(job)
}
