//! What is told of each way in which a run may end.

use super::*;
use foreread_engine::Names;
use foreread_sources::Nature;

/// The account of `sh`, which recorded, with 20 reads seen.
fn recorded() -> Account {
    let args = RunArgs {
        command: vec!["/bin/sh".into()],
        quiet: false,
        explain: false,
        json: None,
        prefetch: true,
        observer: Default::default(),
        record: true,
        output: None,
        redact: false,
        cache: None,
    };
    Account {
        wall_ns: 2_430_000,
        observed: true,
        recorded: Some("/records/x.fr".into()),
        reads_recorded: 20,
        ..Account::new(&args)
    }
}

fn strand(name: &'static str, phase: Phase, ledger: Ledger) -> StrandReport {
    StrandReport {
        name,
        nature: Nature::Literal,
        phase,
        ledger,
        reads: 0,
        foreseen: 0,
        found_again: 0,
        accuracy: None,
        names: Names::default(),
    }
}

/// The account of a first run, with the part of what it was seen to do.
fn first_run(issued: u64) -> Account {
    let ledger = Ledger {
        issued,
        useful: issued,
        ..Ledger::default()
    };
    let mut account = by_anothers_record(Phase::Ahead, 0);
    let report = account.report.as_mut().unwrap();
    report.ledger = ledger;
    report.strands = vec![strand("signatures", Phase::Ahead, ledger)];
    Account {
        followed: None,
        ..account
    }
}

#[test]
fn a_first_run_that_was_helped_tells_by_what_and_that_it_is_recorded() {
    assert_eq!(
        first_run(8192).line(),
        "foreread: 8.00 KiB ahead of sh: 8.00 KiB useful, 0 B late, 0 B wasted, all by signatures; 2.43 ms; \
         recorded 20 reads, to keep ahead of the next run"
    );
    let full = first_run(8192).full();
    assert!(
        full.contains("signatures   8.00 KiB: 8.00 KiB useful"),
        "{full}"
    );
    // One for which nothing was fetched is a recorded one.
    let line = first_run(0).line();
    assert!(
        line.starts_with("foreread: recorded 20 reads of sh in 2.43 ms, to keep"),
        "{line}"
    );
}

#[test]
fn the_parts_of_several_sources_are_told_apart() {
    let mut both = first_run(8192);
    let report = both.report.as_mut().unwrap();
    let ledger = Ledger {
        issued: 4096,
        ..Ledger::default()
    };
    report
        .strands
        .insert(0, strand(REPLAY, Phase::Ahead, ledger));
    assert_eq!(
        both.guessed().as_deref(),
        Some("8.00 KiB of it by signatures")
    );
    let sources = both.json().sources;
    let names: Vec<_> = sources
        .iter()
        .map(|one| (one.name, one.ledger.issued))
        .collect();
    assert_eq!(names, [("replay", 4096), ("signatures", 8192)]);
    assert_eq!(by_anothers_record(Phase::Ahead, 4096).guessed(), None);
}

#[test]
fn the_time_of_a_helped_run_is_not_taken_for_that_of_an_unhelped_one() {
    let mut again = by_anothers_record(Phase::Ahead, 4096);
    again.followed.as_mut().unwrap().exact = true;
    again.baseline = Some(Summary {
        wall_ns: 624_000_000,
        helped: true,
        ..Summary::default()
    });
    let against = " against 624 ms when recorded, which was a run fetched ahead of";
    assert_eq!(again.against(), against);
}

fn by_anothers_record(phase: Phase, issued: u64) -> Account {
    let ledger = Ledger {
        issued,
        ..Ledger::default()
    };
    Account {
        followed: Some(Found {
            path: "/records/y.fr".into(),
            exact: false,
            differs: "the command with 'exit 9' for 'exit 10'".into(),
            foreign: HashSet::new(),
            trouble: None,
        }),
        report: Some(Report {
            ledger,
            names: Names::default(),
            strands: vec![strand(REPLAY, phase, ledger)],
            phase,
            reads: 0,
            foreseen: 0,
            missed_hot: 0,
            found_again: 0,
            was_hot: false,
            changed: Vec::new(),
            gone: Vec::new(),
            devices: Vec::new(),
        }),
        ..recorded()
    }
}

