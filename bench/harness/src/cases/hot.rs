//! Commands of every day with everything in memory, under `foreread run` with their record: what they cost more.
//!
//! Each is measured twice: on processors that are free, and beside a busy loop on each of them.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::build::Make;
use super::data::{Random, text};
use crate::case::{Case, Group, Job, Purpose, Size, Start, Workload};
use crate::disk::DiskKind;
use crate::process::Invocation;
use crate::tools::{Tools, shell};

/// Processes that the loop starts.
pub const LOOP: u64 = 200;
/// Small commands that the script starts.
const SCRIPT: u64 = 100;
const SOURCES: u64 = 2000;
const COMMITS: u64 = 50;

/// The system's headers: many small files.
const HEADERS: &str = "/usr/include";

/// The folder of data that a command runs in.
#[derive(Clone, Copy)]
enum Data {
    /// None.
    Empty,
    /// A working copy under git.
    Repository,
    /// Small files and a script of many commands over them.
    Script,
}

/// One command.
struct Hot {
    data: Data,
    words: Vec<OsString>,
    /// What it ends with.
    status: i32,
    busy: bool,
}

/// A parallel build.
struct Build {
    busy: bool,
}

type Needs = &'static [(&'static str, &'static str)];
/// Names free and busy, what it is, what it needs, its data, its words, its status.
type Row = (
    [&'static str; 2],
    &'static str,
    Needs,
    Data,
    &'static [&'static str],
    i32,
);

const ROWS: &[Row] = &[
    (
        ["hot-grep", "busy-grep"],
        "grep -rl foobarbaz /usr/include",
        &[("grep", "grep")],
        Data::Empty,
        // It finds nothing.
        &["grep", "-rl", "foobarbaz", HEADERS],
        1,
    ),
    (
        ["hot-tar", "busy-tar"],
        "tar cf - /usr/include | md5sum",
        &[("tar", "tar")],
        Data::Empty,
        &["sh", "-c", "tar cf - /usr/include 2> /dev/null | md5sum"],
        0,
    ),
    (
        ["hot-loop", "busy-loop"],
        "a shell that runs /bin/true 200 times",
        &[],
        Data::Empty,
        // As often as LOOP says.
        &["sh", "-c", "for i in $(seq 200); do /bin/true; done"],
        0,
    ),
    (
        ["hot-script", "busy-script"],
        "a shell script of 100 small commands",
        &[("awk", "mawk")],
        Data::Script,
        &["sh", "script"],
        0,
    ),
    (
        ["hot-python", "busy-python"],
        "python3 -c pass",
        &[("python3", "python3")],
        Data::Empty,
        // The one of the system: what another version comes by may be a shell script.
        &["/usr/bin/python3", "-c", "pass"],
        0,
    ),
    (
        ["hot-status", "busy-status"],
        "git status in 2,000 files",
        &[("git", "git")],
        Data::Repository,
        &["git", "status"],
        0,
    ),
    (
        ["hot-log", "busy-log"],
        "git log of 50 commits",
        &[("git", "git")],
        Data::Repository,
        &["git", "log", "--stat"],
        0,
    ),
    (
        ["hot-find", "busy-find"],
        "find of large files in /usr/include",
        &[("find", "findutils")],
        Data::Empty,
        &["find", HEADERS, "-type", "f", "-size", "+100k"],
        0,
    ),
    (
        ["hot-true", "busy-true"],
        "true",
        &[],
        Data::Empty,
        &["/bin/true"],
        0,
    ),
];

/// Each command free and busy.
pub fn cases() -> Vec<Case> {
    const OWN: &[DiskKind] = &[DiskKind::Own];
    let case = |name, about, quick: bool, needs, work| Case {
        name,
        group: Group::Hot,
        about,
        disks: OWN,
        quick: if quick { OWN } else { &[] },
        needs,
        purpose: Purpose::NoHarm,
        start: Start::Hot,
        work,
    };
    let mut cases = Vec::new();
    for busy in [false, true] {
        for &(names, about, needs, data, words, status) in ROWS {
            let work = Hot {
                data,
                words: words.iter().map(Into::into).collect(),
                status,
                busy,
            };
            let name = names[usize::from(busy)];
            cases.push(case(name, about, !busy, needs, Box::new(work)));
        }
        cases.push(case(
            ["hot-make", "busy-make"][usize::from(busy)],
            "make -j2 of 200 C files",
            false,
            &[("make", "make"), ("cc", "gcc")],
            Box::new(Build { busy }),
        ));
    }
    cases
}

impl Workload for Hot {
    fn data_name(&self) -> &'static str {
        match self.data {
            Data::Empty => "hot-empty",
            Data::Repository => "hot-repository",
            Data::Script => "hot-script",
        }
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        match self.data {
            Data::Empty => Ok(()),
            Data::Repository => repository(dir),
            Data::Script => script(dir),
        }
    }

    fn job(&self, dir: &Path, _: &Path, _: Size, _: &Tools) -> Result<Job> {
        let (program, args) = self.words.split_first().context("a command has words")?;
        Ok(Job {
            command: Invocation {
                program: program.into(),
                args: args.to_vec(),
                cwd: dir.to_owned(),
                env: git_environment(),
            },
            status: self.status,
            busy: self.busy,
            ..Job::default()
        })
    }
}

