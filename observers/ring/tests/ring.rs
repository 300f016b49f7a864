//! The ring between a producer and a consumer in one process, and what comes of damage.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use foreread_ring::{
    Clock, EXTRA_MAX, Full, MORE_MAX, Mode, OPEN_WRITTEN, PASSAGES, PATH_MAX, Passage, RING_SLOTS,
    RINGS, RawEvent, Ring, Shared, Slot, THREAD_NO_STDIO, Unobserved, What, Writer, code, decode,
    encode, kind,
};
use proptest::prelude::*;

fn ring() -> Ring {
    Ring::create(Clock::Monotonic).expect("a ring")
}

fn now() -> u64 {
    Clock::Monotonic.now()
}

fn poll(ring: &mut Ring) -> Vec<RawEvent> {
    let mut events = Vec::new();
    ring.poll(&mut |event| events.push(event));
    events
}

/// A writer that has introduced itself.
fn writer(shared: &Shared, pid: u32, tid: u32) -> Writer {
    let mut writer = Writer::claim(shared, pid, tid).expect("a free ring");
    let first = encode::thread(pid, tid, 1, 0, now(), 4);
    writer.push_path(shared, &first, b"/exe").expect("room");
    writer
}

fn read(inst: u32, start: u64, offset: u64, len: u32) -> Slot {
    encode::access(inst, kind::PREAD, start, 0, offset, len)
}

/// Bytes as the slots that follow an event's first.
fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(32), 0);
    padded
}

fn own_pid() -> u32 {
    std::process::id()
}

#[test]
fn a_wait_shows_whether_the_kernel_tells_of_switches() {
    let ring = ring();
    let tells = || ring.shared().tells_switches();
    ring.waiting(|| {});
    assert!(!tells(), "too short to tell");
    ring.waiting(|| std::thread::sleep(Duration::from_millis(2)));
    if !tells() {
        eprintln!("skipped: this kernel does not tell a thread that it was switched out");
        return;
    }
    // One that keeps its processor is not told, however long it is busy; now and then another interrupts it.
    let keeps = || {
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(1) {}
    };
    assert!((0..100).any(|_| {
        ring.waiting(keeps);
        !tells()
    }));
}

#[test]
fn every_kind_of_event_comes_out_as_it_went_in() {
    let mut ring = ring();
    let shared = ring.shared();
    let mut writer = Writer::claim(shared, own_pid(), 7).expect("a free ring");
    let at = now();
    let exe = b"/usr/bin/a program";
    let thread = encode::thread(own_pid(), 7, 5, THREAD_NO_STDIO, at, exe.len());
    writer.push_path(shared, &thread, exe).expect("room");
    let path = vec![b'/'; PATH_MAX];
    let open = encode::open(9, OPEN_WRITTEN, at, 1600, path.len());
    writer.push_path(shared, &open, &path).expect("room");
    writer
        .push(
            shared,
            &encode::access(9, kind::READV, at, 320, 1 << 40, 77),
        )
        .expect("room");
    let map = encode::map(9, (at, 16), (0x7f00_0000_0000, 5 << 30, 4096), (1, 2));
    writer.push_pair(shared, &map).expect("room");
    writer
        .push(shared, &encode::unmap(at, 0x7f00_0000_0000, 8192))
        .expect("room");
    writer.push(shared, &encode::exit(at)).expect("room");

    let events = poll(&mut ring);
    assert!(
        events
            .iter()
            .all(|event| (event.pid, event.tid) == (own_pid(), 7))
    );
    let whats: Vec<What<PathBuf>> = events.into_iter().map(|event| event.what).collect();
    let expected = [
        What::Thread {
            pid: own_pid(),
            tid: 7,
            ppid: 5,
            exe: PathBuf::from("/usr/bin/a program"),
            stdio: false,
        },
        What::Open {
            inst: 9,
            path: PathBuf::from("/".repeat(PATH_MAX)),
            flags: OPEN_WRITTEN,
            took: 1600,
        },
        What::Access {
            inst: 9,
            kind: kind::READV,
            offset: 1 << 40,
            len: 77,
            took: 320,
        },
        What::Map {
            inst: 9,
            addr: 0x7f00_0000_0000,
            len: 5 << 30,
            offset: 4096,
            prot: 1,
            flags: 2,
            took: 16,
        },
        What::Unmap {
            addr: 0x7f00_0000_0000,
            len: 8192,
        },
        What::Exit,
    ];
    assert_eq!(whats, expected);
    assert!(ring.drained());
    assert_eq!(ring.lost(), 0);
}

