//! Where admitted entries go: into the sweep of their device, at a position that may have to be found out first.
//!
//! Invariant: an admitted entry that is not asked for yet is in its device's sweep, or in `unplaced`.

use foreread_plan::{FileId, PAGE};

use super::{Devices, Scheduler};
use crate::lane::Lane;
use crate::{DeviceId, Order, Place, State};

/// How long a computing program's first reads wait for their device to have shown whether positions matter on it, in ns:
/// one on which they do not is not as slow as this.
const PROOF_NS: u64 = 1_000_000;

/// Bits of an offset in a file, where the file's number stands for its place.
const APART: u32 = 40;

impl Scheduler {
    /// The layout of `file` has become known, and perhaps more about its device.
    pub fn placed(&mut self, file: FileId, devices: &mut impl Devices) {
        if let Some(device) = devices.device(file) {
            self.reconsider(device, devices);
        }
        for ordinal in self.unplaced.remove(&file).unwrap_or_default() {
            self.place(ordinal, devices);
        }
    }

    /// If a device has turned out to be of another kind, order its pending entries anew.
    fn reconsider(&mut self, device: DeviceId, devices: &mut impl Devices) {
        let profile = devices.profile(device);
        let lane = self.lane(device, devices);
        if lane.profile == profile && lane.settled {
            return;
        }
        let mut pending: Vec<u64> = lane.sweep.drain().collect();
        *lane = Lane {
            fetched: lane.fetched,
            in_flight: lane.in_flight,
            pages_in_flight: lane.pages_in_flight,
            asked: lane.asked,
            along: lane.along,
            pass_pages: lane.pass_pages,
            passes: lane.passes,
            settled: true,
            ..Lane::new(profile)
        };
        pending.extend(std::mem::take(&mut self.unplaced).into_values().flatten());
        pending.sort_unstable();
        for ordinal in pending {
            self.place(ordinal, devices);
        }
    }

    /// Put an admitted entry into its device's sweep, or aside until its file's layout is known.
    pub(super) fn place(&mut self, ordinal: u64, devices: &mut impl Devices) {
        let Some(entry) = self.queue.get(ordinal) else {
            return;
        };
        if entry.state != State::Admitted {
            return;
        }
        let Some(device) = devices.device(entry.file) else {
            self.leave(ordinal, entry.range());
            return;
        };
        let place = match self.lane(device, devices).profile.order {
            Order::Program => Place::InTurn(entry.file, entry.first),
            Order::Position => match devices.layout(entry.file) {
                Some(layout) => Place::At(layout.position(entry.first)),
                None => {
                    self.unplaced.entry(entry.file).or_default().push(ordinal);
                    return;
                }
            },
        };
        let lane = self.lane(device, devices);
        lane.sweep.push(place, entry.pages.into(), ordinal);
    }

    /// Where devices are asked in passes, have the first not wait for a device to prove itself, but go by the offsets in
    /// the files: by the time a moving head is found to be one, it may be over. What is not asked for then is placed anew.
    pub(super) fn place_unproved(&mut self, now: u64, devices: &mut impl Devices) {
        if self.unplaced.is_empty() {
            self.unplaced_since = None;
            return;
        }
        let since = *self.unplaced_since.get_or_insert(now);
        if !self.passes || now.saturating_sub(since) < PROOF_NS {
            return;
        }
        for (file, ordinals) in std::mem::take(&mut self.unplaced) {
            let unsettled = devices
                .device(file)
                .filter(|&device| !self.lane(device, devices).settled);
            let Some(device) = unsettled else {
                self.unplaced.insert(file, ordinals);
                continue;
            };
            for ordinal in ordinals {
                if let Some(entry) = self.queue.get(ordinal) {
                    let (offset, pages) = (entry.first * PAGE, u64::from(entry.pages));
                    let place = Place::At((u64::from(file.0) << APART) + offset);
                    self.lane(device, devices).sweep.push(place, pages, ordinal);
                }
            }
        }
    }
}
