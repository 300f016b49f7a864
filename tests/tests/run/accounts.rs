//! The account compared with the truth: a program's known reads, the pages in memory after its end, and the bytes from the device.
//!
//! The program reads only the pages on a list, and forbids the kernel to read ahead. So if the file was cold before, and none of its
//! pages was evicted since, the pages in memory that are not on the list were fetched by foreread in vain. Other processes may evict
//! pages meanwhile: such a round proves nothing and is repeated.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use foreread_plan::PAGE;
use foreread_sys::residency::Residency;
use foreread_tests::{Lab, MemoryGroup, Need, Outcome, Slow, finish, foreread, start};

use foreread_tests::suite::{ALL, Test};

pub const TESTS: &[Test] = &[
    (
        "what_is_read_again_is_accounted_for_as_it_is",
        ALL.alone(),
        &[],
        again,
    ),
    (
        "what_is_followed_and_not_recorded_is_accounted_for_as_it_is",
        ALL.alone(),
        &[],
        only_followed,
    ),
    (
        "what_is_fetched_by_the_nearest_record_is_accounted_for_as_it_is",
        ALL.alone(),
        &[],
        nearest,
    ),
    (
        "what_a_plan_tells_wrong_in_part_is_accounted_for_as_it_is",
        ALL.alone(),
        &[],
        partly_changed,
    ),
    (
        "what_is_read_in_another_order_is_accounted_for_as_it_is",
        ALL.alone(),
        &[],
        another_order,
    ),
    (
        "what_is_read_after_a_plan_was_given_up_is_accounted_for_as_it_is",
        ALL.alone(),
        &[],
        given_up,
    ),
    (
        "what_is_read_unobserved_is_not_said_to_be_wasted",
        ALL.alone(),
        &[],
        unobserved,
    ),
    (
        "what_threads_read_in_another_order_is_accounted_for_as_it_is",
        ALL.alone(),
        &[],
        threads,
    ),
    (
        "what_processes_read_in_another_order_is_accounted_for_as_it_is",
        ALL.alone(),
        &[],
        processes,
    ),
    (
        "what_is_read_through_a_mapping_is_accounted_for_as_it_is",
        ALL.alone(),
        &[Need::Root, Need::Fuse],
        mapped,
    ),
    (
        "what_is_read_by_another_name_of_its_file_is_accounted_for_as_it_is",
        ALL.alone(),
        &[],
        another_name,
    ),
    (
        "what_is_evicted_is_accounted_for_as_it_is",
        ALL.alone(),
        &[Need::MemoryGroup],
        little_memory,
    ),
    (
        "what_is_foretold_the_first_time_is_accounted_for_as_it_is",
        ALL.alone(),
        &[],
        first_time,
    ),
];

/// Pages of the data file.
const PAGES: u64 = 16 << 8;
/// The most rounds, of which some may be disturbed.
const ROUNDS: usize = 40;
/// The account's permitted error: one part in `PART` of the bytes issued, and in any case `FEW` pages, for the program's libraries and
/// foreread's own files.
const PART: u64 = 50;
const FEW: u64 = 32;

/// The pages that the program reads: first page, number of pages, repetitions.
type List = Vec<(u64, u64, u64)>;

/// A program, its reads in the recorded run (if there is one), and its reads in the followed run.
struct Case<'a> {
    how: &'a str,
    workers: &'a str,
    recorded: List,
    followed: List,
    options: &'a [&'a str],
    /// An additional argument of the followed run.
    word: Option<&'a str>,
    /// The name of the data file in the followed run.
    name: &'a str,
    /// True if the program is observed to its end.
    observed: bool,
    /// True if the file is on a modelled rotating disk.
    slow: bool,
}

impl Default for Case<'_> {
    fn default() -> Self {
        Self {
            how: "threads",
            workers: "1",
            recorded: scattered(0..2000),
            followed: scattered(0..2000),
            options: &[],
            word: None,
            name: "data",
            observed: true,
            slow: false,
        }
    }
}

/// Pages of the file, each once, in an unpredictable order, and too far apart for the pages between them to be read along.
fn scattered(which: std::ops::Range<u64>) -> List {
    scattered_in(PAGES, which)
}

/// As [`scattered`], for a file of `pages` pages, a power of two.
fn scattered_in(pages: u64, which: std::ops::Range<u64>) -> List {
    which.map(|n| (n * 2_654_435_761 % pages, 1, 1)).collect()
}

