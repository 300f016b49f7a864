//! Working copies, modules and an office program: starts after a reboot, and everyday commands.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::data::{Random, text, write};
use super::packages::PYTHON;
use super::words::command;
use crate::case::{Data, Job, Size};
use crate::process::Invocation;
use crate::tools::{Tools, shell, succeed};
use crate::tree::files_below;

/// Linux's sources, as packed by Debian.
pub(super) const SOURCES: &str = "/usr/src/linux-source-6.1.tar.xz";
/// Folders of them: 9,000 files for `--quick`, else 26,000.
const SMALL: &str = "include fs kernel";
const LARGE: &str = "include fs kernel net Documentation drivers/net";
/// A word that few of the files contain.
pub(super) const WORD: &str = "zlib_inflate";
/// Ignores the user's settings, does not rewrite the index, and uses no pager.
pub(super) const GIT: &[(&str, &str)] = &[
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
];
/// Makes the same commits each time.
const COMMITTER: &str = "
    export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
    export GIT_AUTHOR_NAME=bench GIT_AUTHOR_EMAIL=bench@localhost GIT_AUTHOR_DATE='2026-01-01T00:00:00Z'
    export GIT_COMMITTER_NAME=bench GIT_COMMITTER_EMAIL=bench@localhost GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'
    git init -q -b main .
";

/// Unpacks `folders` of Linux's sources into `dir`.
fn unpack(dir: &Path, folders: &str) -> Result<()> {
    std::fs::create_dir_all(dir)?;
    let members: Vec<String> = folders
        .split(' ')
        .map(|folder| format!("linux-source-6.1/{folder}"))
        .collect();
    let members = members.join(" ");
    shell(
        dir,
        &format!("tar xf {SOURCES} --no-same-owner --strip-components=1 {members}"),
    )
}

/// A working copy of the sources under git.
pub(super) static LINUX: Data = Data {
    name: "linux",
    make: |dir, size, _| {
        unpack(dir, size.pick(SMALL, LARGE))?;
        // A copy on another disk has other inodes and change times. git ignores them, or it would read every file.
        shell(
            dir,
            &format!(
                "{COMMITTER}
                 git config core.checkStat minimal; git config core.trustctime false
                 git config gc.auto 0; git config core.compression 1
                 git add .; git commit -q -m 'all of it'; git repack -a -d -q; git status > /dev/null"
            ),
        )
    },
};

/// 9,000 of the files, and a copy of them.
pub(super) static LINUX_TWICE: Data = Data {
    name: "linux-twice",
    make: |dir, _, _| {
        unpack(&dir.join("tree"), SMALL)?;
        unpack(&dir.join("copy"), SMALL)
    },
};

/// No data.
pub(super) static EMPTY: Data = Data {
    name: "hot-empty",
    make: |_, _, _| Ok(()),
};

/// 2,000 small files under git, with 50 commits.
pub(super) static REPOSITORY: Data = Data {
    name: "hot-repository",
    make: |dir, _, _| {
        let mut random = Random(15);
        for file in 0..2000 {
            let bytes = 500 + random.below(8000) as usize;
            let name = format!("src/part{:02}/file{file}.c", file % 40);
            write(dir, &name, text(&mut random, bytes))?;
        }
        shell(
            dir,
            &format!(
                "{COMMITTER}
                 git add .; git commit -q -m 'all of it'
                 for n in $(seq 50); do
                   for n_file in 3 17 29; do echo \"change $n\" >> src/part$(printf %02d $n_file)/file$n_file.c; done
                   git commit -q -a -m \"change $n\"
                 done
                 git gc -q; git status > /dev/null"
            ),
        )
    },
};

/// Small files, and a script that runs a hundred small commands on them.
pub(super) static SCRIPT: Data = Data {
    name: "hot-script",
    make: |dir, _, _| {
        let mut random = Random(16);
        let mut lines = String::from("set -e\n");
        for n in 0..100 {
            let name = format!("notes{n}");
            write(dir, &name, text(&mut random, 4000))?;
            lines += &match n % 5 {
                0 => format!("sort {name} | head -n 3\n"),
                1 => format!("wc {name}\n"),
                2 => format!("sed -n 7p {name}\n"),
                3 => format!("awk '{{ n += NF }} END {{ print n }}' {name}\n"),
                _ => format!("cut -c 1-20 {name} | tail -n 2\n"),
            };
        }
        write(dir, "script", lines)
    },
};

const PACKAGES: u64 = 30;
const MODULES_EACH: u64 = 50;

/// Python modules, compiled.
pub(super) static MODULES: Data = Data {
    name: "modules",
    make: |dir, _, _| {
        let mut random = Random(17);
        for package in 0..PACKAGES {
            let folder = format!("site/app/p{package}");
            for module in 0..MODULES_EACH {
                let mut body = format!("\"\"\"{}\"\"\"\n", text(&mut random, 1500));
                for function in 0..20 {
                    let words = text(&mut random, 60).replace('\n', " ");
                    body += &format!(
                        "def f{function}(x):\n    return '{words}' * x + str({function})\n\n\
                         class C{function}:\n    name = '{words}'\n    def get(self):\n        return self.name\n\n"
                    );
                }
                write(dir, &format!("{folder}/m{module}.py"), body)?;
            }
            let imports: String = (0..MODULES_EACH)
                .map(|module| format!("from . import m{module}\n"))
                .collect();
            write(dir, &format!("{folder}/__init__.py"), imports)?;
        }
        let imports: String = (0..PACKAGES)
            .map(|package| format!("from . import p{package}\n"))
            .collect();
        write(dir, "site/app/__init__.py", imports)?;
        let mut compile = Command::new(PYTHON);
        compile
            .args(["-m", "compileall", "-q", "site"])
            .current_dir(dir);
        succeed(&mut compile)
    },
};

/// Debian's folder of LibreOffice.
const OFFICE_FOLDER: &str = "/usr/lib/libreoffice";
pub(super) const OFFICE_PROGRAM: &str = "/usr/lib/libreoffice/program/soffice.bin";
/// The status with which it asks to be started again after it has made a user's profile.
const AGAIN: i32 = 81;

/// A copy of the program, so that it is on the disk under test, with the folders that its links lead to; and a letter.
pub(super) static OFFICE: Data = Data {
    name: "office",
    make: |dir, _, _| {
        shell(
            dir,
            &format!(
                "mkdir office; cp -rL {OFFICE_FOLDER}/program {OFFICE_FOLDER}/share {OFFICE_FOLDER}/presets office/
                 sed -i -e 's|file://{OFFICE_FOLDER}|${{ORIGIN}}/..|' \
                     -e 's|file:///etc/libreoffice/registry|${{ORIGIN}}/../share/registry|g' \
                     office/program/fundamentalrc"
            ),
        )?;
        write(dir, "letter.txt", text(&mut Random(18), 3000))
    },
};

/// The start of the copy in `dir`, which converts the letter; the profile is made before.
pub(super) fn office(dir: &Path, scratch: &Path, _: Size, _: &Tools) -> Result<Job> {
    let profile = scratch.join("profile");
    let user = format!("-env:UserInstallation=file://{}", profile.display());
    let letter = dir.join("letter.txt").display().to_string();
    let (convert, out) = ("--convert-to", scratch.display().to_string());
    let words = [
        "--headless",
        "--nologo",
        &user,
        convert,
        "rtf",
        "--outdir",
        &out,
        &letter,
    ];
    let command = Invocation {
        env: vec![("HOME".into(), scratch.into())],
        ..command(dir.join("office/program/soffice.bin"), words, dir)
    };
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
