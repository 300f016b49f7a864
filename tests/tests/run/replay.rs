//! The first run is recorded, the second is prefetched, and a hot one is left alone.

use std::os::unix::process::ExitStatusExt;

use foreread_plan::format::Reader;
use foreread_tests::{Lab, Need, Outcome, check, copy, finish, start, text};

use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "a_run_goes_by_the_measured_profile_of_the_device_and_says_so",
        ALL,
        &[],
        measured_profile,
    ),
    (
        "the_second_cold_run_is_fetched_for_and_a_hot_one_stands_aside",
        QUICK,
        &[],
        three_runs,
    ),
    (
        "after_a_run_that_left_its_record_little_is_fetched_until_the_next_one_holds",
        QUICK,
        &[],
        on_trial,
    ),
    (
        "a_sequential_scan_is_read_as_alone_and_accounted_for",
        ALL,
        &[],
        sequential,
    ),
    (
        "a_record_that_tells_of_a_stream_is_kept_though_the_stream_is_left_to_the_kernel",
        ALL,
        &[],
        fast_and_sequential,
    ),
    (
        "a_record_is_kept_though_the_program_was_faster_than_the_look_at_its_plan",
        ALL,
        &[Need::Command("strace")],
        outrun,
    ),
    (
        "a_program_that_begins_with_fast_reads_is_fetched_for_once_it_waits",
        ALL,
        &[],
        warmed_up,
    ),
    (
        "a_scan_by_a_secondary_index_is_fetched_for",
        ALL,
        &[Need::Command("sqlite3")],
        index_scan,
    ),
    (
        "a_program_that_reads_through_a_mapping_is_fetched_for",
        ALL,
        &[Need::Command("python3")],
        mapping,
    ),
    (
        "the_parts_of_a_pipeline_are_fetched_for_together",
        ALL,
        &[],
        pipeline,
    ),
    (
        "a_parallel_build_is_recorded_whole",
        ALL,
        &[Need::Command("make")],
        build,
    ),
    (
        "a_search_through_a_tree_is_fetched_for",
        ALL,
        &[Need::Command("grep")],
        search,
    ),
    (
        "other_arguments_go_by_the_nearest_record_which_is_named",
        ALL,
        &[],
        nearest,
    ),
    (
        "a_program_that_waits_for_what_a_plan_in_memory_does_not_tell_is_recorded_anew",
        ALL,
        &[],
        elsewhere,
    ),
    ("another_executable_does_not", ALL, &[], unrelated),
    (
        "a_file_that_only_the_other_command_names_is_not_fetched",
        ALL,
        &[],
        other_file,
    ),
    (
        "another_command_gets_a_record_even_if_the_nearest_is_hot",
        ALL,
        &[],
        nearest_is_hot,
    ),
    (
        "a_user_without_privileges_is_helped_with_the_files_of_others",
        QUICK,
        &[Need::Nobody],
        files_of_others,
    ),
    (
        "a_record_that_no_longer_fits_is_replaced",
        ALL,
        &[],
        diverged,
    ),
    (
        "a_program_that_comes_to_read_more_is_recorded_anew",
        ALL,
        &[],
        grown,
    ),
    (
        "the_record_of_a_killed_run_is_replaced_by_a_longer_ones",
        ALL,
        &[],
        cut_short,
    ),
    (
        "without_prefetching_nothing_is_issued_and_without_recording_nothing_kept",
        QUICK,
        &[],
        options,
    ),
    (
        "recording_to_a_file_leaves_the_store_alone",
        QUICK,
        &[],
        to_a_file,
    ),
];

/// Runs a command twice on cold files: the first run is recorded, the second is prefetched.
#[track_caller]
fn twice(lab: &Lab, files: &[&str], command: &[&str]) -> Outcome {
    let plain = lab.plain(command);
    lab.cold(files);
    let first = lab.run(command);
    first.check_mode("recorded");
    first.assert_as(&plain);
    lab.cold(files);
    let second = lab.run(command);
    second.assert_as(&plain);
    second
}

