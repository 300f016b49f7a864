//! Tests of the events that a watch derives from reports.

use super::places::PATHS;
use super::*;
use foreread_observe::Inode;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

/// The passed-on events: threads, bytes of program paths, files and reads.
#[derive(Default)]
struct Counts {
    threads: usize,
    names: usize,
    files: usize,
    reads: usize,
}

struct Nobody;

impl Sink for Nobody {
    fn file(&mut self, _: FileId, _: &FileMeta) {}
    fn grown(&mut self, _: FileId, _: &FileMeta) {}
    fn thread(&mut self, _: ThreadId, _: &ThreadMeta) {}
    fn accesses(&mut self, _: Sequence) {}
}

impl Sink for Counts {
    fn file(&mut self, _: FileId, _: &FileMeta) {
        self.files += 1;
    }

    fn grown(&mut self, _: FileId, _: &FileMeta) {}
    fn thread(&mut self, _: ThreadId, meta: &ThreadMeta) {
        self.threads += 1;
        self.names += meta.exe.len();
    }

    fn accesses(&mut self, _: Sequence) {
        self.reads += 1;
    }
}

fn event(pid: u32, what: What) -> Event {
    let who = Who {
        pid,
        tid: pid,
        uid: None,
    };
    Event { who, at: 0, what }
}

#[test]
fn what_hostile_processes_say_takes_bounded_memory() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().canonicalize().unwrap().join("file");
    std::fs::write(&file, "text").unwrap();
    let mut watch = Watch::new(
        SystemTime::now(),
        Vec::new(),
        Files::new(Default::default()),
    );
    let mut counts = Counts::default();
    let long = "x".repeat(4000);
    for pid in 1..200_000 {
        let introduced = What::Begin {
            parent: 1,
            stdio: true,
            program: PathBuf::from(format!("/{pid}/{long}")).into(),
        };
        watch.take(event(pid, introduced), &mut counts);
    }
    for inst in 0..40_000_u32 {
        let written = What::Open {
            handle: inst,
            how: How {
                writes: true,
                unread: true,
                ..How::default()
            },
            took: 0,
            file: PathBuf::from(format!("/{inst}/{long}")).into(),
        };
        watch.take(event(1, written), &mut counts);
    }
    assert!(watch.unread_paths <= UNREAD);
    // The same file by ever other paths, and paths that lead nowhere.
    for inst in 1..2000_u32 {
        for dots in ["./".repeat(inst as usize), format!("{inst}/")] {
            let opened = What::Open {
                handle: inst,
                how: How::default(),
                took: 0,
                file: home.path().join(dots).join("file").into(),
            };
            watch.take(event(inst, opened), &mut counts);
        }
    }
    assert_eq!(counts.files, 1);
    assert!(counts.threads <= THREADS + 1, "{} threads", counts.threads);
    assert!(counts.names <= NAMES, "{} bytes of names", counts.names);
    assert!(watch.processes.len() <= PROCESSES && watch.programs.len() <= PROGRAMS);
    let names = watch.processes.values().map(|(_, exe)| exe.len());
    assert!(names.sum::<usize>() <= NAMES);
    let paths = watch.places.by_path.keys().map(|path| path.len());
    assert!(paths.sum::<usize>() <= PATHS);
}

/// Were each looked for among all that were opened before, this would take minutes.
#[test]
fn a_program_may_write_very_many_files() {
    const FILES: u32 = 400_000;
    let mut watch = Watch::new(
        SystemTime::now(),
        Vec::new(),
        Files::new(Default::default()),
    );
    let path = |number: u32| PathBuf::from(format!("/none/{number}"));
    for number in 0..FILES {
        let found = Resolved {
            link: None,
            target: Target::Regular(FileId(number)),
        };
        watch.places.by_path.insert(path(number).into(), found);
        let meta = FileMeta {
            written: true,
            ..FileMeta::regular(path(number), (1, u64::from(number)), 0, 0)
        };
        assert_eq!(
            watch.places.files.meet(meta, None),
            Some((FileId(number), true))
        );
    }
    for number in (0..FILES).chain(0..FILES) {
        let how = How {
            writes: true,
            ..How::default()
        };
        let found = watch.places.find(path(number), &Use::Opened, &mut Nobody);
        watch.open(found.target, how, &mut Nobody);
    }
    assert_eq!(watch.writable.len(), FILES as usize);
    watch.finish(&mut Nobody);
    assert!(watch.writable.is_empty());
}