#[test]
fn a_time_is_not_set_against_that_of_a_killed_run() {
    let mut helped = by_anothers_record(Phase::Ahead, 4096);
    helped.recorded = None;
    helped.followed.as_mut().unwrap().exact = true;
    let against = |status| Summary {
        wall_ns: 624_000_000,
        cold_wall_ns: Some(624_000_000),
        exit_status: Some(status),
        ..Summary::default()
    };
    helped.baseline = Some(against(0));
    assert_eq!(helped.against(), " against 624 ms recorded cold");
    helped.baseline = Some(against(137));
    let killed = ", by the record of a run that was killed after 624 ms";
    assert_eq!(helped.against(), killed);
}

#[test]
fn a_recording_is_told_in_one_sentence_and_not_by_whose_record_nothing_was_fetched() {
    let told = "foreread: recorded 20 reads of sh in 2.43 ms, to keep ahead of the next run";
    assert_eq!(recorded().line(), told);
    let hot = by_anothers_record(Phase::Hot, 0);
    assert_eq!(
        hot.line(),
        format!("{told}; all of it was in memory already")
    );
    let mut unseen = recorded();
    unseen.remark("1 process was not observed".into());
    assert_eq!(unseen.line(), format!("{told}; 1 process was not observed"));
}

#[test]
fn the_whole_account_is_broken_between_words() {
    let mut told = by_anothers_record(Phase::Finished, 4096);
    let device =
        "sda (built-in profile: by position, at most 32 at once, gaps of 64 pages read along)";
    let devices = vec![device.to_owned(); 3];
    told.report.as_mut().unwrap().devices = devices.clone();
    let full = told.full();
    let rows: Vec<&str> = full.lines().skip(1).collect();
    assert!(rows.iter().all(|row| row.chars().count() <= 80), "{full}");
    let words = rows.iter().flat_map(|row| row[10..].split_whitespace());
    let words: Vec<&str> = words
        .skip_while(|word| *word != "devices")
        .skip(1)
        .collect();
    assert!(words.join(" ").starts_with(&devices.join(", ")), "{full}");
}

#[test]
fn a_recording_tells_how_much_of_it_is_missing() {
    let lossy = Account {
        lost: 3,
        accesses_recorded: 22,
        ..recorded()
    };
    let told = " (3 of 25 accesses came too fast to be recorded), to keep ahead of the next run";
    assert!(lossy.line().ends_with(told), "{}", lossy.line());
}

#[test]
fn what_was_fetched_by_anothers_record_is_told_to_be() {
    let line = by_anothers_record(Phase::Finished, 4096).line();
    let end = "; 2.43 ms, by the record of the command with 'exit 9' for 'exit 10'";
    assert!(line.ends_with(end), "{line}");
}

/// The account of `sh`, of which nothing is known and nothing was recorded.
fn nothing_known() -> Account {
    Account {
        recorded: None,
        reads_recorded: 0,
        device_bytes: Some(0),
        ..recorded()
    }
}

/// The account of `sh` by its own record.
fn by_own_record(phase: Phase, reads: u64, foreseen: u64, ledger: Ledger) -> Account {
    let mut account = by_anothers_record(phase, 0);
    account.recorded = None;
    account.reads_recorded = 0;
    account.device_bytes = Some(0);
    account.baseline = Some(Summary {
        wall_ns: 9_000_000,
        bytes: 8192,
        ..Summary::default()
    });
    account.followed.as_mut().unwrap().exact = true;
    let report = account.report.as_mut().unwrap();
    (report.reads, report.foreseen, report.ledger) = (reads, foreseen, ledger);
    let plan = &mut report.strands[0];
    (plan.reads, plan.foreseen, plan.ledger) = (reads, foreseen, ledger);
    account
}

