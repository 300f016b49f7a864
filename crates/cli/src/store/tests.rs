//! The store on real folders, with sound, damaged and abandoned records.

use std::time::Duration;

use foreread_plan::format::RecordFile;
use foreread_plan::{
    Access, Advice, Extent, FileId, FileMeta, Kind, Meta, Summary, ThreadId, ThreadMeta,
};

use super::*;

fn store(folder: &tempfile::TempDir) -> Store {
    Store {
        folder: folder.path().to_owned(),
        limit: STORE_LIMIT,
    }
}

fn identity(exe: &str, argv: &[&str]) -> Identity {
    Identity {
        exe: exe.into(),
        argv: argv.iter().map(|&word| word.into()).collect(),
        cwd: "/".into(),
    }
}

/// A record begun, with one file and one read in it.
fn begun(store: &Store, identity: &Identity) -> RecordFile {
    let meta = Meta {
        identity: identity.clone(),
        recorded_at: 1,
        writer: "test".into(),
    };
    let mut record = RecordFile::create(&store.path_for(identity), &meta, RECORD_LIMIT).unwrap();
    let file = FileMeta {
        path: "/data".into(),
        dev: 1,
        ino: 2,
        size: 8192,
        mtime_ns: 3,
        written: false,
        advice: Advice::Normal,
    };
    record.file(FileId(0), file).unwrap();
    let thread = ThreadMeta {
        pid: 1,
        tid: 1,
        ppid: 0,
        exe: identity.exe.clone(),
    };
    record.thread(ThreadId(0), thread).unwrap();
    let access = Access {
        file: FileId(0),
        extent: Extent::new(0, 4096),
        thread: ThreadId(0),
        kind: Kind::Read,
        start: 0,
        took: 1000,
    };
    record.access(&access).unwrap();
    record
}

fn keep(store: &Store, identity: &Identity) -> PathBuf {
    begun(store, identity).commit(Summary::default()).unwrap();
    store.path_for(identity)
}

/// A partial file as a recorder killed long ago leaves it.
fn abandon(store: &Store, identity: &Identity, pid: u32) -> PathBuf {
    let mut record = begun(store, identity);
    record.flush().unwrap();
    let name = store.path_for(identity);
    let name = name.file_name().unwrap().to_str().unwrap();
    let left = store.folder().join(format!(".{name}.partial-{pid}-abc"));
    fs::copy(record.partial_path(), &left).unwrap();
    left
}

/// A process id nobody has.
fn nobody() -> u32 {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

fn used_ago(path: &Path, days: u64) {
    let then = SystemTime::now() - Duration::from_secs(days * 86_400);
    File::open(path).unwrap().set_modified(then).unwrap();
}

#[test]
fn a_program_finds_its_own_record_and_marks_it_used() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let tool = identity("/bin/tool", &["tool", "a"]);
    assert!(store.find(&tool).unwrap().is_none());
    let path = keep(&store, &tool);
    used_ago(&path, 9);
    let (found, _) = store.find(&tool).unwrap().unwrap();
    assert!(found.exact && found.path == path);
    found.mark_used();
    let used = store.entries().unwrap()[0].used;
    assert!(used.elapsed().unwrap() < Duration::from_secs(3600));
}

#[test]
fn the_nearest_record_of_the_same_executable_is_found_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    keep(&store, &identity("/bin/other", &["tool", "db", "new"]));
    keep(&store, &identity("/bin/tool", &["tool", "x", "y"]));
    let near = keep(&store, &identity("/bin/tool", &["tool", "db", "old"]));
    let wanted = identity("/bin/tool", &["tool", "db", "new"]);
    let (found, _) = store.find(&wanted).unwrap().unwrap();
    assert!(!found.exact && found.path == near);
    assert_eq!(found.differs, "the command with 'old' for 'new'");
}

#[test]
fn a_damaged_record_is_named_and_the_nearest_used() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let tool = identity("/bin/tool", &["tool", "db", "a"]);
    let path = keep(&store, &tool);
    fs::write(&path, "something else").unwrap();
    let error = store.find(&tool).map(drop).unwrap_err();
    assert!(format!("{error:#}").contains(path.to_str().unwrap()));
    keep(&store, &identity("/bin/tool", &["tool", "db", "b"]));
    let (found, _) = store.find(&tool).unwrap().unwrap();
    let trouble = found.trouble.unwrap();
    assert!(!found.exact && trouble.contains(path.to_str().unwrap()));
    assert!(path.exists(), "a foreign file is not ours to delete");
}