/// Bytes that this process and its ended children have read from devices. A test that uses this count runs alone, because programs of
/// other tests would be counted as well.
fn fetched() -> u64 {
    let counts = fs::read_to_string("/proc/self/io").expect("our own counts");
    let line = counts
        .lines()
        .find_map(|line| line.strip_prefix("read_bytes: "));
    line.expect("a count of bytes").parse().expect("a number")
}

/// The outcome of a run, and the bytes that the device gave to foreread for it.
pub fn measured(run: impl FnOnce() -> Outcome) -> (Outcome, u64) {
    let before = fetched();
    let outcome = run();
    let all = fetched() - before;
    let own = outcome.account["device_bytes"].as_u64().expect("a count");
    (outcome, all.saturating_sub(own))
}

/// The pages of a file that are in memory.
pub fn in_memory(path: &Path) -> HashSet<u64> {
    let file = fs::File::open(path).expect("our own file");
    let len = file.metadata().expect("our own file").len();
    let map = Residency::new(&file, len).expect("a mapping");
    let mut pages = Vec::new();
    map.uptodate(0..len, &mut pages).expect("mincore");
    let there = pages.iter().enumerate().filter(|(_, there)| **there);
    there.map(|(page, _)| page as u64).collect()
}

/// A run, with the true figures.
pub struct Round {
    pub outcome: Outcome,
    /// Bytes fetched and never read.
    pub unread: u64,
    /// Bytes fetched that were evicted before they were read.
    pub evicted: u64,
    /// Bytes that the device gave to foreread.
    pub given: u64,
}

impl Round {
    /// The account's permitted error, in bytes.
    fn may(&self) -> u64 {
        self.outcome.bytes("issued") / PART + FEW * PAGE
    }

    /// The figures of the account that are wrong.
    fn wrong(&self, observed: bool) -> Vec<String> {
        let outcome = &self.outcome;
        let issued = outcome.bytes("issued");
        let read = outcome.bytes("useful") + outcome.bytes("late");
        let booked = outcome.bytes("wasted") + outcome.bytes("infill");
        let may = self.may();
        let truly_read = issued.saturating_sub(self.unread + self.evicted);
        let mut wrong = Vec::new();
        let mut hold = |what: &str, booked: u64, truth: u64, exactly: bool| {
            if booked > truth + may || exactly && booked + may < truth {
                wrong.push(format!("{what}: {booked} for {truth} bytes of {issued}"));
            }
        };
        hold("issued", issued, self.given, true);
        // Bytes whose fate was not seen may be missing from these columns.
        hold("read", read, truly_read, observed);
        hold("unread", booked, self.unread, observed);
        hold("evicted", outcome.bytes("evicted"), self.evicted, observed);
        if observed && outcome.bytes("unknown") > 0 {
            wrong.push("something is unknown".to_owned());
        }
        wrong
    }
}

/// Makes rounds until one is undisturbed, and checks its account against the truth. A round is `None` if another process has evicted
/// pages meanwhile. A round in which the session left the program to itself (as on a busy machine), or fetched nothing, is checked less
/// strictly, and another one is made.
#[track_caller]
pub fn hold_to_truth(observed: bool, round: impl FnMut() -> Option<Round>) -> Outcome {
    hold_sampled_to_truth(observed, 0, round)
}

/// As [`hold_to_truth`], for a program whose mappings are sampled: its touches between the last sample and its end are unseen. Up to
/// `unseen` rounds may be wrong for that reason.
#[track_caller]
fn hold_sampled_to_truth(
    observed: bool,
    mut unseen: usize,
    mut round: impl FnMut() -> Option<Round>,
) -> Outcome {
    // If foreread's own files were evicted just before, they are read again, and foreread is given more bytes than it issued for the
    // program.
    let all_is_issued = |round: &Round| round.given <= round.outcome.bytes("issued") + round.may();
    let (mut disturbed, mut alone) = (0, 0);
    for _ in 0..ROUNDS {
        let Some(round) = round().filter(all_is_issued) else {
            disturbed += 1;
            continue;
        };
        let was_observed = observed && round.outcome.account["phase"] != "hot";
        let wrong = round.wrong(was_observed);
        if !wrong.is_empty() && unseen > 0 {
            unseen -= 1;
            continue;
        }
        foreread_tests::check!(wrong.is_empty(), "{wrong:?}: {:?}", round.outcome);
        if was_observed == observed && round.outcome.bytes("issued") > 0 {
            return round.outcome;
        }
        alone += 1;
    }
    panic!(
        "of {ROUNDS} rounds somebody disturbed {disturbed}, and in {alone} the program was left to itself"
    );
}

