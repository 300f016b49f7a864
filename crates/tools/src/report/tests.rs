//! Pages and explanations of each kind of run: nothing is left out, nothing is loaded, everything is bounded.

use std::collections::BTreeMap;

use foreread_plan::format::{Reader, RecordFile};
use foreread_plan::{
    Access, Extent, FileId, FileMeta, Identity, Kind, Meta, Rank, Summary, ThreadId, ThreadMeta,
};
use foreread_run::{Fate, FileFates, RunAccount, Why};
use serde_json::json;

use super::digest::{COLUMNS, FILES, File, LANES, Order, ROWS};
use super::facts::CommandFacts;
use super::text::lines;
use super::{charts_of, csv, drawing, page};
use crate::args::Section;
use crate::chosen::Chosen;

/// A size that mail programs and browsers accept.
const LIMIT: usize = 1 << 20;
const SECTIONS: [&str; 11] = [
    "numbers",
    "ledger",
    "findings",
    "timeline",
    "distance",
    "device",
    "files",
    "names",
    "processes",
    "unseen",
    "lacks",
];

fn meta() -> Meta {
    Meta {
        identity: Identity {
            exe: "/usr/bin/sort".into(),
            argv: vec!["sort".into(), "<b>&\"x\"</b>\u{1b}[2J".into()],
            cwd: "/srv".into(),
            rank: None,
        },
        recorded_at: 1_700_000_000,
        writer: "foreread test".into(),
    }
}

/// A cold record with this many files and processes, each read backward at this many offsets.
fn record(files: u32, reads: u64) -> Reader {
    record_of(files, reads, |n| n * 7 % reads)
}

/// The same; the read that has this many reads after it is at the given offset, in 8 KiB.
fn record_of(files: u32, reads: u64, place: impl Fn(u64) -> u64) -> Reader {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.fr");
    let mut record = RecordFile::create(&path, &meta(), u64::MAX).unwrap();
    let mut now = 0;
    for id in 0..files {
        let file = FileMeta::regular(format!("/srv/a<b>&{id}"), (1, id.into()), reads * 8192, 0);
        record.file(FileId(id), file).unwrap();
        let thread = ThreadMeta {
            pid: 40 + id,
            tid: 40 + id,
            ppid: 1,
            exe: "/usr/bin/sort".into(),
        };
        record.thread(ThreadId(id), thread).unwrap();
    }
    for n in (0..reads).rev() {
        for id in 0..files {
            now += 1_000_000;
            let access = Access {
                file: FileId(id),
                extent: Extent::new(place(n) * 8192, 4096),
                thread: ThreadId(id),
                kind: Kind::Pread,
                start: now,
                took: if (n + u64::from(id)) % 2 == 0 {
                    900_000
                } else {
                    2_000
                },
            };
            record.access(&access).unwrap();
        }
    }
    let summary = Summary {
        wall_ns: now + 1_000_000,
        cold_wall_ns: Some(now + 1_000_000),
        exit_status: Some(0),
        unobserved: vec!["1 process was not observed: statically linked".into()],
        ..Summary::default()
    };
    record.commit(summary).unwrap();
    // An open file stays readable after its folder is deleted.
    Reader::open(&path).unwrap()
}

/// The account of a run that prefetched and took half of this time.
fn told(plain_ns: u64, samples: u64) -> RunAccount {
    let ledger = json!({
        "issued": 1000, "useful": 600, "late": 100, "wasted": 100, "evicted": 100, "infill": 50, "unknown": 50, "missed": 900,
    });
    let wall = plain_ns / 2;
    let sample = |n: u64| {
        json!({
            "at_ns": wall * n / samples, "ahead_bytes": n * 12345, "passed_bytes": n * 6789, "device_bytes": n * 123456,
            "queue": n % 17,
        })
    };
    let told = json!({
        "meta": meta(), "host": "host<1>", "program": "sort", "line": "1.00 KiB ahead of sort; 1 s against 2 s recorded cold",
        "outcome": "prefetched", "why": null, "wall_ns": wall, "exit_status": 0, "cpu_ns": 1, "device_bytes": 5,
        "unseen_bytes": null, "lost": 3, "cold_wall_ns": plain_ns, "recorded_wall_ns": plain_ns, "followed": "/r/x.fr",
        "followed_own": true, "recorded": null, "ledger": ledger,
        "names": {"asked": 4, "fetched": 3, "used": 2, "late": 1, "unused": 1, "unknown": 0},
        "reads_seen": 10, "foreseen": 9, "notes": [], "unobserved": ["2 processes were not observed: privileged"],
        "files": ["/srv/a: was modified since it was recorded", "/srv/b: was not fetched: No such file or directory"],
        "rank": null,
        "went": {
            "waits": {"bin_ns": 131_072, "waited_ns": vec![50_000; 1024], "reads": vec![1; 1024]},
            "samples": (0..samples).map(sample).collect::<Vec<_>>(),
            "devices": ["vda"],
            "worst": [{"path": "/srv/a<b>&0", "reads": 7, "waited_ns": wall / 2}],
        },
    });
    serde_json::from_value(told).unwrap()
}

