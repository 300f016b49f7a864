//! The ring between a producer and a consumer in one process, and its resistance to damage.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use foreread_ring::{
    Address, Advice, Clock, EXTRA_MAX, Full, Inode, MORE_MAX, Mode, NAME_FOLLOWED, NAME_LISTED,
    OPEN_WRITTEN, PASSAGES, PATH_MAX, Passage, RING_SLOTS, RINGS, RawEvent, Ring, Shared, Slot,
    Slots, THREAD_NO_STDIO, Unobserved, What, Wishes, Writer, address, code, decode, encode, kind,
    slots_at,
};

mod added;
mod board;
mod damage;
mod owners;

fn ring() -> Ring {
    Ring::create(Clock::Monotonic).expect("a ring")
}

fn now() -> u64 {
    Clock::Monotonic.now()
}

fn poll(ring: &mut Ring) -> Vec<RawEvent> {
    let mut events = Vec::new();
    ring.poll(&mut |event| {
        events.extend(event.singly());
        true
    });
    events
}

/// A writer that has introduced itself.
fn writer(ring: &Ring, pid: u32, tid: u32) -> Writer<'static> {
    introduced(ring.shared(), claim(ring, pid, tid), pid, tid)
}

/// A claim on one of the rings, if any is free.
fn claim(ring: &Ring, pid: u32, tid: u32) -> Option<Writer<'static>> {
    // SAFETY: every test drops its ring last; the consumer changes no slot.
    let slots = |number| Some(unsafe { &*std::ptr::from_ref(ring.slots(number)) });
    Writer::claim(ring.shared(), (pid, tid), |_| None, slots)
}

fn introduced<'a>(shared: &Shared, writer: Option<Writer<'a>>, pid: u32, tid: u32) -> Writer<'a> {
    let mut writer = writer.expect("a free ring");
    let first = encode::thread(pid, tid, 1, 0, now(), 4);
    writer.push_path(shared, &first, &[b"/exe"]).expect("room");
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
    // A thread that keeps its processor is not marked, however long it is busy; now and then another interrupts it.
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
    let mut writer = claim(&ring, own_pid(), 7).expect("a free ring");
    let at = now();
    let exe = b"/usr/bin/a program";
    let thread = encode::thread(own_pid(), 7, 5, THREAD_NO_STDIO, at, exe.len());
    writer
        .push_path(shared, &thread, &[&exe[..5], b"", &exe[5..]])
        .expect("room");
    let path = vec![b'/'; PATH_MAX];
    let open = encode::open(9, OPEN_WRITTEN, at, 1600, path.len());
    writer.push_path(shared, &open, &[&path]).expect("room");
    let name = encode::name(NAME_LISTED, at, 160, exe.len(), None);
    writer.push_path(shared, &name, &[&exe[..]]).expect("room");
    let inode = Inode {
        dev: u32::MAX,
        ino: 1 << 50,
        kind: 10,
        size: 5,
        mtime_ns: -1,
        ctime_ns: 1 << 60,
    };
    let name = encode::name(NAME_FOLLOWED, at, 160, exe.len(), Some(&inode));
    writer
        .push_name(shared, &name, &inode, &[&exe[..]])
        .expect("room");
    // There is no room for both.
    let name = encode::name(0, at, 160, path.len(), Some(&inode));
    writer
        .push_name(shared, &name, &inode, &[&path])
        .expect("left out");
    writer
        .push(
            shared,
            &encode::access(9, kind::READV, at, 320, 1 << 40, 77),
        )
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
        What::Name {
            path: PathBuf::from("/usr/bin/a program"),
            flags: NAME_LISTED,
            took: 160,
            inode: None,
        },
        What::Name {
            path: PathBuf::from("/usr/bin/a program"),
            flags: NAME_FOLLOWED,
            took: 160,
            inode: Some(inode),
        },
        What::Access {
            inst: 9,
            kind: kind::READV,
            offset: 1 << 40,
            len: 77,
            took: 320,
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
    let mut writers = [1, 2, 3].map(|tid| writer(&ring, own_pid(), tid));
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
    let mut late = writer(&ring, own_pid(), 1);
    let mut early = writer(&ring, own_pid(), 2);
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
    let mut writer = claim(&ring, own_pid(), 1).expect("a free ring");
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
        let open = encode::open(1, 0, 0, 0, 1);
        assert_eq!(writer.push_path(ring.shared(), &open, &[b"/"]), Err(Full));
        assert_eq!(poll(&mut ring).len(), room);
    }
}

