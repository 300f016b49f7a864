//! The records of programs that only one observer sees, and of real programs compared with strace; the choice of the observer for a
//! program, and the messages about programs that it does not see.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use foreread_plan::Kind::{self, Pread, Read as AtCursor};
use foreread_plan::format::Reader;
use foreread_tests::{Need, check, foreread};

use super::harness::{Read, Stage, source};
use super::oracle::{Account, counts, sorted, traced};
use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "the_record_of_preload_is_what_the_kernel_saw_of_a_script",
        ALL,
        &[Need::Command("strace")],
        || script("preload"),
    ),
    (
        "the_preload_library_says_whom_it_cannot_see",
        ALL,
        &[Need::Command("cc")],
        unseen,
    ),
    (
        "without_rights_ebpf_is_refused_and_the_preload_library_serves",
        ALL,
        &[Need::Command("setpriv")],
        refused,
    ),
];

/// The tests that need eBPF.
pub const EBPF: &[Test] = &[
    (
        "the_record_of_ebpf_is_what_the_kernel_saw_of_a_script",
        ALL,
        &[Need::Ebpf, Need::Command("strace")],
        || script("ebpf"),
    ),
    (
        "the_record_of_ebpf_is_what_the_kernel_saw_of_python",
        ALL,
        &[Need::Ebpf, Need::Command("strace")],
        || python("ebpf"),
    ),
    (
        "ebpf_sees_a_library_that_was_loaded_apart",
        ALL,
        &[Need::Ebpf, Need::Command("cc")],
        deepbind,
    ),
    (
        "ebpf_sees_a_set_user_id_program",
        ALL,
        &[Need::Ebpf, Need::Command("cc")],
        privileged,
    ),
    (
        "ebpf_sees_a_go_program",
        ALL,
        &[Need::Ebpf, Need::Command("cc")],
        go,
    ),
    (
        "ebpf_sees_each_page_of_a_mapping_touched_in_order",
        ALL,
        &[Need::Ebpf, Need::Command("cc")],
        mapped,
    ),
    (
        "a_static_program_is_given_to_ebpf",
        QUICK,
        &[Need::Ebpf, Need::Command("cc")],
        chosen,
    ),
    (
        "what_a_full_ring_loses_is_counted_and_said",
        ALL,
        &[Need::Ebpf, Need::Command("pkill")],
        full,
    ),
];

/// The reads of the data file by `read.c`.
const READ: &[Read] = &[
    (AtCursor, 0, 1000),
    (AtCursor, 1000, 8192),
    (AtCursor, 9192, 8192),
    (AtCursor, 17384, 2616),
];

/// The reads of the data file by a few programs that only the kernel sees.
const THREE: &[Read] = &[
    (AtCursor, 0, 1000),
    (Pread, 5000, 50),
    (AtCursor, 1000, 8192),
];

/// Builds a C program in one of the ways; false if that is impossible here.
pub(super) fn built(stage: &Stage, name: &str, (compiler, options): (&str, &[&str])) -> bool {
    let output = Command::new(compiler)
        .args(["-O1", "-pthread", "-Wno-unused-result", "-o"])
        .arg(stage.path(name))
        .arg(source(&format!("{name}.c")))
        .args(options)
        .stdin(Stdio::null())
        .output();
    output.is_ok_and(|output| output.status.success())
}

/// Runs `foreread record` of a program in the stage; `give` completes the command.
pub(super) fn record(
    stage: &Stage,
    observer: &str,
    program: &Path,
    give: impl FnOnce(&mut Command),
) -> Output {
    let mut foreread = Command::new(foreread());
    foreread
        .args(["record", "--observer", observer, "-o"])
        .arg(stage.path("kept.fr"))
        .arg("--")
        .arg(program)
        .current_dir(stage.path(""))
        .env("XDG_DATA_HOME", stage.path("home"))
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    give(&mut foreread);
    // On a busy machine loading eBPF may block for longer than foreread lets a program wait. Such a run has no record.
    for _ in 0..20 {
        let output = foreread.output().expect("foreread");
        if !said(&output).contains("not waited for") {
            return output;
        }
    }
    panic!("held up 20 times");
}

/// Runs `foreread record` of a command.
pub(super) fn record_command(stage: &Stage, observer: &str, command: &[&str]) -> Output {
    record(stage, observer, Path::new(command[0]), |foreread| {
        foreread.args(&command[1..]);
    })
}