#[track_caller]
fn check_fetched(outcome: &Outcome) {
    outcome.check_mode("prefetched");
    let read = outcome.bytes("useful") + outcome.bytes("late");
    check!(read > 0, "nothing was fetched: {outcome:?}");
}

/// One command that reads another file on each of its first three runs.
fn on_trial() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    let files = ["first", "second", "third"];
    let _ = files.map(|name| lab.data(name, 16));
    let run = |name: &str| {
        std::fs::write(lab.path("job"), format!("./scatter 4000 0 {name}\n")).expect("our folder");
        lab.cold(&files);
        let outcome = lab.run(&["sh", "job"]);
        outcome.assert_as(&lab.plain(&["sh", "job"]));
        outcome
    };
    // Bytes issued from the record; other sources may have issued more.
    let by_record = |outcome: &Outcome| {
        let sources = outcome.account["sources"].as_array().expect("sources");
        let replay = sources.iter().find(|one| one["name"] == "replay");
        replay.map_or(0, |one| one["ledger"]["issued"].as_u64().expect("a count"))
    };
    let file = 16 << 20;
    assert_eq!(run("first").mode(), "recorded");
    run("second");
    let third = run("third");
    check!(by_record(&third) < file / 4, "{third:?}");
    // Now it reads the recorded file again, and its record is trusted again. The program may be faster than foreread.
    let again = run("third");
    check!(by_record(&again) > file / 4, "{again:?}");
}

fn three_runs() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    let command = &["./scatter", "1000", "50", "data"];
    let second = twice(&lab, &["data"], command);
    check_fetched(&second);
    assert_eq!(second.account["followed"], lab.record().to_str().unwrap());
    let _held = lab.held(&["data", "scatter"]);
    let third = lab.run(command);
    third.check_mode("aside");
    assert_eq!(third.bytes("issued"), 0, "{third:?}");
    check!(third.reason().contains("in memory already"), "{third:?}");
    third.assert_as(&lab.plain(command));
}

fn sequential() {
    let lab = Lab::new();
    let files = ["one", "two", "three"];
    for name in files {
        lab.data(name, 4);
    }
    let second = twice(&lab, &files, &["cat", "one", "two", "three"]);
    let plain = lab.plain(&["cat", "one", "two", "three"]);
    second.assert_as(&plain);
}

fn fast_and_sequential() {
    let lab = Lab::new();
    // Large enough that its speed is noticed before its plan is read to the end.
    lab.write("data", vec![7; 160 << 20]);
    let command = &["dd", "if=data", "of=/dev/null", "bs=4k", "status=none"];
    twice(&lab, &["data"], command);
    let record = std::fs::read(lab.record()).expect("the record");
    for _ in 0..2 {
        lab.cold(&["data"]);
        let again = lab.run(command);
        check!(again.mode() != "recorded", "{again:?}");
    }
    check!(std::fs::read(lab.record()).expect("the record") == record);
}

fn outrun() {
    let lab = Lab::new();
    lab.write("data", vec![7; 16 << 20]);
    let command = &["dd", "if=data", "of=/dev/null", "bs=4k", "status=none"];
    lab.cold(&["data"]);
    lab.run(command);
    for _ in 0..5 {
        lab.cold(&["data"]);
        let (run, account) = lab.running(&[], command);
        // Each of foreread's system calls takes as long as ten of the program's reads.
        let mut traced = lab.command("strace");
        traced
            .args(["-f", "-o", "/dev/null"])
            .arg(run.get_program())
            .args(run.get_args());
        let outcome = account.of(finish(start(&mut traced)));
        assert!(lab.record().is_file(), "{outcome:?}");
    }
}

fn elsewhere() {
    let lab = Lab::new();
    lab.data("data", 48);
    lab.write("at", "0");
    let command = "dd if=data of=/dev/null bs=1M count=6 skip=$(cat at) status=none";
    let command = ["sh", "-c", command];
    lab.cold(&["data"]);
    lab.run(&command);
    // The recorded pages are in memory, and the program reads another place of the same file.
    lab.cold(&["data"]);
    lab.plain(&command);
    lab.write("at", "32");
    let outcome = lab.run(&command);
    check!(outcome.reason().contains("recorded anew"), "{outcome:?}");
    lab.cold(&["data"]);
    lab.run(&command).check_mode("recorded");
}