/// A way in which a run may end: its name, its account, the line, the other rows, and how JSON calls it.
type Ending = (
    &'static str,
    Account,
    &'static str,
    &'static [&'static str],
    Outcome,
);

fn endings() -> Vec<Ending> {
    let none = Ledger::default();
    let good = Ledger {
        issued: 8192,
        useful: 8192,
        ..none
    };
    let bad = Ledger {
        issued: 8192,
        wasted: 8192,
        missed: 4096,
        ..none
    };
    let with = |mut account: Account, change: fn(&mut Account)| {
        change(&mut account);
        account
    };
    vec![
        (
            "hot",
            by_own_record(Phase::Hot, 0, 0, none),
            "stood aside: all of it was in memory already",
            &[
                "reads seen   none; then it was left to itself",
                "fetched      nothing",
            ],
            Outcome::Aside,
        ),
        (
            "hot after some reads",
            by_own_record(
                Phase::Hot,
                90,
                88,
                Ledger {
                    missed: 4096,
                    ..none
                },
            ),
            "stood aside: its reads hardly waited",
            &[
                "reads seen   90, 88 foreseen; then it was left to itself",
                "fetched      nothing",
            ],
            Outcome::Aside,
        ),
        (
            "hot after some was fetched",
            by_own_record(Phase::Hot, 90, 88, good),
            "8.00 KiB ahead of sh: 8.00 KiB useful, 0 B late, 0 B wasted; 2.43 ms against 9.00 ms when recorded, \
             partly in memory; its other reads hardly waited",
            &["accuracy     100.0 % of what was asked for was read"],
            Outcome::Prefetched,
        ),
        (
            "no record, and none to be made",
            with(nothing_known(), |account| account.record = false),
            "stood aside: nothing is known of sh, and it was not to be recorded",
            &["from device  nothing that the program waited for itself"],
            Outcome::Aside,
        ),
        (
            "nothing asked for",
            with(nothing_known(), |account| {
                account.record = false;
                account.prefetch = false;
            }),
            "stood aside: neither prefetching nor recording was asked for",
            &[],
            Outcome::Aside,
        ),
        (
            "a first run",
            recorded(),
            "recorded 20 reads of sh in 2.43 ms, to keep ahead of the next run",
            &["recorded     /records/x.fr"],
            Outcome::Recorded,
        ),
        (
            "a damaged record",
            with(by_own_record(Phase::Ahead, 90, 80, good), |account| {
                account.damaged(
                    "the record /records/y.fr is damaged at byte 120: \
                                 the frame does not match its checksum"
                        .into(),
                );
                account.recorded = Some("/records/y.fr".into());
            }),
            "8.00 KiB ahead of sh: 8.00 KiB useful, 0 B late, 0 B wasted; 2.43 ms; the record /records/y.fr is damaged \
             at byte 120: the frame does not match its checksum",
            &["recorded     /records/y.fr"],
            Outcome::Prefetched,
        ),
        (
            "a damaged record of which nothing was used",
            with(nothing_known(), |account| {
                account.say(
                    "the record /records/y.fr is damaged at byte 120: \
                             the frame does not match its checksum"
                        .into(),
                );
                account.recorded = Some("/records/y.fr".into());
                account.reads_recorded = 1;
            }),
            "recorded 1 read of sh in 2.43 ms, to keep ahead of the next run; the record /records/y.fr is damaged \
             at byte 120: the frame does not match its checksum",
            &["recorded     /records/y.fr"],
            Outcome::Recorded,
        ),
        (
            "no library",
            with(nothing_known(), |account| {
                account.say("/none: no such file (FOREREAD_PRELOAD)".into())
            }),
            "stood aside: /none: no such file (FOREREAD_PRELOAD)",
            &[],
            Outcome::Aside,
        ),
        (
            "not observable",
            with(nothing_known(), |account| account.observed = false),
            "stood aside: sh could not be observed: it ended before foreread could see why",
            &[],
            Outcome::Aside,
        ),
        (
            "nothing read",
            nothing_known(),
            "stood aside: sh read no regular file",
            &[],
            Outcome::Aside,
        ),
        (
            "killed at once",
            with(nothing_known(), |account| account.killed = true),
            "stood aside: sh was killed before it was seen to read a regular file",
            &[],
            Outcome::Aside,
        ),
        (
            "read unseen",
            with(nothing_known(), |account| {
                account.device_bytes = Some(16 << 20);
                account.unseen(&Explained::default());
            }),
            "stood aside: no read of sh could be observed; 16.0 MiB of 16.0 MiB from the device came by reads that \
             cannot be observed",
            &[
                "from device  16.0 MiB waited for by the program itself",
                "unseen       16.0 MiB from the device, by direct system calls, by",
            ],
            Outcome::Aside,
        ),
        (
            "read unseen in part",
            with(recorded(), |account| {
                account.device_bytes = Some(16 << 20);
                account.unseen(&Explained::default());
                account.remark("1 process was not observed: statically linked".into());
            }),
            "recorded 20 reads of sh in 2.43 ms, to keep ahead of the next run; 16.0 MiB of 16.0 MiB from the device \
             came by reads that cannot be observed; 1 process was not observed: statically linked",
            &[],
            Outcome::Recorded,
        ),
        (
            "given up",
            by_own_record(Phase::GaveUp, 40, 3, bad),
            "8.00 KiB ahead of sh: 0 B useful, 0 B late, 8.00 KiB wasted; 2.43 ms against 9.00 ms when recorded, \
             partly in memory; after 3 reads sh went its own way",
            &[
                "reads seen   40, 3 foreseen; then the record was given up",
                "accuracy     0.0 % of what was asked for was read",
                "coverage     0.0 % of what was needed was fetched",
            ],
            Outcome::Prefetched,
        ),
        (
            "given up before anything was fetched",
            by_own_record(
                Phase::GaveUp,
                40,
                0,
                Ledger {
                    missed: 4096,
                    ..none
                },
            ),
            "stood aside: after 0 reads sh went its own way",
            &[
                "reads seen   40, 0 foreseen; then the record was given up",
                "fetched      nothing",
            ],
            Outcome::Aside,
        ),
        (
            "finished",
            by_own_record(Phase::Finished, 40, 40, good),
            "8.00 KiB ahead of sh: 8.00 KiB useful, 0 B late, 0 B wasted; 2.43 ms against 9.00 ms when recorded, \
             partly in memory",
            &[
                "reads seen   40, 40 foreseen; then there was nothing left to fetch",
                "coverage     100.0 % of what was needed was fetched",
                "timeliness   100.0 % of that was there in time",
            ],
            Outcome::Prefetched,
        ),
        (
            "nothing to be fetched",
            by_own_record(Phase::Ahead, 40, 40, none),
            "stood aside: nothing was missing that it could have fetched",
            &["reads seen   40, 40 foreseen", "fetched      nothing"],
            Outcome::Aside,
        ),
        (
            "lost, its file changed",
            with(by_own_record(Phase::Lost, 40, 2, bad), |account| {
                account
                    .files
                    .push("/data: was modified since it was recorded".into());
            }),
            "8.00 KiB ahead of sh: 0 B useful, 0 B late, 8.00 KiB wasted; 2.43 ms against 9.00 ms when recorded, \
             partly in memory; /data: was modified since it was recorded",
            &["file         /data: was modified since it was recorded"],
            Outcome::Prefetched,
        ),
        (
            "not recorded for want of room",
            with(nothing_known(), |account| {
                account.reads_recorded = 9;
                account.say(format!(
                    "{}; not recorded",
                    "cannot write the record /x: No space left on device"
                ));
            }),
            "stood aside: cannot write the record /x: No space left on device; not recorded",
            &[],
            Outcome::Aside,
        ),
        (
            "started late",
            with(recorded(), |account| {
                account.remark("looking for sh took longer than 50 ms and was not waited for when the program was started".into())
            }),
            "recorded 20 reads of sh in 2.43 ms, to keep ahead of the next run; looking for sh took longer than 50 ms \
             and was not waited for when the program was started",
            &[],
            Outcome::Recorded,
        ),
        (
            "a damaged record, and a remark",
            with(nothing_known(), |account| {
                account.say("first".into());
                account.say("second".into());
                account.remark("third".into());
            }),
            "stood aside: first; third",
            &["note         second"],
            Outcome::Aside,
        ),
    ]
}

