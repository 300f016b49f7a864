//! What a segment holds, what makes room, and what is refused.

use std::fs::File;
use std::os::fd::AsFd;

use foreread_segment::{Claim, Error, Fill, Key, Opened, PAGE, PART, PARTS, Segment};

const VERSION: u64 = 1;

fn key(page: u64) -> Key {
    Key {
        dev: 1,
        ino: 2,
        page,
    }
}

/// A file of so many bytes, of which each part holds its number.
fn file(size: u64) -> File {
    let mut file = tempfile::tempfile().unwrap();
    let bytes = (0..size).map(|at| (at / PART) as u8);
    std::io::Write::write_all(&mut file, &bytes.collect::<Vec<_>>()).unwrap();
    file
}

/// Fills these parts; those that were filled, or `None` where there was no room.
fn fill(segment: &Segment, file: &File, page: u64, parts: u16, insist: bool) -> Option<u16> {
    match segment.claim(&key(page), parts, 0, insist) {
        Claim::There => Some(0),
        Claim::Full => None,
        Claim::Fill(mut fill) => {
            let parts = fill.parts();
            fill.from_file(file.as_fd(), parts, VERSION).unwrap();
            Some(fill.commit())
        }
    }
}

/// Calls of this thread that have read.
fn calls() -> u64 {
    let counts = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    let line = counts.lines().find_map(|line| line.strip_prefix("syscr: "));
    line.unwrap().parse().unwrap()
}

#[test]
fn pages_that_lie_together_are_read_by_one_call() {
    let segment = Segment::create(64 * PAGE).unwrap();
    // It ends in the second part of its seventh page.
    let file = file(6 * PAGE + PART + 100);
    let claim = |(page, parts)| match segment.claim(&key(page), parts, 0, false) {
        Claim::Fill(fill) => fill,
        other => panic!("{other:?}"),
    };
    // From the second part of page 0 to the end of page 2; then pages 4 and 6, each by itself.
    let wanted = [
        (0, 0xfffe),
        (1, 0xffff),
        (2, 0xffff),
        (4, 0b1111),
        (6, 0b1111),
    ];
    let mut fills: Vec<_> = wanted.into_iter().map(claim).collect();
    let mut all: Vec<_> = fills.iter_mut().map(|fill| (fill, 0xffff)).collect();
    let (first, before) = (calls(), calls());
    Fill::all_from_file(&mut all, file.as_fd(), VERSION).unwrap();
    // Less those that to count takes. That the file ends is found out by one more.
    let made = calls() - before - (before - first);
    assert_eq!(made, 4);
    let filled: Vec<_> = fills.into_iter().map(Fill::commit).collect();
    assert_eq!(filled, [0xfffe, 0xffff, 0xffff, 0b1111, 0b1]);
    for (page, parts) in wanted {
        let there = if page == 6 { 0b1 } else { parts };
        let read = segment.read(&key(page), there).unwrap();
        for (part, bytes) in read.chunks(PART as usize).enumerate() {
            if there >> part & 1 == 1 {
                let number = (page * PARTS) as usize + part;
                assert!(bytes.iter().all(|&byte| usize::from(byte) == number));
            }
        }
    }
}

#[test]
fn what_was_filled_is_read_and_nothing_else() {
    let segment = Segment::create(4 * PAGE).unwrap();
    let file = file(3 * PAGE);
    assert_eq!(segment.read(&key(1), 0b100), None);
    assert_eq!(fill(&segment, &file, 1, 0b110, false), Some(0b110));
    let page = segment.read(&key(1), 0b110).unwrap();
    for part in [1, 2] {
        let bytes = &page[part * PART as usize..][..PART as usize];
        assert!(bytes.iter().all(|&byte| byte == PARTS as u8 + part as u8));
    }
    assert_eq!(segment.read(&key(1), 0b111), None);
    assert_eq!(fill(&segment, &file, 1, 0b111, false), Some(0b001));
    assert!(segment.read(&key(1), 0b111).is_some());
    assert_eq!(fill(&segment, &file, 1, 0b111, false), Some(0));
}

