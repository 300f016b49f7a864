//! A rank's backend: pages in the segment, pages in the page cache, and reports of evicted pages.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foreread_backend::{
    Answer, Backend, Collective, Event, PageCache, Question, SharedCache, Ticket,
};
use foreread_plan::{FileId, FileMeta, Request, RequestId};
use foreread_segment::{Claim, Key, Mode, Opened, PAGE, PARTS, Segment};
use foreread_sys::file::FileFacts;

/// Longer than any of this takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

const FILE: FileId = FileId(0);

fn meta(path: &Path) -> FileMeta {
    let facts = FileFacts::at(path).unwrap();
    FileMeta::regular(
        path.to_owned(),
        (facts.dev, facts.ino),
        facts.size,
        facts.mtime_ns,
    )
}

/// A file of this many bytes, and the backend of a rank that reads it through MPI, with room for this many pages.
struct Rank {
    collective: Collective,
    backend: SharedCache,
    meta: FileMeta,
    requests: u64,
    _folder: tempfile::TempDir,
}

impl Rank {
    fn new(size: u64, pages: u64, decided: Option<Mode>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, vec![7; size as usize]).unwrap();
        let meta = meta(&path);
        let segment = Segment::create(pages * PAGE).unwrap();
        let collective = Collective::new(segment, decided);
        let files = Arc::new([(FILE, meta.clone())].into());
        Self {
            backend: SharedCache::new(PageCache::new(&files), &collective),
            collective,
            meta,
            requests: 0,
            _folder: folder,
        }
    }

    /// The state of the file.
    fn state(&self) -> u64 {
        let facts = FileFacts::at(&self.meta.path).unwrap();
        foreread_segment::version(facts.size, facts.mtime_ns, facts.ctime_ns)
    }

    /// The file as the rank opens or syncs it now.
    fn opened(&self, direct: bool) -> Opened {
        let version = self.state();
        Opened { direct, version }
    }

    fn sync(&self) {
        let place = (self.meta.dev, self.meta.ino);
        let segment = self.collective.segment();
        segment.name_file(place, self.opened(false));
    }

    /// As [`Rank::new`], with the file in the cache by decision.
    fn collective(size: u64, pages: u64) -> Self {
        let rank = Self::new(size, pages, Some(Mode::Collective));
        rank.collective.ask(FILE);
        rank
    }

    fn submit(&mut self, pages: std::ops::Range<u64>) -> RequestId {
        let id = RequestId(self.requests);
        self.requests += 1;
        let file = FILE;
        self.backend.submit(Request { id, file, pages });
        id
    }

    /// The events up to the wanted one.
    fn until(&mut self, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
        let (mut events, begun) = (Vec::new(), Instant::now());
        while !events.iter().any(&wanted) {
            assert!(begun.elapsed() < PATIENCE, "{events:?}");
            self.backend.poll(&mut events);
            std::thread::sleep(Duration::from_micros(200));
        }
        events
    }

    /// Submits, and waits for the end; the pages that came from the file.
    fn fetch(&mut self, pages: std::ops::Range<u64>) -> u64 {
        let id = self.submit(pages);
        let events = self.until(|event| is_done(event, id));
        let issued = events.iter().map(|event| match event {
            Event::Issued { pages, .. } => pages.end - pages.start,
            _ => 0,
        });
        issued.sum()
    }

    fn key(&self, page: u64) -> Key {
        Key {
            dev: self.meta.dev,
            ino: self.meta.ino,
            page,
        }
    }

    fn ask(&mut self, part: std::ops::Range<u64>) -> Answer {
        let ticket = Ticket(self.requests);
        self.requests += 1;
        self.backend.ask(Question {
            ticket,
            file: FILE,
            parts: vec![part],
            which: true,
        });
        let is_it =
            |event: &Event| matches!(event, Event::Answered { ticket: one, .. } if *one == ticket);
        let answer = self.until(is_it).into_iter().find_map(|event| match event {
            Event::Answered { answer, .. } => Some(answer),
            _ => None,
        });
        answer.unwrap()
    }
}