#[test]
fn rings_are_merged_by_start() {
    let mut ring = ring();
    let shared = ring.shared();
    let mut writers = [1, 2, 3].map(|tid| writer(shared, own_pid(), tid));
    let base = now();
    for i in 0..300_u64 {
        let slot = read(1, base + i, i, 1);
        writers[(i * 7 % 3) as usize]
            .push(shared, &slot)
            .expect("room");
    }
    std::thread::sleep(Duration::from_millis(1));
    let offsets: Vec<u64> = poll(&mut ring)
        .into_iter()
        .filter_map(|event| match event.what {
            What::Access { offset, .. } => Some(offset),
            _ => None,
        })
        .collect();
    assert_eq!(offsets, (0..300).collect::<Vec<_>>());
}

#[test]
fn an_event_that_began_after_the_poll_waits_for_the_next() {
    let mut ring = ring();
    let shared = ring.shared();
    let mut late = writer(shared, own_pid(), 1);
    let mut early = writer(shared, own_pid(), 2);
    late.push(shared, &read(1, now() + 3_600_000_000_000, 0, 1))
        .expect("room");
    late.push(shared, &read(1, now(), 1, 1)).expect("room");
    early.push(shared, &read(2, now(), 2, 1)).expect("room");
    let instances = |events: Vec<RawEvent>| -> Vec<u32> {
        let instance = |event: RawEvent| match event.what {
            What::Access { inst, .. } => Some(inst),
            _ => None,
        };
        events.into_iter().filter_map(instance).collect()
    };
    assert_eq!(instances(poll(&mut ring)), [2]);
    assert!(!ring.drained());
    // However far in the future its stamp claims to be, it waits no longer than that.
    assert_eq!(instances(poll(&mut ring)), [1, 1]);
    assert!(ring.drained());
}

#[test]
fn a_full_ring_says_so_and_has_room_after_a_poll() {
    let mut ring = ring();
    let mut writer = Writer::claim(ring.shared(), own_pid(), 1).expect("a free ring");
    for round in 0..5 {
        let mut count = 0;
        while writer
            .push(ring.shared(), &read(1, now(), count, 1))
            .is_ok()
        {
            count += 1;
        }
        // The last access's slot stays the writer's: others may be added to it.
        let room = RING_SLOTS - usize::from(round > 0);
        assert_eq!(count, room as u64, "round {round}");
        let map = encode::map(1, (0, 0), (0, 1, 0), (0, 0));
        assert_eq!(writer.push_pair(ring.shared(), &map), Err(Full));
        assert_eq!(poll(&mut ring).len(), room);
    }
}

/// Offsets and starts of the accesses among events.
fn accesses(events: Vec<RawEvent>) -> Vec<(u64, u64)> {
    let access = |event: RawEvent| match event.what {
        What::Access { offset, .. } => Some((offset, event.start)),
        _ => None,
    };
    events.into_iter().filter_map(access).collect()
}

fn offsets(events: Vec<RawEvent>) -> Vec<u64> {
    accesses(events).into_iter().map(|one| one.0).collect()
}

#[test]
fn accesses_added_to_the_last_come_out_each_by_itself() {
    const TOOK: u64 = 160;
    let mut ring = ring();
    let mut writer = writer(ring.shared(), own_pid(), 1);
    let who = (1, kind::READ);
    let slot = encode::access(who.0, who.1, now(), TOOK, 4096, 10);
    writer.push_access(ring.shared(), &slot).expect("room");
    // In its slot, in one more, and in that; then in a second one.
    let expected = [4096, 4106, 7, 17, 4096, 4106];
    for offset in &expected[1..] {
        assert_eq!(writer.add(ring.shared(), who, *offset, 10), Some(true));
    }
    let seen = accesses(poll(&mut ring));
    assert_eq!(seen.iter().map(|one| one.0).collect::<Vec<_>>(), expected);
    let starts = seen.windows(2).map(|pair| pair[1].1 - pair[0].1);
    assert!(starts.eq([TOOK; 5]), "each as long as the first: {seen:?}");
    assert!(ring.drained());

    // What is not like it is refused.
    for (who, len) in [((2, kind::READ), 10), ((1, kind::PREAD), 10), (who, 11)] {
        assert_eq!(writer.add(ring.shared(), who, 4116, len), None);
    }
    // A slot already handed out still takes others, and nothing that follows comes before them.
    assert_eq!(writer.add(ring.shared(), who, 4116, 10), Some(true));
    writer
        .push(ring.shared(), &read(3, now(), 7, 1))
        .expect("room");
    assert_eq!(
        writer.add(ring.shared(), who, 4126, 10),
        None,
        "no longer the last"
    );
    assert_eq!(offsets(poll(&mut ring)), [4116, 7]);

    // One takes so many, wherever they are.
    for step in [10, 20] {
        let slot = encode::access(who.0, who.1, now(), TOOK, 0, 10);
        writer.push_access(ring.shared(), &slot).expect("room");
        let added =
            (1..).take_while(|n| writer.add(ring.shared(), who, n * step, 10) == Some(true));
        assert_eq!(added.count() + 1, usize::from(MORE_MAX));
        assert_eq!(writer.add(ring.shared(), who, 0, 10), None);
        assert_eq!(poll(&mut ring).len(), 1 + usize::from(MORE_MAX));
    }
    assert_eq!(ring.lost(), 0);
}