#[test]
fn what_a_run_has_made_itself_is_looked_at_once() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().canonicalize().unwrap();
    std::fs::write(folder.join("old"), "text").unwrap();
    let old = folder.join("old").metadata().unwrap();
    let made = old.created().unwrap_or(SystemTime::UNIX_EPOCH);
    // Whatever the file system's clock says is made later.
    let began = made + std::time::Duration::from_nanos(1);
    while std::fs::write(folder.join("new"), "text").is_ok()
        && folder
            .join("new")
            .metadata()
            .unwrap()
            .created()
            .is_ok_and(|at| at < began)
    {
        std::fs::remove_file(folder.join("new")).unwrap();
    }
    let mut watch = Watch::new(began, Vec::new(), Files::new(Default::default()));
    let mut counts = Counts::default();
    for (handle, name) in [(1, "old"), (2, "new")] {
        let how = How {
            writes: true,
            ..How::default()
        };
        let path = folder.join(name);
        let opened = What::Open {
            handle,
            how,
            took: 0,
            file: path.into(),
        };
        watch.take(event(1, opened), &mut counts);
    }
    assert_eq!(counts.files, 2);
    watch.finish(&mut counts);
    assert_eq!(counts.files, 3);
}

#[test]
fn files_that_are_only_written_to_are_not_looked_at_until_they_are_read() {
    const FILES: u32 = 2000;
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().canonicalize().unwrap();
    let path = |number: u32| folder.join(number.to_string());
    let mut watch = Watch::new(
        SystemTime::UNIX_EPOCH,
        Vec::new(),
        Files::new(Default::default()),
    );
    let mut counts = Counts::default();
    let open = |number, how| {
        let opened = What::Open {
            handle: number,
            how,
            took: 0,
            file: path(number).into(),
        };
        event(1, opened)
    };
    let writes = How {
        writes: true,
        unread: true,
        truncates: true,
        ..How::default()
    };
    for number in 0..FILES {
        fs::write(path(number), "text").unwrap();
        watch.take(open(number, writes), &mut counts);
    }
    assert_eq!((counts.files, counts.reads), (0, 0));
    // Emptied before it was read, so none of it is ever fetched.
    watch.take(open(7, How::default()), &mut counts);
    assert_eq!(counts.reads, 1);
    let read: Vec<_> = watch.files().all_met().collect();
    assert!(matches!(read[..], [(_, meta)] if meta.written && meta.path == path(7)));
    // Written to again, after its first use.
    watch.take(open(7, writes), &mut counts);
    assert_eq!(counts.reads, 2);
    watch.finish(&mut counts);
    let met = watch.files().all_met().count();
    assert_eq!(met, WRITTEN + 1, "the rest is nobody's concern");
}

#[test]
fn a_place_is_where_all_links_lead() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().canonicalize().unwrap();
    let at = |name: &str| root.join(name);
    std::fs::create_dir_all(at("a/b")).unwrap();
    for file in ["a/f", "a/b/f"] {
        std::fs::write(at(file), file).unwrap();
    }
    symlink("a", at("link")).unwrap();
    symlink("f", at("a/b/again")).unwrap();
    symlink("../f", at("a/b/up")).unwrap();
    symlink("nowhere", at("a/dangling")).unwrap();
    let mut watch = Watch::new(
        SystemTime::now(),
        Vec::new(),
        Files::new(Default::default()),
    );
    // Twice: the second time the folders are known.
    for _ in 0..2 {
        for name in [
            "a/f",
            "a/b/f",
            "a//b/./f",
            "a/b/../f",
            "link/f",
            "link/b/f",
            "a/b/again",
            "a/b/up",
            "link/b/up",
            "a/dangling",
            "a/none",
            "none/f",
            "a/f/f",
        ] {
            let found = watch
                .places
                .find(at(name), &Use::Opened, &mut Nobody)
                .target;
            let found = match found {
                Target::Regular(file) => Some(&watch.files().met(file).path),
                _ => None,
            };
            // As bytes: paths that differ in dots are equal.
            let expected = at(name).canonicalize().ok();
            let expected = expected.as_ref().map(|path| path.as_os_str());
            assert_eq!(found.map(|path| path.as_os_str()), expected, "{name}");
        }
    }
    // A path whose folder was replaced by a link is forgotten.
    assert!(!watch.places.direct.contains(at("link").as_os_str()));
}