fn is_done(event: &Event, wanted: RequestId) -> bool {
    matches!(event, Event::Done { id, .. } if *id == wanted)
}

#[test]
fn pages_that_the_rank_reads_itself_are_left_to_it() {
    let mut rank = Rank::collective(8 * PAGE, 16);
    rank.sync();
    // Two pages from the third on, of the first file.
    rank.collective.segment().show_reading(2 << 24 | 2);
    assert_eq!(rank.fetch(0..8 * PARTS), 6 * PARTS);
    for page in 0..8 {
        let is_there = rank.collective.segment().resident(&rank.key(page)) != 0;
        assert_eq!(is_there, !(2..4).contains(&page), "page {page}");
    }
    // The read is over: they may be wanted again.
    rank.collective.segment().show_reading(0);
    assert_eq!(rank.fetch(0..8 * PARTS), 2 * PARTS);
}

#[test]
fn a_request_is_read_into_the_segment_once() {
    let mut rank = Rank::collective(8 * PAGE, 64);
    assert_eq!(rank.fetch(10..70), 60);
    let page = rank.collective.segment().read(&rank.key(1), u16::MAX);
    assert!(page.is_some_and(|page| page.iter().all(|&byte| byte == 7)));
    assert_eq!(rank.fetch(10..80), 10, "the others are there");
    let counts = rank.collective.counts();
    assert_eq!(counts.filled_bytes, 70 * 4096);
    assert_eq!(rank.backend.room(), Some(64 * PARTS * 3 / 4));
}