#[test]
fn an_access_that_would_need_a_slot_of_a_full_ring_is_not_added() {
    let mut ring = ring();
    let mut writer = Writer::claim(ring.shared(), own_pid(), 1).expect("a free ring");
    for _ in 0..RING_SLOTS {
        let slot = read(1, now(), 0, 10);
        writer.push_access(ring.shared(), &slot).expect("room");
    }
    let who = (1, kind::PREAD);
    assert_eq!(writer.add(ring.shared(), who, 30, 10), None);
    assert_eq!(writer.add(ring.shared(), who, 10, 10), Some(true));
    let seen = offsets(poll(&mut ring));
    assert_eq!((seen.len(), seen[RING_SLOTS]), (RING_SLOTS + 1, 10));
}

#[test]
fn offsets_without_an_access_before_are_not_believed() {
    let mut ring = ring();
    let mut writer = writer(ring.shared(), own_pid(), 1);
    let others = |inst: u64| {
        let word0 = u64::from(code::OFFSETS) | u64::from(kind::PREAD) << 8 | 1 << 16 | inst << 32;
        [word0, 5, 6, 0]
    };
    let push = |writer: &mut Writer, ring: &Ring, slot: Slot| {
        writer.push(ring.shared(), &slot).expect("room");
    };
    push(&mut writer, &ring, others(1));
    assert_eq!(offsets(poll(&mut ring)), []);
    assert_eq!(ring.lost(), 1);
    // Nor those of another file, nor whatever is added to them.
    push(&mut writer, &ring, read(1, now(), 100, 10));
    push(&mut writer, &ring, others(1));
    push(&mut writer, &ring, others(2));
    push(&mut writer, &ring, others(1));
    assert_eq!(offsets(poll(&mut ring)), [100, 5, 6]);
    assert_eq!(ring.lost(), 3);
    // Nor those that leave the file, or are more than a slot can hold.
    push(&mut writer, &ring, read(1, now(), 100, 10));
    let [word0, ..] = others(1);
    push(
        &mut writer,
        &ring,
        [word0 | 0xffff << 16, 1, u64::MAX - 5, 3],
    );
    assert_eq!(offsets(poll(&mut ring)), [100, 1]);
    assert_eq!(ring.lost(), 4);
    push(&mut writer, &ring, read(1, now(), 100, 10));
    push(&mut writer, &ring, [word0 | 0xffff << 16, 1, 2, 3]);
    assert_eq!(offsets(poll(&mut ring)), [100, 1, 2, 3]);
    assert_eq!(ring.lost(), 4);
    assert!(ring.drained());
}

#[test]
fn a_slot_that_claims_more_than_it_can_hold_is_not_believed() {
    let mut ring = ring();
    let mut writer = writer(ring.shared(), own_pid(), 1);
    let mut slot = read(1, now(), 0, 10);
    slot[0] |= 0xffff << 16;
    writer.push(ring.shared(), &slot).expect("room");
    assert_eq!(accesses(poll(&mut ring)).len(), 1 + usize::from(MORE_MAX));
    // Nor one whose accesses leave the file.
    let mut slot = read(1, now(), u64::MAX - 25, 10);
    slot[0] |= 9 << 16;
    writer.push(ring.shared(), &slot).expect("room");
    assert_eq!(accesses(poll(&mut ring)).len(), 2);
}

