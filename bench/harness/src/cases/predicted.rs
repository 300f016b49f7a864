//! Programs that open many files in much the same order each time: what `foreread daemon` is measured by.
//!
//! They are those of section 4 of "Design and Implementation of a Predictive File Prefetching Algorithm" (Kroeger and
//! Long, USENIX 2001), and the starts of two large programs. Their tools are copied beside their data, so that a compiler
//! and its headers lie on the disk under test, too.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::data::{Random, text};
use super::packages::{PYTHON, PythonImport};
use super::predicted_sources::{BUILD, GLIMPSE, KernelLink, Releases, script, toolchain};
use super::start::{OFFICE_PROGRAM, Office};
use crate::case::{Case, Group, Job, Lesson, Purpose, Size, Start, Workload};
use crate::disk::DiskKind;
use crate::process::Invocation;
use crate::tools::{Tools, shell};

/// A compile as in phase 5 of the Andrew benchmark.
struct Andrew;
/// glimpseindex over a copy of the documentation.
struct Glimpse;
/// glimpseindex, after all four of the paper's programs were learnt.
struct ManyPatterns;
/// The link of a kernel, with a search of its sources after each.
struct LinkAndSearch;

/// All of them, on every disk.
pub fn cases() -> Vec<Case> {
    let case = |name, about, needs, work| Case {
        name,
        group: Group::Files,
        about,
        disks: &[DiskKind::Hdd7200, DiskKind::NetworkSsd, DiskKind::Own],
        quick: &[],
        needs,
        purpose: Purpose::Gain,
        start: Start::Cold,
        work,
    };
    const COMPILER: &[(&str, &str)] = &[("gcc", "gcc"), ("ar", "binutils")];
    const KERNEL: &[(&str, &str)] = &[
        (super::start::SOURCES, "linux-source-6.1"),
        ("gcc", "gcc"),
        ("make", "make"),
        ("flex", "flex"),
        ("bison", "bison"),
        ("bc", "bc"),
        ("xz", "xz-utils"),
    ];
    const RELEASES: &[(&str, &str)] = &[
        ("gcc", "gcc"),
        ("patch", "patch"),
        ("diff", "diffutils"),
        ("/usr/bin/pip3", "python3-pip"),
    ];
    const ALL: &[(&str, &str)] = &[
        (super::start::SOURCES, "linux-source-6.1"),
        ("gcc", "gcc"),
        ("make", "make"),
        ("flex", "flex"),
        ("bison", "bison"),
        ("bc", "bc"),
        ("xz", "xz-utils"),
        ("patch", "patch"),
        ("/usr/bin/pip3", "python3-pip"),
        (GLIMPSE, "glimpse"),
    ];
    vec![
        case(
            "andrew",
            "17 C files, two libraries, a program",
            COMPILER,
            Box::new(Andrew) as Box<dyn Workload>,
        ),
        case(
            "ldkernel",
            "ld: a kernel from 392 objects in 39 steps",
            KERNEL,
            Box::new(KernelLink),
        ),
        case(
            "glimpse",
            "glimpseindex over /usr/share/doc",
            &[(GLIMPSE, "glimpse")],
            Box::new(Glimpse),
        ),
        case(
            "patch",
            "zstd: ten releases, patched and compiled",
            RELEASES,
            Box::new(Releases),
        ),
        case(
            "multi-glimpse",
            "glimpse, after all four were learnt",
            ALL,
            Box::new(ManyPatterns),
        ),
        case(
            "multi-ld",
            "ldkernel, a search between the runs",
            KERNEL,
            Box::new(LinkAndSearch),
        ),
        case(
            "python-start",
            "python3: import numpy, pandas, scipy",
            &[(PYTHON, "python3"), ("/usr/bin/pip3", "python3-pip")],
            Box::new(PythonImport),
        ),
        case(
            "office-start",
            "LibreOffice: start, and convert a letter",
            &[(OFFICE_PROGRAM, "libreoffice-writer-nogui")],
            Box::new(Office),
        ),
    ]
}

/// C files, and headers: as many lines as in the benchmark of 1988, 11,215 in 431 KiB.
const UNITS: u64 = 17;
const HEADERS: u64 = 24;
const FUNCTIONS: u64 = 60;