#[test]
fn a_part_that_a_file_ends_in_is_left_out() {
    let segment = Segment::create(4 * PAGE).unwrap();
    let file = file(2 * PART + 100);
    assert_eq!(fill(&segment, &file, 0, u16::MAX, false), Some(0b11));
    assert_eq!(segment.resident(&key(0)), 0b11);
}

#[test]
fn a_page_that_is_made_void_while_it_is_filled_is_lost() {
    let segment = Segment::create(4 * PAGE).unwrap();
    let file = file(PAGE);
    let Claim::Fill(mut late) = segment.claim(&key(0), 0b11, 0, false) else {
        panic!("nothing claimed");
    };
    late.from_file(file.as_fd(), 0b11, VERSION).unwrap();
    segment.void(&key(0));
    assert_eq!(late.commit(), 0);
    assert_eq!(segment.read(&key(0), 0b1), None);
    let counts = segment.counts();
    assert_eq!((counts.lost, counts.voided, counts.filled), (1, 1, 0));
    // And is filled anew.
    assert_eq!(fill(&segment, &file, 0, 0b11, false), Some(0b11));
}

#[test]
fn parts_of_a_new_page_that_are_filled_at_once_are_all_kept() {
    let segment = Segment::create(64 * PAGE).unwrap();
    let file = file(4 * PAGE);
    // The second time the slot has had another page, in another state of its file.
    for (page, version) in [(1, VERSION), (2, VERSION + 1)] {
        let claim = |parts| match segment.claim(&key(page), parts, 0, false) {
            Claim::Fill(fill) => fill,
            other => panic!("{other:?}"),
        };
        let mut fills = [claim(0x0fff), claim(0xf000)];
        for fill in fills.iter_mut().rev() {
            let parts = fill.parts();
            fill.from_file(file.as_fd(), parts, version).unwrap();
        }
        assert_eq!(fills.map(Fill::commit), [0x0fff, 0xf000]);
        assert_eq!(segment.resident(&key(page)), 0xffff);
    }
    assert_eq!(segment.counts().lost, 0);
}

#[test]
fn pages_that_the_rank_reads_itself_are_known_and_others_are_not() {
    let segment = Segment::create(64 * PAGE).unwrap();
    let opened = Opened {
        direct: false,
        version: VERSION,
    };
    segment.name_file((7, 8), opened);
    segment.name_file((1, 2), opened);
    assert!(!segment.is_being_read(&key(0)));
    // Three pages from the fifth on, of the second file.
    segment.show_reading(1 << 58 | 5 << 24 | 3);
    let read = (0..10).filter(|page| segment.is_being_read(&key(*page)));
    assert_eq!(read.collect::<Vec<_>>(), [5, 6, 7]);
    assert!(!segment.is_being_read(&Key { ino: 8, ..key(5) }));
    // Anything may be in the word.
    segment.show_reading(u64::MAX);
    assert!(!segment.is_being_read(&key(u64::MAX)));
}

#[test]
fn a_fill_that_is_given_up_can_be_begun_again() {
    let segment = Segment::create(PAGE).unwrap();
    let file = file(PAGE);
    drop(segment.claim(&key(0), 0b1, 0, false));
    assert_eq!(segment.resident(&key(0)), 0);
    assert_eq!(fill(&segment, &file, 0, 0b1, false), Some(0b1));
}

