//! The positions of bytes on the platters, and the time to reach them.
//!
//! Tracks follow each other helically: the first sector of a track is turned by one track switch against the end of the previous one, so
//! reading on costs the switch and nothing more. Outer tracks are longer than inner ones and have more sectors: the cylinders are divided
//! into [`ZONES`], and all tracks of a zone are equal. A turn takes the same time everywhere, so a zone's rate is proportional to its
//! tracks. The *media time* of a byte is the time to read from byte 0 to it; modulo one revolution, it is also the byte's angle.

use crate::Layout;

/// Time of one turn of the platters at 7200 rpm, ns.
pub const REVOLUTION_NS: u64 = 8_333_333;
/// To the next head or cylinder, ns.
pub const TRACK_SWITCH_NS: u64 = 800_000;
/// From the outermost to the innermost cylinder, ns.
pub const FULL_STROKE_NS: u64 = 18_000_000;
/// Sectors of an outermost track: 105 MB/s including the switch to the next track.
const OUTER_SECTORS: u64 = 1873;
/// Zones of equally many cylinders. The maker names no number; disks of its time have 15 to 30.
pub const ZONES: usize = 16;
/// Sectors that a track of the next zone has less. The innermost zone then has half of the
/// outermost one's, as the radii of a 3.5-inch platter are.
const ZONE_SECTORS: u64 = 62;
/// Recording surfaces (two platters): tracks of a cylinder.
pub const HEADS: u64 = 4;
/// The whole disk, bytes.
pub const CAPACITY: u64 = 500_000_000_000;

/// Reading a track and going on to the next, ns.
const TRACK_NS: u64 = REVOLUTION_NS + TRACK_SWITCH_NS;
/// Cylinders of a zone, by the capacity.
const ZONE_CYLINDERS: u64 = {
    let mut bytes = 0;
    let mut zone = 0;
    while zone < ZONES {
        bytes += track_bytes(zone) * HEADS;
        zone += 1;
    }
    CAPACITY.div_ceil(bytes)
};
const CYLINDERS: u64 = ZONE_CYLINDERS * ZONES as u64;
/// Tracks of a zone.
const ZONE_TRACKS: u64 = ZONE_CYLINDERS * HEADS;
/// The first byte of each zone.
const ZONE_STARTS: [u64; ZONES] = {
    let mut starts = [0; ZONES];
    let mut zone = 1;
    while zone < ZONES {
        starts[zone] = starts[zone - 1] + ZONE_TRACKS * track_bytes(zone - 1);
        zone += 1;
    }
    starts
};

/// Bytes of a track of a zone, counted from the outermost.
pub const fn track_bytes(zone: usize) -> u64 {
    (OUTER_SECTORS - zone as u64 * ZONE_SECTORS) * 512
}

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
        let cylinders = TrackPosition::of(layout.size.min(CAPACITY)).track / HEADS;
        Geometry {
            spread: if layout.stretch {
                CYLINDERS as f64 / cylinders.max(1) as f64
            } else {
                1.0
            },
        }
    }

    /// Reading from one byte to a later one without a pause, ns.
    pub(crate) fn media_ns(&self, from: u64, to: u64) -> u64 {
        media_time(to) - media_time(from)
    }

    /// The byte reached by reading from `from` for `ns`.
    pub(crate) fn reach(&self, from: u64, ns: u64) -> u64 {
        let time = media_time(from) + ns;
        let turned = (time % TRACK_NS).min(REVOLUTION_NS);
        let track = time / TRACK_NS;
        let zone = ((track / ZONE_TRACKS) as usize).min(ZONES - 1);
        let bytes = track_bytes(zone);
        let reached = ZONE_STARTS[zone]
            + (track - zone as u64 * ZONE_TRACKS) * bytes
            + turned * bytes / REVOLUTION_NS;
        reached.clamp(from, CAPACITY.max(from))
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
        let (from, to) = (TrackPosition::of(from).track, TrackPosition::of(to).track);
        let cylinders = (from / HEADS).abs_diff(to / HEADS);
        if from == to {
            0
        } else if cylinders == 0 {
            TRACK_SWITCH_NS
        } else {
            seek_ns(cylinders as f64 * self.spread / CYLINDERS as f64)
        }
    }
}

/// The place of a byte.
struct TrackPosition {
    /// Its track, counted from the outermost of the disk.
    track: u64,
    /// Number of bytes of the track before it.
    within: u64,
    /// Bytes of the track.
    bytes: u64,
}

impl TrackPosition {
    fn of(offset: u64) -> TrackPosition {
        let zone = ZONE_STARTS.partition_point(|start| *start <= offset) - 1;
        let bytes = track_bytes(zone);
        let inside = offset - ZONE_STARTS[zone];
        TrackPosition {
            track: zone as u64 * ZONE_TRACKS + inside / bytes,
            within: inside % bytes,
            bytes,
        }
    }
}

fn media_time(offset: u64) -> u64 {
    let place = TrackPosition::of(offset);
    // Rounded up, so that a byte is never read before its predecessor.
    place.track * TRACK_NS + (place.within * REVOLUTION_NS).div_ceil(place.bytes)
}