/// The recorded reads of a file, in order.
pub(super) fn reads_of(stage: &Stage, path: &Path) -> Vec<Read> {
    let mut record = Reader::open(&stage.path("kept.fr")).expect("the record");
    let files = record.files().clone();
    let ours = |id| files.get(&id).is_some_and(|meta| meta.path == path);
    let accesses = record.accesses().map(|access| access.expect("an access"));
    accesses
        .filter(|access| access.kind.reads() && ours(access.file))
        .map(|access| (access.kind, access.extent.offset, access.extent.len))
        .collect()
}

pub(super) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).replace("\nforeread:   ", " ")
}

/// Compares a command's record with strace's log of the same run.
fn compare(observer: &str, stage: &Stage, command: &[&str]) {
    let log = stage.path("log");
    let calls = "trace=read,pread64,readv,preadv,preadv2,copy_file_range";
    let strace = ["strace", "-f", "-y", "-qq", "-s", "0", "-e", calls, "-o"];
    let log_name = log.to_str().expect("text");
    let output = record_command(
        stage,
        observer,
        &[&strace, &[log_name][..], command].concat(),
    );
    assert!(output.status.success(), "{output:?}");
    check!(!said(&output).contains("too fast"), "{}", said(&output));
    let kernels = traced(&std::fs::read_to_string(&log).expect("strace's log"));
    assert!(!kernels.is_empty(), "strace saw nothing");
    let mut record = Reader::open(&stage.path("kept.fr")).expect("the record");
    let files = record.files().clone();
    let mut ours = Account::new();
    for access in record.accesses().map(|access| access.expect("an access")) {
        let path = &files[&access.file].path;
        let is_call = access.kind.reads() && access.kind != Kind::Touch;
        if is_call && access.extent.len > 0 && counts(path) {
            let lens = ours.entry(path.clone()).or_default();
            lens.push(access.extent.len);
        }
    }
    let ours = sorted(ours);
    for (path, reads) in &kernels {
        assert_eq!(ours.get(path), Some(reads), "{}", path.display());
    }
}

fn script(observer: &str) {
    let stage = Stage::new();
    let lines = "while read line; do :; done < other\n\
                 sort data | head -n 3; grep -c 7 data other; tail -n 2 data; wc data\n\
                 sed -n 7p data; awk '{ n += $1 } END { print n }' data; (cd /; cat) < data; md5sum data\n";
    std::fs::write(stage.path("script"), lines).expect("the script");
    compare(observer, &stage, &["bash", "script"]);
}

fn python(observer: &str) {
    let stage = Stage::new();
    let imports = "import json, email.message, csv, subprocess; \
                   print(sum(map(len, open('data'))), subprocess.run(['wc', '-c', 'other']))";
    compare(observer, &stage, &["/usr/bin/python3", "-c", imports]);
}

/// Records `./program` of the stage by eBPF; the program must make the reads of `THREE`.
fn three(stage: &Stage, program: &str) {
    let data = stage.data();
    let output = record_command(stage, "ebpf", &[program, data.to_str().expect("text")]);
    assert!(output.status.success(), "{program}: {output:?}");
    assert_eq!(reads_of(stage, &data), THREE, "{program}");
}

/// Builds the program that loads a library into a scope of its own, and that library.
fn loaded_apart(stage: &Stage) {
    assert!(built(stage, "deepbind", ("cc", &["-ldl"])), "the program");
    let mut compile = Command::new("cc");
    compile.args(["-DLIBRARY", "-shared", "-fPIC", "-w", "-o", "deepbind.so"]);
    stage.build(compile.arg(source("deepbind.c")));
}

fn deepbind() {
    let stage = Stage::new();
    loaded_apart(&stage);
    three(&stage, "./deepbind");
}

/// Builds a set-user-ID program of another user, which issues system calls itself, and lets that user enter the stage.
fn set_user_id(stage: &Stage) -> bool {
    let nobody = Some(65534);
    let program = stage.path("bare");
    built(stage, "bare", ("cc", &[]))
        && chown(&program, nobody, nobody).is_ok()
        && fs::set_permissions(&program, fs::Permissions::from_mode(0o6755)).is_ok()
        && fs::set_permissions(stage.path(""), fs::Permissions::from_mode(0o755)).is_ok()
        && Command::new(&program)
            .arg(stage.data())
            .status()
            .is_ok_and(|status| status.success())
}

fn privileged() {
    let stage = Stage::new();
    if !set_user_id(&stage) {
        eprintln!("skipped: no set-user-ID program runs here");
        return;
    }
    three(&stage, "./bare");
}

fn go() {
    let stage = Stage::new();
    let output = Command::new("go")
        .args(["build", "-o", "reader"])
        .arg(source("reader.go"))
        .current_dir(stage.path(""))
        .env("CGO_ENABLED", "0")
        .env("GOCACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/go"))
        .env("GO111MODULE", "off")
        .output();
    if !output.as_ref().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: go builds nothing here: {output:?}");
        return;
    }
    three(&stage, "./reader");
}