#[test]
fn the_page_read_least_lately_makes_room_and_none_that_is_foretold_and_unread() {
    let segment = Segment::create(4 * PAGE).unwrap();
    let file = file(16 * PAGE);
    for page in 0..4 {
        assert_eq!(fill(&segment, &file, page, 0b1, false), Some(0b1));
    }
    assert_eq!(
        fill(&segment, &file, 9, 0b1, false),
        None,
        "all are foretold"
    );
    assert!(segment.read(&key(2), 0b1).is_some());
    assert!(segment.read(&key(0), 0b1).is_some());
    assert_eq!(fill(&segment, &file, 9, 0b1, false), Some(0b1));
    assert_eq!(segment.resident(&key(2)), 0, "read before page 0");
    assert_eq!(segment.counts().unread, 0);
    // Foretold again: page 0 has its second chance, and nothing else can make room.
    assert_eq!(fill(&segment, &file, 0, 0b1, false), Some(0));
    assert_eq!(fill(&segment, &file, 10, 0b1, false), None);
    // Whoever insists gets the oldest.
    assert_eq!(fill(&segment, &file, 10, 0b1, true), Some(0b1));
    assert_eq!(segment.resident(&key(1)), 0);
    let counts = segment.counts();
    assert_eq!((counts.evicted, counts.unread), (2, 1));
}

#[test]
fn three_quarters_of_a_segment_are_used_before_a_page_has_to_make_room() {
    let segment = Segment::create(512 * PAGE).unwrap();
    let file = file(PART);
    let strided = |n: u64| n * 64;
    let mut held = 0;
    while fill_first(&segment, &file, strided(held)) {
        held += 1;
    }
    assert!(held >= 512 * 3 / 4, "{held}");

    fn fill_first(segment: &Segment, file: &File, page: u64) -> bool {
        match segment.claim(&key(page), 0b1, 0, false) {
            Claim::Fill(mut fill) => {
                // What it holds does not matter here.
                fill.from_file(file.as_fd(), 0b1, VERSION).unwrap();
                std::mem::forget(fill);
                true
            }
            _ => false,
        }
    }
}

#[test]
fn what_is_given_back_makes_room() {
    let segment = Segment::create(PAGE).unwrap();
    let file = file(4 * PAGE);
    assert_eq!(fill(&segment, &file, 0, 0b11, false), Some(0b11));
    segment.discard(&key(0), 0b1);
    assert_eq!(segment.resident(&key(0)), 0b10);
    assert_eq!(fill(&segment, &file, 1, 0b1, false), None);
    segment.discard(&key(0), 0b10);
    assert_eq!(fill(&segment, &file, 1, 0b1, false), Some(0b1));
    assert_eq!(segment.counts().evicted, 0);
}

#[test]
fn what_another_rank_has_or_is_filling_is_on_hand_there() {
    let (own, peer) = (
        Segment::create(PAGE).unwrap(),
        Segment::create(PAGE).unwrap(),
    );
    let file = file(PAGE);
    let mapped = opened(&peer).unwrap();
    assert_eq!(fill(&peer, &file, 0, 0b10, false), Some(0b10));
    let filling = peer.claim(&key(0), 0b100, 0, false);
    assert!(matches!(filling, Claim::Fill(_)));
    assert_eq!(mapped.on_hand(&key(0), None), 0b110);
    assert_eq!(mapped.on_hand(&key(0), Some(VERSION)), 0b110);
    assert_eq!(
        mapped.on_hand(&key(0), Some(VERSION + 1)),
        0b100,
        "the file has changed"
    );
    assert_eq!(mapped.on_hand(&key(1), None), 0);
    own.leave_to(&mapped, &key(0), 0b110);
    assert_eq!(own.counts().left_bytes, 2 * PART);
    assert_eq!(peer.wanted(&key(0)), 0b110);
}

