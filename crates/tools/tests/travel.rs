//! `export`, `import` and `merge` as a user runs them, with input that nobody vouches for.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use foreread_plan::format::{Reader, RecordFile};
use foreread_plan::{
    Access, Advice, Extent, FileId, FileMeta, Identity, Kind, Meta, Summary, ThreadId, ThreadMeta,
};

/// A user with a data directory and a folder of their own.
struct User {
    home: tempfile::TempDir,
}

impl User {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.home.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: impl AsRef<Path>, text: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(&name), text).unwrap();
        self.path(name)
    }

    fn foreread(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("foreread").unwrap();
        command
            .current_dir(self.home.path())
            .env("XDG_DATA_HOME", self.home.path())
            .env_remove("FOREREAD_STORE_LIMIT")
            .env_remove("FOREREAD_REDACT")
            .args(args);
        command
    }

    /// Standard output and standard error of a command that succeeds.
    fn says(&self, args: &[&str]) -> (String, String) {
        let output = self.foreread(args).assert().success().get_output().clone();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    }

    /// Standard error of a command that fails with status 2.
    fn fails(&self, args: &[&str]) -> String {
        let output = self.foreread(args).assert().code(2).get_output().clone();
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Standard error of a command that fails with status 1.
    fn is_unable(&self, args: &[&str]) -> String {
        let output = self.foreread(args).assert().code(1).get_output().clone();
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// A record of these files, a read of a page of each, in a file of this name.
    fn record(&self, name: &str, paths: &[&Path]) {
        let meta = Meta {
            identity: Identity {
                exe: "/usr/bin/reader".into(),
                argv: ["reader".into(), "x".into()].into(),
                cwd: "/srv".into(),
                rank: None,
            },
            recorded_at: 1_700_000_000,
            writer: "foreread test".into(),
        };
        let mut record = RecordFile::create(&self.path(name), &meta, u64::MAX).unwrap();
        let thread = ThreadMeta {
            pid: 41,
            tid: 42,
            ppid: 1,
            exe: "/usr/bin/reader".into(),
        };
        record.thread(ThreadId(0), thread).unwrap();
        for (id, path) in (0..).map(FileId).zip(paths) {
            let facts = path.metadata().ok();
            let file = FileMeta {
                advice: Advice::Random,
                ..FileMeta::regular(
                    path.to_path_buf(),
                    (1, u64::from(id.0)),
                    facts.as_ref().map_or(7, fs::Metadata::size),
                    facts.map_or(0, |facts| {
                        facts.mtime() * 1_000_000_000 + facts.mtime_nsec()
                    }),
                )
            };
            record.file(id, file).unwrap();
            let access = Access {
                file: id,
                extent: Extent::new(4096, 100),
                thread: ThreadId(0),
                kind: Kind::Pread,
                start: 1_000_000 * u64::from(id.0),
                took: 200_000,
            };
            record.access(&access).unwrap();
        }
        let summary = Summary {
            wall_ns: 5_000_000,
            ..Summary::default()
        };
        record.commit(summary).unwrap();
    }
}

#[test]
fn every_access_comes_back_from_a_table_and_json_lines() {
    let user = User::new();
    let names = [
        &b"plain"[..],
        b"new\nline",
        b"byte \xff",
        b"com,ma \"q\" \\n",
    ];
    let paths: Vec<_> = names
        .iter()
        .map(|name| user.write(OsStr::from_bytes(name), vec![1; 8192]))
        .collect();
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    user.record("x.fr", &paths);
    for format in ["csv", "jsonl"] {
        user.says(&["export", "./x.fr", "--to", format, "-o", "list"]);
        let (said, left_out) = user.says(&["import", "list", "-o", "again.fr", "--", "reader"]);
        assert!(
            said.contains("4 of 4 files fit here: 4 by size and time"),
            "{said}"
        );
        assert_eq!(left_out, "");
        let mut again = Reader::open(&user.path("again.fr")).unwrap();
        let files: Vec<_> = again
            .files()
            .values()
            .map(|meta| (meta.path.clone(), meta.advice))
            .collect();
        let wanted: Vec<_> = paths
            .iter()
            .map(|path| (path.to_path_buf(), Advice::Random))
            .collect();
        assert_eq!(files, wanted);
        let reads: Vec<_> = again.accesses().map(Result::unwrap).collect();
        assert_eq!(reads.len(), 4);
        for (number, read) in reads.iter().enumerate() {
            assert_eq!(read.extent, Extent::new(4096, 100));
            assert_eq!(
                (read.start, read.took),
                (1_000_000 * number as u64, 200_000)
            );
        }
        assert_eq!(
            again
                .threads()
                .values()
                .map(|one| one.tid)
                .collect::<Vec<_>>(),
            [42]
        );
        assert!(again.summary().is_some_and(|foot| foot.partial));
    }
}

#[test]
fn names_that_a_format_cannot_hold_are_said() {
    let user = User::new();
    let path = user.write("new\nline", "text");
    let other = user.write("other", "text");
    user.record("x.fr", &[&path, &other]);
    let (list, said) = user.says(&["export", "./x.fr", "--to", "vmtouch"]);
    assert_eq!(list, format!("{}\n", other.display()));
    assert!(
        said.contains("vmtouch's lists end a name at a newline; left out"),
        "{said}"
    );
    user.record("x.fr", &[&path]);
    user.write("list", "old");
    let said = user.fails(&["export", "./x.fr", "--to", "vmtouch", "-o", "list"]);
    assert!(
        said.contains("nothing in it can be listed for vmtouch"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(user.path("list")).unwrap(), "old");
}

#[test]
fn paths_are_mapped_on_their_way_out_and_in() {
    let user = User::new();
    let path = user.write("data", vec![1; 8192]);
    user.record("x.fr", &[&path]);
    let map = format!("{}=/image", user.path("").display());
    let (list, _) = user.says(&["export", "./x.fr", "--to", "estargz", "--map", &map]);
    assert_eq!(list, "{\"path\":\"image/data\"}\n");
    user.write("list", list);
    let map = format!("/image={}", user.path("").display());
    let (said, _) = user.says(&["import", "list", "--map", &map, "--", "reader"]);
    assert!(
        said.contains("an estargz list; 1 of 1 file fit here"),
        "{said}"
    );
    for wrong in ["/a", "a=/b"] {
        let said = user.fails(&["export", "./x.fr", "--to", "csv", "--map", wrong]);
        assert!(said.contains(wrong), "{said}");
    }
}

#[test]
fn of_a_list_whose_files_are_gone_nothing_is_imported_and_the_record_stays() {
    let user = User::new();
    let path = user.write("data", vec![1; 8192]);
    user.write("list", format!("{}\n/nowhere/at/all\n", path.display()));
    let (said, left_out) = user.says(&["import", "list", "--", "reader", "x"]);
    assert!(
        said.contains("1 of 2 files fit here: 1 by path, without a size to compare"),
        "{said}"
    );
    assert!(
        left_out.contains("/nowhere/at/all: No such file"),
        "{left_out}"
    );
    let records = || fs::read_dir(user.path("foreread/records")).unwrap().count();
    assert_eq!(records(), 1);
    user.write("gone", "/nowhere/at/all\n/dev/null\n");
    let said = user.fails(&["import", "gone", "--", "reader", "x"]);
    for part in [
        "/nowhere/at/all",
        "/dev/null",
        "stays as it is",
        "0 of 2 files",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(records(), 1);
    let (listed, _) = user.says(&["list"]);
    assert!(listed.contains("reader x"), "{listed}");
    let (shown, _) = user.says(&["show"]);
    assert!(shown.contains("a vmtouch list, not recorded"), "{shown}");
}

#[test]
fn what_cannot_be_read_is_named_and_what_can_stands() {
    let user = User::new();
    let path = user.write("data", vec![1; 8192]);
    let path = path.display();
    user.write(
        "list.csv",
        format!("path,offset,length\n{path},0,4096\n{path},x,1\n"),
    );
    let (_, said) = user.says(&["import", "list.csv", "--", "reader"]);
    assert!(
        said.contains("list.csv: line 3: the offset \"x\" is no number; left out"),
        "{said}"
    );
    user.write("empty", "");
    assert!(
        user.fails(&["import", "empty", "--", "reader"])
            .contains("empty")
    );
    user.write("head.csv", "path\n");
    let said = user.fails(&["import", "head.csv", "--", "reader"]);
    assert!(
        said.contains("nothing in it can be followed here"),
        "{said}"
    );
    user.write("noise", "what is this\n");
    let said = user.fails(&["import", "noise", "--", "reader"]);
    assert!(
        said.contains("noise") && said.contains("what is this"),
        "{said}"
    );
    let said = user.fails(&["import", "list.csv"]);
    assert!(said.contains("does not say which command"), "{said}");
    assert!(
        user.fails(&["import", "none", "--", "reader"])
            .contains("none")
    );
}

#[test]
fn a_record_of_another_version_is_neither_exported_nor_imported() {
    let user = User::new();
    let path = user.write("data", vec![1; 8192]);
    user.record("x.fr", &[&path]);
    let mut bytes = fs::read(user.path("x.fr")).unwrap();
    bytes[8] = 99;
    user.write("new.fr", bytes);
    for args in [
        &["export", "./new.fr", "--to", "csv"][..],
        &["import", "new.fr"],
        &["merge", "./new.fr", "./x.fr", "-o", "y.fr"],
    ] {
        let said = user.fails(args);
        assert!(said.contains("new.fr") && said.contains("99"), "{said}");
    }
    assert!(!user.path("y.fr").exists());
}

#[test]
fn where_nothing_can_be_written_it_is_said_and_nothing_else_is_left() {
    let user = User::new();
    let path = user.write("data", vec![1; 8192]);
    user.record("x.fr", &[&path]);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("foreread"));
    let output = command
        .current_dir(user.home.path())
        .args(["export", "./x.fr", "--to", "csv"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("standard output") && said.contains("No space left"),
        "{said}"
    );
    let said = user.is_unable(&["export", "./x.fr", "--to", "csv", "-o", "/dev/full"]);
    assert!(said.contains("/dev/full"), "{said}");
    let said = user.is_unable(&["import", "x.fr", "-o", "/dev/full"]);
    assert!(said.contains("/dev/full"), "{said}");
    let left = fs::read_dir(user.home.path()).unwrap().count();
    assert_eq!(left, 2);
}

#[test]
fn a_file_of_another_size_does_not_fit_and_one_of_another_time_does() {
    let user = User::new();
    let paths = ["time", "size"].map(|name| user.write(name, vec![1; 8192]));
    user.record("x.fr", &[&paths[0], &paths[1]]);
    let file = fs::File::options().write(true).open(&paths[0]).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    user.write("size", vec![1; 4096]);
    let (said, left_out) = user.says(&["import", "x.fr", "-o", "here.fr"]);
    assert!(
        said.contains("1 of 2 files fit here: 1 by size alone"),
        "{said}"
    );
    assert!(
        left_out.contains("size: it has 4.00 KiB here, not 8.00 KiB"),
        "{left_out}"
    );
}
