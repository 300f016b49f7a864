//! strace text: descriptors, positions, children and broken lines, on traces written here.

use std::path::Path;

use foreread_traces::{Format, Names, Operation, Trace};

/// The accesses of a trace except opens, the problems, and the left-out calls.
fn read(text: &str, name: &str) -> (Vec<String>, Vec<String>, Vec<String>) {
    let mut trace = Trace::from_bytes(
        text.as_bytes().to_vec(),
        Path::new(name),
        Some(Format::Strace),
    )
    .expect("a trace");
    let mut names = Names::new();
    let mut lines = Vec::new();
    while let Some(access) = trace.next(&mut names) {
        if access.operation.has_bytes() {
            lines.push(format!(
                "{}: {} {} {}+{}",
                names.who(access.who).expect("somebody"),
                access.operation.name(),
                names.file(access.file),
                access.extent.offset,
                access.extent.len
            ));
        }
    }
    let problems = trace.problems().kept().iter().map(ToString::to_string);
    (lines, problems.collect(), trace.left_out())
}

/// The accesses of a trace that is all right.
fn accesses(text: &str) -> Vec<String> {
    let (lines, problems, _) = read(text, "t");
    assert!(problems.is_empty(), "{problems:?}");
    lines
}

#[test]
fn every_call_that_reads_has_its_extent() {
    let text = r#"execve("./r", ["./r"], 0x7ffe /* 35 vars */) = 0
openat(AT_FDCWD, "/d/a", O_RDONLY) = 3
openat(AT_FDCWD, "/d/b", O_RDWR|O_CREAT, 0644) = 4
read(3, "\177ELF), \"\2"..., 832) = 100
pread64(3, ""..., 784, 64) = 784
readv(3, [{iov_base="a", iov_len=10}, {iov_base="b", iov_len=20}], 2) = 30
preadv(3, [{iov_base="a", iov_len=10}], 1, 3000) = 10
preadv2(3, [{iov_base="a", iov_len=10}], 1, -1, 0) = 10
mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, 3, 0x1000) = 0x7f00
mmap(NULL, 8192, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f10
lseek(3, -100, SEEK_END) = 99900
read(3, "", 5000) = 100
read(3, "", 5000) = 0
read(3, 0x7ff, 10) = -1 EIO (Input/output error)
sendfile(4, 3, [100] => [150], 50) = 50
copy_file_range(3, NULL, 4, [7], 30, 0) = 0
splice(3, [5], 4, NULL, 77, 0) = 2
pwrite64(4, "abc", 3, 100) = 3
write(4, "abc", 3) = 3
exit_group(0) = ?
+++ exited with 0 +++
"#;
    let expected = [
        "read /d/a 0+100",
        "read /d/a 64+784",
        "read /d/a 100+30",
        "read /d/a 3000+10",
        "read /d/a 130+10",
        "map /d/a 4096+8192",
        "read /d/a 99900+100",
        "read /d/a 100000+0",
        "read /d/a 100+50",
        "write /d/b 0+50",
        "read /d/a 100000+0",
        "write /d/b 7+0",
        "read /d/a 5+2",
        "write /d/b 50+2",
        "write /d/b 100+3",
        "write /d/b 52+3",
    ];
    let expected: Vec<String> = expected.map(|line| format!("the process: {line}")).to_vec();
    assert_eq!(accesses(text), expected);
}

#[test]
fn copies_of_a_descriptor_share_its_position_and_children_inherit_both() {
    let text = r#"10 openat(AT_FDCWD, "/a", O_RDONLY|O_CLOEXEC) = 3
10 openat(AT_FDCWD, "/b", O_RDONLY) = 4
10 dup(3) = 5
10 fcntl(3, F_DUPFD_CLOEXEC, 40) = 40
10 dup2(4, 9) = 9
10 dup3(4, 8, O_CLOEXEC) = 8
10 read(5, "", 7) = 7
10 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD) = 11
11 read(3, "", 3) = 3
11 close(3) = 0
11 read(40, "", 2) = 2
10 read(3, "", 1) = 1
11 execve("/bin/x", ["x"], 0x7f /* 1 var */) = 0
11 read(40, "", 5) = 5
11 read(8, "", 5) = 5
11 read(9, "", 6) = 6
11 +++ exited with 0 +++
10 close_range(5, 40, 0) = 0
10 read(5, "", 5) = 5
10 openat(AT_FDCWD, "/c", O_RDONLY) = 5
10 read(5, "", 5) = 5
10 read(4, "", 1) = 1
"#;
    let (lines, problems, left_out) = read(text, "t");
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(
        lines,
        [
            "process 10: read /a 0+7",
            "process 11: read /a 7+3",
            "process 11: read /a 10+2",
            "process 10: read /a 12+1",
            "process 11: read /b 0+6",
            "process 10: read /c 0+5",
            "process 10: read /b 6+1",
        ]
    );
    // A descriptor closed by exec or by the program is no longer known.
    assert!(
        left_out[0].starts_with("3 reads and writes"),
        "{left_out:?}"
    );
}

