//! Accesses that need no slot each.

use super::*;

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
    let mut writer = writer(&ring, own_pid(), 1);
    let who = (1, kind::READ);
    // All six have ended: none is handed out as if it began after now.
    let slot = encode::access(who.0, who.1, now() - 10 * TOOK, TOOK, 4096, 10);
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

    // A differing access is refused.
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

    // A slot takes this many, at any offset.
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
    let mut writer = claim(&ring, own_pid(), 1).expect("a free ring");
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
    let mut writer = writer(&ring, own_pid(), 1);
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
    let mut writer = writer(&ring, own_pid(), 1);
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
fn accesses_that_go_on_come_together_unless_something_comes_between() {
    let mut ring = ring();
    let mut reader = writer(&ring, own_pid(), 1);
    let mut other = writer(&ring, own_pid(), 2);
    let (who, start) = ((1, kind::READ), now());
    let first = encode::access(1, kind::READ, start, 1600, 0, 100);
    reader.push_access(ring.shared(), &first).unwrap();
    for number in 1..=5 {
        assert!(reader.add(ring.shared(), who, number * 100, 100).is_some());
    }
    // After the third began, before the fourth did.
    let between = encode::access(2, kind::READ, start + 4000, 0, 7, 1);
    other.push_access(ring.shared(), &between).unwrap();
    std::thread::sleep(Duration::from_millis(1));

    let mut seen = Vec::new();
    let count = ring.poll(&mut |event| {
        if let What::Access { offset, .. } = event.what {
            seen.push((offset, event.more));
        }
        true
    });
    assert_eq!(seen, [(0, 2), (7, 0), (300, 2)]);
    assert_eq!(count, 2 + 7, "each access, and the threads");

    // Accesses added to one already passed on.
    reader.add(ring.shared(), who, 600, 100).unwrap();
    reader.add(ring.shared(), who, 700, 100).unwrap();
    let seen: Vec<_> = poll(&mut ring)
        .into_iter()
        .map(|event| event.what)
        .collect();
    let offsets = seen.iter().map(|what| match what {
        What::Access { offset, .. } => *offset,
        other => panic!("{other:?}"),
    });
    assert_eq!(offsets.collect::<Vec<_>>(), [600, 700]);
    assert_eq!(ring.lost(), 0);
}

#[test]
fn accesses_added_while_another_thread_looks_come_out_in_order() {
    const EVENTS: u64 = 1_000_000;
    // Alternately elsewhere each time, and where the previous one ended.
    let offset_of = |number: u64| match number / 1000 % 2 {
        0 => number * 4096 % 1_000_003,
        _ => number * 100,
    };
    let mut ring = ring();
    let name = path(&ring);
    let mut seen = 0;
    std::thread::scope(|scope| {
        let other = another_mapping(&name);
        scope.spawn(move || {
            let shared = other.shared();
            let mut writer = other.writer(own_pid(), 1);
            let who = (1, kind::PREAD);
            for i in 0..EVENTS {
                let offset = offset_of(i);
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
                for event in event.singly() {
                    if let What::Access { offset, .. } = event.what {
                        assert_eq!(offset, offset_of(seen));
                        seen += 1;
                    }
                }
                true
            });
            assert!(Instant::now() < deadline, "{seen} seen");
        }
    });
    assert_eq!(ring.lost(), 0);
}

#[test]
fn what_comes_after_a_sequence_never_begins_before_its_end() {
    after_a_sequence(false);
}

#[test]
fn nor_does_what_comes_after_one_that_was_handed_out_already() {
    after_a_sequence(true);
}

fn after_a_sequence(handed_out: bool) {
    let mut ring = ring();
    let mut writer = writer(&ring, own_pid(), 1);
    let start = now();
    let access = |at, offset| encode::access(1, kind::READ, at, 16_000, offset, 100);
    writer
        .push_access(ring.shared(), &access(start, 0))
        .unwrap();
    for number in 1..=10 {
        writer
            .add(ring.shared(), (1, kind::READ), number * 100, 100)
            .unwrap();
    }
    let mut events = Vec::new();
    if handed_out {
        std::thread::sleep(Duration::from_millis(1));
        events = poll(&mut ring);
    }
    // They were quicker than the first.
    writer
        .push_access(ring.shared(), &access(start + 20_000, 5000))
        .unwrap();
    std::thread::sleep(Duration::from_millis(1));
    events.extend(poll(&mut ring));
    let starts: Vec<u64> = events.iter().skip(1).map(|event| event.start).collect();
    assert_eq!(starts.len(), 12);
    assert!(starts.is_sorted(), "{starts:?}");
}