fn warmed_up() {
    let lab = Lab::new();
    lab.program("warmup", &[]);
    lab.data("hot", 1);
    lab.data("cold", 64);
    let command = ["./warmup", "300000", "hot", "5000", "200", "cold"];
    let plain = lab.plain(&command);
    let again = |_| {
        lab.cold(&["cold"]);
        lab.run(&command)
    };
    let first = again(0);
    assert_eq!(first.mode(), "recorded", "{first:?}");
    // All missing pages are fetched during the fast reads. The program's reads of them are not observed, because it was left to itself.
    let helps = |run| {
        let later = again(run);
        later.assert_as(&plain);
        let fetched = later.bytes("useful") + later.bytes("late") + later.bytes("unknown");
        fetched > 5000 * 4096 / 4
    };
    check!((0..3).any(helps), "{first:?}");
}

fn index_scan() {
    let lab = Lab::new();
    let make = "create table t(k integer, pad blob);
        with recursive n(i) as (values(0) union all select i + 1 from n where i < 11999)
        insert into t select i * 7919 % 12007, zeroblob(900) from n;
        create index by_k on t(k);";
    assert!(lab.plain(&["sqlite3", "db", make]).status.success());
    let query = "select count(*), sum(k * length(pad)) from t indexed by by_k where k > 100";
    let second = twice(&lab, &["db"], &["sqlite3", "db", query]);
    check_fetched(&second);
}

fn mapping() {
    let lab = Lab::new();
    lab.data("data", 8);
    lab.write(
        "map.py",
        "import mmap, time\n\
         f = open('data', 'rb')\n\
         m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\n\
         m.madvise(mmap.MADV_RANDOM)\n\
         s = 0\n\
         for i in range(1000):\n\
         \x20   s = s * 31 + m[i * 2654435761 % 2048 * 4096] & 0xffffffff\n\
         \x20   if i % 10 == 0: time.sleep(0.001)\n\
         print(s)\n",
    );
    // Started before, so that the interpreter's own files are in memory.
    let second = twice(&lab, &["data"], &["python3", "map.py"]);
    second.check_mode("prefetched");
    // On a slow machine the session has used up its budget before the pages are seen to be touched; their fate is then unknown.
    let fates = ["useful", "late", "unknown"].map(|fate| second.bytes(fate));
    let fetched: u64 = fates.iter().sum();
    let record = || text(&lab.foreread(&["show", "--all"]).stdout);
    check!(fetched > 0, "{second:?}\n{}", record());
}

fn pipeline() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    let files = ["one", "two", "three"];
    for name in files {
        lab.data(name, 4);
    }
    lab.script("inner", "#!/bin/sh\n./scatter 500 50 two\n");
    let script = "./scatter 500 50 one; ./inner | cksum; (./scatter 500 50 three) | cat | cat";
    let second = twice(&lab, &files, &["sh", "-c", script]);
    check_fetched(&second);
}

fn build() {
    let lab = Lab::new();
    for name in ["one", "two"] {
        let table: String = (0..20_000).map(|n| format!("{},\n", n * 7)).collect();
        lab.write(
            &format!("{name}.c"),
            format!("const int {name}[] = {{\n{table}}};\n"),
        );
    }
    lab.write(
        "main.c",
        "extern const int one[], two[];\nint main(void) { return one[3] - two[3]; }\n",
    );
    lab.write("Makefile", "all: main.o one.o two.o\n\t$(CC) -o all $^\n");
    let command = &["make", "-s", "-B", "-j2"];
    let files = ["one.c", "two.c", "main.c"];
    let plain = lab.plain(command);
    assert!(plain.status.success(), "{plain:?}");
    let built = std::fs::read(lab.path("all")).expect("what was built");
    for run in 0..3 {
        lab.cold(&files);
        let outcome = lab.run(command);
        outcome.assert_as(&plain);
        check!((outcome.mode() == "recorded") == (run == 0), "{outcome:?}");
        assert!(std::fs::read(lab.path("all")).expect("what was built") == built);
    }
    let shown = text(&lab.foreread(&["show", "--all", "make"]).stdout);
    for name in files {
        assert!(shown.contains(name), "{name} is not in: {shown}");
    }
}

