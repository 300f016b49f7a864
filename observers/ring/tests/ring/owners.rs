//! Owners of rings, and missing processes.

use super::*;

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
    let gone = || {
        let mut gone: Vec<u32> = ring.gone().collect();
        gone.sort_unstable();
        (gone, ring.unobserved().gone)
    };
    assert_eq!(gone(), (vec![6, 7, 8], 3));
    // The place of a process that never returned is reused: it still counts.
    shared.pass(6 + PASSAGES as u32, Passage::Here);
    shared.pass(7 + PASSAGES as u32, Passage::Here);
    assert_eq!(gone(), (vec![8], 3));
    // A child may report before or after its parent announces it.
    shared.pass(20, Passage::Here);
    shared.pass_child(20, Passage::Gone);
    shared.pass_child(21, Passage::Gone);
    shared.pass(21, Passage::Here);
    assert_eq!(gone(), (vec![8], 3));
    shared.pass_child(22, Passage::Gone);
    assert_eq!(gone(), (vec![8, 22], 4));
    // Or have gone on to become yet another.
    shared.pass(23, Passage::Gone);
    shared.pass_child(23, Passage::Gone);
    assert_eq!(gone(), (vec![8, 22, 23], 5));
}

#[test]
fn a_ring_changes_hands_and_its_events_keep_their_owner() {
    let mut ring = ring();
    let shared = ring.shared();
    let mut first = writer(&ring, own_pid(), 1);
    first.push(shared, &read(1, now(), 0, 1)).expect("room");
    let number = first.ring();
    first.release(shared, own_pid(), 1);
    let mut second = writer(&ring, own_pid(), 2);
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
        writer(&ring, pid, tid);
    }
    assert!(claim(&ring, own_pid(), 1).is_none());
    let began = Instant::now();
    while claim(&ring, own_pid(), 1).is_none() {
        poll(&mut ring);
        assert!(began.elapsed() < Duration::from_secs(5), "never freed");
    }
}

#[test]
fn a_live_threads_ring_is_kept() {
    let mut ring = ring();
    // The first thread's number is the process's.
    let kept = writer(&ring, own_pid(), own_pid());
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(60));
        poll(&mut ring);
    }
    let next = claim(&ring, own_pid(), own_pid()).expect("a free ring");
    assert_ne!(next.ring(), kept.ring());
    Writer::release_all(ring.shared(), own_pid());
    let first = claim(&ring, own_pid(), own_pid()).expect("a free ring");
    assert_eq!(first.ring(), kept.ring());
}
