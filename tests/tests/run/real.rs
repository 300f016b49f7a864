//! The account of real programs compared with the truth: their reads according to `strace`, the pages in memory after their end, and the
//! bytes from the device ([`super::accounts`]).

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use foreread_plan::PAGE;
use foreread_tests::{Lab, Need, Outcome, check, text};

use super::accounts::{Round, hold_to_truth, in_memory, measured, undisturbed};
use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "a_key_value_store_is_accounted_for_as_it_is",
        ALL.alone(),
        &[Need::Command("db_bench"), Need::Command("strace")],
        store,
    ),
    (
        "a_database_is_accounted_for_as_it_is",
        ALL.alone(),
        &[Need::Command("sqlite3"), Need::Command("strace")],
        database,
    ),
    (
        "a_file_read_backward_is_accounted_for_as_it_is",
        QUICK.alone(),
        &[Need::Command("strace")],
        backward,
    ),
];

/// Pages of files, by the files' names.
type Pages = HashSet<(String, u64)>;

/// A program that reads files of a folder.
struct Program<'a> {
    lab: &'a Lab,
    command: &'a [&'a str],
    /// The files' paths in the lab.
    files: Vec<String>,
}

impl<'a> Program<'a> {
    fn new(lab: &'a Lab, command: &'a [&'a str], folder: &str, ending: &str) -> Self {
        let files = fs::read_dir(lab.path(folder))
            .expect("a folder")
            .map(|file| file.expect("a file").file_name())
            .map(|name| name.to_string_lossy().into_owned())
            .filter(|name| name.ends_with(ending))
            .map(|name| Path::new(folder).join(name).display().to_string());
        Self {
            lab,
            command,
            files: files.collect(),
        }
    }

    fn cold(&self) {
        let names: Vec<&str> = self.files.iter().map(String::as_str).collect();
        self.lab.cold(&names);
    }

    /// The pages that the program reads, and those that it has the kernel read ahead, according to `strace`.
    fn traced(&self) -> (Pages, Pages) {
        let traces = self.lab.path("traces");
        let _ = fs::remove_dir_all(&traces);
        fs::create_dir(&traces).expect("a directory");
        let output = self
            .lab
            .command("strace")
            .args(["-ff", "-y", "-s", "0", "-e", "trace=pread64,readahead"])
            .arg("-o")
            .arg(traces.join("trace"))
            .args(self.command)
            .stdout(Stdio::null())
            .output()
            .expect("strace");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let (mut read, mut ahead) = (Pages::new(), Pages::new());
        for trace in fs::read_dir(&traces).expect("traces") {
            let lines = fs::read(trace.expect("a trace").path()).expect("a trace");
            for (call, path, pages) in text(&lines).lines().filter_map(call) {
                let name = self.files.iter().find(|name| path.ends_with(name.as_str()));
                let Some(name) = name else { continue };
                let all = if call == "pread64" {
                    &mut read
                } else {
                    &mut ahead
                };
                all.extend(pages.map(|page| (name.clone(), page)));
            }
        }
        assert!(!read.is_empty(), "nothing was read");
        (read, ahead)
    }

    /// The pages of its files that are in memory.
    fn there(&self) -> Pages {
        let of_file = |name: &String| {
            let pages = in_memory(&self.lab.path(name)).into_iter();
            let name = name.clone();
            pages.map(move |page| (name.clone(), page))
        };
        self.files.iter().flat_map(of_file).collect()
    }

    /// Checks the account of a run against the truth, each time after `before`.
    #[track_caller]
    fn hold(&self, (read, ahead): &(Pages, Pages), options: &[&str], before: impl Fn()) -> Outcome {
        hold_to_truth(true, || {
            self.lab.foreread(&["forget", "--all"]);
            before();
            self.cold();
            let mut round = None;
            let calm = undisturbed(self.lab, &[], || {
                // The program's libraries are brought into memory.
                self.lab.plain(&[self.command[0], "--version"]);
                let (outcome, given) = measured(|| self.lab.run_with(options, self.command));
                let there = self.there();
                let unread = there.difference(read).filter(|page| !ahead.contains(page));
                let unread = unread.count() as u64 * PAGE;
                round = read.is_subset(&there).then_some(Round {
                    outcome,
                    unread,
                    evicted: 0,
                    given,
                });
            });
            round.filter(|_| calm)
        })
    }
}

/// A call, the path of its file, and its pages:
/// `pread64(4</db/000021.sst>, ""..., 3809, 21643007) = 3809`, or `readahead(4</db/000021.sst>, 66272049, 524288) = 0`.
fn call(line: &str) -> Option<(&str, &str, std::ops::Range<u64>)> {
    let (call, rest) = line.split_once('(')?;
    let (path, rest) = rest.split_once('<')?.1.split_once('>')?;
    let (arguments, got) = rest.rsplit_once(") = ")?;
    let mut last = arguments.rsplit(", ").map(str::parse::<u64>);
    let last = last.next()?.ok()?;
    let (offset, len) = if call == "pread64" {
        (last, got.trim().parse().ok()?)
    } else {
        (arguments.rsplit(", ").nth(1)?.parse().ok()?, last)
    };
    let pages = offset / PAGE..(offset + len).div_ceil(PAGE);
    (len > 0).then_some((call, path, pages))
}

/// Number of processes that read the store, each in an order of its own.
const SEEDS: u32 = 20;

/// Many processes read a store: in the recorded order one after the other, and in another order, six or all of them at once. The plan is
/// then lost, found again or given up.
fn store() {
    let lab = Lab::new();
    let fill = "db_bench --db=db --benchmarks=fillrandom,compact --num=150000 --value_size=400 \
                --compression_type=none --disable_wal=1 --seed=1";
    let filled = lab.plain(&["sh", "-c", fill]);
    assert!(filled.status.success(), "{}", text(&filled.stderr));
    let read = "xargs -P $(cat at_once) -I{} db_bench --db=db --use_existing_db=1 --readonly=1 \
                --benchmarks=readrandom --num=150000 --reads=200 --threads=1 --seed={} --cache_size=1048576 \
                --compression_type=none < seeds > out";
    let command = ["sh", "-c", read];
    let seeds = |from: u32| -> String {
        (0..SEEDS)
            .map(|n| format!("{}\n", (from + n * 7) % SEEDS + 1))
            .collect()
    };
    let ready = |from: u32, at_once: u32| {
        lab.write("seeds", seeds(from));
        lab.write("at_once", at_once.to_string());
        lab.write("out", "");
    };
    ready(0, 4);
    let program = Program::new(&lab, &command, "db", ".sst");
    let truth = program.traced();
    const FOLLOWED: u32 = 7;
    for (recorded, at_once) in [(FOLLOWED, 1), (0, 6), (0, SEEDS)] {
        let outcome = program.hold(&truth, &[], || {
            ready(recorded, at_once);
            program.cold();
            lab.run(&command);
            ready(FOLLOWED, at_once);
        });
        check!(outcome.bytes("useful") > 1 << 20, "{outcome:?}");
    }
}

/// A table is read in the order of an index: the recorded part of it, and another part.
fn database() {
    let lab = Lab::new();
    let make = "CREATE TABLE t (a INTEGER, b INTEGER, c BLOB);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
                INSERT INTO t SELECT i, (i * 7919) % 30011, randomblob(900) FROM n;
                CREATE INDEX t_b ON t(b);";
    assert!(lab.plain(&["sqlite3", "the.db", make]).status.success());
    let query = "q=$(cat query); exec sqlite3 the.db \"$q\"";
    let command = ["sh", "-c", query];
    let ask = |from: u32| {
        let to = from + 2500;
        let query = format!("SELECT sum(length(c)) FROM t WHERE b BETWEEN {from} AND {to}");
        lab.write("query", query);
    };
    ask(1000);
    let program = Program::new(&lab, &command, "", "the.db");
    let truth = program.traced();
    for recorded in [1000, 2000] {
        let outcome = program.hold(&truth, &[], || {
            ask(recorded);
            program.cold();
            lab.run(&command);
            ask(1000);
        });
        check!(outcome.bytes("useful") > 1 << 20, "{outcome:?}");
    }
}

/// A file is read backward by a program without a record, and by one with a record. The program reads the whole file, so no byte of it
/// is fetched in vain.
fn backward() {
    let lab = Lab::new();
    lab.data("data", 16);
    let command = ["tac", "data"];
    let program = Program::new(&lab, &command, "", "data");
    let pages = (16 << 20) / PAGE;
    let read = (0..pages).map(|page| ("data".to_owned(), page)).collect();
    let truth = (read, Pages::new());
    for (options, is_recorded) in [(&[][..], false), (&["--no-record"], false), (&[], true)] {
        let outcome = program.hold(&truth, options, || {
            if is_recorded {
                program.cold();
                lab.run(&command);
            }
        });
        check!(outcome.bytes("useful") > 1 << 20, "{outcome:?}");
    }
}
