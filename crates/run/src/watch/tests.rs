//! What a watch makes of what is reported.

use super::places::PATHS;
use super::*;
use foreread_plan::Advice;
use std::os::unix::fs::symlink;

/// What was handed on: threads, the bytes of their programs' paths, files and reads.
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
    fn thread(&mut self, _: ThreadId, _: &ThreadMeta) {}
    fn accesses(&mut self, _: Sequence) {}
}

impl Sink for Counts {
    fn file(&mut self, _: FileId, _: &FileMeta) {
        self.files += 1;
    }

    fn thread(&mut self, _: ThreadId, meta: &ThreadMeta) {
        self.threads += 1;
        self.names += meta.exe.len();
    }

    fn accesses(&mut self, _: Sequence) {
        self.reads += 1;
    }
}

fn event(pid: u32, what: What) -> Event {
    Event {
        pid,
        tid: pid,
        start: 0,
        what,
    }
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
            ppid: 1,
            stdio: true,
            exe: format!("/{pid}/{long}").into(),
        };
        watch.take(event(pid, introduced), &mut counts);
    }
    // The same file by ever other paths, and paths that lead nowhere.
    for inst in 1..2000_u32 {
        for dots in ["./".repeat(inst as usize), format!("{inst}/")] {
            let opened = What::Open {
                handle: inst,
                how: How::default(),
                took: 0,
                path: home.path().join(dots).join("file"),
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
    let paths = watch
        .places
        .by_path
        .keys()
        .map(|path| path.as_os_str().len());
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
        let found = Found {
            link: None,
            target: Target::Regular(FileId(number)),
        };
        watch.places.by_path.insert(path(number), found);
        let meta = FileMeta {
            path: path(number),
            dev: 1,
            ino: u64::from(number),
            size: 0,
            mtime_ns: 0,
            written: true,
            advice: Advice::Normal,
            directory: false,
        };
        assert_eq!(
            watch.places.files.meet(&meta, None),
            Some((FileId(number), true))
        );
    }
    for number in (0..FILES).chain(0..FILES) {
        let how = How {
            writes: true,
            ..How::default()
        };
        watch.open(&path(number), how, &mut Nobody);
    }
    assert_eq!(watch.writable.len(), FILES as usize);
    watch.finish(&mut Nobody);
    assert!(watch.writable.is_empty());
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
                .find(&at(name), Use::Opened, &mut Nobody)
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
    // A folder that a link has taken the place of is not remembered by that path.
    assert!(!watch.places.direct.contains(&at("link")));
}

/// What was handed on, in order: the path below a folder, and how it was used.
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
    // A moment later: what is there was not made by the run.
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
    };
    let (stat, list) = (Kind::Stat, Kind::List);
    let open = |path: &str, directory| What::Open {
        handle: 1,
        path: at(path),
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
        // Not what can be: a file has no entries; there is nothing; no file of the session.
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
    // What the run has made itself is not looked for by the next.
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
        path: root.join("file"),
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