#[test]
fn what_lies_past_the_end_is_told_and_not_waited_for() {
    let mut rank = Rank::collective(2 * 4096 + 1, 4);
    let id = rank.submit(0..40);
    let events = rank.until(|event| is_done(event, id));
    let short: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Short { pages, .. } => Some(pages.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(short.iter().map(|run| run.end - run.start).sum::<u64>(), 37);
    assert_eq!(rank.collective.segment().resident(&rank.key(0)), 0b11);
}

#[test]
fn a_file_that_is_gone_ends_its_requests() {
    let mut rank = Rank::collective(PAGE, 4);
    fs::remove_file(&rank.meta.path).unwrap();
    let id = rank.submit(0..16);
    let events = rank.until(|event| is_done(event, id));
    assert!(
        events
            .iter()
            .all(|event| !matches!(event, Event::Issued { .. }))
    );
}

#[test]
fn requests_wait_for_room_until_the_rank_has_read() {
    let mut rank = Rank::collective(8 * PAGE, 1);
    assert_eq!(rank.fetch(0..16), 16);
    let id = rank.submit(16..32);
    let mut events = Vec::new();
    for _ in 0..50 {
        rank.backend.poll(&mut events);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(!events.iter().any(|event| is_done(event, id)), "{events:?}");
    assert!(
        rank.collective
            .segment()
            .read(&rank.key(0), u16::MAX)
            .is_some()
    );
    rank.until(|event| is_done(event, id));
    assert_eq!(rank.collective.segment().resident(&rank.key(1)), u16::MAX);
    assert_eq!(rank.collective.counts().unread, 0);
}

#[test]
fn what_has_gone_is_told_and_what_was_given_back_is_not() {
    let mut rank = Rank::collective(8 * PAGE, 64);
    assert_eq!(rank.fetch(0..64), 64);
    let all = rank.ask(0..64).parts.remove(0);
    assert_eq!((all.resident, all.evicted), (Some(64), Some(0)));
    rank.collective.segment().void(&rank.key(1));
    rank.backend.discard(FILE, 0..16);
    let left = rank.ask(0..64).parts.remove(0);
    assert_eq!((left.resident, left.evicted), (Some(32), Some(16)));
    assert_eq!(left.gone.first(), Some(&(16..32)));
    assert_eq!(left.gone.len(), 1);
}

#[test]
fn a_file_system_that_keeps_pages_is_found_to_by_one_read() {
    let mut rank = Rank::new(8 * PAGE, 4, None);
    rank.collective.ask(FILE);
    let id = rank.submit(0..16);
    rank.until(|event| is_done(event, id));
    let homes = rank.collective.homes();
    let is_plain = homes.values().all(|&mode| mode == Mode::Plain);
    assert!(homes.len() == 1 && is_plain, "{homes:?}");
    assert_eq!(rank.collective.counts().filled, 0);
    assert_eq!(rank.backend.room(), None);
}

#[test]
fn a_file_that_mpi_is_not_asked_for_is_the_page_caches() {
    let mut rank = Rank::new(8 * PAGE, 4, Some(Mode::Collective));
    let id = rank.submit(0..16);
    rank.until(|event| is_done(event, id));
    assert_eq!(rank.collective.counts().filled, 0);
    assert!(rank.collective.homes().is_empty());
    rank.collective.ask(FILE);
    assert_eq!(rank.fetch(0..16), 16);
}

#[test]
fn that_the_kernel_reads_a_file_no_further_is_said_once_and_only_where_it_does_not() {
    let said = |mode| {
        let mut rank = Rank::new(8 * PAGE, 16, Some(mode));
        rank.collective.ask(FILE);
        let mut said = 0;
        for page in [0..16, 16..32] {
            let id = rank.submit(page);
            let events = rank.until(|event| is_done(event, id));
            let is_it = |event: &&Event| matches!(event, Event::Unaided { file: FILE });
            said += events.iter().filter(is_it).count();
        }
        said
    };
    assert_eq!(said(Mode::Collective), 1);
    assert_eq!(said(Mode::Plain), 0);
}

/// A file is known as soon as it is opened, and MPI is asked for it later.
#[test]
fn the_place_of_a_file_that_mpi_is_asked_for_is_found_without_a_request() {
    let asked_late = |decided| {
        let mut rank = Rank::new(8 * PAGE, 4, decided);
        rank.backend.add(FILE, rank.meta.clone());
        let mut events = Vec::new();
        rank.backend.poll(&mut events);
        assert!(events.is_empty() && rank.collective.homes().is_empty());
        rank.collective.ask(FILE);
        rank
    };
    let mut decided = asked_late(Some(Mode::Collective));
    decided.until(|event| matches!(event, Event::Unaided { file: FILE }));
    let (mut tested, begun) = (asked_late(None), Instant::now());
    while tested.collective.homes().is_empty() {
        assert!(begun.elapsed() < PATIENCE, "it was not tested");
        tested.backend.poll(&mut Vec::new());
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Two ranks of a host that read one file, each of which knows of the other's segment.
fn two_ranks(size: u64) -> [Rank; 2] {
    let (one, mut two) = (Rank::collective(size, 64), Rank::collective(size, 64));
    two.meta = one.meta.clone();
    let files = Arc::new([(FILE, two.meta.clone())].into());
    two.backend = SharedCache::new(PageCache::new(&files), &two.collective);
    for (rank, peer) in [(&one, &two), (&two, &one)] {
        rank.collective
            .segment()
            .name_peer(peer.collective.segment());
    }
    [one, two]
}

#[test]
fn ranks_that_read_neighbouring_pieces_read_the_file_once_for_all_of_them() {
    const PAGES: u64 = 48;
    let mut ranks = two_ranks(PAGES * PAGE);
    let (mut read, mut left) = ([0, 0], 0);
    for page in 0..PAGES {
        for (rank, part) in [2, 5].into_iter().enumerate() {
            let at = page * PARTS + part;
            let issued = ranks[rank].fetch(at..at + 1);
            read[rank] += issued;
            left += 1 - issued;
            let held = ranks.iter().find_map(|rank| {
                let segment = rank.collective.segment();
                segment.read(&rank.key(page), 1 << part)
            });
            let own = part as usize * 4096;
            assert!(
                held.is_some_and(|held| held[own..own + 4096].iter().all(|&byte| byte == 7)),
                "page {page}"
            );
        }
    }
    let [one, two] = ranks.map(|rank| rank.collective.counts());
    // The first reads a piece that covers both, and the second leaves its part to it, once that is known of the pages before.
    assert!(two.left_bytes >= PAGES / 2 * 4096, "{two:?}");
    assert_eq!(two.left_bytes, left * 4096);
    assert!(one.beside_bytes >= PAGES / 2 * 3 * 4096, "{one:?}");
    assert_eq!((one.left_bytes, two.beside_bytes), (0, 0));
    assert_eq!(read, [PAGES, two.filled]);
}

#[test]
fn what_another_rank_has_or_is_reading_is_not_read_again() {
    let [mut one, mut two] = two_ranks(4 * PAGE);
    // It has part of it, and is reading another: whoever has claimed that may never fill it.
    assert_eq!(two.fetch(16..17), 1);
    let key = one.key(1);
    let Claim::Fill(_reading) = two.collective.segment().claim(&key, 0b10, 0, false) else {
        panic!("not to be filled");
    };
    assert_eq!(one.fetch(16..19), 1, "the third part alone");
    assert_eq!(one.collective.segment().resident(&key), 0b100);
    assert_eq!(one.collective.counts().left_bytes, 2 * 4096);
    assert_eq!(one.fetch(16..18), 0);
}

#[test]
fn a_program_that_cannot_take_from_the_cache_has_nothing_filled() {
    let mut rank = Rank::collective(8 * PAGE, 64);
    assert_eq!(rank.fetch(0..16), 16);
    rank.collective.give_up();
    assert_eq!(rank.fetch(16..32), 0);
    assert_eq!(rank.collective.counts().filled_bytes, PAGE);
}

/// Fetches the file, after the time in which its modification times could be another write's.
fn fetch_settled(rank: &mut Rank, pages: &std::ops::Range<u64>) {
    let begun = Instant::now();
    while rank.fetch(pages.clone()) == 0 {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_file_that_has_changed_since_it_was_opened_is_not_filled_before_it_is_synced() {
    let mut rank = Rank::collective(8 * PAGE, 64);
    rank.sync();
    assert_eq!(rank.fetch(0..16), 16);
    fs::write(&rank.meta.path, vec![8; 8 * PAGE as usize]).unwrap();
    for _ in 0..3 {
        assert_eq!(rank.fetch(16..32), 0);
        std::thread::sleep(Duration::from_millis(10));
    }
    rank.sync();
    fetch_settled(&mut rank, &(16..32));
    // All parts of a page are of one state of the file: of that of the latest fill.
    fs::write(&rank.meta.path, vec![9; 8 * PAGE as usize]).unwrap();
    rank.collective.segment().discard(&rank.key(1), 0b1);
    rank.sync();
    fetch_settled(&mut rank, &(16..17));
    let segment = rank.collective.segment();
    assert_eq!(segment.resident(&rank.key(1)), 0b1);
    assert_eq!(segment.read(&rank.key(1), 0b1).unwrap()[0], 9);
}

#[test]
fn a_file_that_is_read_past_the_page_cache_is_filled_whatever_its_file_system_keeps() {
    let mut rank = Rank::new(8 * PAGE, 16, None);
    let place = (rank.meta.dev, rank.meta.ino);
    rank.collective
        .segment()
        .name_file(place, rank.opened(false));
    let id = rank.submit(0..16);
    rank.until(|event| is_done(event, id));
    assert_eq!(rank.collective.counts().filled, 0, "its pages are kept");
    rank.collective
        .segment()
        .name_file(place, rank.opened(true));
    assert_eq!(rank.fetch(16..32), 16);
    assert_eq!(rank.collective.counts().filled, 1);
    let homes = rank.collective.homes();
    let direct = homes.iter().find(|(name, _)| name.ends_with("O_DIRECT"));
    assert_eq!(
        direct.map(|(_, &mode)| mode),
        Some(Mode::Collective),
        "{homes:?}"
    );
}