#[test]
fn who_does_not_come_back_from_becoming_another_program_is_counted() {
    let ring = ring();
    let shared = ring.shared();
    for pid in 1..=8 {
        shared.pass(pid, Passage::Here);
        shared.pass(pid, Passage::Gone);
    }
    for pid in 1..=4 {
        shared.pass(pid, Passage::Here);
    }
    shared.stay(5);
    shared.pass(6, Passage::Cleared);
    let counted = |cleared, other| Unobserved { cleared, other };
    assert_eq!(ring.unobserved(), counted(1, 2));
    // The place of one that never came back is taken by another: it still counts.
    shared.pass(6 + PASSAGES as u32, Passage::Here);
    shared.pass(7 + PASSAGES as u32, Passage::Here);
    assert_eq!(ring.unobserved(), counted(1, 2));
    // A child may have reported before its parent tells of it, or after.
    shared.pass(20, Passage::Here);
    shared.pass_child(20, Passage::Gone);
    shared.pass_child(21, Passage::Gone);
    shared.pass(21, Passage::Here);
    assert_eq!(ring.unobserved(), counted(1, 2));
    shared.pass_child(22, Passage::Cleared);
    assert_eq!(ring.unobserved(), counted(2, 2));
}

#[test]
fn nothing_is_lost_or_reordered_between_two_threads() {
    const EVENTS: u64 = 200_000;
    let mut ring = ring();
    let name = ring.env_value();
    let (done, finished) = std::sync::mpsc::channel();
    let mut expected = 0;
    std::thread::scope(|scope| {
        let shared = another_mapping(&name);
        scope.spawn(move || {
            let shared = shared.shared();
            let mut writer = writer(shared, own_pid(), 1);
            let path = [b"/".as_slice(), &[b'x'; 100]].concat();
            for i in 0..EVENTS {
                let open = encode::open(i as u32 + 1, 0, now(), 0, path.len());
                while writer.push_path(shared, &open, &path).is_err() {
                    std::thread::yield_now();
                }
                while writer
                    .push(shared, &read(i as u32 + 1, now(), i, 1))
                    .is_err()
                {
                    std::thread::yield_now();
                }
            }
            done.send(()).expect("the consumer");
        });
        let mut collect = |event: RawEvent| match event.what {
            What::Thread { .. } => {}
            What::Open { inst, path, .. } => {
                assert_eq!(
                    (u64::from(inst), path.as_os_str().len()),
                    (expected + 1, 101)
                );
            }
            What::Access { offset, .. } => {
                assert_eq!(offset, expected);
                expected += 1;
            }
            other => panic!("{other:?}"),
        };
        while finished.try_recv().is_err() {
            ring.poll(&mut collect);
        }
        ring.poll(&mut collect);
    });
    assert_eq!(expected, EVENTS);
    assert_eq!(ring.lost(), 0);
}

#[test]
fn accesses_added_while_another_thread_looks_come_out_in_order() {
    const EVENTS: u64 = 1_000_000;
    let mut ring = ring();
    let name = ring.env_value();
    let mut seen = 0;
    std::thread::scope(|scope| {
        let shared = another_mapping(&name);
        scope.spawn(move || {
            let shared = shared.shared();
            let mut writer = writer(shared, own_pid(), 1);
            let who = (1, kind::PREAD);
            for i in 0..EVENTS {
                let offset = i * 4096 % 1_000_003;
                while writer.add(shared, who, offset, 100).is_none()
                    && writer
                        .push_access(shared, &read(1, now(), offset, 100))
                        .is_err()
                {
                    std::thread::yield_now();
                }
            }
        });
        let deadline = Instant::now() + Duration::from_secs(60);
        while seen < EVENTS {
            ring.poll(&mut |event| {
                if let What::Access { offset, .. } = event.what {
                    assert_eq!(offset, seen * 4096 % 1_000_003);
                    seen += 1;
                }
            });
            assert!(Instant::now() < deadline, "{seen} seen");
        }
    });
    assert_eq!(ring.lost(), 0);
}

#[test]
fn a_ring_changes_hands_and_its_events_keep_their_owner() {
    let mut ring = ring();
    let shared = ring.shared();
    let mut first = writer(shared, own_pid(), 1);
    first.push(shared, &read(1, now(), 0, 1)).expect("room");
    let number = first.ring();
    first.release(shared, own_pid(), 1);
    let mut second = writer(shared, own_pid(), 2);
    assert_eq!(second.ring(), number);
    second.push(shared, &read(2, now(), 0, 1)).expect("room");
    let owners: Vec<u32> = poll(&mut ring).into_iter().map(|event| event.tid).collect();
    assert_eq!(owners, [1, 1, 2, 2]);
}

