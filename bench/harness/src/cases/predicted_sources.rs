//! Other people's work in the cases of predicted files: a compiler and its headers, a kernel, and the releases of a package;
//! and the scripts that use it.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;

use super::data::write;
use super::start::SOURCES;
use super::words::command;
use crate::case::{Data, Job, Lesson, Size};
use crate::process::Invocation;
use crate::tools::{Tools, shell};
use crate::tree::files_below;

/// The folder that a case's command writes into.
pub(super) const BUILD: &str = "build";
/// Debian's glimpse.
pub(super) const GLIMPSE: &str = "/usr/bin/glimpseindex";

/// Copies programs with their libraries, and where there are C files the compiler with the headers that those need, into
/// `tools`, where each lies as it does below `/`.
const COPY_TOOLS: &str = r#"
mkdir -p tools
take() { for file; do cp -L --parents "$file" tools; done; }
libraries() { ldd "$1" | awk '/=> \//{print $3} /^\t\/[^ ]*ld-/{print $1}'; }
program() {
  real=$(readlink -f "$(command -v "$1")")
  take "$real" $(libraries "$real")
  mkdir -p tools/usr/bin
  test -e "tools/usr/bin/$1" || ln -s "$(basename "$real")" "tools/usr/bin/$1"
}
for name in $PROGRAMS; do program $name; done
if test -n "$UNITS"; then
  for name in gcc as ld ar; do program $name; done
  for name in cc1 collect2; do
    real=$(gcc -print-prog-name=$name)
    take "$real" $(libraries "$real")
  done
  own=$(dirname "$(gcc -print-libgcc-file-name)")
  cp -L --parents "$own"/*.o "$own"/*.a "$own"/*.so tools 2>/dev/null || true
  for name in crt1.o Scrt1.o crti.o crtn.o libc.so libc_nonshared.a libm.so; do
    take "$(readlink -f "$(gcc -print-file-name=$name)")"
  done
  take /lib/x86_64-linux-gnu/libc.so.6 /lib64/ld-linux-x86-64.so.2
  for name in libm.so.6 libmvec.so.1 libgcc_s.so.1; do take /lib/x86_64-linux-gnu/$name; done
  take $(echo "$UNITS" | while read -r units; do gcc -M $units; done | tr ' \\' '\n\n' | grep '^/' | sort -u)
fi
"#;

/// Puts the tools beside the data in `dir`: each line of `units` is arguments of a compiler that names all headers for them.
pub(super) fn toolchain(dir: &Path, units: &str, programs: &[&str]) -> Result<()> {
    let programs = programs.join(" ");
    shell(
        dir,
        &format!("UNITS='{units}'\nPROGRAMS='{programs}'\n{COPY_TOOLS}"),
    )
}

/// The environment that finds them.
fn tools_environment(dir: &Path) -> Vec<(OsString, OsString)> {
    let tools = dir.join("tools").display().to_string();
    vec![
        (
            "PATH".into(),
            format!("{tools}/usr/bin:/usr/bin:/bin").into(),
        ),
        (
            "LD_LIBRARY_PATH".into(),
            format!("{tools}/lib/x86_64-linux-gnu:{tools}/usr/lib/x86_64-linux-gnu").into(),
        ),
    ]
}

/// Seconds that the objects may take to compile: 3 min on two processors with nothing beside it.
const COMPILE_SECONDS: u64 = 600;

/// Compiles the smallest kernel once, keeps its objects, and has the linker work as in the paper: the objects of each
/// folder become one, and all of those a kernel. Where the compiling takes too long the objects that there are become one
/// for each folder, and no kernel.
const COMPILE: &str = r#"
mkdir tree
tar xf "$SOURCES" -C tree --no-same-owner --strip-components=1
cd tree
make -s ARCH=x86_64 tinyconfig > ../said 2>&1
timeout "$SECONDS_AT_MOST" make -s -j2 ARCH=x86_64 vmlinux >> ../said 2>&1 || echo unfinished > ../unfinished
if test -e ../unfinished
then find arch/x86 init kernel mm fs lib block drivers security -name '*.o' ! -name '*.mod.o' ! -path '*/boot/*' \
    ! -path '*/realmode/*' ! -path '*/vdso/*' | sort > ../all
else ar t vmlinux.a > ../all
fi
mkdir ../lists ../objects ../sources
number=0
for folder in $(xargs -n1 dirname < ../all | awk '!seen[$0]++'); do
  number=$((number + 1))
  grep "^$folder/[^/]*\$" ../all | sed 's|^|objects/|' > ../lists/$number
done
echo $number > ../count
tar cf - -T ../all | tar xf - -C ../objects
if ! test -e ../unfinished; then
  cp --parents lib/lib.a arch/x86/lib/lib.a arch/x86/kernel/vmlinux.lds ../objects
  for archive in lib/lib.a arch/x86/lib/lib.a; do
    rm ../objects/$archive
    ar rcD ../objects/$archive $(ar t $archive)
  done
fi
find kernel mm lib init block -name '*.[chS]' | tar cf - -T - | tar xf - -C ../sources
cd ..
rm -rf tree all said
"#;

/// The link.
const LINK: &str = r#"
count=$(cat count)
number=1
while test $number -le $count; do
  ld -m elf_x86_64 -r -o build/$number.o @lists/$number
  number=$((number + 1))
done
if test -e objects/lib/lib.a; then
  ld -m elf_x86_64 -z noexecstack --no-warn-rwx-segments -z max-page-size=0x200000 \
    -T objects/arch/x86/kernel/vmlinux.lds -o build/vmlinux $(seq -f build/%g.o 1 $count) \
    --start-group objects/lib/lib.a objects/arch/x86/lib/lib.a --end-group
fi
"#;

pub(super) static KERNEL: Data = Data {
    name: "ldkernel",
    make: |dir, _, _| {
        shell(
            dir,
            &format!("SOURCES={SOURCES}\nSECONDS_AT_MOST={COMPILE_SECONDS}\n{COMPILE}"),
        )?;
        write(dir, "link.sh", LINK)?;
        toolchain(dir, "", &["ld", "seq"])
    },
};

pub(super) fn kernel_link(dir: &Path, _: &Path, _: Size, _: &Tools) -> Result<Job> {
    let last = match dir.join("unfinished").exists() {
        true => "build/1.o",
        false => "build/vmlinux",
    };
    let mut job = script(dir, "link.sh", &[last])?;
    let sources = dir.join("sources");
    job.files.retain(|path| !path.starts_with(&sources));
    if last != "build/vmlinux" {
        job.notes.push(format!(
            "the kernel was not compiled within {COMPILE_SECONDS} s: fewer objects are linked, and no kernel"
        ));
    }
    Ok(job)
}

/// Releases of the Python package that carries zstd's sources, the oldest first, one for each release of zstd that it has.
const VERSIONS: [&str; 11] = [
    "1.4.0.0", "1.4.1.0", "1.4.3.2", "1.4.4.0", "1.4.5.1", "1.4.8.1", "1.4.9.1", "1.5.0.4",
    "1.5.1.0", "1.5.2.6", "1.5.4.1",
];

/// Fetches the sources.
const FETCH: &str = r#"
number=0
for version in $VERSIONS; do
  /usr/bin/python3 -m pip download --quiet --no-input --no-deps --no-binary :all: --dest fetched zstd==$version
  mkdir -p unpacked/$number
  tar xf fetched/zstd-$version.tar.gz -C unpacked/$number --no-same-owner --strip-components=1
  mkdir -p trees/$number
  sources=$(dirname "$(find unpacked/$number -name zstd.h | sort | head -n 1)")
  (cd $sources; find common compress decompress *.h -name '*.[chS]' | tar cf - -T -) | tar xf - -C trees/$number
  number=$((number + 1))
done
rm -rf fetched unpacked
"#;

/// Compiles the tree anew.
const COMPILE_RELEASE: &str = r#"
compile() {
  rm -f build/*.o build/libzstd.a
  for unit in work/*/*.c; do
    name=$(echo ${unit#work/} | tr / -)
    gcc --sysroot=$PWD/tools -O0 -w -DZSTD_DISABLE_ASM -I work -I work/common -c $unit -o build/${name%.c}.o
  done
  ar rcD build/libzstd.a build/*.o
}
"#;

pub(super) static RELEASES: Data = Data {
    name: "releases",
    make: |dir, _, _| {
        let versions = VERSIONS.join(" ");
        shell(dir, &format!("VERSIONS='{versions}'\n{FETCH}"))?;
        patch_series(dir, "releases.sh", COMPILE_RELEASE)?;
        // Later releases include headers that the first does not.
        let units: Vec<String> = (0..VERSIONS.len())
            .map(|number| {
                let tree = format!("trees/{number}");
                format!("{tree}/*/*.c -w -DZSTD_DISABLE_ASM -I {tree} -I {tree}/common")
            })
            .collect();
        toolchain(dir, &units.join("\n"), &["patch", "tr"])?;
        shell(dir, "rm -rf trees")
    },
};

