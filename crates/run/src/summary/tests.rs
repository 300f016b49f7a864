//! Tests of the texts about each kind of run.

mod endings;

use super::*;
use foreread_engine::NameLedger;

use crate::unseen::Explained;

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
        map: Default::default(),
        limits: Default::default(),
    };
    Account {
        wall_ns: 2_430_000,
        observed: true,
        recorded: Some("/records/x.fr".into()),
        reads_recorded: 20,
        ..Account::new(&args)
    }
}

fn strand(name: &'static str, phase: Phase, ledger: Ledger) -> Strand {
    Strand {
        name,
        phase,
        ledger,
        reads: 0,
        foreseen: 0,
        names: NameLedger::default(),
    }
}

/// The account of a first run, with the work of the guesses.
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
    // A first run without any fetching is an ordinary recorded run.
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
    let against = " against 624 ms when recorded, with reads fetched ahead";
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
            wanted: None,
            trouble: None,
        }),
        report: Some(Report {
            copied: HashSet::new(),
            ledger,
            names: NameLedger::default(),
            strands: vec![strand(REPLAY, phase, ledger)],
            phase,
            reads: 0,
            foreseen: 0,
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

#[test]
fn what_was_looked_up_ahead_is_told_with_what_became_of_it() {
    let names = NameLedger {
        asked: 1234,
        fetched: 1100,
        used: 7,
        late: 7,
        unused: 0,
        unknown: 1227,
    };
    let with = |issued| {
        let mut account = by_own_record(Phase::Finished, 3, 3, first_run(issued).ledger());
        account.report.as_mut().unwrap().names = names;
        account
    };
    let told = "7 of them waited for";
    let alone = with(0);
    let line = alone.line();
    assert!(
        line.starts_with(&format!("foreread: 1234 names ahead of sh: {told}; ")),
        "{line}"
    );
    assert_eq!(alone.outcome(), Outcome::Prefetched);
    let full = alone.full();
    let row = "names        1234 looked up, 1100 of them not in memory; 7 of them";
    assert!(full.contains(row), "{full}");
    let line = with(4096).line();
    let both = format!("4.00 KiB useful, 0 B late, 0 B wasted; 1234 names: {told}; ");
    assert!(line.contains(&both), "{line}");
    let json = serde_json::to_value(with(0).json()).unwrap();
    assert_eq!(json["names"]["asked"], 1234);
    // All names were in memory when they were looked up, so nothing was gained.
    let mut idle = with(0);
    idle.report.as_mut().unwrap().names.fetched = 0;
    assert_eq!(idle.outcome(), Outcome::Aside);
}