fn search() {
    let lab = Lab::new();
    let mut files = Vec::new();
    for folder in 0..8 {
        std::fs::create_dir_all(lab.path(&format!("tree/{folder}"))).expect("a folder");
        for file in 0..16 {
            let name = format!("tree/{folder}/{file}");
            lab.write(&name, format!("{name} haystack\n").repeat(600));
            files.push(name);
        }
    }
    lab.write("tree/3/needle", "here is the needle\n");
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let second = twice(&lab, &files, &["grep", "-r", "needle", "tree"]);
    second.check_mode("prefetched");
    check!(
        second.bytes("useful") + second.bytes("late") > 0,
        "{second:?}"
    );
}

fn nearest() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    lab.cold(&["data"]);
    lab.run(&["./scatter", "900", "50", "data"]);
    let known = lab.record();
    lab.cold(&["data"]);
    let other = &["./scatter", "1000", "50", "data"];
    let outcome = lab.run(other);
    outcome.check_mode("prefetched");
    assert_eq!(outcome.account["followed"], known.to_str().unwrap());
    assert!(outcome.says("with '900' for '1000'"), "{outcome:?}");
    let read = outcome.bytes("useful") + outcome.bytes("late");
    check!(read > 0, "{outcome:?}");
    outcome.assert_as(&lab.plain(other));
}

fn other_file() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("one", 8);
    lab.data("two", 8);
    let of = |name| ["./scatter", "1000", "50", name];
    lab.cold(&["one", "two"]);
    lab.run(&of("one"));
    lab.cold(&["one", "two"]);
    let outcome = lab.run(&of("two"));
    check!(!outcome.account["recorded"].is_null(), "{outcome:?}");
    lab.cold(&["one", "two"]);
    check_fetched(&lab.run(&of("two")));
}

fn unrelated() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    lab.run(&["./scatter", "900", "50", "data"]);
    copy(&lab.path("scatter"), &lab.path("other"));
    lab.cold(&["data"]);
    let outcome = lab.run(&["./other", "900", "50", "data"]);
    assert_eq!(outcome.mode(), "recorded", "{outcome:?}");
    assert!(outcome.account["followed"].is_null());
    assert_eq!(lab.records().len(), 2);
}

fn nearest_is_hot() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    lab.run(&["sh", "-c", "echo nothing much"]);
    let command = &["sh", "-c", "./scatter 1000 50 data"];
    let second = twice(&lab, &["data"], command);
    check_fetched(&second);
}

fn files_of_others() {
    let lab = Lab::of_nobody();
    lab.program("scatter", &[]);
    let data = lab.data("data", 8);
    // The user "nobody" may read the file, but may not ask which of its pages are in memory.
    std::os::unix::fs::chown(&data, Some(0), Some(0)).expect("root");
    let second = twice(&lab, &["data"], &["./scatter", "1000", "50", "data"]);
    check_fetched(&second);
}

fn diverged() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("one", 8);
    lab.data("two", 8);
    // One command whose reads depend on the target of a link.
    std::os::unix::fs::symlink("one", lab.path("link")).expect("a link");
    let command = &["./scatter", "1000", "50", "link"];
    lab.cold(&["one", "two"]);
    lab.run(command);
    std::fs::remove_file(lab.path("link")).expect("our own link");
    std::os::unix::fs::symlink("two", lab.path("link")).expect("a link");
    lab.cold(&["one", "two"]);
    let lost = lab.run(command);
    lost.assert_as(&lab.plain(command));
    check!(!lost.account["recorded"].is_null(), "{lost:?}");
    lab.cold(&["one", "two"]);
    check_fetched(&lab.run(command));
}