fn facts(record: Option<Reader>, told: Option<RunAccount>) -> CommandFacts {
    CommandFacts::of(Chosen {
        record,
        told,
        remarks: Vec::new(),
        ranks: BTreeMap::new(),
    })
    .with_findings()
}

#[test]
fn a_page_has_all_its_sections_loads_nothing_and_shows_names_as_they_are() {
    let plain = 2_000_000_000;
    for facts in [
        facts(Some(record(3, 100)), Some(told(plain, 100))),
        facts(Some(record(3, 100)), None),
        facts(None, Some(told(plain, 1))),
        facts(Some(record(1, 0)), None),
    ] {
        let page = page::of(&facts).unwrap();
        let has = |id: &&str| page.contains(&format!("id=\"{id}\""));
        let missing: Vec<_> = SECTIONS.iter().filter(|id| !has(id)).collect();
        assert!(missing.is_empty() || missing == [&"lacks"], "{missing:?}");
        for foreign in ["<script", "http://", "https://", "url(", "<b>&", "\u{1b}"] {
            assert!(!page.contains(foreign), "{foreign}");
        }
        assert!(page.contains("&lt;b&gt;") || page.contains("&#60;b&#62;"));
        assert!(page.len() < LIMIT);
    }
}

#[test]
fn the_largest_page_is_below_a_megabyte() {
    let mut told = told(2_000_000_000, 2000);
    told.went.devices = vec!["vda".into(); 4];
    let mut facts = facts(Some(record(40, 400)), Some(told));
    let record = facts.record.as_mut().unwrap();
    assert!(record.files.len() == FILES && record.processes.len() == LANES);
    for file in &mut record.files {
        // Every other cell, so that no cells can be joined.
        file.map.waited = (0..COLUMNS * ROWS).map(|cell| cell as u32 % 2).collect();
        file.map.at_once = file.map.waited.iter().map(|count| 1 - count).collect();
        file.path = "/<".repeat(120);
    }
    let page = page::of(&facts).unwrap();
    assert!(page.len() < LIMIT, "{}", page.len());
}

#[test]
fn the_four_numbers_are_of_a_plain_cold_run_and_one_that_was_fetched_for() {
    let reader = record(1, 1000);
    let plain = reader.summary().unwrap().wall_ns;
    let all = facts(Some(reader), Some(told(plain, 10)));
    assert_eq!(all.numbers.plain_ns, Some(plain));
    assert_eq!(all.numbers.with_ns, Some(plain / 2));
    // Half of the reads waited nine tenths of the time.
    let limit = all.numbers.limit_ns.unwrap() as f64 / plain as f64;
    assert!((0.54..0.56).contains(&limit), "{limit}");
    let masked = all.numbers.masked.unwrap();
    assert!((1.05..1.2).contains(&masked), "{masked}");
    assert!(
        all.verdict.starts_with("Faster by 50 %: "),
        "{}",
        all.verdict
    );
    let alone = facts(Some(record(1, 10)), None);
    assert_eq!(alone.numbers.with_ns, None);
    assert!(
        alone
            .lacks
            .iter()
            .any(|said| said.starts_with("No account of a run"))
    );
}

