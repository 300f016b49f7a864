//! foreread is no oracle: whatever a record names, foreread opens only regular files, and of these only the ones that its user may read.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use foreread_plan::format::{Reader, RecordFile};
use foreread_plan::{Access, Extent, FileId, FileMeta, Kind, PAGE, ThreadId};
use foreread_tests::{Lab, Need, check, finish, start};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use foreread_tests::suite::{QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "a_record_that_names_fifos_devices_and_folders_holds_nothing_up",
        QUICK,
        &[],
        special,
    ),
    (
        "a_file_the_user_may_not_read_stays_cold",
        QUICK,
        &[Need::Nobody],
        secret,
    ),
    (
        "nothing_a_doctored_record_names_is_opened",
        QUICK,
        &[Need::Nobody, Need::Command("strace")],
        unopened,
    ),
];

const COMMAND: &[&str] = &["./scatter", "500", "100", "data"];
/// Pages of each file that a forged record claims were read.
const CLAIMED: u64 = 64;

/// A lab with a record of [`COMMAND`].
fn recorded(lab: Lab) -> Lab {
    lab.program("scatter", &[]);
    lab.data("data", 8);
    lab.cold(&["data"]);
    lab.run(COMMAND);
    lab
}

/// Rewrites the only record so that the run seems to have read `paths` before all other files.
fn doctor(lab: &Lab, paths: &[PathBuf]) {
    let path = lab.record();
    let mut reader = Reader::open(&path).expect("the record");
    let accesses: Vec<Access> = reader
        .accesses()
        .collect::<Result<_, _>>()
        .expect("a sound record");
    let mut record = RecordFile::create(&path, reader.meta(), u64::MAX).expect("a record");
    let claimed: Vec<FileId> = (1000..).map(FileId).take(paths.len()).collect();
    let like = reader.files().values().next().expect("a file").clone();
    for (&id, path) in claimed.iter().zip(paths) {
        let meta = FileMeta {
            path: path.clone(),
            // Another inode number for each path, because two names of one inode are one file.
            ino: u64::from(id.0),
            size: 1 << 30,
            ..like.clone()
        };
        record.file(id, meta).expect("a record");
    }
    for (&id, meta) in reader.files() {
        record.file(id, meta.clone()).expect("a record");
    }
    for (&id, meta) in reader.threads() {
        record.thread(id, meta.clone()).expect("a record");
    }
    for page in 0..CLAIMED {
        for &file in &claimed {
            // Far apart, so that it does not count as a stream.
            let access = Access {
                file,
                extent: Extent::new(page * 37 % CLAIMED * 16 * PAGE, PAGE),
                thread: ThreadId(0),
                kind: Kind::Pread,
                start: 0,
                took: 1000,
            };
            record.access(&access).expect("a record");
        }
    }
    for access in &accesses {
        record.access(access).expect("a record");
    }
    let summary = reader.summary().expect("a whole record").clone();
    record.commit(summary).expect("a record");
    // The record seems to belong to its rightful owner.
    let owner = fs::metadata(lab.path("data")).expect("our own file");
    chown(&path, Some(owner.uid()), Some(owner.gid())).expect("our own");
}

/// A FIFO, a folder, and links to them and to a device.
fn traps(lab: &Lab) -> Vec<PathBuf> {
    let fifo = lab.path("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o666), 0).expect("a FIFO");
    let folder = lab.path("folder");
    fs::create_dir(&folder).expect("a folder");
    let mut traps = vec![
        fifo.clone(),
        folder.clone(),
        "/dev/zero".into(),
        "/dev/tty".into(),
    ];
    for (name, target) in [("to-fifo", fifo), ("to-device", "/dev/zero".into())] {
        symlink(target, lab.path(name)).expect("a link");
        traps.push(lab.path(name));
    }
    traps
}

fn special() {
    let lab = recorded(Lab::new());
    let plain = lab.plain(COMMAND);
    doctor(&lab, &traps(&lab));
    lab.cold(&["data"]);
    let outcome = lab.run(COMMAND);
    outcome.assert_as(&plain);
    outcome.check_mode("prefetched");
    let named = outcome.account["files"].to_string();
    check!(
        named.contains(lab.path("fifo").to_str().unwrap()),
        "{outcome:?}"
    );
}

fn secret() {
    let lab = recorded(Lab::of_nobody());
    let secret = lab.data("secret", 8);
    chown(&secret, Some(0), Some(0)).expect("root");
    for (mode, cold) in [(0o600, true), (0o644, false)] {
        fs::set_permissions(&secret, fs::Permissions::from_mode(mode)).expect("root");
        chown(&secret, Some(if cold { 0 } else { 65534 }), None).expect("root");
        doctor(&lab, std::slice::from_ref(&secret));
        lab.cold(&["data", "secret"]);
        lab.run(COMMAND).assert_as(&lab.plain(COMMAND));
        let cached = lab.cached("secret");
        if cold {
            assert_eq!(cached, 0, "mode {mode:o}");
        } else {
            check!(cached > 0, "mode {mode:o}");
        }
    }
}

fn unopened() {
    let lab = recorded(Lab::of_nobody());
    let mut named = traps(&lab);
    named.push("/etc/shadow".into());
    doctor(&lab, &named);
    lab.cold(&["data"]);
    let plain = lab.plain(COMMAND);
    lab.cold(&["data"]);
    let (command, account) = lab.running(&[], COMMAND);
    let mut traced = std::process::Command::new("strace");
    traced
        .args([
            "-f",
            "-y",
            "-s",
            "4096",
            "-e",
            "trace=open,openat,openat2",
            "-o",
        ])
        .arg(lab.path("trace"))
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(lab.path(""))
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            traced.env(name, value);
        }
    }
    let outcome = account.of(finish(start(&mut traced)));
    outcome.assert_as(&plain);
    let trace = whole_lines(&fs::read_to_string(lab.path("trace")).expect("a trace"));
    for path in &named {
        // Named by its path, or by its name in an open folder.
        let (folder, name) = (path.parent(), path.file_name());
        let (folder, name) = (folder.expect("a folder"), name.expect("a name"));
        let in_folder = format!("<{}>, {name:?}", folder.display());
        let asked = |line: &str| {
            line.contains(&format!("\"{}\"", path.display())) || line.contains(&in_folder)
        };
        check!(
            trace.iter().any(|line| asked(line)),
            "{} was not even looked at",
            path.display()
        );
        let target = path.canonicalize().unwrap_or_else(|_| path.clone());
        let opened = trace.iter().find(|line| opens(line, &target));
        assert_eq!(opened, None);
    }
    check!(trace.iter().any(|line| opens(line, &lab.path("data"))));
}

/// The lines of a trace, with interrupted calls joined again.
fn whole_lines(trace: &str) -> Vec<String> {
    let mut begun: HashMap<&str, &str> = HashMap::new();
    let mut lines = Vec::new();
    for line in trace.lines() {
        let (thread, rest) = line.split_once(' ').unwrap_or((line, ""));
        if let Some(call) = line.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, call);
        } else if let Some((_, end)) = rest.split_once(" resumed>") {
            lines.push(format!("{}{end}", begun.remove(thread).unwrap_or("")));
        } else {
            lines.push(line.to_owned());
        }
    }
    lines
}

/// True if a line of strace's opened a file for more than its path.
fn opens(line: &str, path: &Path) -> bool {
    !line.contains("O_PATH")
        && line
            .rsplit_once(" = ")
            .is_some_and(|(_, result)| result.ends_with(&format!("<{}>", path.display())))
}