#[test]
fn a_ring_fills_from_a_quarter_on_and_no_more_once_it_is_polled() {
    let mut ring = ring();
    let mut writer = claim(&ring, own_pid(), 1).expect("a free ring");
    for count in 0..RING_SLOTS / 4 {
        assert!(!ring.filling(), "{count} events");
        let event = read(1, now(), count as u64, 1);
        writer.push(ring.shared(), &event).expect("room");
    }
    assert!(ring.filling());
    poll(&mut ring);
    assert!(!ring.filling());
}

#[test]
fn nothing_is_lost_or_reordered_between_two_threads() {
    const EVENTS: u64 = 200_000;
    let mut ring = ring();
    let name = path(&ring);
    let (done, finished) = std::sync::mpsc::channel();
    let mut expected = 0;
    std::thread::scope(|scope| {
        let other = another_mapping(&name);
        scope.spawn(move || {
            let shared = other.shared();
            let mut writer = other.writer(own_pid(), 1);
            let path = [b"/".as_slice(), &[b'x'; 100]].concat();
            for i in 0..EVENTS {
                let open = encode::open(i as u32 + 1, 0, now(), 0, path.len());
                while writer.push_path(shared, &open, &[&path]).is_err() {
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
        let mut collect = |event: RawEvent| {
            match event.what {
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
            }
            true
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
fn advice_names_exactly_its_paths_until_it_is_given_up() {
    let ring = ring();
    let paths: Vec<PathBuf> = (0..5000).map(|i| format!("/data/{i}").into()).collect();
    let random = |path| (path, Advice::Random);
    assert!(ring.shared().advice(&[b"/data/0".as_slice()]).is_none());
    assert_eq!(ring.set_advice(paths.iter().map(random)), 5000);
    let advised = |path: &str| ring.shared().advice(&[path.as_bytes()]).is_some();
    assert!((0..5000).all(|i| advised(&format!("/data/{i}"))));
    assert!(!(5000..10_000).any(|i| advised(&format!("/data/{i}"))));
    ring.give_up(true);
    assert!(!advised("/data/0"));
    // More paths than there is room for.
    let many = (0..20_000).map(|i| format!("/more/{i}"));
    let taken = ring.set_advice(many.map(|path| (path, Advice::Random)));
    assert!(taken < 20_000);
    assert!(advised("/more/0") && !advised("/data/0") && !advised("/more/19999"));
}

#[test]
fn each_path_has_the_advice_it_was_given_and_a_stream_keeps_it() {
    let ring = ring();
    let advice = |n: usize| [Advice::Random, Advice::Sequential][n % 2];
    let paths = (0..1000).map(|n| (format!("/data/{n}"), advice(n)));
    assert_eq!(ring.set_advice(paths), 1000);
    let told = |n: usize| ring.shared().advice(&[format!("/data/{n}").as_bytes()]);
    assert!((0..1000).all(|n| told(n) == Some(advice(n))));
    ring.give_up(true);
    assert!((0..1000).all(|n| told(n) == (n % 2 == 1).then_some(Advice::Sequential)));
    // The last word counts.
    ring.set_advice([("/a", Advice::Sequential), ("/a", Advice::Random)]);
    assert_eq!(
        ring.shared().advice(&[b"/a".as_slice()]),
        Some(Advice::Random)
    );
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
    assert!(wanted.is_nothing(Wishes::NOT_DONE));
    ring.give_up(true);
    assert!(!wanted.is_given_up(), "there is no advice to take back");
    ring.set_advice([("/data/0", Advice::Random)]);
    ring.set_mode(Mode::Progress);
    let (_, time) = wanted.mode();
    ring.give_up(true);
    assert_eq!(wanted.once_done(), Wishes::NOT_DONE, "reports are wanted");
    ring.set_mode(Mode::Record);
    assert_eq!(wanted.mode(), (Mode::Record, time), "it was never mute");
    ring.set_mode(Mode::Mute);
    assert!(
        !wanted.is_nothing(Wishes::NOT_DONE),
        "advice is to be taken back"
    );
    let done = wanted.once_done();
    assert!(wanted.is_nothing(done));
    ring.give_up(false);
    assert!(wanted.is_nothing(Wishes::NOT_DONE));
    ring.give_up(true);
    ring.set_mode(Mode::Progress);
    assert!(!wanted.is_nothing(done));
    ring.set_mode(Mode::Mute);
    assert!(
        !wanted.is_nothing(done),
        "what was advised since is not done"
    );
    ring.set_mode(Mode::Progress);
    assert_ne!(wanted.mode().1, time);
}

#[test]
fn the_area_cannot_be_cut_short() {
    let ring = ring();
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(path(&ring))
        .expect("the area");
    assert!(file.set_len(4096).is_err());
}

/// The area's path.
fn path(ring: &Ring) -> PathBuf {
    let value = ring.env_value();
    let address = address(value.as_bytes()).expect("an address");
    assert_eq!(address.token, ring.shared().token());
    assert_eq!(address.filters, 0);
    let path = std::str::from_utf8(address.path);
    path.expect("a plain path").into()
}

#[test]
fn an_address_names_an_area_and_its_token_or_makes_no_sense() {
    for value in [
        "",
        "/proc/1/fd/3",
        "0123456789abcdef",
        "0123456789abcdeg/proc/1/fd/3",
        "0123456789abcdefproc/1/fd/3",
        "+123456789abcdef/proc/1/fd/3",
        "0123456789abcdé/proc/1/fd/3",
        "0123456789abcdef99999999999/proc/1/fd/3",
        "0123456789abcdef1",
    ] {
        assert_eq!(address(value.as_bytes()), None, "{value}");
    }
    let named = |filters| Address {
        token: 255,
        filters,
        path: b"/x",
    };
    assert_eq!(address(b"00000000000000fF/x"), Some(named(0)));
    assert_eq!(address(b"00000000000000fF12/x"), Some(named(12)));
    assert_ne!(ring().shared().token(), ring().shared().token());
    let under = ring().env_value_under(3, std::process::id());
    assert_eq!(
        address(under.as_bytes()).map(|found| found.filters),
        Some(3)
    );
}

#[test]
fn who_is_under_a_filter_or_apart_is_counted() {
    let ring = ring();
    ring.shared().count_filtered();
    ring.shared().count_filtered();
    ring.shared().uncount_filtered();
    // Whatever others claim about it, and however often.
    ring.shared().pass(30, Passage::Apart);
    ring.shared().pass_child(30, Passage::Gone);
    ring.shared().pass(30, Passage::Apart);
    assert_eq!(ring.unobserved().apart, 1);
    ring.shared().pass(30 + PASSAGES as u32, Passage::Here);
    let counted = Unobserved {
        gone: 0,
        apart: 1,
        filtered: 1,
    };
    assert_eq!(ring.unobserved(), counted);
}

/// Another mapping of the same area, as another process would have it.
struct Other(memmap2::MmapMut);

impl Other {
    fn shared(&self) -> &Shared {
        // SAFETY: the whole area, page-aligned; it consists of atomics.
        unsafe { &*self.0.as_ptr().cast() }
    }

    fn writer(&self, pid: u32, tid: u32) -> Writer<'_> {
        let slots = |ring| {
            let at = self.0[slots_at(ring)..].as_ptr();
            // SAFETY: the ring's slots, page-aligned; they consist of atomics.
            Some(unsafe { &*at.cast::<Slots>() })
        };
        let claimed = Writer::claim(self.shared(), (pid, tid), |_| None, slots);
        introduced(self.shared(), claimed, pid, tid)
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