/// Compiles all units, links two libraries, and a program with them.
const ANDREW: &str = "\
flags=\"--sysroot=$PWD/tools -O0 -I include\"
for unit in src/*.c; do
  name=${unit#src/}
  gcc $flags -c $unit -o build/${name%.c}.o
done
ar rcD build/libone.a build/unit[1-8].o
ar rcD build/libtwo.a build/unit9.o build/unit1?.o
gcc $flags -o build/program build/unit0.o -Lbuild -lone -ltwo
";

impl Workload for Andrew {
    fn data_name(&self) -> &'static str {
        "andrew"
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        let mut random = Random(29);
        let write = |name: String, content: String| {
            let path = dir.join(name);
            fs::write(&path, content).with_context(|| format!("writing {}", path.display()))
        };
        for folder in ["src", "include"] {
            fs::create_dir_all(dir.join(folder)).with_context(|| format!("creating {folder}"))?;
        }
        for header in 0..HEADERS {
            let comment = text(&mut random, 1200);
            let mut body = format!("#ifndef H{header}\n#define H{header}\n/* {comment} */\n");
            for unit in 0..UNITS {
                body += &format!("#define H{header}_{unit}(x) ((x) * {unit} + {header})\n");
            }
            write(format!("include/h{header}.h"), body + "#endif\n")?;
        }
        for unit in 0..UNITS {
            let mut body =
                String::from("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n");
            let mine: Vec<u64> = (0..8).map(|n| (unit * 5 + n * 3) % HEADERS).collect();
            for header in &mine {
                body += &format!("#include \"h{header}.h\"\n");
            }
            for function in 0..FUNCTIONS {
                let words = text(&mut random, 60).replace('\n', " ");
                let header = mine[function as usize % mine.len()];
                body += &format!(
                    "/* {words} */\nint f{unit}_{function}(int x, char *to) {{\n  int sum = 0;\n  for (int i = 0; i < x; \
                     i++) {{\n    sum += H{header}_{unit}(i);\n    if (sum % 7 == {function} % 7)\n      to[i % 16] = \
                     (char)sum;\n  }}\n  return sum + (int)strlen(to);\n}}\n"
                );
            }
            if unit == 0 {
                body += "int f1_0(int, char *);\nint f9_0(int, char *);\nint main(void) {\n  char to[17] = \
                         \"\";\n  printf(\"%d\\n\", f1_0(9, to) + f9_0(9, to));\n  return 0;\n}\n";
            }
            write(format!("src/unit{unit}.c"), body)?;
        }
        write("andrew.sh".into(), ANDREW.into())?;
        toolchain(dir, "src/*.c -I include", &[])
    }

    fn job(&self, dir: &Path, _: &Path, _: Size, _: &Tools) -> Result<Job> {
        script(dir, "andrew.sh", &["build/program"])
    }
}

/// Copies the documentation, or with `--quick` a third of it.
const COPY_DOCUMENTS: &str = "\
mkdir docs
cd /usr/share/doc
find . -type f -size -512k | sort | awk \"NR % $EACH == 0\" | tar cf - -T - | tar xf - -C \"$OLDPWD/docs\"
";

/// What it prints has sizes in units of its own and dates; the index itself is compared.
const INDEX: &str = "\
glimpseindex -H build docs > build/said 2>&1
rm build/said
";

impl Workload for Glimpse {
    fn data_name(&self) -> &'static str {
        "glimpse"
    }

    fn generate(&self, dir: &Path, size: Size, _: &Tools) -> Result<()> {
        let each = size.pick(3, 1);
        shell(dir, &format!("EACH={each}\n{COPY_DOCUMENTS}"))?;
        fs::write(dir.join("glimpse.sh"), INDEX).context("writing glimpse.sh")?;
        toolchain(dir, "", &["glimpseindex"])
    }

    fn job(&self, dir: &Path, _: &Path, _: Size, _: &Tools) -> Result<Job> {
        script(dir, "glimpse.sh", &["build/.glimpse_index"])
    }
}

/// How often each of the four programs is learnt, as in section 4.6.
const TEN: usize = 10;

