//! A user, and records of theirs.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use foreread_plan::format::RecordFile;
use foreread_plan::{
    Access, Extent, FileId, FileMeta, Identity, Kind, Meta, Summary, ThreadId, ThreadMeta,
};
use serde_json::Value;

/// An id of a record.
pub const A: &str = "0123456789abcdef";
/// Another, which begins alike.
pub const B: &str = "0123456789ffffff";

/// A user with a data directory of their own.
pub struct User {
    pub home: tempfile::TempDir,
}

impl User {
    pub fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
        }
    }

    pub fn records(&self) -> PathBuf {
        self.home.path().join("foreread/records")
    }

    pub fn foreread(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("foreread").unwrap();
        command
            .env("XDG_DATA_HOME", self.home.path())
            .env_remove("FOREREAD_STORE_LIMIT")
            .args(args);
        command
    }

    /// Standard output of a command that succeeds.
    pub fn says(&self, args: &[&str]) -> String {
        let output = self.foreread(args).assert().success().get_output().clone();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Standard error of a command that fails with status 2.
    pub fn fails(&self, args: &[&str]) -> String {
        let output = self.foreread(args).assert().code(2).get_output().clone();
        String::from_utf8(output.stderr).unwrap()
    }

    /// Standard error of a command that fails with status 1.
    pub fn is_unable(&self, args: &[&str]) -> String {
        let output = self.foreread(args).assert().code(1).get_output().clone();
        String::from_utf8(output.stderr).unwrap()
    }

    pub fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.says(args)).unwrap()
    }

    /// Keeps a record of a backward and a sequential reader under `id`.
    pub fn keep(&self, id: &str, argv: &[&str]) -> PathBuf {
        let path = self.records().join(format!("{id}.fr"));
        fs::create_dir_all(self.records()).unwrap();
        write_record(&path, argv);
        path
    }
}

pub fn write_record(path: &Path, argv: &[&str]) {
    let meta = Meta {
        identity: Identity {
            exe: "/usr/bin/reader".into(),
            argv: argv.iter().map(|&word| word.into()).collect(),
            cwd: "/srv".into(),
            rank: None,
        },
        recorded_at: 1_700_000_000,
        writer: "foreread test".into(),
    };
    let mut record = RecordFile::create(path, &meta, u64::MAX).unwrap();
    for (id, name) in [(0, "/srv/backward.db"), (1, "/srv/forward.log")] {
        let file = FileMeta::regular(name, (1, id), 1 << 20, 0);
        record.file(FileId(id as u32), file).unwrap();
    }
    let thread = ThreadMeta {
        pid: 41,
        tid: 41,
        ppid: 1,
        exe: "/usr/bin/reader".into(),
    };
    record.thread(ThreadId(0), thread).unwrap();
    let mut now = 0;
    let mut read = |file, offset, len| {
        now += 1_000_000;
        let access = Access {
            file: FileId(file),
            extent: Extent::new(offset, len),
            thread: ThreadId(0),
            kind: Kind::Pread,
            start: now,
            took: 100_000,
        };
        record.access(&access).unwrap();
    };
    for page in (0..100).rev() {
        read(0, page * 4096, 4096);
    }
    for block in 0..10 {
        read(1, block * 1000, 1000);
    }
    let summary = Summary {
        wall_ns: 120_000_000,
        read_ns: 11_000_000,
        exit_status: Some(0),
        ..Summary::default()
    };
    record.commit(summary).unwrap();
}
