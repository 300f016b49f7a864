//! The positions of bytes on the platters, and the time to reach them.
//!
//! Tracks of equal length follow each other helically: the first sector of a
//! track is turned by one track switch against the end of the one before, so
//! that reading on costs the switch and nothing more. The *media time* of a byte
//! is how long reading from byte 0 to it takes; modulo one revolution, it is
//! also the byte's angle.

use crate::Layout;

/// One turn of the platters: 7200 rpm, ns.
pub const REVOLUTION_NS: u64 = 8_333_333;
/// To the next head or cylinder, ns.
pub const TRACK_SWITCH_NS: u64 = 800_000;
/// From the outermost to the innermost cylinder, ns.
pub const FULL_STROKE_NS: u64 = 18_000_000;
/// Bytes of a track: what makes 105 MB/s together with the switch to the next.
pub const TRACK_BYTES: u64 = 1873 * 512;
/// Recording surfaces (two platters): tracks of a cylinder.
pub const HEADS: u64 = 4;
/// The whole disk, bytes.
pub const CAPACITY: u64 = 500_000_000_000;

/// Reading a track and going on to the next, ns.
const TRACK_NS: u64 = REVOLUTION_NS + TRACK_SWITCH_NS;
const CYLINDERS: f64 = (CAPACITY / (TRACK_BYTES * HEADS)) as f64;

/// The time of a seek over a share of the stroke in (0, 1], ns.
///
/// Ruemmler and Wilkes: `a + b√d` while the arm accelerates and brakes, `c + e·d`
/// once it coasts. The constants are the only ones for which the curve is smooth
/// where its halves meet (at 0.24 of the stroke), the shortest seek takes 0.8
/// ms, the longest 18 ms, and random seeks 8.5 ms on average.
pub fn seek_ns(share: f64) -> u64 {
    let ms = if share < 0.240_151_815 {
        0.8 + 13.593_350_84 * share.sqrt()
    } else {
        4.130_730_29 + 13.869_269_71 * share.min(1.0)
    };
    (ms * 1e6) as u64
}

pub(crate) struct Geometry {
    /// Cylinders of the disk for one of the image.
    spread: f64,
}

impl Geometry {
    pub(crate) fn new(layout: Layout) -> Geometry {
        let size = layout.size.clamp(TRACK_BYTES * HEADS, CAPACITY);
        Geometry {
            spread: if layout.stretch {
                CAPACITY as f64 / size as f64
            } else {
                1.0
            },
        }
    }

    /// Reading from one byte to a later one without a pause, ns.
    pub(crate) fn media_ns(&self, from: u64, to: u64) -> u64 {
        media_time(to) - media_time(from)
    }

    /// How far reading from `from` gets in `ns`.
    pub(crate) fn reach(&self, from: u64, ns: u64) -> u64 {
        let time = media_time(from) + ns;
        let within = (time % TRACK_NS).min(REVOLUTION_NS);
        let reached = time / TRACK_NS * TRACK_BYTES + within * TRACK_BYTES / REVOLUTION_NS;
        reached.clamp(from, CAPACITY)
    }

    /// When the byte `to` comes under a head that is over `from` at `now`
    /// and needs `settle` more than the seek, ns.
    pub(crate) fn position(&self, now: u64, from: u64, to: u64, settle: u64) -> u64 {
        let there = now + self.travel_ns(from, to) + settle;
        let wait = (media_time(to) % REVOLUTION_NS + REVOLUTION_NS - there % REVOLUTION_NS)
            % REVOLUTION_NS;
        there + wait
    }

    fn travel_ns(&self, from: u64, to: u64) -> u64 {
        let (from, to) = (from / TRACK_BYTES, to / TRACK_BYTES);
        let cylinders = (from / HEADS).abs_diff(to / HEADS);
        if from == to {
            0
        } else if cylinders == 0 {
            TRACK_SWITCH_NS
        } else {
            seek_ns(cylinders as f64 * self.spread / CYLINDERS)
        }
    }
}

fn media_time(offset: u64) -> u64 {
    let (track, within) = (offset / TRACK_BYTES, offset % TRACK_BYTES);
    // Rounded up, so that a byte is never there before the one it follows.
    track * TRACK_NS + (within * REVOLUTION_NS).div_ceil(TRACK_BYTES)
}
