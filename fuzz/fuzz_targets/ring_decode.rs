//! The shared ring, as its consumer finds it when a program writes what it likes.
//!
//! The input is decoded as one event, and published slot by slot as a thread would. The first byte
//! says whether, in between, part of it is also written over the area itself: positions, owners
//! and modes included.
//!
//!     cargo +nightly fuzz run ring_decode

#![no_main]

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use foreread_ring::{Clock, EXTRA_MAX, PATH_MAX, Ring, Slot, What, Writer, decode};
use libfuzzer_sys::fuzz_target;

/// Looks at a ring after which nothing can be left in it.
const LOOKS: usize = 3;

fuzz_target!(|input: &[u8]| {
    let Some((choice, rest)) = input.split_first() else {
        return;
    };
    if let Some((first, rest)) = rest.split_first_chunk::<32>() {
        let following = &rest[..rest.len().min(EXTRA_MAX * 32)];
        if let Ok((_, what)) = decode(&slot(first), following, |path| path) {
            check(&what, |path| path.len());
        }
    }
    let mut ring = Ring::create(Clock::Monotonic).expect("a ring");
    publish(&ring, rest);
    if choice % 2 == 1 {
        overwrite(&ring, rest);
        publish(&ring, rest);
    }
    for _ in 0..LOOKS {
        ring.poll(&mut |event| {
            for event in event.singly() {
                check(&event.what, |path| path.as_os_str().len());
            }
            true
        });
    }
    assert!(ring.drained());
    ring.unobserved();
});

/// What every decoded event keeps to.
fn check<P>(what: &What<P>, len: impl Fn(&P) -> usize) {
    match what {
        What::Thread { pid, tid, exe, .. } => {
            assert!(*pid != 0 && *tid != 0 && len(exe) <= PATH_MAX)
        }
        What::Open { inst, path, .. } => assert!(*inst != 0 && (1..=PATH_MAX).contains(&len(path))),
        What::Name { path, .. } => assert!((1..=PATH_MAX).contains(&len(path))),
        What::Access { offset, len, .. } => {
            assert!(*len != 0 && offset.checked_add(u64::from(*len)).is_some());
        }
        _ => {}
    }
}

fn slot(bytes: &[u8; 32]) -> Slot {
    let mut slot: Slot = [0; 4];
    for (word, bytes) in slot.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    slot
}

/// Puts the bytes into a ring as slots.
fn publish(ring: &Ring, bytes: &[u8]) {
    let Some(mut writer) = Writer::claim(ring.shared(), (1, 1), |_| None, |number| Some(ring.slots(number))) else {
        return;
    };
    for chunk in bytes.as_chunks::<32>().0 {
        if writer.push(ring.shared(), &slot(chunk)).is_err() {
            break;
        }
    }
    writer.release(ring.shared(), 1, 1);
}

/// Writes the bytes over the area, from where the first three say.
fn overwrite(ring: &Ring, bytes: &[u8]) {
    let Some((at, bytes)) = bytes.split_first_chunk::<3>() else {
        return;
    };
    let at = u64::from(u32::from_le_bytes([at[0], at[1], at[2], 0]));
    let area = OpenOptions::new().write(true).open(&ring.env_value()[16..]);
    let area = area.expect("our own area");
    // Within its length, which cannot change; header, positions and tables are in the first part.
    area.write_all_at(bytes, at % (256 << 10)).expect("room");
}
