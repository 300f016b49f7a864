//! What people wait for after a reboot: starts of large programs, and walks over thousands of files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::build::Make;
use super::data::{Random, text};
use super::hot::git_environment;
use super::packages::{LmdbLookups, PYTHON, python};
use crate::case::{Case, Group, Job, Purpose, Size, Start, Workload};
use crate::disk::DiskKind;
use crate::process::Invocation;
use crate::tools::{Tools, shell, succeed};
use crate::tree::files_below;

/// Linux's sources, as Debian packs them.
pub(super) const SOURCES: &str = "/usr/src/linux-source-6.1.tar.xz";
/// Folders of them: 9,000 files for `--quick`, else 26,000.
const SMALL: &str = "include fs kernel";
const LARGE: &str = "include fs kernel net Documentation drivers/net";
/// Those that are there twice: 9,000 files each.
const COPIED: &str = "include fs kernel";
/// A word of few of their files.
const WORD: &str = "zlib_inflate";

/// A command over a working copy of sources under git.
struct Repository {
    words: &'static [&'static str],
}

/// rsync of a tree with a copy of it that lacks nothing.
struct Rsync;
/// Python importing generated modules.
struct Modules;
/// LibreOffice converting a letter.
pub(super) struct Office;
/// make of 200 C files, one after the other.
struct Build;

/// All of them, on every disk.
pub fn cases() -> Vec<Case> {
    let case = |name, about, needs, work| Case {
        name,
        group: Group::Start,
        about,
        disks: &[DiskKind::Hdd7200, DiskKind::NetworkSsd, DiskKind::Own],
        quick: &[],
        needs,
        purpose: Purpose::Gain,
        start: Start::Cold,
        work,
    };
    const LINUX: &[(&str, &str)] = &[
        (SOURCES, "linux-source-6.1"),
        ("git", "git"),
        ("xz", "xz-utils"),
    ];
    let repository = |words| Box::new(Repository { words }) as Box<dyn Workload>;
    vec![
        case(
            "grep-r",
            "grep -rl over 26,000 files",
            LINUX,
            repository(&["grep", "-rl", "--exclude-dir=.git", WORD, "."]),
        ),
        case(
            "tar",
            "tar of 26,000 files",
            LINUX,
            repository(&["sh", "-c", "tar cf - --exclude=.git . | wc -c"]),
        ),
        case(
            "git-status",
            "git status in 26,000 files",
            LINUX,
            repository(&["git", "status"]),
        ),
        case(
            "git-grep",
            "git grep in 26,000 files",
            LINUX,
            repository(&["git", "grep", "-l", WORD]),
        ),
        case(
            "rsync",
            "rsync -n of 9,000 files and their copies",
            &[
                (SOURCES, "linux-source-6.1"),
                ("rsync", "rsync"),
                ("xz", "xz-utils"),
            ],
            Box::new(Rsync),
        ),
        case(
            "modules",
            "python3: import of 1,500 modules",
            &[(PYTHON, "python3")],
            Box::new(Modules),
        ),
        case(
            "office",
            "LibreOffice: start, and convert a letter",
            &[(OFFICE_PROGRAM, "libreoffice-writer-nogui")],
            Box::new(Office),
        ),
        case(
            "build",
            "make of 200 C files, one at a time",
            &[("make", "make"), ("cc", "gcc")],
            Box::new(Build),
        ),
        case(
            "lmdb-map",
            "LMDB: 20,000 lookups, default flags",
            &[(PYTHON, "python3"), ("/usr/bin/pip3", "python3-pip")],
            // As most programs do: the kernel reads around each page. The store has 500 MB.
            Box::new(LmdbLookups {
                data: "lmdb-map",
                keys: 640_000,
                lookups: 20_000,
                options: "",
            }),
        ),
    ]
}

/// Unpacks `folders` of Linux's sources into `dir`.
fn unpack(dir: &Path, folders: &str) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
    let members: Vec<String> = folders
        .split(' ')
        .map(|folder| format!("linux-source-6.1/{folder}"))
        .collect();
    shell(
        dir,
        &format!(
            "tar xf {SOURCES} --no-same-owner --strip-components=1 {}",
            members.join(" ")
        ),
    )
}

impl Workload for Repository {
    fn data_name(&self) -> &'static str {
        "linux"
    }

    fn generate(&self, dir: &Path, size: Size, _: &Tools) -> Result<()> {
        unpack(dir, size.pick(SMALL, LARGE))?;
        // A copy on another disk has other inodes and change times, which say nothing: else git would read every file.
        shell(
            dir,
            "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
             export GIT_AUTHOR_NAME=bench GIT_AUTHOR_EMAIL=bench@localhost GIT_AUTHOR_DATE='2026-01-01T00:00:00Z'
             export GIT_COMMITTER_NAME=bench GIT_COMMITTER_EMAIL=bench@localhost
             export GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'
             git init -q -b main .; git config core.checkStat minimal; git config core.trustctime false
             git config gc.auto 0; git config core.compression 1
             git add .; git commit -q -m 'all of it'; git repack -a -d -q; git status > /dev/null",
        )
    }

    fn job(&self, dir: &Path, _: &Path, _: Size, _: &Tools) -> Result<Job> {
        let (program, args) = self.words.split_first().context("a command has words")?;
        Ok(Job {
            command: Invocation {
                program: program.into(),
                args: args.iter().map(Into::into).collect(),
                cwd: dir.to_owned(),
                env: git_environment(),
            },
            files: files_below(dir)?,
            ..Job::default()
        })
    }
}