#[test]
fn a_truncated_record_is_used_as_far_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let tool = identity("/bin/tool", &["tool"]);
    let left = abandon(&store, &tool, nobody());
    fs::rename(left, store.path_for(&tool)).unwrap();
    assert!(store.find(&tool).unwrap().unwrap().0.exact);
}

#[test]
fn a_record_renamed_by_hand_is_not_taken_for_anothers() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let path = keep(&store, &identity("/bin/tool", &["tool", "a"]));
    let wanted = identity("/bin/tool", &["tool", "b"]);
    fs::rename(path, store.path_for(&wanted)).unwrap();
    assert!(store.find(&wanted).unwrap().is_none());
}

#[test]
fn what_a_killed_recorder_left_is_adopted() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let tool = identity("/bin/tool", &["tool"]);
    let left = abandon(&store, &tool, nobody());
    store.tidy();
    assert!(!left.exists());
    assert!(store.find(&tool).unwrap().unwrap().0.exact);
}

#[test]
fn a_program_without_a_record_finds_what_its_killed_recorder_left() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let tool = identity("/bin/tool", &["tool"]);
    store.announce(&tool);
    let left = abandon(&store, &tool, nobody());
    let (found, reader) = store.find(&tool).unwrap().unwrap();
    assert!(found.exact && !left.exists());
    assert_eq!(reader.files().len(), 1);
    store.announce(&tool);
}

#[test]
fn leftovers_neither_replace_a_whole_record_nor_stay() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let tool = identity("/bin/tool", &["tool"]);
    let whole = fs::read(keep(&store, &tool)).unwrap();
    let left = abandon(&store, &tool, nobody());
    let other = store.path_for(&identity("/bin/x", &["x"]));
    let empty = store.folder().join(format!(
        ".{}.partial-{}-q",
        other.file_name().unwrap().to_str().unwrap(),
        nobody()
    ));
    fs::write(&empty, "").unwrap();
    store.tidy();
    assert!(!left.exists() && !empty.exists() && !other.exists());
    assert_eq!(fs::read(store.path_for(&tool)).unwrap(), whole);
}

#[test]
fn the_file_of_a_living_recorder_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let tool = identity("/bin/tool", &["tool"]);
    let left = abandon(&store, &tool, std::process::id());
    store.tidy();
    assert!(left.exists() && !store.path_for(&tool).exists());
}

#[test]
fn the_least_recently_used_records_go_first() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let paths: Vec<PathBuf> = (0..4)
        .map(|n| {
            let path = keep(&store, &identity("/bin/tool", &["tool", &n.to_string()]));
            used_ago(&path, 10 - n);
            path
        })
        .collect();
    let size = fs::metadata(&paths[0]).unwrap().len();
    let deleted = store.prune(Some(2 * size + size / 2), None).unwrap();
    assert_eq!(deleted.len(), 2);
    assert!(!paths[0].exists() && !paths[1].exists());
    assert!(paths[2].exists() && paths[3].exists());
    let deleted = store
        .prune(None, Some(Duration::from_secs(7 * 86_400 + 43_200)))
        .unwrap();
    assert_eq!(deleted.len(), 1);
    assert!(paths[3].exists());
}

#[test]
fn files_that_are_not_named_like_records_are_never_touched() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    for name in [
        "notes.txt",
        "0123456789abcdef.txt",
        "0123.fr",
        "0123456789ABCDEF.fr",
    ] {
        fs::write(folder.path().join(name), "mine").unwrap();
    }
    fs::create_dir(folder.path().join("0123456789abcdef.fr")).unwrap();
    assert!(store.entries().unwrap().is_empty());
    store.prune(Some(0), None).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);
}

#[test]
fn an_id_may_be_shortened_while_it_is_unique() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    keep(&store, &identity("/bin/tool", &["tool", "a"]));
    keep(&store, &identity("/bin/tool", &["tool", "b"]));
    let id = store.entries().unwrap()[0].id.clone();
    assert_eq!(store.entry(&id[..12]).unwrap().id, id);
    let common = store.entry(&id[..4]).unwrap_err().to_string();
    assert!(common.contains("2 records"), "{common}");
    assert!(store.entry("").is_err() && store.entry("zz").is_err());
}

#[test]
fn a_limit_that_is_no_size_is_named() {
    let error = limit_from(Some("lots")).unwrap_err().to_string();
    assert!(error.contains("FOREREAD_STORE_LIMIT") && error.contains("lots"));
    assert_eq!(limit_from(Some("2M")).unwrap(), 2 << 20);
    assert_eq!(limit_from(None).unwrap(), STORE_LIMIT);
}