/// The folders with the four programs' data, in the one of the case.
fn parts() -> [(&'static str, Box<dyn Workload>); 4] {
    [
        ("andrew", Box::new(Andrew)),
        ("ldkernel", Box::new(KernelLink)),
        ("patch", Box::new(Releases)),
        ("glimpse", Box::new(Glimpse)),
    ]
}

/// Copies the data of `work`, which is generated once for the case of its own, to `into`.
fn copied(work: &dyn Workload, into: &Path, size: Size, tools: &Tools) -> Result<()> {
    let from = crate::case::data(work, size, tools)?;
    let (from, into) = (from.display(), into.display());
    shell(&tools.root, &format!("cp -a '{from}' '{into}'"))
}

impl Workload for ManyPatterns {
    fn data_name(&self) -> &'static str {
        "multi-glimpse"
    }

    fn generate(&self, dir: &Path, size: Size, tools: &Tools) -> Result<()> {
        for (name, work) in parts() {
            copied(work.as_ref(), &dir.join(name), size, tools)?;
        }
        Ok(())
    }

    fn job(&self, dir: &Path, scratch: &Path, size: Size, tools: &Tools) -> Result<Job> {
        let mut teach = Vec::new();
        for (name, work) in parts() {
            let job = work.job(&dir.join(name), scratch, size, tools)?;
            fs::create_dir_all(dir.join(name).join(BUILD)).context("creating a build folder")?;
            let first = job.lesson.teach.first();
            teach.push(first.unwrap_or(&job.command).clone());
        }
        let glimpse = dir.join("glimpse");
        let job = Glimpse.job(&glimpse, scratch, size, tools)?;
        Ok(Job {
            lesson: Lesson {
                teach,
                times: size.pick(None, Some(TEN)),
                ..Lesson::default()
            },
            ..job
        })
    }
}

impl Workload for LinkAndSearch {
    fn data_name(&self) -> &'static str {
        KernelLink.data_name()
    }

    fn generate(&self, dir: &Path, size: Size, tools: &Tools) -> Result<()> {
        KernelLink.generate(dir, size, tools)
    }

    fn job(&self, dir: &Path, scratch: &Path, size: Size, tools: &Tools) -> Result<Job> {
        let mut job = KernelLink.job(dir, scratch, size, tools)?;
        job.lesson.between = Some(Invocation {
            program: "/bin/sh".into(),
            // Nobody of that name is in the sources: grep says so with its status.
            args: vec!["-c".into(), "! grep -r ELVIS sources".into()],
            cwd: dir.to_owned(),
            env: Vec::new(),
        });
        Ok(job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;
    use crate::tools::in_path;

    /// Runs a job once; what it wrote to standard error is in the message if it fails.
    fn done(command: &Invocation, dir: &Path) {
        let run = process::run(command, dir, &[]).expect("a run");
        assert_eq!(run.outcome.status, 0, "{}", run.stderr);
    }

    #[test]
    fn andrew_is_compiled_by_the_tools_beside_its_sources() {
        let lacking = ["gcc", "ar", "ld"].into_iter().find(|tool| !in_path(tool));
        if let Some(tool) = lacking {
            println!("skipped: {tool} is missing");
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let tools = Tools {
            root: folder.path().to_owned(),
            checkout: folder.path().to_owned(),
        };
        let dir = crate::case::data(&Andrew, Size::Quick, &tools).expect("data");
        let job = Andrew.job(&dir, &dir, Size::Quick, &tools).expect("a job");
        job.clear_outputs().expect("an empty folder");
        assert!(job.files.iter().any(|file| file.ends_with("cc1")));
        done(&job.command, &dir);
        let program = process::Invocation {
            program: job.outputs[0].clone(),
            cwd: dir.clone(),
            ..process::Invocation::default()
        };
        done(&program, &dir);
        let asked = process::Invocation {
            program: "/bin/sh".into(),
            args: vec![
                "-c".into(),
                "gcc -print-prog-name=cc1; command -v ld".into(),
            ],
            ..job.command.clone()
        };
        let said = process::run(&asked, &dir, &[]).expect("a run").stdout;
        let below = |line: &str| Path::new(line).starts_with(&dir);
        assert!(
            said.lines().count() == 2 && said.lines().all(below),
            "{said}"
        );
        // The same objects each time: runs are compared by their output.
        let first = fs::read(&job.outputs[0]).expect("a program");
        job.clear_outputs().expect("an empty folder");
        done(&job.command, &dir);
        assert!(first == fs::read(&job.outputs[0]).expect("a program"));
    }
}