impl Workload for Rsync {
    fn data_name(&self) -> &'static str {
        "linux-twice"
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        unpack(&dir.join("tree"), COPIED)?;
        unpack(&dir.join("copy"), COPIED)
    }

    fn job(&self, dir: &Path, _: &Path, _: Size, _: &Tools) -> Result<Job> {
        Ok(Job {
            command: Invocation {
                program: "rsync".into(),
                args: ["-an", "--itemize-changes", "tree/", "copy/"]
                    .map(Into::into)
                    .to_vec(),
                cwd: dir.to_owned(),
                env: Vec::new(),
            },
            files: files_below(dir)?,
            ..Job::default()
        })
    }
}

const PACKAGES: u64 = 30;
const MODULES: u64 = 50;

impl Workload for Modules {
    fn data_name(&self) -> &'static str {
        "modules"
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        let mut random = Random(17);
        let app = dir.join("site/app");
        let write = |path: PathBuf, content: String| {
            fs::write(&path, content).with_context(|| format!("writing {}", path.display()))
        };
        for package in 0..PACKAGES {
            let folder = app.join(format!("p{package}"));
            fs::create_dir_all(&folder)
                .with_context(|| format!("creating {}", folder.display()))?;
            for module in 0..MODULES {
                let mut body = format!("\"\"\"{}\"\"\"\n", text(&mut random, 1500));
                for function in 0..20 {
                    let words = text(&mut random, 60).replace('\n', " ");
                    body += &format!(
                        "def f{function}(x):\n    return '{words}' * x + str({function})\n\n\
                         class C{function}:\n    name = '{words}'\n    def get(self):\n        return self.name\n\n"
                    );
                }
                write(folder.join(format!("m{module}.py")), body)?;
            }
            let imports: String = (0..MODULES)
                .map(|module| format!("from . import m{module}\n"))
                .collect();
            write(folder.join("__init__.py"), imports)?;
        }
        let imports: String = (0..PACKAGES)
            .map(|package| format!("from . import p{package}\n"))
            .collect();
        write(app.join("__init__.py"), imports)?;
        let mut compile = Command::new(PYTHON);
        compile
            .args(["-m", "compileall", "-q", "site"])
            .current_dir(dir);
        succeed(&mut compile)
    }

    fn job(&self, dir: &Path, _: &Path, _: Size, _: &Tools) -> Result<Job> {
        let program =
            "import app, sys; print(len([m for m in sys.modules if m.startswith('app.')]))";
        Ok(Job {
            command: python(dir, vec!["-c".into(), program.into()]),
            files: files_below(dir)?,
            ..Job::default()
        })
    }
}

/// Where Debian has LibreOffice.
const OFFICE: &str = "/usr/lib/libreoffice";
pub(super) const OFFICE_PROGRAM: &str = "/usr/lib/libreoffice/program/soffice.bin";
/// The status with which it asks to be started again, once it has made a user's profile.
const AGAIN: i32 = 81;

impl Office {
    /// The start of the copy in `dir`, with the profile in the folder `profile`, output into `out`.
    fn command(dir: &Path, profile: &Path, out: &Path) -> Invocation {
        let profile = format!("-env:UserInstallation=file://{}", profile.display());
        Invocation {
            program: dir.join("office/program/soffice.bin"),
            args: vec![
                "--headless".into(),
                "--nologo".into(),
                profile.into(),
                "--convert-to".into(),
                "rtf".into(),
                "--outdir".into(),
                out.into(),
                dir.join("letter.txt").into(),
            ],
            cwd: dir.to_owned(),
            env: vec![("HOME".into(), out.into())],
        }
    }
}

impl Workload for Office {
    fn data_name(&self) -> &'static str {
        "office"
    }

    /// The program is copied, so that it lies on the disk under test, with the folders its links lead to.
    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        shell(
            dir,
            &format!(
                "mkdir office; cp -rL {OFFICE}/program {OFFICE}/share {OFFICE}/presets office/
                 sed -i -e 's|file://{OFFICE}|${{ORIGIN}}/..|' \
                     -e 's|file:///etc/libreoffice/registry|${{ORIGIN}}/../share/registry|g' \
                     office/program/fundamentalrc"
            ),
        )?;
        let letter = dir.join("letter.txt");
        fs::write(&letter, text(&mut Random(18), 3000))
            .with_context(|| format!("writing {}", letter.display()))
    }

    fn job(&self, dir: &Path, scratch: &Path, _: Size, _: &Tools) -> Result<Job> {
        let profile = scratch.join("profile");
        let command = Self::command(dir, &profile, scratch);
        if !profile.exists() {
            let run = crate::process::run(&command, scratch, &[])?;
            anyhow::ensure!(
                [0, AGAIN].contains(&run.outcome.status),
                "`{}` ended with status {}: {}",
                command.line(),
                run.outcome.status,
                run.stderr
            );
        }
        Ok(Job {
            command,
            files: files_below(dir)?,
            outputs: vec![scratch.join("letter.rtf")],
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
        let mut job = Make.job(dir, scratch, size, tools)?;
        job.command.args[0] = "-j1".into();
        Ok(job)
    }
}