fn grown() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    lab.script("job", "#!/bin/sh\nsleep 0.1\n");
    let first = lab.run(&["./job"]);
    assert_eq!(first.mode(), "recorded", "{first:?}");
    lab.script("job", "#!/bin/sh\nsleep 0.1\n./scatter 1000 50 data\n");
    // The first run notices it, the second records it, the third knows it.
    for run in 0..3 {
        lab.cold(&["data"]);
        let outcome = lab.run(&["./job"]);
        match run {
            0 => check!(outcome.reason().contains("recorded anew"), "{outcome:?}"),
            1 => outcome.check_mode("recorded"),
            _ => check_fetched(&outcome),
        }
    }
}

fn cut_short() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    lab.script(
        "job",
        "#!/bin/sh\ncat /dev/null\ntest -e go || kill $$\n./scatter 1000 50 data\n",
    );
    lab.cold(&["data"]);
    assert_eq!(lab.run(&["./job"]).output.status.signal(), Some(15));
    lab.write("go", "");
    let whole = lab.run(&["./job"]);
    check!(!whole.account["recorded"].is_null(), "{whole:?}");
    lab.cold(&["data"]);
    check_fetched(&lab.run(&["./job"]));
}

fn options() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    let command = &["./scatter", "1000", "50", "data"];
    lab.run_with(&["--no-record"], command);
    assert!(lab.records().is_empty());
    lab.run(command);
    let kept = std::fs::read(lab.record()).expect("the record");
    lab.cold(&["data"]);
    let unhelped = lab.run_with(&["--no-prefetch", "--no-record"], command);
    assert_eq!(unhelped.bytes("issued"), 0, "{unhelped:?}");
    lab.cold(&["data"]);
    let helped = lab.run_with(&["--no-record"], command);
    check_fetched(&helped);
    assert!(std::fs::read(lab.record()).expect("the record") == kept);
}

fn to_a_file() {
    let lab = Lab::new();
    lab.data("data", 8);
    let output = lab.foreread(&["record", "-o", "mine.fr", "--", "cksum", "data"]);
    assert_eq!(output.stdout, lab.plain(&["cksum", "data"]).stdout);
    assert!(lab.records().is_empty());
    let said = text(&output.stderr);
    assert!(
        said.contains(", to mine.fr") && !said.contains("next run"),
        "{said}"
    );
    let record = Reader::open(&lab.path("mine.fr")).expect("a record");
    assert!(record.is_complete());
    assert!(
        record
            .files()
            .values()
            .any(|file| file.path == lab.path("data"))
    );
}

fn measured_profile() {
    // A first run whose pattern is followed.
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    let backward =
        "n=2000; while [ $n -gt 0 ]; do n=$((n - 1)); echo $((n * 4096)) 4096; done > list";
    lab.plain(&["sh", "-c", backward]);
    lab.program("walker", &[]);
    let explained = || {
        lab.cold(&["data"]);
        lab.run_with(&["--explain", "--no-record"], &["./walker", "list", "data"])
    };
    let built_in = explained();
    // A program that foreread hardly observes has no session.
    check!(built_in.says("(built-in"), "{built_in:?}");
    let here = lab.path("");
    let here = here.to_str().expect("a readable path");
    let measured = lab.foreread(&["calibrate", "--seconds=1", "--size=16M", here]);
    assert!(measured.status.success(), "{measured:?}");
    // A depth that no built-in profile has, and that no measurement yields.
    let file = lab.path("home/foreread/devices.json");
    let stored = std::fs::read_to_string(&file).expect("what was measured");
    let mut stored: serde_json::Value = serde_json::from_str(&stored).expect("JSON");
    stored["devices"][0]["profile"]["depth"] = 7.into();
    std::fs::write(&file, stored.to_string()).expect("our own file");
    let outcome = explained();
    check!(
        outcome.says("(measured (") && outcome.says(" 7 at once"),
        "{outcome:?}"
    );
}