fn unseen() {
    let says = |stage: &Stage, program: &str, words: &str| {
        let data = stage.data();
        let output = record_command(stage, "preload", &[program, data.to_str().expect("text")]);
        let said = said(&output);
        assert!(output.status.success(), "{program}: {output:?}");
        assert!(said.contains(words), "{program}: {said}");
    };
    let builds: [(_, &[&str], _); 3] = [
        ("cc", &["-static"], "statically linked"),
        (
            "cc",
            &["-m32", "-D_FILE_OFFSET_BITS=64"],
            "a 32-bit program",
        ),
        ("musl-gcc", &[], "linked with another C library than glibc"),
    ];
    for (compiler, options, words) in builds {
        let stage = Stage::new();
        if built(&stage, "read", (compiler, options)) {
            says(&stage, "./read", words);
        } else {
            eprintln!("skipped: nothing to build by {compiler} {options:?} with");
        }
    }
    let stage = Stage::new();
    if set_user_id(&stage) {
        says(&stage, "./bare", "started with other privileges");
    } else {
        eprintln!("skipped: no set-user-ID program runs here");
    }
}

fn mapped() {
    let stage = Stage::new();
    let program = built(&stage, "touches", ("cc", &[]));
    assert!(program, "the program");
    let file = stage.path("mapped");
    std::fs::write(&file, vec![1; 64 << 20]).expect("a file");
    // The pages are evicted, because written pages lie together and would be mapped together.
    let file_itself = std::fs::File::open(&file).expect("the file");
    file_itself.sync_all().expect("a disk");
    rustix::fs::fadvise(&file_itself, 0, None, rustix::fs::Advice::DontNeed).expect("advice");
    drop(file_itself);
    let output = record_command(&stage, "ebpf", &["./touches", file.to_str().expect("text")]);
    assert!(output.status.success(), "{output:?}");
    // A page counts once per run.
    let mut wanted: Vec<u64> = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let page = line.parse().expect("a page");
        if !wanted.contains(&page) {
            wanted.push(page);
        }
    }
    let touched: Vec<u64> = reads_of(&stage, &file)
        .into_iter()
        .map(|(kind, offset, len)| {
            assert_eq!((kind, len), (Kind::Touch, 4096));
            offset / 4096
        })
        .collect();
    assert_eq!(touched, wanted);
}

fn chosen() {
    let stage = Stage::new();
    assert!(
        built(&stage, "read", ("cc", &["-static"])),
        "a static program"
    );
    let data = stage.data();
    let output = record_command(&stage, "auto", &["./read", data.to_str().expect("text")]);
    let said = said(&output);
    assert!(
        said.contains("observed by eBPF: the program is statically linked"),
        "{said}"
    );
    assert_eq!(reads_of(&stage, &data), READ);
}

fn refused() {
    let stage = Stage::new();
    assert!(built(&stage, "read", ("cc", &[])), "a program");
    let data = stage.data();
    let output = Command::new("setpriv")
        .args(["--inh-caps=-all", "--bounding-set=-bpf,-perfmon,-sys_admin"])
        .arg(foreread())
        .args(["record", "--observer", "ebpf", "-o"])
        .args([
            &stage.path("kept.fr"),
            Path::new("--"),
            &stage.path("read"),
            &data,
        ])
        .env("XDG_DATA_HOME", stage.path("home"))
        .output()
        .expect("setpriv");
    if String::from_utf8_lossy(&output.stderr).starts_with("setpriv:") {
        eprintln!("skipped: not root here");
        return;
    }
    let said = said(&output);
    assert!(output.status.success(), "{output:?}");
    assert!(said.contains("eBPF cannot observe this run: "), "{said}");
    assert!(
        said.contains("The preload library observes it instead"),
        "{said}"
    );
    assert_eq!(reads_of(&stage, &data), READ);
}

fn full() {
    let stage = Stage::new();
    // The process that takes events from the ring is stopped during the reads.
    let script = format!(
        "pkill -STOP -P $PPID foreread-helper; dd bs=16 of=/dev/null status=none if={}; pkill -CONT -P $PPID foreread-helper",
        stage.data().display()
    );
    let output = record(&stage, "ebpf", Path::new("sh"), |foreread| {
        foreread
            .args(["-c", &script])
            .env("FOREREAD_EBPF_RING", "4096");
    });
    let said = said(&output);
    assert!(output.status.success(), "{output:?}");
    assert!(
        said.contains("events lost by the kernel's side: "),
        "{said}"
    );
    assert!(said.contains("came too fast to be recorded"), "{said}");
}