#[test]
fn every_ending_is_told_in_sentences_that_go_together() {
    for (name, account, line, rows, outcome) in endings() {
        assert_eq!(account.line(), format!("foreread: {line}"), "{name}");
        let full = account.full();
        let told: Vec<&str> = full.lines().collect();
        let first = told
            .iter()
            .position(|row| row.starts_with("foreread:   run  "));
        let (first, told) = told.split_at(first.expect("the first row"));
        let joined = first.join(" ").replace(" foreread:   ", " ");
        assert_eq!(joined, account.line(), "{name}");
        assert!(
            first.iter().all(|row| row.chars().count() <= 80),
            "{name}\n{full}"
        );
        for row in rows {
            let row = format!("foreread:   {row}");
            assert!(told.contains(&&*row), "{name}: {row}\n{full}");
        }
        // Row for row, and none twice.
        let names: Vec<&str> = told.iter().map(|row| row[12..24].trim()).collect();
        let distinct: HashSet<&&str> = names.iter().filter(|name| !name.is_empty()).collect();
        let all = names.iter().filter(|name| !name.is_empty()).count();
        assert_eq!(distinct.len(), all, "{name}\n{full}");
        for row in told {
            assert!(row.chars().count() <= 80, "{name}: {row}");
            assert!(!row.trim_end().ends_with('-'), "{name}: {row}");
        }
        let json = serde_json::to_value(account.json()).unwrap();
        let issued = json["ledger"]["issued"].as_u64().unwrap_or(0);
        // Nothing has a share of nothing.
        assert!(issued > 0 || !full.contains(" % "), "{name}\n{full}");
        let mode = serde_json::to_value(outcome).unwrap();
        assert_eq!(json["mode"], mode, "{name}");
        assert_eq!(issued > 0, outcome == Outcome::Prefetched, "{name}");
        let reason = json["reason"].as_str().unwrap_or("");
        assert!(line.ends_with(reason), "{name}: {reason}");
        assert_eq!(
            json["recorded"].is_null(),
            account.recorded.is_none(),
            "{name}"
        );
        if outcome == Outcome::Aside {
            assert_ne!(reason, "", "{name}");
        }
        assert_eq!(json["phase"].is_null(), json["ledger"].is_null(), "{name}");
        println!("{name}\n{full}\n");
    }
}