pub(super) fn releases(dir: &Path, _: &Path, size: Size, _: &Tools) -> Result<Job> {
    let last = size.pick(2, VERSIONS.len() - 1);
    patched(dir, "releases.sh", last, &["build/libzstd.a"])
}

/// Makes the patches between releases, whose sources are in `trees`, by number.
const PATCHES: &str = r#"
mkdir patches
number=1
while test -d trees/$number; do
  diff -Naur trees/$((number - 1)) trees/$number > patches/$number || test $? = 1
  number=$((number + 1))
done
cp -a trees/0 release
cp -a release work
"#;

/// Compiles the tree, or each release up to number $1, patched from the one before.
const BUILD_RELEASES: &str = r#"
if test $1 = 0; then
  compile
else
  number=1
  while test $number -le $1; do
    patch -s -E -d work -p2 < patches/$number
    compile
    number=$((number + 1))
  done
fi
"#;

/// Makes the patches between the releases in `trees`, and the script `name` that builds them; `compile` is a shell function of that
/// name, which compiles the folder `work` anew.
pub(super) fn patch_series(dir: &Path, name: &str, compile: &str) -> Result<()> {
    shell(dir, PATCHES)?;
    write(dir, name, format!("{compile}{BUILD_RELEASES}"))
}

/// Releases of a package, of which a script compiles the first, or patches and compiles each of those up to a number: the first is
/// learnt from, and the others, up to `last`, are measured. The tree that is patched, `work`, is a copy of `release`, made
/// anew before each run.
pub(super) fn patched(dir: &Path, name: &str, last: usize, outputs: &[&str]) -> Result<Job> {
    let up_to = |number: usize| {
        let mut steps = steps(dir, name);
        steps.args.push(number.to_string().into());
        steps
    };
    let job = script(dir, name, outputs)?;
    let work = dir.join("work");
    Ok(Job {
        command: up_to(last),
        files: job
            .files
            .into_iter()
            .filter(|path| !path.starts_with(&work))
            .collect(),
        lesson: Lesson {
            teach: vec![up_to(0)],
            before: Some(command(
                "/bin/sh",
                ["-ec", "rm -rf work; cp -a release work; mkdir -p build"],
                dir,
            )),
            ..Lesson::default()
        },
        fresh_dir: job.fresh_dir,
        outputs: job.outputs,
        ..Job::default()
    })
}

/// A shell script of the data folder `dir`, run with the tools beside it.
pub(super) fn script(dir: &Path, name: &str, outputs: &[&str]) -> Result<Job> {
    let files = files_below(dir)?.into_iter();
    let build = dir.join(BUILD);
    Ok(Job {
        command: steps(dir, name),
        files: files.filter(|path| !path.starts_with(&build)).collect(),
        outputs: outputs.iter().map(|output| dir.join(output)).collect(),
        fresh_dir: Some(build),
        ..Job::default()
    })
}

/// The command of a script in `dir`.
fn steps(dir: &Path, name: &str) -> Invocation {
    Invocation {
        env: tools_environment(dir),
        ..command("/bin/sh", ["-e", name], dir)
    }
}
