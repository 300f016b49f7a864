//! One suite for every observer: the same programs, whose records are compared with what they are known to read, and with
//! what strace sees.
//!
//! The preload library is put into programs for the system's C library and loader. eBPF sees the others as well: the same source
//! is built in each way that there is a compiler for.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use foreread_plan::Kind::{self, Pread, Read as AtCursor};
use foreread_plan::format::Reader;
use foreread_tests::{Need, check, foreread};

use super::harness::{Read, Stage, source};
use super::oracle::{Account, counts, sorted, traced};
use super::reading::EXACT;
use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "preload_records_what_programs_read_byte_by_byte",
        QUICK,
        &[Need::Command("cc")],
        || each_exact("preload", &BUILDS[..1]),
    ),
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

/// Those that take eBPF.
pub const EBPF: &[Test] = &[
    (
        "ebpf_records_what_programs_of_all_kinds_read_byte_by_byte",
        ALL,
        &[Need::Ebpf, Need::Command("cc")],
        || each_exact("ebpf", BUILDS),
    ),
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
        "ebpf_sees_reads_by_io_uring_byte_by_byte",
        ALL,
        &[Need::Ebpf, Need::Command("cc")],
        uring,
    ),
    (
        "ebpf_sees_reads_by_libaio_s_call_byte_by_byte",
        ALL,
        &[Need::Ebpf, Need::Command("cc")],
        submit,
    ),
    (
        "ebpf_sees_system_calls_without_a_library",
        QUICK,
        &[Need::Ebpf, Need::Command("cc")],
        bare,
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
        "ebpf_finds_a_file_that_is_opened_by_a_name_of_the_process_s_own",
        ALL,
        &[Need::Ebpf, Need::Command("cc")],
        own_view,
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
        &[Need::Ebpf, Need::Command("cc")],
        full,
    ),
];

/// The ways to build a C program: the compiler, and its options.
const BUILDS: &[(&str, &[&str])] = &[
    ("cc", &[]),
    ("cc", &["-static"]),
    ("cc", &["-m32", "-D_FILE_OFFSET_BITS=64"]),
    ("musl-gcc", &["-static"]),
    ("musl-gcc", &[]),
];

/// What a few programs that nobody but the kernel sees read of the data file.
const THREE: &[Read] = &[
    (AtCursor, 0, 1000),
    (Pread, 5000, 50),
    (AtCursor, 1000, 8192),
];

/// Builds a C program in one of the ways; whether that can be done here.
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

/// `foreread record` of a command, in the stage.
pub(super) fn record(stage: &Stage, observer: &str, command: &[&str]) -> Output {
    let mut foreread = Command::new(foreread());
    foreread
        .args(["record", "--observer", observer, "-o"])
        .arg(stage.path("kept.fr"))
        .arg("--")
        .args(command)
        .current_dir(stage.path(""))
        .env("XDG_DATA_HOME", stage.path("home"))
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    let output = foreread.output().expect("foreread");
    // To load eBPF takes long on a busy machine.
    let said = said(&output);
    check!(!said.contains("not waited for"), "held up: {said}");
    output
}

/// What the record has of a file, in order.
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

fn each_exact(observer: &str, builds: &[(&str, &[&str])]) {
    for &build in builds {
        for &(name, expected) in EXACT {
            let stage = Stage::new();
            if !built(&stage, name, build) {
                eprintln!("skipped: {name} cannot be built by {build:?} here");
                continue;
            }
            let program = stage.path(name);
            let data = stage.data();
            let command = [
                program.to_str().expect("text"),
                data.to_str().expect("text"),
            ];
            let output = record(&stage, observer, &command);
            assert!(output.status.success(), "{output:?}");
            assert_eq!(reads_of(&stage, &data), expected, "{name} by {build:?}");
        }
    }
}

