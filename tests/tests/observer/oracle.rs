//! The reads of real programs, compared with strace's account.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use foreread_ring::What;
use foreread_tests::{Need, check};

use super::harness::{Seen, Stage, library, observe};
use foreread_tests::suite::{ALL, Test};

pub const TESTS: &[Test] = &[
    (
        "the_kernel_saw_the_same_reads_of_python",
        ALL,
        &[Need::Command("strace")],
        python,
    ),
    (
        "the_kernel_saw_the_same_reads_of_a_compiler",
        ALL,
        &[Need::Command("strace")],
        compiler,
    ),
    (
        "the_kernel_saw_the_same_reads_of_a_script",
        ALL,
        &[Need::Command("strace")],
        script,
    ),
];

/// How many bytes each read of a file returned, sorted.
pub type Account = BTreeMap<PathBuf, Vec<u64>>;

/// True if a file is read only through hooked functions: the loader reads the heads of objects, and the C library some files of its own,
/// by calls that cannot be interposed.
pub fn counts(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let system = ["/proc/", "/sys/", "/dev/", "/etc/", "/usr/lib/locale/"];
    text.starts_with('/')
        && !system.iter().any(|prefix| text.starts_with(prefix))
        && !text.contains(".so")
        && !text.ends_with("gconv-modules.cache")
}

fn compare(stage: &Stage, command: &[&str]) {
    let log = stage.path("log");
    let seen = observe("strace", |strace| {
        strace
            .env_remove("LD_PRELOAD")
            .args(["-f", "-y", "-qq", "-s", "0", "-o"])
            .arg(&log);
        strace.args([
            "-e",
            "trace=read,pread64,readv,preadv,preadv2,copy_file_range",
        ]);
        strace
            .arg("-E")
            .arg(format!("LD_PRELOAD={}", library().display()));
        strace
            .args(command)
            .current_dir(stage.path(""))
            .env("LC_ALL", "C");
    });
    let errors = String::from_utf8_lossy(&seen.output.stderr);
    assert!(seen.output.status.success(), "{command:?}: {errors}");
    check!(seen.lost == 0, "{} lost events", seen.lost);
    let kernels = traced(&std::fs::read_to_string(&log).expect("strace's log"));
    let ours = reported(&seen);
    assert!(!kernels.is_empty(), "strace saw nothing");
    for (path, reads) in &kernels {
        assert_eq!(ours.get(path), Some(reads), "{}", path.display());
    }
    assert_eq!(ours.len(), kernels.len());
}

/// The account of a log with lines like `12 read(3</path>, ""..., 100) = 80`.
pub fn traced(log: &str) -> Account {
    let mut account = Account::new();
    let mut halves: BTreeMap<&str, PathBuf> = BTreeMap::new();
    for line in log.lines() {
        let task = line.split_whitespace().next().unwrap_or("");
        let path = line
            .split_once('<')
            .and_then(|(_, rest)| rest.split_once('>'));
        let path = if line.contains("resumed>") {
            halves.remove(task)
        } else {
            path.map(|(path, _)| PathBuf::from(path))
        };
        let Some(path) = path.filter(|path| counts(path)) else {
            continue;
        };
        if line.contains("<unfinished") {
            halves.insert(task, path);
        } else if let Some(got) = line.rsplit_once("= ").and_then(|(_, got)| got.parse().ok())
            && got > 0
        {
            account.entry(path).or_default().push(got);
        }
    }
    sorted(account)
}

fn reported(seen: &Seen) -> Account {
    let mut files = BTreeMap::new();
    let mut account = Account::new();
    for event in &seen.events {
        match &event.what {
            What::Open { inst, path, .. } => {
                // strace prints the kernel's path of the file.
                files.insert(*inst, path.canonicalize().unwrap_or_else(|_| path.clone()));
            }
            What::Access {
                inst, kind: _, len, ..
            } => {
                let path = files.get(inst).cloned().unwrap_or_default();
                if counts(&path) {
                    account.entry(path).or_default().push(u64::from(*len));
                }
            }
            _ => {}
        }
    }
    sorted(account)
}

pub fn sorted(mut account: Account) -> Account {
    account.values_mut().for_each(|reads| reads.sort_unstable());
    account
}

fn python() {
    let stage = Stage::new();
    let imports = "import json, email.message, unittest, sqlite3, subprocess, csv, xml.dom.minidom; \
                   print(sum(map(len, open('data'))), subprocess.run(['wc', '-c', 'other']))";
    compare(&stage, &["python3", "-c", imports]);
}

fn compiler() {
    let stage = Stage::new();
    let text = "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { return 0; }\n";
    std::fs::write(stage.path("a.c"), text).expect("a source");
    // Without -pipe the compiler's temporary files have names that no longer exist afterwards.
    compare(&stage, &["cc", "-pipe", "-O1", "-c", "-o", "a.o", "a.c"]);
}

fn script() {
    let stage = Stage::new();
    let lines = "while read line; do :; done < other\n\
                 sort data | head -n 3; grep -c 7 data other; tail -n 2 data; wc data\n\
                 sed -n 7p data; awk '{ n += $1 } END { print n }' data; cmp data other || cp data copy\n\
                 tac data > copy; cut -c 3 copy | uniq -c > /dev/null; md5sum data; (cd /; cat) < data\n";
    std::fs::write(stage.path("script"), lines).expect("the script");
    compare(&stage, &["bash", "script"]);
}