#[test]
fn a_page_left_to_another_rank_is_given_back_by_nobody_and_makes_room_last() {
    let (own, peer) = (
        Segment::create(PAGE).unwrap(),
        Segment::create(2 * PAGE).unwrap(),
    );
    let file = file(8 * PAGE);
    for page in 0..2 {
        assert_eq!(fill(&peer, &file, page, 0b1, false), Some(0b1));
    }
    own.leave_to(&peer, &key(0), 0b1);
    for page in 0..2 {
        assert!(peer.read(&key(page), 0b1).is_some());
        peer.discard(&key(page), 0b1);
    }
    assert_eq!(peer.resident(&key(0)), 0b1);
    assert_eq!(peer.resident(&key(1)), 0);
    // The free one, then the one that is read, and only then the other rank's.
    for (page, left) in [(2, 0b1), (3, 0b1), (4, 0)] {
        assert_eq!(fill(&peer, &file, page, 0b1, false), Some(0b1));
        assert_eq!(peer.resident(&key(0)), left, "page {page}");
        if page == 2 {
            assert!(peer.read(&key(page), 0b1).is_some());
        }
    }
}

#[test]
fn of_two_ranks_that_claim_a_page_at_once_one_reads_it() {
    let two = [
        Segment::create(PAGE).unwrap(),
        Segment::create(PAGE).unwrap(),
    ];
    let claim = |segment| match Segment::claim(segment, &key(0), 0b11, 0b1100, false) {
        Claim::Fill(fill) => fill,
        other => panic!("{other:?}"),
    };
    let [mut one, mut other] = two.each_ref().map(claim);
    // Both look after both have claimed.
    one.leave_to(&two[1]);
    other.leave_to(&two[0]);
    let parts = [one.parts(), other.parts()];
    assert!(parts == [0b1111, 0] || parts == [0, 0b1111], "{parts:?}");
    drop((one, other));
    // The first is reading when the other claims, which is left to it whoever goes first otherwise.
    for (first, second) in [(0, 1), (1, 0)] {
        let reading = claim(&two[first]);
        reading.begin_reading();
        let mut late = claim(&two[second]);
        late.leave_to(&two[first]);
        assert_eq!((late.parts(), late.wanted()), (0, 0));
    }
    // What is read beside alone is of no use.
    let Claim::Fill(reading) = two[0].claim(&key(0), 0b11, 0, false) else {
        panic!("nothing claimed");
    };
    reading.begin_reading();
    let mut late = claim(&two[1]);
    late.leave_to(&two[0]);
    assert_eq!(late.parts(), 0);
    assert_eq!(two[1].resident(&key(0)), 0);
}

/// A segment as another process would open it.
fn opened(segment: &Segment) -> Option<Segment> {
    let value = segment.env_value();
    let fd = value.rsplit('/').next().unwrap().parse().unwrap();
    Segment::of_peer(std::process::id(), fd, segment.token())
}

#[test]
fn what_is_no_segment_is_not_opened() {
    use std::os::fd::AsRawFd as _;
    let segment = Segment::create(PAGE).unwrap();
    assert!(opened(&segment).is_some());
    let fd = segment.as_fd().as_raw_fd() as u32;
    let own = std::process::id();
    assert!(Segment::of_peer(own, fd, segment.token() ^ 1).is_none());
    assert!(Segment::of_peer(0, fd, segment.token()).is_none());
    // As long as one, but not sealed.
    let file = tempfile::tempfile().unwrap();
    file.set_len(1 << 20).unwrap();
    assert!(Segment::of_peer(own, file.as_raw_fd() as u32, 0).is_none());
    let null = File::open("/dev/null").unwrap();
    assert!(Segment::of_peer(own, null.as_raw_fd() as u32, 0).is_none());
}

#[test]
fn a_segment_has_room_for_a_page_at_least() {
    let small = Segment::create(PAGE - 1).unwrap_err();
    assert!(matches!(small, Error::TooSmall { size } if size == PAGE - 1));
    assert!(small.to_string().contains("65535") && small.to_string().contains("65536"));
    assert!(matches!(
        Segment::create(u64::MAX).unwrap_err(),
        Error::TooLarge { .. }
    ));
    assert_eq!(Segment::create(2 * PAGE - 1).unwrap().slots(), 1);
}