/// Runs `doing` with the files of foreread and of these programs in memory. Returns true if they stayed there.
pub fn undisturbed(lab: &Lab, programs: &[&str], doing: impl FnOnce()) -> bool {
    // In memory since it was written, and read by no process.
    lab.write("canary", [1; PAGE as usize]);
    let library = foreread().with_file_name("libforeread_preload.so");
    let programs = programs.iter().map(|name| lab.path(name));
    let files = [foreread(), library].into_iter().chain(programs);
    for file in files.chain(lab.records()) {
        fs::read(file).expect("a file of our own");
    }
    doing();
    lab.cached("canary") == PAGE
}

fn write_list(lab: &Lab, list: &List) {
    let lines = list
        .iter()
        .map(|(first, count, times)| format!("{first} {count} {times}\n"));
    lab.write("list", lines.collect::<String>());
}

/// Follows a program, and checks its account against the truth.
#[track_caller]
fn check(case: &Case) -> Outcome {
    let lab = Lab::new();
    lab.program("lister", &["-pthread"]);
    let _mount = case.slow.then(|| Slow::mount(&lab, "hdd-7200"));
    let folder = if case.slow { "mnt/" } else { "" };
    let (recorded, name) = (format!("{folder}data"), format!("{folder}{}", case.name));
    let data = lab.data(&recorded, PAGES >> 8);
    fs::hard_link(&data, data.with_file_name("twin")).expect("another name");
    let read: HashSet<u64> = case
        .followed
        .iter()
        .flat_map(|&(first, count, _)| first..first + count)
        .collect();
    let script = format!("./lister {} {} list $(cat name)", case.how, case.workers);
    let unseen = if case.how == "mapped" { 8 } else { 0 };
    hold_sampled_to_truth(case.observed, unseen, || {
        lab.foreread(&["forget", "--all"]);
        let mut command = vec!["sh", "-c", &script, "sh"];
        lab.write("name", &recorded);
        if !case.recorded.is_empty() {
            write_list(&lab, &case.recorded);
            lab.cold(&[&recorded]);
            lab.run(&command);
        }
        write_list(&lab, &case.followed);
        lab.cold(&[&recorded]);
        lab.write("name", &name);
        command.extend(case.word);
        let mut round = None;
        let calm = undisturbed(&lab, &["lister"], || {
            lab.plain(&["sh", "-c", "cat list; ./lister"]);
            let (outcome, given) = measured(|| lab.run_with(case.options, &command));
            let there = in_memory(&data);
            let unread = there.difference(&read).count() as u64 * PAGE;
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

fn again() {
    let outcome = check(&Case::default());
    foreread_tests::check!(outcome.bytes("issued") > 4 << 20, "{outcome:?}");
}

fn first_time() {
    // Patterns that end, one after the other: the prediction of each goes beyond its end.
    let strides = |from: u64, by: u64| (0..300).map(move |n| (from + n * by, 1, 1));
    let followed: List = strides(7, 3).chain(strides(1500, 5)).collect();
    for options in [&[][..], &["--no-record"]] {
        let outcome = check(&Case {
            recorded: List::new(),
            followed: followed.clone(),
            options,
            ..Case::default()
        });
        foreread_tests::check!(outcome.bytes("useful") > 1 << 20, "{outcome:?}");
    }
}

fn only_followed() {
    check(&Case {
        options: &["--no-record"],
        followed: scattered(0..1400),
        ..Case::default()
    });
}

fn nearest() {
    let outcome = check(&Case {
        word: Some("another"),
        ..Case::default()
    });
    assert!(outcome.says("by the record of"), "{outcome:?}");
}

fn partly_changed() {
    // One page in eight is replaced by one that was not recorded.
    let mut followed = scattered(0..2000);
    for (n, line) in followed.iter_mut().enumerate() {
        if n % 8 == 3 {
            line.0 = (line.0 + PAGES / 2) % PAGES;
        }
    }
    let outcome = check(&Case {
        followed,
        ..Case::default()
    });
    foreread_tests::check!(outcome.bytes("wasted") > 0, "{outcome:?}");
}

fn another_order() {
    let mut followed = scattered(0..200);
    followed.extend(scattered(2500..2600));
    followed.extend(scattered(1300..1900));
    followed.extend(scattered(200..1200));
    check(&Case {
        followed,
        ..Case::default()
    });
}

fn given_up() {
    // Pages that were not recorded, in runs of three: the kernel would read ahead if the program had not forbidden it.
    let mut followed = scattered(0..100);
    followed.extend((0..500).map(|n| (n * 389 % (PAGES / 4) * 4, 3, 1)));
    let mut back = scattered(100..1100);
    back.reverse();
    followed.extend(back);
    let outcome = check(&Case {
        followed,
        ..Case::default()
    });
    foreread_tests::check!(outcome.bytes("useful") > 1 << 20, "{outcome:?}");
}

fn unobserved() {
    // Most of the plan is read, which ends the plan. The next reads find their pages in memory, so the program is left to itself, and
    // its remaining reads are not seen.
    let mut followed = scattered(0..1700);
    followed.extend(scattered(1900..2000));
    let hot = followed[0].0;
    followed.extend((0..100).map(|_| (hot, 1, 400)));
    followed.extend(scattered(1700..1900));
    let outcome = check(&Case {
        followed,
        options: &["--no-record"],
        observed: false,
        ..Case::default()
    });
    assert_eq!(outcome.bytes("wasted"), 0, "{outcome:?}");
    foreread_tests::check!(outcome.bytes("unknown") > 0, "{outcome:?}");
}

fn threads() {
    check(&Case {
        workers: "8",
        ..Case::default()
    });
}

fn processes() {
    // In two halves, each of which is read by other processes than in the recording.
    let (mut followed, rest) = (scattered(1001..2000), scattered(0..1001));
    followed.extend(rest);
    check(&Case {
        how: "processes",
        workers: "6",
        followed,
        ..Case::default()
    });
}

fn mapped() {
    // A page fault also maps the pages in memory near its own page, so the program reads blocks of that size.
    let blocks = |which: std::ops::Range<u64>| -> List {
        which
            .map(|n| (n * 131 % (PAGES / 16) * 16, 16, 1))
            .collect()
    };
    check(&Case {
        how: "mapped",
        recorded: blocks(0..120),
        followed: blocks(30..120),
        // Mappings are sampled, which does not always pay if a read takes only 0.1 ms.
        slow: true,
        // Touches between the last sample and the end are not seen.
        observed: false,
        ..Case::default()
    });
}

fn another_name() {
    let outcome = check(&Case {
        name: "twin",
        ..Case::default()
    });
    foreread_tests::check!(outcome.bytes("useful") > 1 << 20, "{outcome:?}");
}

fn little_memory() {
    // With less than 16 MiB foreread would stand aside.
    const LIMIT: u64 = 20 << 20;
    const READS: u64 = 9000;
    const PAGES: u64 = 64 << 8;
    let lab = Lab::new();
    lab.program("lister", &["-pthread"]);
    lab.data("data", PAGES >> 8);
    write_list(&lab, &scattered_in(PAGES, 0..READS));
    let command = &["./lister", "threads", "1", "list", "data"];
    hold_to_truth(true, || {
        lab.foreread(&["forget", "--all"]);
        lab.cold(&["data"]);
        lab.run(command);
        lab.cold(&["data"]);
        let group = MemoryGroup::new(LIMIT);
        let mut round = None;
        let calm = undisturbed(&lab, &["lister"], || {
            lab.plain(&["./lister"]);
            let (outcome, given) = measured(|| {
                let (inner, account) = lab.running(&[], command);
                let mut outer = lab.command("sh");
                outer
                    .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
                    .arg(group.members())
                    .arg(inner.get_program())
                    .args(inner.get_args());
                account.of(finish(start(&mut outer)))
            });
            // All listed pages are read: other bytes were fetched twice, or lay between the listed pages.
            let unread = outcome.bytes("infill");
            let own = outcome.account["device_bytes"].as_u64().expect("a count");
            let evicted = (given + own).saturating_sub(READS * PAGE + unread);
            round = Some(Round {
                outcome,
                unread,
                evicted,
                given,
            });
        });
        round.filter(|_| calm)
    });
}