#[test]
fn nothing_is_asked_of_a_name_that_the_program_was_told_of() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().canonicalize().unwrap();
    fs::write(root.join("file"), "content").unwrap();
    let began = SystemTime::now() + std::time::Duration::from_secs(60);
    let mut watch = Watch::new(began, Vec::new(), Files::new(Default::default()));
    let mut names = Names {
        root: &root,
        paths: Vec::new(),
        used: Vec::new(),
    };
    let mut told = |name: &str, mode: u32, ctime_ns: i64| {
        let inode = Inode {
            dev: 1,
            ino: 4711,
            kind: (mode >> 12) as u8,
            size: 99,
            mtime_ns: 5,
            ctime_ns,
        };
        let what = What::Named {
            path: root.join(name),
            kind: Kind::Stat,
            took: 0,
            follows: false,
            inode: Some(inode),
        };
        watch.take(event(1, what), &mut names);
        let met = watch.files().all_met();
        let met = met.filter(|(_, meta)| meta.path == root.join(name));
        met.map(|(_, meta)| (meta.ino, meta.size, meta.directory, meta.written))
            .next()
    };
    // The kernel would have said otherwise, had it been asked.
    let as_told = Some((4711, 99, false, false));
    assert_eq!(told("none", 0o100_644, 1), as_told);
    assert_eq!(told("pipe", 0o010_644, 1), None);
    // A file changed after the start of the run may be outdated.
    let later = i64::MAX;
    assert_eq!(told("gone", 0o100_644, later), None);
    let real = fs::metadata(root.join("file")).unwrap();

    let as_it_is = Some((real.ino(), 7, false, false));
    assert_eq!(told("file", 0o100_644, later), as_it_is);
}

#[test]
fn a_follower_hears_of_a_file_when_it_is_opened_and_not_when_it_is_named() {
    #[derive(Default)]
    struct Heard(Vec<&'static str>);
    impl Sink for Heard {
        fn file(&mut self, _: FileId, _: &FileMeta) {
            self.0.push("file");
        }
        fn named(&mut self, _: FileId, _: &FileMeta) {
            self.0.push("named");
        }
        fn opened(&mut self, _: FileId, _: &FileMeta) {
            self.0.push("opened");
        }
        fn grown(&mut self, _: FileId, _: &FileMeta) {}
        fn thread(&mut self, _: ThreadId, _: &ThreadMeta) {}
        fn accesses(&mut self, _: Sequence) {}
    }
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    for name in ["named", "opened"] {
        fs::write(at(name), name).unwrap();
    }
    let mut watch = Watch::new(
        SystemTime::now(),
        Vec::new(),
        Files::new(Default::default()),
    );
    let mut heard = Heard::default();
    let name = |name: &str| What::Named {
        path: at(name),
        kind: Kind::Stat,
        took: 0,
        follows: false,
        inode: None,
    };
    let open = |name: &str, handle| What::Open {
        handle,
        file: at(name).into(),
        took: 0,
        how: How::default(),
    };
    for what in [
        name("named"),
        name("named"),
        open("named", 1),
        open("named", 2),
        open("opened", 3),
        name("opened"),
    ] {
        watch.take(event(1, what), &mut heard);
    }
    assert_eq!(heard.0, ["named", "opened", "file"]);
}

/// The passed-on names in order: path below a folder, and use.
struct Names<'a> {
    root: &'a Path,
    paths: Vec<PathBuf>,
    used: Vec<(String, Kind)>,
}

impl Sink for Names<'_> {
    fn file(&mut self, id: FileId, meta: &FileMeta) {
        assert_eq!(id.0 as usize, self.paths.len());
        let path = meta.path.strip_prefix(self.root).unwrap();
        self.paths.push(path.to_owned());
    }

    fn grown(&mut self, _: FileId, _: &FileMeta) {}
    fn thread(&mut self, _: ThreadId, _: &ThreadMeta) {}

    fn accesses(&mut self, sequence: Sequence) {
        let path = &self.paths[sequence.first.file.0 as usize];
        let path = path.to_str().unwrap().to_owned();
        self.used.push((path, sequence.first.kind));
    }
}