#[test]
fn threads_share_descriptors_and_calls_are_put_together() {
    let text = r#"[pid 10] 1.000000 openat(AT_FDCWD, "/a", O_RDONLY) = 3 <0.000001>
[pid 10] 1.000100 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD, exit_signal=0} <unfinished ...>
[pid 11] 1.000150 read(3,  <unfinished ...>
[pid 10] 1.000160 <... clone3 resumed> => {parent_tid=[11]}, 88) = 11
[pid 10] 1.000170 read(3, "x", 1) = 1
[pid 11] 1.000250 <... read resumed>"y", 5) = 5
[pid 11] 1.000300 openat(AT_FDCWD, "/b", O_RDONLY) = 4
[pid 10] 1.000400 read(4, "", 9) = 9
"#;
    assert_eq!(
        accesses(text),
        [
            "process 10: read /a 0+1",
            "process 10 thread 11: read /a 1+5",
            "process 10: read /b 0+9",
        ]
    );
    let mut trace = Trace::from_bytes(text.as_bytes().to_vec(), Path::new("t"), None).expect("ok");
    let mut names = Names::new();
    let all: Vec<_> = std::iter::from_fn(|| trace.next(&mut names)).collect();
    let resumed = all
        .iter()
        .find(|access| access.extent.len == 5)
        .expect("the read");
    assert_eq!(
        (resumed.start, resumed.took),
        (1_000_150_000, Some(100_000))
    );
    assert_eq!(all[0].took, Some(1000));
    let raw: usize = text
        .lines()
        .filter(|line| line.contains("read"))
        .map(|line| line.len() + 1)
        .sum();
    let reads = all
        .iter()
        .filter(|access| access.operation == Operation::Read);
    // The clone's line has no "read(" but a "CLONE_THREAD".
    assert_eq!(reads.map(|access| access.raw as usize).sum::<usize>(), raw);
}

#[test]
fn messages_of_strace_in_the_middle_of_a_line_are_taken_out() {
    let text = "openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n\
        vfork(strace: Process 21 attached\n <unfinished ...>\n\
        [pid    21] read(3, \"\", 2) = 2\n\
        [pid    20] <... vfork resumed>)        = 21\n\
        [pid    21] +++ exited with 0 +++\n\
        --- SIGCHLD {si_signo=SIGCHLD} ---\n\
        clone3({flags=CLONE_FILES|CLONE_THREAD}strace: Process 22 attached\n => {parent_tid=[22]}, 88) = 22\n\
        [pid    22] read(3, \"\", 3) = 3\n\
        [pid    22] +++ exited with 0 +++\n\
        read(3, \"\", 4) = 4\n";
    let lines = accesses(text);
    let extents: Vec<&str> = lines
        .iter()
        .map(|line| line.rsplit_once(' ').expect("words").1)
        .collect();
    assert_eq!(extents, ["0+2", "2+3", "5+4"]);
}

#[test]
fn the_only_thread_left_is_not_named_until_strace_has_attached_to_its_next_child() {
    let text = "openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n\
        clone(flags=SIGCHLD) = 21\n\
        strace: Process 21 attached\n\
        [pid    20] wait4(-1,  <unfinished ...>\n\
        [pid    21] +++ exited with 0 +++\n\
        <... wait4 resumed>NULL, 0, NULL) = 21\n\
        clone3({flags=CLONE_FILES|CLONE_THREAD}, 88) = 22\n\
        read(3, \"\", 2) = 2\n\
        futex(0x7f, FUTEX_WAITstrace: Process 22 attached\n <unfinished ...>\n\
        [pid    22] read(3, \"\", 3) = 3\n\
        [pid    20] <... futex resumed>) = 0\n\
        [pid    22] +++ exited with 0 +++\n\
        read(3, \"\", 4) = 4\n";
    let lines = accesses(text);
    let extents: Vec<&str> = lines
        .iter()
        .map(|line| line.rsplit_once(' ').expect("words").1)
        .collect();
    assert_eq!(extents, ["0+2", "2+3", "5+4"]);
}