#[test]
fn a_run_that_was_no_faster_is_told_with_what_could_be_saved() {
    let reader = record(1, 1000);
    let plain = reader.summary().unwrap().wall_ns;
    let mut slow = told(plain, 10);
    slow.wall_ns = plain + 1;
    let slow = facts(Some(reader), Some(slow));
    let verdict = &slow.verdict;
    assert!(
        verdict.starts_with(
            "No faster: 1.00 s with foreread; the one run recorded without it took 1.00 s"
        ),
        "{verdict}"
    );
    assert!(
        verdict.ends_with(", of which it waited 450 ms for files."),
        "{verdict}"
    );
    assert_eq!(page::numbers(&slow)[3].value, "none");
    let fast = facts(Some(record(1, 1000)), Some(told(plain, 10)));
    let said = lines(&fast, 300).join(" ");
    assert!(said.contains("plain 1.00 s (one run)"), "{said}");
    assert!(said.contains("masked all (less than the limit)"), "{said}");
}

#[test]
fn a_run_is_not_compared_with_another_command() {
    let mut other = told(2_000_000_000, 10);
    let own = facts(None, Some(told(2_000_000_000, 10)));
    assert_eq!(own.numbers.plain_ns, Some(2_000_000_000));
    other.followed_own = false;
    let other = facts(None, Some(other));
    assert_eq!(other.numbers.plain_ns, None);
    assert!(
        other.verdict.contains("The gain is not known"),
        "{}",
        other.verdict
    );
}

#[test]
fn the_pages_of_a_file_have_the_colours_of_what_became_of_them_if_that_is_known() {
    let page = |told| {
        let facts = facts(Some(record(2, 100)), Some(told));
        let maps: Vec<_> = facts.record.as_ref().unwrap().files.iter().collect();
        let cells = |fate| {
            maps[0]
                .map
                .fates
                .iter()
                .filter(|one| **one == Some(fate))
                .count()
        };
        let counts = [Fate::Useful, Fate::Late, Fate::Missed].map(cells);
        (page::of(&facts).unwrap(), counts)
    };
    let (unknown, _) = page(told(2_000_000_000, 10));
    assert_eq!(unknown.matches("outcome not known").count(), 2);
    let mut known = told(2_000_000_000, 10);
    // Of two hundred pages the first half was useful, and ten pages late.
    known.fates = vec![FileFates {
        path: "/srv/a<b>&0".into(),
        bytes: [0, 0, 409_600, 40_960, 0, 0, 0],
        runs: vec![(0, Fate::Useful), (100, Fate::Late)],
    }];
    let (known, [useful, late, missed]) = page(known);
    assert_eq!(known.matches("outcome not known").count(), 1);
    assert!(known.contains("in the last run 400 KiB useful, 40.0 KiB late"));
    assert!(useful > 20 && late > 20 && missed == 0, "{useful} {late}");
}

#[test]
fn the_ranks_of_a_job_have_a_lane_each_and_those_of_another_have_none() {
    let mut all = facts(None, Some(told(2_000_000_000, 10)));
    assert!(charts_of(&all, Section::Ranks).is_err());
    for rank in 0..4 {
        let mut one = told(2_000_000_000, 10);
        one.rank = Some(Rank { rank, of: 5 });
        if rank == 3 {
            one.meta.recorded_at += 86_400;
        }
        if rank == 1 {
            one.went.waits.waited_ns[0] += 1_000_000;
        }
        all.run = Some(one.clone());
        all.ranks.insert(rank, one);
    }
    let lanes = charts_of(&all, Section::Ranks).unwrap();
    assert_eq!(lanes.len(), 3);
    assert!(
        lanes[2]
            .title
            .starts_with("rank 2 on host<1>: 1.00 s, waited ")
    );
    let told = lines(&all, 80).join(" ");
    assert!(
        told.contains("3 of 5 ranks are known: rank 1 waited longest, "),
        "{told}"
    );
    let page = page::of(&all).unwrap();
    assert!(page.contains("The rest of this page is on rank 3."));
    assert!(page.contains("id=\"ranks\"") && page.contains("3 of 5 ranks are known."));
    assert!(page.contains("1 rank is left out"));
    assert_eq!(csv::of(&all, Section::Ranks).lines().count(), 5);
}

