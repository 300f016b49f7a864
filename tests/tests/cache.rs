//! `foreread cache save` and `restore`: the saved pages return to memory, and forbidden files are never touched.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use foreread_plan::PAGE;
use foreread_tests::silent::{self, Silent};
use foreread_tests::suite::{ALL, QUICK, Suite, Test};
use foreread_tests::{AutomountPoint, Lab, MemoryGroup, Need, check, eventually, foreread, text};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;

const TESTS: &[Test] = &[
    (
        "saved_pages_come_back_and_no_others",
        QUICK.one_at_a_time(),
        &[],
        comes_back,
    ),
    (
        "files_that_have_changed_or_are_gone_are_left_out",
        QUICK,
        &[],
        changed,
    ),
    (
        "no_more_is_restored_than_memory_is_given",
        QUICK,
        &[],
        budget,
    ),
    ("bad_saved_caches_are_named", QUICK, &[], bad),
    (
        "links_pipes_and_other_file_systems_are_left_alone",
        QUICK,
        &[Need::Automount, Need::Fuse],
        left_alone,
    ),
    (
        "what_a_user_may_not_read_or_ask_about_is_counted",
        QUICK,
        &[Need::Nobody],
        not_mine,
    ),
    (
        "what_the_programs_of_a_control_group_have_open_is_saved",
        QUICK,
        &[Need::MemoryGroup],
        group,
    ),
    (
        "a_whole_machine_is_saved",
        ALL,
        &[
            Need::Root,
            Need::Command("unshare"),
            Need::Command("chroot"),
        ],
        all,
    ),
];

pub fn add(suite: &mut Suite) {
    suite.add("cache", TESTS);
}

/// Brings only these pages of a cold file into memory.
fn read(path: &Path, pages: impl Iterator<Item = u64>) {
    let file = File::open(path).expect("our own file");
    foreread_sys::cache::advise_random(&file).expect("advice");
    for page in pages {
        file.read_exact_at(&mut [0], page * PAGE).expect("a page");
    }
}