#[test]
fn names_are_made_absolute_by_what_the_trace_says() {
    let text = r#"openat(AT_FDCWD, "x", O_RDONLY) = 3
read(3, "", 1) = 1
chdir("/home") = 0
openat(AT_FDCWD, "x\n", O_RDONLY) = 4
read(4, "", 1) = 1
openat(AT_FDCWD, "sub", O_RDONLY|O_DIRECTORY) = 5
openat(5, "y", O_RDONLY) = 6
read(6, "", 1) = 1
fchdir(5) = 0
open("z", O_RDONLY) = 7
read(7, "", 1) = 1
openat(AT_FDCWD</tmp>, "link", O_RDONLY) = 8</real/q\76>
read(8</real/q\76>, "", 1) = 1
lseek(9</inherited>, 0, SEEK_SET) = 0
read(9</inherited>, "", 2) = 2
read(9</inherited>, "", 2) = 2
read(15</inherited>, "", 2) = 2
read(0</dev/pts/0<char 136:0>>, "", 1) = 1
pipe2([10<pipe:[7]>, 11<pipe:[7]>], O_CLOEXEC) = 0
read(10<pipe:[7]>, "", 1) = 1
pipe([12, 13]) = 0
read(12, "", 1) = 1
openat(AT_FDCWD, "/proc/self/maps", O_RDONLY) = 14
read(14, "", 1) = 1
"#;
    let (lines, problems, left_out) = read(text, "t.41");
    assert!(problems.is_empty(), "{problems:?}");
    let files: Vec<&str> = lines
        .iter()
        .map(|line| &line["process 41: read ".len()..])
        .collect();
    assert_eq!(
        files,
        [
            "x 0+1",
            "/home/x\n 0+1",
            "/home/sub/y 0+1",
            "/home/sub/z 0+1",
            "/real/q> 0+1",
            "/inherited 0+2",
            "/inherited 2+2"
        ]
    );
    assert!(
        left_out[0].starts_with("1 reads and writes"),
        "{left_out:?}"
    );
}

#[test]
fn broken_lines_are_named_and_what_comes_before_and_after_is_read() {
    let text = "1 1.5 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n\
        1 1.6 read(3, \"\", 1) = 1\n\
        1 1.7 read(3, \"\", 99999999999999999999) = 99999999999999999999\n\
        1 1.8 pread64(3, \"\", 10, 9223372036854775807) = 10\n\
        1 1.9 read(3, \"abc\n\
        hello from the program\n\
        1 2.0 <... read resumed>\"\", 1) = 1\n\
        1 1.4 read(3, \"\", 2) = 2\n\
        1 2.1 read(3, \"\", 3) = 3\n\
        1 2.2 read(3, \"\", 4) = 4";
    let (lines, problems, _) = read(text, "t");
    assert_eq!(
        lines,
        [
            "process 1: read /a 0+1",
            "process 1: read /a 1+2",
            "process 1: read /a 3+3"
        ]
    );
    let expected = [
        "t, line 3, column 43: result \"99999999999999999999\" is too large; left out",
        "t, line 4: 10 bytes at 9223372036854775807 end beyond the end of any file; left out",
        "t, line 5, column 11: read has no ) that ends its arguments; left out",
        "t, line 6, column 1: \"hello from the program\" is no system call; left out",
        "t, line 7, column 7: no call of 1 had begun before this line goes on with one; left out",
        "t, line 8: time runs backward: the call begins at 1400000000 ns, the one before it at 1800000000 ns",
        "t, line 10: the trace ends in the middle of the line \"1 2.2 read(3, \\\"\\\", 4) = 4\", which is left out; the 4 accesses before it stand",
    ];
    assert_eq!(problems, expected);
}

#[test]
fn calls_that_never_return_are_counted() {
    let (lines, problems, left_out) = read("7 read(3</a>,  <unfinished ...>\n", "t");
    assert!(lines.is_empty() && problems.is_empty());
    assert_eq!(
        left_out,
        ["1 calls that had not returned when the trace ended"]
    );
}

#[test]
fn times_since_the_line_before_add_up() {
    let text = "7      0.000000 execve(\"./r\", [\"./r\"], 0x7ffe /* 3 vars */) = 0\n\
        7      0.250000 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n\
        7      0.000100 read(3, \"\", 10) = 10\n\
        7      0.000050 read(3, \"\", 10) = 10\n";
    let mut trace = Trace::from_bytes(text.as_bytes().to_vec(), Path::new("t"), None).expect("ok");
    let mut names = Names::new();
    let starts = std::iter::from_fn(|| trace.next(&mut names)).map(|access| access.start);
    let starts: Vec<u64> = starts.collect();
    assert_eq!(starts, [0, 250_000_000, 250_100_000, 250_150_000]);
    assert_eq!(trace.problems().count(), 0);
}

#[test]
fn a_programs_start_is_an_access_of_its_executable() {
    let text = "7 execve(\"/usr/bin/make\", [\"make\"], 0x7ffe /* 3 vars */) = 0\n\
        7 execve(\"/missing\", [\"missing\"], 0x7ffe /* 3 vars */) = -1 ENOENT (No such file or directory)\n\
        7 chdir(\"/src\") = 0\n\
        7 execve(\"./configure\", [\"./configure\"], 0x7ffe /* 3 vars */ <unfinished ...>\n\
        7 <... execve resumed>) = 0\n";
    let mut trace = Trace::from_bytes(text.as_bytes().to_vec(), Path::new("t"), None).expect("ok");
    let mut names = Names::new();
    let mut started = Vec::new();
    while let Some(access) = trace.next(&mut names) {
        assert_eq!(access.operation, Operation::Start);
        started.push(names.file(access.file).to_owned());
    }
    assert_eq!(started, ["/usr/bin/make", "/src/./configure"]);
}