/// Compares the record of a command with strace's log of the same run.
fn compare(observer: &str, stage: &Stage, command: &[&str]) {
    let log = stage.path("log");
    let calls = "trace=read,pread64,readv,preadv,preadv2,copy_file_range";
    let strace = ["strace", "-f", "-y", "-qq", "-s", "0", "-e", calls, "-o"];
    let log_name = log.to_str().expect("text");
    let output = record(
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

fn uring() {
    let stage = Stage::new();
    if !built(&stage, "uring", BUILDS[0]) {
        eprintln!("skipped: no <linux/io_uring.h> here");
        return;
    }
    let data = stage.data();
    let output = record(&stage, "ebpf", &["./uring", data.to_str().expect("text")]);
    if output.status.code() == Some(99) {
        eprintln!("skipped: io_uring is not to be had: {}", said(&output));
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let reads = [
        (Pread, 12288, 100),
        (Pread, 0, 4096),
        (Pread, 5000, 4100),
        (Pread, 19000, 1000),
    ];
    assert_eq!(reads_of(&stage, &data), reads);
}

fn submit() {
    let stage = Stage::new();
    assert!(built(&stage, "submit", BUILDS[0]));
    let data = stage.data();
    let output = record(&stage, "ebpf", &["./submit", data.to_str().expect("text")]);
    if output.status.code() == Some(99) {
        eprintln!("skipped: io_submit is not to be had: {}", said(&output));
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let reads = [
        (Pread, 12288, 100),
        (Pread, 0, 4096),
        (Pread, 5000, 4100),
        (Pread, 19000, 1000),
    ];
    assert_eq!(reads_of(&stage, &data), reads);
}

/// Records `./program` of the stage by eBPF, which is to read what all these do.
fn three(stage: &Stage, program: &str) {
    let data = stage.data();
    let output = record(stage, "ebpf", &[program, data.to_str().expect("text")]);
    assert!(output.status.success(), "{program}: {output:?}");
    assert_eq!(reads_of(stage, &data), THREE, "{program}");
}

fn bare() {
    for options in [
        &["-O1"][..],
        &["-static"],
        // Without any C library.
        &[
            "-static",
            "-nostdlib",
            "-fno-stack-protector",
            "-DFREESTANDING",
        ],
    ] {
        let stage = Stage::new();
        if built(&stage, "bare", ("cc", options)) {
            three(&stage, "./bare");
        } else {
            eprintln!("skipped: nothing to build by {options:?} with");
        }
    }
}

/// Builds the program that loads a library apart, and the library.
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

/// Builds a set-user-ID program of another user's, which reads by system calls of its own, and lets that user come there.
fn set_user_id(stage: &Stage) -> bool {
    let nobody = Some(65534);
    let program = stage.path("bare");
    built(stage, "bare", BUILDS[0])
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

fn own_view() {
    let stage = Stage::new();
    assert!(built(&stage, "ownview", BUILDS[0]), "a program");
    let output = Command::new(foreread())
        .args(["record", "--observer", "ebpf", "-o"])
        .args([&stage.path("kept.fr"), Path::new("--")])
        .arg(stage.path("ownview"))
        .env("XDG_DATA_HOME", stage.path("home"))
        // Nobody is seen to open it by its name.
        .stdin(fs::File::open(stage.data()).expect("the data"))
        .output()
        .expect("foreread");
    assert!(output.status.success(), "{output:?}");
    let reads = [(AtCursor, 0, 10), (AtCursor, 0, 12)];
    assert_eq!(reads_of(&stage, &stage.data()), reads);
}

fn unseen() {
    let says = |stage: &Stage, program: &str, words: &str| {
        let data = stage.data();
        let output = record(stage, "preload", &[program, data.to_str().expect("text")]);
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
    let program = built(&stage, "touches", BUILDS[0]);
    assert!(program, "the program");
    let file = stage.path("mapped");
    std::fs::write(&file, vec![1; 64 << 20]).expect("a file");
    // Out of memory: pages that were written lie together, and are mapped together.
    let file_itself = std::fs::File::open(&file).expect("the file");
    file_itself.sync_all().expect("a disk");
    rustix::fs::fadvise(&file_itself, 0, None, rustix::fs::Advice::DontNeed).expect("advice");
    drop(file_itself);
    let output = record(&stage, "ebpf", &["./touches", file.to_str().expect("text")]);
    assert!(output.status.success(), "{output:?}");
    // A page counts once in a run.
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
    assert!(built(&stage, "read", BUILDS[1]), "a static program");
    let data = stage.data();
    let output = record(&stage, "auto", &["./read", data.to_str().expect("text")]);
    let said = said(&output);
    assert!(
        said.contains("observed by eBPF: the program is statically linked"),
        "{said}"
    );
    assert_eq!(reads_of(&stage, &data), EXACT[0].1);
}

fn refused() {
    let stage = Stage::new();
    assert!(built(&stage, "read", BUILDS[0]), "a program");
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
    assert_eq!(reads_of(&stage, &data), EXACT[0].1);
}

fn full() {
    let stage = Stage::new();
    let output = Command::new(foreread())
        .args(["record", "--observer", "ebpf", "-o"])
        .args([&stage.path("kept.fr"), Path::new("--"), Path::new("dd")])
        .args(["bs=16", "of=/dev/null", "status=none"])
        .arg(format!("if={}", stage.data().display()))
        .env("XDG_DATA_HOME", stage.path("home"))
        .env("FOREREAD_EBPF_RING", "4096")
        .output()
        .expect("foreread");
    let said = said(&output);
    assert!(output.status.success(), "{output:?}");
    assert!(
        said.contains("events lost by the kernel's side: "),
        "{said}"
    );
    assert!(said.contains("came too fast to be recorded"), "{said}");
}