impl Workload for Build {
    fn data_name(&self) -> &'static str {
        Make.data_name()
    }

    fn generate(&self, dir: &Path, size: Size, tools: &Tools) -> Result<()> {
        Make.generate(dir, size, tools)
    }

    fn job(&self, dir: &Path, scratch: &Path, size: Size, tools: &Tools) -> Result<Job> {
        Ok(Job {
            // The sources are in memory once the command has run.
            files: Vec::new(),
            busy: self.busy,
            ..Make.job(dir, scratch, size, tools)?
        })
    }
}

/// The user's settings are not read, the index is not rewritten, and nothing is paged.
pub(super) fn git_environment() -> Vec<(OsString, OsString)> {
    [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_PAGER", "cat"),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .to_vec()
}

/// A working copy with some history, the same each time.
fn repository(dir: &Path) -> Result<()> {
    let mut random = Random(15);
    for file in 0..SOURCES {
        let folder = dir.join(format!("src/part{:02}", file % 40));
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let path = folder.join(format!("file{file}.c"));
        let bytes = 500 + random.below(8000) as usize;
        fs::write(&path, text(&mut random, bytes))
            .with_context(|| format!("writing {}", path.display()))?;
    }
    shell(
        dir,
        &format!(
            "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
             export GIT_AUTHOR_NAME=bench GIT_AUTHOR_EMAIL=bench@localhost GIT_AUTHOR_DATE='2026-01-01T00:00:00Z'
             export GIT_COMMITTER_NAME=bench GIT_COMMITTER_EMAIL=bench@localhost
             export GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'
             git init -q -b main .; git add .; git commit -q -m 'all of it'
             for n in $(seq {COMMITS}); do
               for n_file in 3 17 29; do echo \"change $n\" >> src/part$(printf %02d $n_file)/file$n_file.c; done
               git commit -q -a -m \"change $n\"
             done
             git gc -q; git status > /dev/null"
        ),
    )
}

/// Small files, and a script that goes over them with small commands.
fn script(dir: &Path) -> Result<()> {
    let mut random = Random(16);
    let mut lines = String::from("set -e\n");
    for n in 0..SCRIPT {
        let name = format!("notes{n}");
        let path = dir.join(&name);
        fs::write(&path, text(&mut random, 4000))
            .with_context(|| format!("writing {}", path.display()))?;
        lines += &match n % 5 {
            0 => format!("sort {name} | head -n 3\n"),
            1 => format!("wc {name}\n"),
            2 => format!("sed -n 7p {name}\n"),
            3 => format!("awk '{{ n += NF }} END {{ print n }}' {name}\n"),
            _ => format!("cut -c 1-20 {name} | tail -n 2\n"),
        };
    }
    let path = dir.join("script");
    fs::write(&path, lines).with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_measured_free_and_busy() {
        let cases = cases();
        let with = |prefix: &str| -> Vec<&str> {
            let names = cases.iter().map(|case| case.name);
            names.filter_map(|name| name.strip_prefix(prefix)).collect()
        };
        assert_eq!(with("hot-"), with("busy-"));
        assert_eq!(with("hot-").len() * 2, cases.len());
    }

    #[test]
    fn the_loop_starts_as_many_processes_as_its_cost_is_divided_by() {
        let loops = ROWS.iter().find(|row| row.0[0] == "hot-loop");
        let (.., words, _) = loops.expect("the loop");
        assert!(words[2].contains(&format!("$(seq {LOOP})")), "{words:?}");
    }

    #[test]
    fn what_git_and_the_script_work_on_is_made_and_gives_the_same_each_time() {
        let tools = Tools {
            root: "/".into(),
            checkout: "/".into(),
        };
        for row in ROWS.iter().filter(|row| !matches!(row.3, Data::Empty)) {
            if row
                .2
                .iter()
                .any(|(program, _)| !crate::tools::in_path(program))
            {
                println!("skipped: {}: no {:?}", row.0[0], row.2);
                continue;
            }
            let hot = Hot {
                data: row.3,
                words: row.4.iter().map(Into::into).collect(),
                status: row.5,
                busy: false,
            };
            let (dir, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            hot.generate(dir.path(), Size::Quick, &tools).unwrap();
            let job = hot
                .job(dir.path(), scratch.path(), Size::Quick, &tools)
                .unwrap();
            let run = || crate::process::run(&job.command, scratch.path(), &[]).unwrap();
            let (first, second) = (run(), run());
            assert_eq!(first.outcome, second.outcome, "{}", row.0[0]);
            assert_eq!(first.outcome.status, row.5, "{}", first.stderr);
            assert!(!first.stdout.is_empty(), "{}", row.0[0]);
        }
    }
}
