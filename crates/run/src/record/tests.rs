//! Tests of recorded runs.

use std::time::Duration;

use super::orders::{ReadingOrder, SAMPLE, Sample, Waits};
use super::writer::FLUSH;
use super::*;
use foreread_plan::format::Reader;
use foreread_plan::{Advice, Extent, Kind};

fn order(kind: Kind, offsets: impl Iterator<Item = u64>) -> ReadingOrder {
    let mut order = ReadingOrder::of(FileMeta::regular("/f", (0, 0), 0, 0));
    for offset in offsets {
        order.read(&Sequence::from(Access {
            file: FileId(0),
            extent: Extent::new(offset, 4096),
            thread: ThreadId(0),
            kind,
            start: 0,
            took: 0,
        }));
    }
    order
}

#[test]
fn what_was_written_soon_after_a_flush_survives_a_kill_though_nothing_follows_it() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::at(&folder.path().join("record.fr")).unwrap();
    let identity = Identity {
        exe: "/bin/true".into(),
        argv: Vec::new(),
        cwd: "/".into(),
        rank: None,
    };
    let meta = Meta {
        identity,
        recorded_at: 1,
        writer: "test".into(),
    };
    let mut recorder = Recorder::new(&place, meta, u64::MAX);
    recorder.file(FileId(0), &order(Kind::Read, 0..0).meta);
    for start in 0..2 {
        Sink::accesses(
            &mut recorder,
            Sequence::from(Access {
                file: FileId(0),
                extent: Extent::new(0, 4096),
                thread: ThreadId(0),
                kind: Kind::Pread,
                start,
                took: 0,
            }),
        );
        recorder.hand_over();
    }
    let Writer::Running(writer) = &recorder.writer else {
        panic!("a writer");
    };
    let path = match &*writer.written.lock().unwrap() {
        Some(Ok(writing)) => writing.file.partial_path(),
        _ => panic!("a file"),
    };
    let survives = || {
        let mut reader = Reader::open(&path).ok()?;
        Some(reader.accesses().filter(Result::is_ok).count())
    };
    let until = Instant::now() + Duration::from_secs(30);
    while survives() != Some(2) {
        assert!(Instant::now() < until, "{:?} of 2 reads", survives());
        std::thread::sleep(FLUSH / 10);
    }
}

#[test]
fn waits_in_files_that_the_program_wrote_itself_are_summed_up() {
    let waits = |written, advice| {
        let mut order = order(Kind::Pread, 0..0);
        order.meta.written = written;
        order.meta.advice = advice;
        for took in [9_000_000, 100] {
            let read = Access {
                file: FileId(0),
                extent: Extent::new(0, 4096),
                thread: ThreadId(0),
                kind: Kind::Pread,
                start: 0,
                took,
            };
            order.read(&read.into());
        }
        order.rewritten_ns()
    };
    assert_eq!(waits(true, Advice::Normal), 9_000_000);
    assert_eq!(waits(false, Advice::Normal), 0);
    assert_eq!(waits(true, Advice::Dropped), 0, "it drops the pages itself");
}

#[test]
fn a_few_slow_reads_among_many_do_not_make_a_slow_device() {
    let mut waits = Waits::default();
    for n in 0..200_000u64 {
        let took = if n % 50 == 0 { 9_000_000 } else { 90_000 };
        let read = Sequence::from(Access {
            file: FileId(0),
            extent: Extent::new(0, 4096),
            thread: ThreadId(0),
            kind: Kind::Pread,
            start: 0,
            took,
        });
        waits.read(&read, n % 4 == 0);
    }
    assert!(waits.scattered.kept.len() <= SAMPLE);
    assert_eq!(waits.scattered.seen, 150_000);
    assert_eq!(waits.scattered.ninth_tenth(), Some(90_000));
    assert_eq!(waits.onward.seen, 50_000);
    assert_eq!(Sample::default().ninth_tenth(), None);
}

#[test]
fn uses_of_names_tell_how_long_those_of_them_waited_that_did() {
    let mut waits = Waits::default();
    for n in 0..1000u64 {
        let stat = Sequence::from(Access {
            file: FileId(0),
            extent: Extent::new(0, 0),
            thread: ThreadId(0),
            kind: Kind::Stat,
            start: 0,
            took: if n % 10 == 0 { 8_000_000 } else { 2_000 },
        });
        waits.read(&stat, false);
    }
    assert_eq!(waits.names.seen, 100);
    assert_eq!(waits.names.median(), Some(8_000_000));
    assert_eq!((waits.scattered.seen, waits.onward.seen), (0, 0));
}

#[test]
fn only_a_file_read_in_no_order_is_called_random() {
    let scattered = || (0..100).map(|n| n * 7919 % 1000 * 4096);
    let random = |kind, offsets: &mut dyn Iterator<Item = u64>| {
        order(kind, offsets).advice() == Advice::Random
    };
    assert!(random(Kind::Pread, &mut scattered()));
    assert!(!random(Kind::Touch, &mut scattered()));
    assert!(!random(Kind::Pread, &mut scattered().take(60)));
    assert!(!random(Kind::Read, &mut (0..1000).map(|n| n * 4096)));
    assert!(!random(Kind::Read, &mut (0..1000).map(|n| n * 8192)));
    assert!(random(Kind::Read, &mut (0..1000).rev().map(|n| n * 4096)));
}

#[test]
fn only_a_long_file_read_from_front_to_back_is_called_sequential() {
    let sequential = |kind, offsets: &mut dyn Iterator<Item = u64>| {
        order(kind, offsets).advice() == Advice::Sequential
    };
    let onward = || (0..1000).map(|n| n * 4096);
    assert!(sequential(Kind::Read, &mut onward()));
    assert!(
        !sequential(Kind::Read, &mut (0..1000).map(|n| n * 8192)),
        "pages left out"
    );
    // Its head once more.
    assert!(sequential(Kind::Read, &mut [0].into_iter().chain(onward())));
    assert!(!sequential(Kind::Read, &mut onward().take(500)), "short");
    assert!(!sequential(Kind::Touch, &mut onward()));
    let leaps = (0..1000).map(|n| (n + n / 50 * 100) * 4096);
    assert!(!sequential(Kind::Read, &mut leaps.into_iter()), "it leaps");
}