#[test]
fn what_was_looked_up_ahead_is_told_with_what_became_of_it() {
    let names = Names {
        asked: 1234,
        fetched: 1100,
        used: 1200,
        late: 7,
        unused: 30,
        unknown: 4,
    };
    let with = |issued| {
        let mut account = by_own_record(Phase::Finished, 3, 3, first_run(issued).ledger());
        account.report.as_mut().unwrap().names = names;
        account
    };
    let told = "1200 used (7 of them late), 30 not, 4 unknown";
    let alone = with(0);
    let line = alone.line();
    assert!(
        line.starts_with(&format!("foreread: 1234 names ahead of sh: {told}; ")),
        "{line}"
    );
    assert_eq!(alone.outcome(), Outcome::Prefetched);
    let full = alone.full();
    let row = "names        1234 looked up, 1100 of them not in memory; 1200 used";
    assert!(full.contains(row), "{full}");
    let line = with(4096).line();
    let both = format!("4.00 KiB useful, 0 B late, 0 B wasted; 1234 names: {told}; ");
    assert!(line.contains(&both), "{line}");
    let json = serde_json::to_value(with(0).json()).unwrap();
    assert_eq!(json["names"]["asked"], 1234);
    // All that was looked up was in memory: that is no help.
    let mut idle = with(0);
    idle.report.as_mut().unwrap().names.fetched = 0;
    assert_eq!(idle.outcome(), Outcome::Aside);
}