#[test]
fn the_rings_of_the_dead_are_freed_once_they_are_drained() {
    let mut ring = ring();
    let mut child = std::process::Command::new("true").spawn().expect("a child");
    let pid = child.id();
    child.wait().expect("the child");
    for tid in 1..=RINGS as u32 {
        writer(ring.shared(), pid, tid);
    }
    assert!(Writer::claim(ring.shared(), own_pid(), 1).is_none());
    let began = Instant::now();
    while Writer::claim(ring.shared(), own_pid(), 1).is_none() {
        poll(&mut ring);
        assert!(began.elapsed() < Duration::from_secs(5), "never freed");
    }
}

#[test]
fn a_live_threads_ring_is_kept() {
    let mut ring = ring();
    // The first thread's number is the process's.
    let kept = writer(ring.shared(), own_pid(), own_pid());
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(60));
        poll(&mut ring);
    }
    let next = Writer::claim(ring.shared(), own_pid(), own_pid()).expect("a free ring");
    assert_ne!(next.ring(), kept.ring());
    Writer::release_all(ring.shared(), own_pid());
    let first = Writer::claim(ring.shared(), own_pid(), own_pid()).expect("a free ring");
    assert_eq!(first.ring(), kept.ring());
}

#[test]
fn advice_names_exactly_its_paths_until_it_is_given_up() {
    let ring = ring();
    let paths: Vec<PathBuf> = (0..5000).map(|i| format!("/data/{i}").into()).collect();
    assert!(!ring.shared().is_advised(b"/data/0"));
    assert_eq!(ring.set_advice(&paths), 5000);
    let advised = |path: &str| ring.shared().is_advised(path.as_bytes());
    assert!((0..5000).all(|i| advised(&format!("/data/{i}"))));
    assert!(!(5000..10_000).any(|i| advised(&format!("/data/{i}"))));
    ring.give_up();
    assert!(!advised("/data/0"));
    // More than there is room for.
    let many = (0..20_000).map(|i| format!("/more/{i}"));
    let taken = ring.set_advice(many);
    assert!(taken < 20_000);
    assert!(advised("/more/0") && !advised("/data/0") && !advised("/more/19999"));
}

#[test]
fn the_mode_is_what_it_was_set_to_and_mute_at_first() {
    let ring = ring();
    assert_eq!(ring.mode(), Mode::Mute);
    for mode in [Mode::Record, Mode::Progress, Mode::Mute] {
        ring.set_mode(mode);
        assert_eq!(ring.mode(), mode);
    }
}

#[test]
fn a_program_learns_that_it_was_mute_meanwhile_and_that_the_plan_was_given_up() {
    let ring = ring();
    let wanted = ring.shared().wanted();
    assert!(wanted.is_nothing());
    ring.set_mode(Mode::Progress);
    let (_, time) = wanted.mode();
    ring.give_up();
    ring.set_mode(Mode::Record);
    assert_eq!(wanted.mode(), (Mode::Record, time), "it was never mute");
    ring.set_mode(Mode::Mute);
    assert!(!wanted.is_nothing(), "advice is to be taken back");
    ring.set_advice(["/data/0"]);
    assert!(wanted.is_nothing());
    ring.set_mode(Mode::Progress);
    assert_ne!(wanted.mode().1, time);
}

#[test]
fn the_area_cannot_be_cut_short() {
    let ring = ring();
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(ring.env_value())
        .expect("the area");
    assert!(file.set_len(4096).is_err());
}

/// Another mapping of the same area, as another process would have it.
struct Other(memmap2::MmapMut);

impl Other {
    fn shared(&self) -> &Shared {
        // SAFETY: the whole area, page-aligned; it consists of atomics.
        unsafe { &*self.0.as_ptr().cast() }
    }
}