#[test]
fn a_name_is_handed_on_once_for_each_use_that_needs_more() {
    let home = tempfile::tempdir().unwrap();
    let root = &home.path().canonicalize().unwrap();
    let at = |name: &str| root.join(name);
    std::fs::create_dir(at("dir")).unwrap();
    std::fs::write(at("dir/file"), "text").unwrap();
    symlink("dir/file", at("link")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    // One minute later: the existing files were not created by the run.
    let began = SystemTime::now() + std::time::Duration::from_secs(60);
    let mut watch = Watch::new(began, Vec::new(), Files::new(Default::default()));
    let mut names = Names {
        root,
        paths: Vec::new(),
        used: Vec::new(),
    };
    let name = |kind, follows, path: &str| What::Named {
        path: at(path),
        kind,
        took: 0,
        follows,
        inode: None,
    };
    let (stat, list) = (Kind::Stat, Kind::List);
    let open = |path: &str, directory| What::Open {
        handle: 1,
        file: at(path).into(),
        took: 0,
        how: How {
            directory,
            ..How::default()
        },
    };
    for (what, expected) in [
        // Looked at itself, a link does not lead anywhere.
        (name(stat, false, "link"), &[("link", stat)][..]),
        (name(stat, false, "link"), &[]),
        (name(stat, true, "link"), &[("dir/file", stat)]),
        (name(stat, false, "dir/file"), &[]),
        (name(stat, false, "dir/./file"), &[]),
        (open("dir/file", false), &[("dir/file", Kind::Open)]),
        (open("link", false), &[("dir/file", Kind::Open)]),
        (name(stat, true, "dangling"), &[("dangling", stat)]),
        (name(list, true, "dir"), &[("dir", list)]),
        (name(stat, false, "dir"), &[]),
        (open("dir", true), &[]),
        (name(list, true, "dir/../dir"), &[]),
        (name(stat, true, "dir/.."), &[("", stat)]),
        (open("dir/..", true), &[("", Kind::Open)]),
        // Impossible uses: a file has no entries; a path that does not exist; no file of the session.
        (name(list, true, "dir/file"), &[]),
        (name(stat, true, "none"), &[]),
        (name(stat, true, "socket"), &[]),
        (open("dir", false), &[]),
    ] {
        names.used.clear();
        watch.take(event(1, what.clone()), &mut names);
        let expected = expected.iter().map(|&(path, kind)| (path.to_owned(), kind));
        assert!(
            names.used.iter().cloned().eq(expected),
            "{what:?}: {:?}",
            names.used
        );
    }
    drop(socket);
    // The next run does not look for files that this run created.
    let mut watch = Watch::new(
        SystemTime::UNIX_EPOCH,
        Vec::new(),
        Files::new(Default::default()),
    );
    (names.paths, names.used) = Default::default();
    watch.take(event(1, name(list, true, "dir")), &mut names);
    watch.take(event(1, name(stat, true, "dir/file")), &mut names);
    assert!(names.used.is_empty(), "{:?}", names.used);
    watch.take(event(1, open("dir/file", false)), &mut names);
    assert_eq!(names.used.len(), 1);
}

#[test]
fn faults_of_mapped_pages_are_handed_on_in_order_and_once() {
    let home = tempfile::tempdir().unwrap();
    let root = &home.path().canonicalize().unwrap();
    std::fs::write(root.join("file"), vec![0; 5 << 12]).unwrap();
    let mut watch = Watch::new(
        SystemTime::now(),
        Vec::new(),
        Files::new(Default::default()),
    );
    #[derive(Default)]
    struct Touches(Vec<(u64, u64)>);
    impl Sink for Touches {
        fn file(&mut self, _: FileId, _: &FileMeta) {}
        fn grown(&mut self, _: FileId, _: &FileMeta) {}
        fn thread(&mut self, _: ThreadId, _: &ThreadMeta) {}
        fn accesses(&mut self, sequence: Sequence) {
            if sequence.first.kind == Kind::Touch {
                let Extent { offset, len } = sequence.first.extent;
                self.0.push((offset >> 12, len >> 12));
            }
        }
    }
    let mut touches = Touches::default();
    let opened = What::Open {
        handle: 7,
        file: root.join("file").into(),
        took: 0,
        how: How::default(),
    };
    watch.take(event(1, opened), &mut touches);
    for (handle, page, pages) in [(7, 3, 1), (7, 0, 2), (7, 3, 1), (7, 4, 9), (8, 2, 1)] {
        let touched = What::Touched {
            handle,
            extent: Extent::new(page << 12, pages << 12),
            took: 0,
        };
        watch.take(event(1, touched), &mut touches);
    }
    assert_eq!(touches.0, [(3, 1), (0, 2), (4, 1)]);
}

#[test]
fn of_a_file_that_was_found_mapped_it_is_said_that_what_was_touched_last_is_not_known() {
    #[derive(Default)]
    struct Doubted(Vec<PathBuf>, HashSet<FileId>);
    impl Sink for Doubted {
        fn file(&mut self, id: FileId, meta: &FileMeta) {
            self.0
                .resize(self.0.len().max(id.0 as usize + 1), PathBuf::new());
            self.0[id.0 as usize].clone_from(&meta.path);
        }
        fn grown(&mut self, _: FileId, _: &FileMeta) {}
        fn doubted(&mut self, id: FileId) {
            self.1.insert(id);
        }
        fn thread(&mut self, _: ThreadId, _: &ThreadMeta) {}
        fn accesses(&mut self, _: Sequence) {}
    }
    let mut watch = Watch::new(
        SystemTime::now(),
        Vec::new(),
        Files::new(Default::default()),
    );
    let mut doubted = Doubted::default();
    let exe = std::env::current_exe().unwrap();
    let begins = What::Begin {
        parent: 1,
        stdio: true,
        program: exe.clone().into(),
    };
    watch.take(event(std::process::id(), begins), &mut doubted);
    watch.sample(0, &mut doubted);
    watch.finish(&mut doubted);
    let Doubted(paths, ids) = doubted;
    let mut named = ids.iter().map(|id| &paths[id.0 as usize]);
    assert!(
        named.any(|path| *path == exe.canonicalize().unwrap()),
        "{paths:?}"
    );
}
