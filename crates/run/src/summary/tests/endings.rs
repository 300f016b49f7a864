//! Tests of the texts about each ending of a run.

use super::*;
use foreread_core::cold::Look;

/// A way in which a run may end: its name, its account, the line, the other rows, and how JSON calls it.
type Ending = (
    &'static str,
    Account,
    &'static str,
    &'static [&'static str],
    Outcome,
);

/// A statically linked program cannot load the preload library.
fn statically_linked(account: &mut Account) {
    account.observed = false;
    account.hidden = Some("statically linked");
}

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
            "a program that the library cannot be loaded into",
            with(nothing_known(), statically_linked),
            "stood aside: sh could not be observed: it is statically linked, and the preload library cannot be loaded \
             into it",
            &[],
            Outcome::Aside,
        ),
        (
            "the same, not to be recorded",
            with(nothing_known(), |account| {
                account.record = false;
                statically_linked(account);
            }),
            "stood aside: sh could not be observed: it is statically linked, and the preload library cannot be loaded \
             into it",
            &[],
            Outcome::Aside,
        ),
        (
            "the same, fetched ahead of by a record",
            with(by_own_record(Phase::Ahead, 0, 0, good), statically_linked),
            "8.00 KiB ahead of sh: 8.00 KiB useful, 0 B late, 0 B wasted; 2.43 ms against 9.00 ms when recorded, partly in \
             memory; sh could not be observed: it is statically linked, and the preload library cannot be loaded into it",
            &[],
            Outcome::Prefetched,
        ),
        (
            "the same, all of it in memory",
            with(
                by_own_record(Phase::Hot, 0, 0, Ledger::default()),
                statically_linked,
            ),
            "stood aside: all of it was in memory already",
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
             partly in memory; sh left its record at read 4",
            &[
                "reads seen   40, 3 foreseen; then the record was given up",
                "accuracy     0.0 % of what was asked for was read",
                "coverage     0.0 % of what the device gave was fetched ahead",
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
            "stood aside: sh left its record at read 1",
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
                "coverage     100.0 % of what the device gave was fetched ahead",
                "timeliness   100.0 % of what was read of that was there in time",
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
            "nothing fetched, and the device waited for",
            with(by_own_record(Phase::Ahead, 40, 40, none), |account| {
                account.device_bytes = Some(16 << 20);
            }),
            "stood aside: nothing was fetched, and sh waited for 16.0 MiB itself",
            &["from device  16.0 MiB waited for by the program itself"],
            Outcome::Aside,
        ),
        (
            "too little missing",
            with(by_own_record(Phase::Hot, 0, 0, none), |account| {
                let look = Look {
                    looked: 64,
                    missing: 1,
                    differences: Vec::new(),
                };
                let recorded = Summary {
                    wall_ns: 64_000_000,
                    read_ns: 64_000_000,
                    device_bytes: Some(16 << 20),
                    ..Summary::default()
                };
                account.alone = Some(crate::alone::why(&look, &recorded));
                account.device_bytes = Some(64 << 10);
            }),
            "stood aside: fetching ahead could save 1.00 ms, and observing sh costs 5.00 ms",
            &["from device  64.0 KiB waited for by the program itself"],
            Outcome::Aside,
        ),
        (
            "hardly observed",
            by_own_record(
                Phase::Finished,
                1,
                1,
                Ledger {
                    unknown: 4096,
                    useful: 4096,
                    ..good
                },
            ),
            "8.00 KiB ahead of sh: 4.00 KiB useful, 0 B late, 0 B wasted, 4.00 KiB unknown; 2.43 ms against 9.00 ms when \
             recorded, partly in memory",
            &[
                "accuracy     100.0 % of what was fetched was read, as far as known",
                "replay       8.00 KiB: 4.00 KiB useful, 0 B late, 0 B wasted, 4.00",
            ],
            Outcome::Prefetched,
        ),
        (
            "nothing seen, and the device waited for",
            with(nothing_known(), |account| {
                account.device_bytes = Some(16 << 20);
            }),
            "stood aside: no read of sh could be observed",
            &[],
            Outcome::Aside,
        ),
        (
            "given up, its file changed",
            with(by_own_record(Phase::GaveUp, 40, 2, bad), |account| {
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
        // No share is printed if nothing was issued.
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