fn another_mapping(name: impl AsRef<Path>) -> Other {
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(name)
        .expect("the area");
    // SAFETY: the area cannot shrink, and is only used through atomics.
    Other(unsafe { memmap2::MmapMut::map_mut(&file) }.expect("a mapping"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damage_never_panics_or_hangs(
        writes in prop::collection::vec((0_u64..1 << 20, any::<u64>(), 1_usize..200), 1..60),
        polls in 1_usize..4,
    ) {
        let mut ring = ring();
        let mut victim = writer(ring.shared(), own_pid(), 1);
        let file = std::fs::OpenOptions::new().write(true).open(ring.env_value()).unwrap();
        for _ in 0..polls {
            for i in 0..200 {
                let _ = victim.push(ring.shared(), &read(1, now(), i, 1));
            }
            for &(at, value, times) in &writes {
                // Header, owners, cursors, advice and the first ring all lie below 1 MiB;
                // small values are the ones that get past the first checks.
                let value = if at % 3 == 0 { value % 7 } else { value };
                let damage = value.to_le_bytes().repeat(times);
                file.write_all_at(&damage, at / 8 * 8).unwrap();
            }
            let began = Instant::now();
            let count = ring.poll(&mut |_| {});
            prop_assert!(count <= RINGS * RING_SLOTS);
            prop_assert!(began.elapsed() < Duration::from_secs(10));
        }
    }

    #[test]
    fn any_slots_decode_or_are_refused(
        kind in 0_u64..8,
        extra in 0_u64..4,
        mut first: Slot,
        rest in prop::collection::vec(any::<u8>(), 0..128),
    ) {
        first[0] = first[0] & !0xffff_00ff | kind | extra << 16;
        if let Ok((_, what)) = decode(&first, &rest, |path| path) {
            match what {
                What::Open { path, inst, .. } => {
                    prop_assert!(path.len() <= PATH_MAX && path[0] == b'/' && inst != 0);
                }
                What::Access { offset, len, .. } => {
                    prop_assert!(len != 0 && offset.checked_add(len.into()).is_some());
                }
                What::Map { offset, addr, len, .. } => {
                    prop_assert!(offset.checked_add(len).is_some());
                    prop_assert!(addr.checked_add(len).is_some());
                }
                _ => {}
            }
            prop_assert!(rest.len() <= EXTRA_MAX * 32);
        }
    }

    #[test]
    fn accesses_come_out_as_they_went_in_however_they_are_packed(
        reads in prop::collection::vec(
            (prop::bool::weighted(0.1), 0_u64..3, prop::bool::weighted(0.1)),
            1..300,
        ),
    ) {
        let mut ring = ring();
        let mut writer = writer(ring.shared(), own_pid(), 1);
        let (mut expected, mut seen) = (Vec::new(), Vec::new());
        let mut at = 0;
        for (other, jump, look) in reads {
            let inst = 1 + u32::from(other);
            let who = (inst, kind::READ);
            at += jump / 2 * 1000;
            if writer.add(ring.shared(), who, at, 100).is_none() {
                let slot = encode::access(inst, kind::READ, now(), 0, at, 100);
                writer.push_access(ring.shared(), &slot).expect("room");
            }
            expected.push((inst, at));
            at += 100;
            if look {
                seen.extend(poll(&mut ring));
            }
        }
        seen.extend(poll(&mut ring));
        let access = |event: RawEvent| match event.what {
            What::Access { inst, offset, len: 100, .. } => Some((inst, offset)),
            _ => None,
        };
        let seen: Vec<_> = seen.into_iter().filter_map(access).collect();
        prop_assert_eq!(seen, expected);
        prop_assert_eq!(ring.lost(), 0);
    }

    #[test]
    fn an_encoded_access_decodes_to_itself(
        inst in 1_u32.., kind: u8, start: u64, took in 0_u64..1 << 36, offset in 0_u64..1 << 62, len in 1_u32..,
    ) {
        let slot = encode::access(inst, kind, start, took, offset, len);
        let expected: What<&[u8]> = What::Access { inst, kind, offset, len, took: took >> 4 << 4 };
        prop_assert_eq!(decode(&slot, b"", |path| path), Ok((start, expected)));
    }

    #[test]
    fn an_encoded_open_decodes_to_itself(
        inst in 1_u32.., flags: u8, start: u64, name in "[a-z]{0,300}",
    ) {
        let path = format!("/{name}");
        let slot = encode::open(inst, flags, start, u64::MAX, path.len());
        let took = u64::from(u32::MAX) << 4;
        let expected = What::Open { inst, flags, took, path: path.as_bytes() };
        let rest = padded(path.as_bytes());
        prop_assert_eq!(decode(&slot, &rest, |path| path), Ok((start, expected)));
    }
}
