//! Programs that open many files in much the same order each time, for `foreread daemon`.
//!
//! They are those of section 4 of "Design and Implementation of a Predictive File Prefetching Algorithm" (Kroeger and Long,
//! USENIX 2001), and the starts of two large programs. Their tools are copied beside their data, so that a compiler and its
//! headers are on the disk under test, too.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::data::{Random, text, write};
use super::predicted_sources::{BUILD, KERNEL, RELEASES, kernel_link, releases, script, toolchain};
use super::words::{Made, command};
use crate::case::{Data, Job, Lesson, Size, Workload};
use crate::tools::{Tools, shell};

/// C files, and headers: with the number of lines of the benchmark of 1988, 11,215 in 431 KiB.
const UNITS: u64 = 17;
const HEADERS: u64 = 24;
const FUNCTIONS: u64 = 60;

/// Compiles all units, links two libraries, and links a program with them.
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

pub(super) static ANDREW_SOURCES: Data = Data {
    name: "andrew",
    make: |dir, _, _| {
        let mut random = Random(29);
        for header in 0..HEADERS {
            let comment = text(&mut random, 1200);
            let mut body = format!("#ifndef H{header}\n#define H{header}\n/* {comment} */\n");
            for unit in 0..UNITS {
                body += &format!("#define H{header}_{unit}(x) ((x) * {unit} + {header})\n");
            }
            write(dir, &format!("include/h{header}.h"), body + "#endif\n")?;
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
            write(dir, &format!("src/unit{unit}.c"), body)?;
        }
        write(dir, "andrew.sh", ANDREW)?;
        toolchain(dir, "src/*.c -I include", &[])
    },
};

pub(super) fn andrew(dir: &Path, _: &Path, _: Size, _: &Tools) -> Result<Job> {
    script(dir, "andrew.sh", &["build/program"])
}

/// Copies the documentation, or a third of it with `--quick`.
const COPY_DOCUMENTS: &str = "\
mkdir docs
cd /usr/share/doc
find . -type f -size -512k | sort | awk \"NR % $EACH == 0\" | tar cf - -T - | tar xf - -C \"$OLDPWD/docs\"
";

/// Its output has varying sizes and dates; the index itself is compared.
const INDEX: &str = "\
glimpseindex -H build docs > build/said 2>&1
rm build/said
";

pub(super) static DOCUMENTS: Data = Data {
    name: "glimpse",
    make: |dir, size, _| {
        let each = size.pick(3, 1);
        shell(dir, &format!("EACH={each}\n{COPY_DOCUMENTS}"))?;
        write(dir, "glimpse.sh", INDEX)?;
        toolchain(dir, "", &["glimpseindex"])
    },
};

pub(super) fn glimpse(dir: &Path, _: &Path, _: Size, _: &Tools) -> Result<Job> {
    script(dir, "glimpse.sh", &["build/.glimpse_index"])
}

/// Runs of each of the four programs to learn from, as in section 4.6.
const TEN: usize = 10;

/// The four programs: folder within the case's, data, and command.
type Part = (&'static str, &'static Data, Made);

fn parts() -> [Part; 4] {
    [
        ("andrew", &ANDREW_SOURCES, Made(andrew)),
        ("ldkernel", &KERNEL, Made(kernel_link)),
        ("patch", &RELEASES, Made(releases)),
        ("glimpse", &DOCUMENTS, Made(glimpse)),
    ]
}

/// Copies the data, which is generated once for its own case, to `into`.
fn copied(data: &Data, into: &Path, size: Size, tools: &Tools) -> Result<()> {
    let from = data.folder(size, tools)?;
    let (from, into) = (from.display(), into.display());
    shell(&tools.root, &format!("cp -a '{from}' '{into}'"))
}

pub(super) static ALL_FOUR: Data = Data {
    name: "multi-glimpse",
    make: |dir, size, tools| {
        for (name, data, _) in parts() {
            copied(data, &dir.join(name), size, tools)?;
        }
        Ok(())
    },
};

pub(super) fn many_patterns(dir: &Path, scratch: &Path, size: Size, tools: &Tools) -> Result<Job> {
    let mut teach = Vec::new();
    for (name, _, work) in parts() {
        let job = work.job(&dir.join(name), scratch, size, tools)?;
        fs::create_dir_all(dir.join(name).join(BUILD)).context("creating a build folder")?;
        let first = job.lesson.teach.first();
        teach.push(first.unwrap_or(&job.command).clone());
    }
    let glimpse = dir.join("glimpse");
    let job = self::glimpse(&glimpse, scratch, size, tools)?;
    Ok(Job {
        lesson: Lesson {
            teach,
            times: size.pick(None, Some(TEN)),
            ..Lesson::default()
        },
        ..job
    })
}

/// The link of a kernel, with a search of its sources after each run.
pub(super) fn link_and_search(
    dir: &Path,
    scratch: &Path,
    size: Size,
    tools: &Tools,
) -> Result<Job> {
    let mut job = kernel_link(dir, scratch, size, tools)?;
    // The sources do not contain this name: grep fails with its status.
    let search = ["-c", "! grep -r ELVIS sources"];
    job.lesson.between = Some(command("/bin/sh", search, dir));
    Ok(job)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{self, Invocation};
    use crate::tools::in_path;

    /// Runs a job once; if it fails, the message has its standard error.
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
        let dir = ANDREW_SOURCES.folder(Size::Quick, &tools).expect("data");
        let job = andrew(&dir, &dir, Size::Quick, &tools).expect("a job");
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
        // The same objects each time, since runs are compared by their output.
        let first = fs::read(&job.outputs[0]).expect("a program");
        job.clear_outputs().expect("an empty folder");
        done(&job.command, &dir);
        assert!(first == fs::read(&job.outputs[0]).expect("a program"));
    }
}
