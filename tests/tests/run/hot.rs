//! The cost of a run with everything in memory, counted, not timed.

use foreread_tests::{Lab, Need, check, finish, foreread, start};

use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "files_that_a_program_drops_from_memory_itself_are_left_alone",
        QUICK,
        &[Need::Command("python3")],
        dropped,
    ),
    (
        "a_static_program_whose_files_are_in_memory_is_not_watched_in_the_kernel",
        QUICK,
        &[Need::Ebpf, Need::StaticC, Need::Command("strace")],
        unwatched,
    ),
    (
        "files_that_a_run_only_writes_are_not_looked_at_one_by_one",
        QUICK,
        &[Need::Command("strace")],
        written,
    ),
    (
        "a_hot_run_looks_at_no_more_files_for_a_record_of_thousands_than_for_one_of_fifty",
        ALL.alone(),
        &[Need::Command("strace"), Need::Command("find")],
        large,
    ),
];

/// The number of system calls with a file name, made by a program and its children.
fn calls(lab: &Lab, command: &std::process::Command) -> usize {
    let trace = lab.path("calls");
    let mut traced = lab.command("strace");
    traced
        .args(["-f", "-qq", "-e", "trace=%file,getdents64", "-o"])
        .arg(&trace)
        .arg(command.get_program())
        .args(command.get_args());
    let output = finish(start(&mut traced));
    assert!(output.status.success(), "{output:?}");
    let trace = std::fs::read_to_string(trace).expect("a trace");
    // A call that another thread's call interrupts has two lines.
    trace
        .lines()
        .filter(|line| !line.contains("resumed>"))
        .count()
}

/// The number of calls that foreread adds, with a record, to a program that looks up this many files, all in memory.
fn added(files: usize) -> usize {
    let lab = Lab::new();
    for number in 0..files {
        let folder = lab.path(&format!("tree/{}", number % 50));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join(number.to_string()), "content").expect("a file");
    }
    let command = ["find", "tree", "-size", "+100k"];
    lab.run(&command);
    let mut alone = lab.command("find");
    alone.args(&command[1..]);
    let plain = calls(&lab, &alone);
    assert!(plain > files, "{plain} calls for {files} files");
    let (run, _) = lab.running(&[], &command);
    calls(&lab, &run).saturating_sub(plain)
}

fn large() {
    let (few, many) = (added(50), added(6000));
    // A sample has at most 64 entries, and each takes some calls; their distribution over threads differs from run to run.
    check!(many < few + 300, "{many} calls, and {few} for few files");
}

fn written() {
    const FILES: usize = 3000;
    let lab = Lab::new();
    std::fs::create_dir(lab.path("made")).expect("a folder");
    let script = format!("i=0; while [ $i -lt {FILES} ]; do : > made/$i; i=$((i + 1)); done");
    let mut alone = lab.command("sh");
    alone.args(["-c", &script]);
    let plain = calls(&lab, &alone);
    assert!(plain > FILES, "{plain} calls for {FILES} files");
    let (run, _) = lab.running(&["--observer", "preload"], &["sh", "-c", &script]);
    let added = calls(&lab, &run).saturating_sub(plain);
    assert!(added < FILES, "{added} calls more for {FILES} files");
}

/// Reads files backward, and either evicts each from memory, like programs that leave no traces there (nocache, backups), or asks
/// whether pages are in memory; by functions, and by `syscall`.
const DROPS: &str = "import ctypes, os, platform, sys
fadvise64, preadv2 = (221, 327) if platform.machine() == 'x86_64' else (223, 286)
syscall = ctypes.CDLL(None).syscall
ten = ctypes.create_string_buffer(10)
part = (ctypes.c_size_t * 2)(ctypes.addressof(ten), 10)
for n in range(8):
    file = os.open(f'many/{n}', os.O_RDONLY)
    for offset in range((2 << 20) - 65536, -1, -65536):
        os.pread(file, 16384, offset)
    if sys.argv[1] == 'advice':
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    elif sys.argv[1] == 'raw advice':
        syscall(fadvise64, file, ctypes.c_long(0), ctypes.c_long(0), os.POSIX_FADV_DONTNEED)
    elif sys.argv[1] == 'raw nowait':
        syscall(preadv2, file, part, 1, ctypes.c_long(0), ctypes.c_long(0), os.RWF_NOWAIT)
    else:
        try:
            os.preadv(file, [bytearray(10)], 0, os.RWF_NOWAIT)
        except OSError:
            pass
    os.close(file)
";

fn dropped() {
    let lab = Lab::new();
    lab.write("drops.py", DROPS);
    std::fs::create_dir(lab.path("many")).expect("a folder");
    let names: Vec<String> = (0..8).map(|n| format!("many/{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.iter().for_each(|name| {
        lab.data(name, 2);
    });
    for how in ["advice", "nowait", "raw advice", "raw nowait"] {
        lab.foreread(&["forget", "--all"]);
        let command = ["python3", "drops.py", how];
        lab.cold(&names);
        let first = lab.run(&command);
        first.check_mode("recorded");
        for _ in 0..2 {
            lab.cold(&names);
            let outcome = lab.run(&command);
            assert!(outcome.output.status.success(), "{outcome:?}");
            // A busy disk may hold the look-up of the record up; then the program is recorded again.
            let account = format!("{:?}", outcome.account);
            check!(account.contains("16.0 MiB left alone"), "{outcome:?}");
            // The interpreter's own files may be cold as well, if another process has emptied the page cache.
            assert!(outcome.bytes("issued") < 16 << 20, "{outcome:?}");
        }
    }
}

/// Loading the observer into the kernel takes a tenth of a second, so it is left out of hot runs, except for one run in 16.
fn unwatched() {
    let lab = Lab::new();
    lab.data("data", 1);
    lab.program("walker", &["-static"]);
    lab.write("list", "0 4096\n65536 4096\n");
    let command = ["./walker", "list", "data"];
    lab.first_by_kernel(&command);
    let calls = |_| {
        let foreread = foreread().display().to_string();
        let trace = ["strace", "-f", "-e", "trace=bpf", "-o", "trace"];
        let run = [&foreread, "run", "--quiet", "--"];
        let output = lab.plain(&[&trace[..], &run, &command].concat());
        assert!(output.status.success(), "{output:?}");
        let trace = std::fs::read_to_string(lab.path("trace")).expect("a trace");
        trace.lines().filter(|line| line.contains("bpf(")).count()
    };
    // Another process may empty the page cache.
    let fewest = (0..4).map(calls).min();
    check!(fewest == Some(0), "{fewest:?}");
}