/// The account of a command that must succeed.
fn account(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn said(output: &Output) -> String {
    let all = text(&output.stdout) + &text(&output.stderr);
    all.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn comes_back() {
    let lab = Lab::new();
    fs::create_dir(lab.path("folder")).expect("a folder");
    for name in ["folder/scattered", "folder/whole", "folder/cold"] {
        lab.data(name, 4);
        lab.cold(&[name]);
    }
    read(&lab.path("folder/scattered"), (0..1024).step_by(3));
    fs::read(lab.path("folder/whole")).expect("our own file");
    let saved = account(&lab.foreread(&["cache", "save", "saved", "folder", "--json"]));
    check!(saved["files"] == 2 && saved["looked_at"] == 3, "{saved}");
    check!(saved["bytes"] == 342 * PAGE + (4 << 20), "{saved}");
    lab.cold(&["folder/scattered", "folder/whole"]);
    let restored = account(&lab.foreread(&["cache", "restore", "saved", "--json"]));
    check!(restored["restored_bytes"] == saved["bytes"], "{restored}");
    check!(lab.cached("folder/whole") == 4 << 20);
    check!(lab.cached("folder/cold") == 0);
    let cached = lab.cached("folder/scattered");
    let fetched = restored["fetched_bytes"].as_u64().expect("a number");
    check!(cached == fetched - (4 << 20), "{cached}: {restored}");
    // A second restore has nothing to do.
    let again = lab.foreread(&["cache", "restore", "saved"]);
    let said = said(&again);
    check!(
        said.contains("of 2 files in") && said.contains(": 0 B read from the device"),
        "{said}"
    );
}

fn changed() {
    let lab = Lab::new();
    for name in ["same", "resized", "modified", "gone"] {
        lab.write(name, vec![7; 40_000]);
    }
    let names = ["same", "resized", "modified", "gone"];
    let held = lab.held(&names);
    let save = [&["cache", "save", "saved", "--json"], &names[..]].concat();
    assert_eq!(account(&lab.foreread(&save))["files"], 4);
    drop(held);
    lab.write("resized", "short");
    lab.write("modified", vec![8; 40_000]);
    fs::remove_file(lab.path("gone")).expect("our own file");
    let output = lab.foreread(&["cache", "restore", "saved"]);
    assert!(output.status.success(), "{output:?}");
    let words = said(&output);
    for part in [
        "of 1 file in",
        "2 of 4 files have changed: left out (such as",
        "was 40000 bytes, is 5",
        "1 of 4 files cannot be read: left out",
        "No such file or directory",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    fs::remove_file(lab.path("same")).expect("our own file");
    let none = lab.foreread(&["cache", "restore", "saved"]);
    assert_eq!(none.status.code(), Some(1), "{none:?}");
}

fn budget() {
    let lab = Lab::new();
    lab.data("data", 8);
    let held = lab.held(&["data"]);
    account(&lab.foreread(&["cache", "save", "saved", "data", "--json"]));
    drop(held);
    lab.cold(&["data"]);
    let some = account(&lab.foreread(&["cache", "restore", "saved", "--memory", "1M", "--json"]));
    check!(some["fetched_bytes"] == 1 << 20, "{some}");
    check!(lab.cached("data") == 1 << 20);
    let output = lab.foreread(&["cache", "restore", "saved", "--memory", "1M"]);
    check!(
        said(&output).contains("left out: --memory allows 1.00 MiB"),
        "{output:?}"
    );
    let too_much = lab.foreread(&["cache", "restore", "saved", "--memory", "1000T", "--json"]);
    check!(
        account(&too_much)["memory_bytes"].as_u64() < Some(1 << 50),
        "{too_much:?}"
    );
    for nothing in ["0", "4095", "x"] {
        let refused = lab.foreread(&["cache", "restore", "saved", "--memory", nothing]);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(said(&refused).contains("--memory"), "{refused:?}");
    }
}

fn bad() {
    let lab = Lab::new();
    lab.data("data", 2);
    let _held = lab.held(&["data"]);
    let save = |to: &str, of: &str| lab.foreread(&["cache", "save", to, of]);
    assert!(save("saved", "data").status.success());
    let sound = fs::read(lab.path("saved")).expect("a saved cache");
    // Each error names the file, and the command does no work.
    for (name, content, why) in [
        ("text", b"not a cache".to_vec(), "is not a foreread record"),
        (
            "newer",
            [&sound[..8], &[99, 0], &sound[10..]].concat(),
            "format version 99",
        ),
        ("head", sound[..9].to_vec(), "ends after 9 bytes"),
        ("cut", sound[..sound.len() - 30].to_vec(), "ends early"),
    ] {
        lab.write(name, content);
        let refused = lab.foreread(&["cache", "restore", name]);
        assert!(!refused.status.success(), "{refused:?}");
        let said = said(&refused);
        assert!(said.contains(name) && said.contains(why), "{said}");
    }
    for name in ["none", "/dev/zero", "."] {
        let refused = lab.foreread(&["cache", "restore", name]);
        assert!(
            !refused.status.success() && said(&refused).contains(name),
            "{refused:?}"
        );
    }
    for (to, named) in [
        ("/dev/full", "/dev/full"),
        (".", "."),
        ("none/saved", "none"),
    ] {
        let refused = save(to, "data");
        assert!(
            !refused.status.success() && said(&refused).contains(named),
            "{refused:?}"
        );
    }
    // A missing file is no reason to replace a good save.
    let refused = save("saved", "missing");
    assert!(
        !refused.status.success() && said(&refused).contains("missing"),
        "{refused:?}"
    );
    assert_eq!(fs::read(lab.path("saved")).expect("it is there"), sound);
    assert_eq!(
        lab.foreread(&["cache", "save", "saved"]).status.code(),
        Some(2)
    );
    assert_eq!(lab.foreread(&["cache"]).status.code(), Some(2));
    let names = fs::read_dir(lab.path("")).expect("our own folder");
    let hidden = names.filter(|name| {
        let name = name.as_ref().expect("a name").file_name();
        name.to_string_lossy().starts_with('.')
    });
    assert_eq!(hidden.count(), 0);
}

fn left_alone() {
    let lab = Lab::new();
    let folder = lab.path("folder");
    for name in ["folder", "folder/fuse", "folder/auto"] {
        fs::create_dir(lab.path(name)).expect("a folder");
    }
    lab.write("outside", vec![1; 8192]);
    lab.write("folder/file", vec![1; 8192]);
    symlink(lab.path("outside"), folder.join("link")).expect("a link");
    symlink("/", folder.join("root")).expect("a link");
    mknodat(CWD, folder.join("pipe"), FileType::Fifo, Mode::RUSR, 0).expect("a pipe");
    let point = AutomountPoint::make("indirect", folder.join("auto")).expect("as tried before");
    let fuse = Silent::mount(&folder.join("fuse")).expect("as tried before");
    let save = ["cache", "save", "saved", "folder", "--json"];
    let held = lab.held(&["folder/file"]);
    let saved = account(&lab.foreread(&save));
    drop(held);
    assert_eq!(
        (&saved["looked_at"], &saved["files"]),
        (&1.into(), &1.into()),
        "{saved}"
    );
    assert_eq!(saved["elsewhere"]["files"], 2, "{saved}");
    assert!(!point.is_asked(Duration::ZERO), "a mount was asked for");
    // A list that names a file in there is not followed.
    let inside = fuse.folder.join(silent::FILE).display().to_string();
    let named = lab.foreread(&["cache", "save", "other", &inside]);
    assert!(said(&named).contains("no local file system"), "{named:?}");
    fs::rename(lab.path("folder/file"), lab.path("moved")).expect("our own file");
    symlink(lab.path("moved"), lab.path("folder/file")).expect("a link");
    let restored = lab.foreread(&["cache", "restore", "saved"]);
    assert_eq!(restored.status.code(), Some(1), "{restored:?}");
    assert!(said(&restored).contains("cannot be read"), "{restored:?}");
}

fn not_mine() {
    let lab = Lab::of_nobody();
    lab.write("mine", vec![1; 8192]);
    let theirs = Path::new("/etc/passwd");
    fs::read(theirs).expect("anybody may");
    let _held = lab.held(&["mine"]);
    let saved = lab.foreread(&["cache", "save", "saved", "mine", "/etc/passwd", "--json"]);
    let saved = account(&saved);
    assert_eq!(saved["files"], 1, "{saved}");
    assert_eq!(saved["untold"]["files"], 1, "{saved}");
    let secret = lab.path("secret");
    fs::write(&secret, vec![1; 8192]).expect("our own file");
    fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .expect("ours");
    let saved = account(&lab.foreread(&["cache", "save", "saved", "secret", "--json"]));
    assert_eq!(
        (&saved["files"], &saved["unreadable"]["files"]),
        (&0.into(), &1.into()),
        "{saved}"
    );
}

/// A process that is killed on drop.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn group() {
    let lab = Lab::new();
    lab.data("open", 1);
    lab.data("closed", 1);
    lab.write("deleted", vec![1; 8192]);
    lab.write("program.py", "import time\ntime.sleep(1000)\n");
    let members = MemoryGroup::new(1 << 30);
    let folder = members.members().with_file_name("").display().to_string();
    let empty = lab.foreread(&["cache", "save", "saved", "--cgroup", &folder]);
    assert_eq!(empty.status.code(), Some(2), "{empty:?}");
    assert!(said(&empty).contains("no process in this control group"));
    let script = "echo $$ > \"$0\" && exec 3<open 4<deleted 5<. && rm deleted && touch ready && exec sleep 1000";
    let mut program = lab.command("sh");
    program.args(["-c", script]).arg(members.members());
    let program = Killed(program.spawn().expect("a shell"));
    eventually("it has its files open", || {
        let name = fs::read_to_string(format!("/proc/{}/comm", program.0.id()));
        lab.path("ready").exists() && name.is_ok_and(|name| name == "sleep\n")
    });
    read(&lab.path("open"), 0..256);
    read(&lab.path("closed"), 0..256);
    let saved = account(&lab.foreread(&["cache", "save", "saved", "--cgroup", &folder, "--json"]));
    assert_eq!(saved["processes"], 1, "{saved}");
    assert_eq!(saved["unreadable"]["files"], 0, "{saved}");
    let listed = text(
        &lab.foreread(&["export", "./saved", "--to", "vmtouch"])
            .stdout,
    );
    let has = |name: &str| listed.lines().any(|line| line.ends_with(name));
    check!(has("/open"), "{listed}");
    // The process's executable is mapped.
    check!(
        has("/sleep") || has("/coreutils") || has("/busybox"),
        "{listed}"
    );
    assert!(!has("/closed") && !has("/deleted"), "{listed}");
    drop(program);
    let gone = lab.foreread(&["cache", "save", "saved", "--cgroup", "/none/here"]);
    assert_eq!(gone.status.code(), Some(2), "{gone:?}");
    assert!(
        said(&gone).contains("/none/here: no control group"),
        "{gone:?}"
    );
}

/// A machine with few files: a root directory of its own.
fn all() {
    let lab = Lab::new();
    let tools = foreread().with_file_name("foreread-tools");
    let programs = [foreread(), tools].map(|path| path.display().to_string());
    let root = lab.root_with(&programs.each_ref().map(String::as_str));
    fs::create_dir(root.join("proc")).expect("a folder");
    lab.write("root/here", vec![1; 8192]);
    let _held = lab.held(&["root/here"]);
    let script = "mount --bind root root && mount -t proc none root/proc && exec chroot root \"$0\" cache save /saved --all --json";
    let saved = account(&lab.plain(&["unshare", "-m", "sh", "-c", script, &programs[0]]));
    assert!(saved["looked_at"].as_u64() > Some(4), "{saved}");
    let listed = lab.foreread(&["export", "./root/saved", "--to", "vmtouch"]);
    let listed = text(&listed.stdout);
    assert!(listed.lines().any(|line| line == "/here"), "{listed}");
}