#[test]
fn reads_with_gaps_between_them_are_not_scattered_and_one_has_no_order() {
    let order = |reads_waited, onward_share, goes_on, has_gaps| {
        let file = File {
            reads_waited,
            onward_share,
            goes_on,
            has_gaps,
            ..File::default()
        };
        file.order()
    };
    assert_eq!(order(9, 0.9, false, true), Some(Order::Onward));
    assert_eq!(order(9, 0.1, true, true), Some(Order::Gaps));
    assert_eq!(order(9, 0.1, false, true), Some(Order::Scattered));
    // The first read waited longest.
    assert_eq!(order(9, 0.1, true, false), None);
    assert_eq!(order(1, 0.0, true, false), None);
    let onward = facts(Some(record_of(1, 100, |n| 99 - n)), None).with_findings();
    assert!(
        onward.findings[0]
            .what
            .contains(" reads of this file from front to back with gaps waited ")
    );
    let page = |reads| page::of(&facts(Some(record(1, reads)), None)).unwrap();
    assert!(page(100).contains("reads, scattered; "));
    assert!(page(1).contains("in 1 of 1 read; "));
}

#[test]
fn each_reason_is_in_the_verdict_of_a_run_that_gained_nothing() {
    let why = [
        Why::InMemory,
        Why::FrontToBack,
        Why::LittleGain {
            gain_ns: 1,
            cost_ns: 2,
        },
        Why::Left {
            read: 7,
            at: Some(("/srv/new".into(), 4096)),
            since: 3,
        },
        Why::LittleMemory {
            fetched: 2,
            gone: 1,
        },
        Why::Unobserved {
            because: vec!["sort could not be observed".into()],
        },
    ];
    for why in why {
        let mut told = told(2_000_000_000, 10);
        told.ledger = None;
        told.names = None;
        told.outcome = foreread_run::Outcome::Aside;
        told.why = Some(why.clone());
        let facts = facts(Some(record(1, 10)), Some(told));
        let sentence = why.sentence("sort");
        assert!(facts.verdict.contains(&sentence), "{}", facts.verdict);
    }
}

#[test]
fn an_explanation_is_one_screen_begins_with_the_line_of_the_run_and_keeps_to_any_width() {
    let facts = facts(Some(record(3, 100)), Some(told(2_000_000_000, 100)));
    for width in [20, 39, 80] {
        let lines = lines(&facts, width);
        let is_path = |line: &str| !line.trim_start_matches(['-', ' ']).contains(' ');
        let fits = |line: &String| line.chars().count() <= width || is_path(line);
        assert!(lines.iter().all(fits), "{width}: {lines:#?}");
        assert!(
            lines.join(" ").starts_with("1.00 KiB ahead of sort; 1 s"),
            "{lines:#?}"
        );
        if width == 80 {
            assert!(lines.len() <= 24, "{lines:#?}");
        }
    }
}

#[test]
fn findings_are_told_worst_first() {
    let facts = facts(Some(record(3, 100)), Some(told(2_000_000_000, 100)));
    for (place, what) in [
        ("/srv/a", "This file was modified since it was recorded."),
        (
            "/srv/b",
            "This file was not fetched: No such file or directory.",
        ),
    ] {
        let told = facts.findings.iter().find(|one| one.place == place);
        assert_eq!(told.map(|one| one.what.as_str()), Some(what));
    }
    let costs: Vec<_> = facts.findings.iter().map(|one| one.cost_ns).collect();
    assert!(
        costs.is_sorted_by(|a, b| a >= b) && costs.len() > 5,
        "{costs:?}"
    );
}

#[test]
fn each_part_is_a_drawing_and_a_table() {
    let all = facts(Some(record(3, 100)), Some(told(2_000_000_000, 100)));
    let none = facts(Some(record(1, 0)), None);
    for part in [
        Section::Ledger,
        Section::Timeline,
        Section::Distance,
        Section::Device,
        Section::Files,
        Section::Processes,
    ] {
        let charts = charts_of(&all, part).unwrap();
        let drawn = drawing::svg(&charts);
        assert!(drawn.starts_with("<svg") && drawn.len() > 500, "{part:?}");
        let picture = drawing::png(&charts).unwrap();
        assert!(picture.starts_with(b"\x89PNG") && picture.len() > 500);
        let rows = csv::of(&all, part);
        let cells = |row: &str| row.matches(',').count();
        let first = cells(rows.lines().next().unwrap());
        assert!(rows.lines().count() > 3 && rows.lines().all(|row| cells(row) == first));
        assert!(!csv::of(&none, part).is_empty());
    }
    assert!(charts_of(&none, Section::Ledger).is_err());
}
