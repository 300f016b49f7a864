//! Puts admitted entries into the sweep of their device, at a position that may have to be found out first.
//!
//! Invariant: an admitted entry that is not asked for yet is in its device's sweep, or in `unplaced`.

use foreread_plan::{FileId, PAGE};

use super::{Devices, Scheduler, StrandId, lane};
use crate::{Beside, DeviceId, EntryState, Order, SweepPlace};

/// Time for which the first reads of a computing program wait for proof that positions matter on their device, in ns. A device on which
/// they do not matter would have answered by then. On a 7200 rpm disk the first pass began 6 ms sooner than after the full proof.
const PROOF_NS: u64 = 1_000_000;

/// Bits of an offset in a file, where the file's number stands for its place.
const APART: u32 = 40;

impl Scheduler {
    /// The layout of `file` has become known, and perhaps more about its device.
    pub fn placed(&mut self, file: FileId, devices: &mut impl Devices) {
        if let Some(device) = devices.device(file) {
            self.reconsider(device, devices);
        }
        self.place_anew(file, devices);
    }

    /// The layout of a file is outdated: entries that wait for it ask for it again.
    pub fn place_anew(&mut self, file: FileId, devices: &mut impl Devices) {
        for at in 0..self.plans.len() {
            let placed = self.plans[at].unplaced.remove(&file);
            for ordinal in placed.unwrap_or_default() {
                self.place(StrandId(at), ordinal, devices);
            }
        }
    }

    /// If a device has turned out to be of another kind, order its pending entries anew.
    fn reconsider(&mut self, device: DeviceId, devices: &mut impl Devices) {
        let profile = devices.profile(device);
        let lane = self.lane(device, devices);
        if lane.profile == profile && lane.settled {
            return;
        }
        let mut pending = Vec::new();
        for (at, plan) in self.plans.iter_mut().enumerate() {
            let strand = StrandId(at);
            let before = pending.len();
            if let Some(lane) = self.lanes.get_mut(&device) {
                let drained = lane.of(strand).sweep.drain();
                pending.extend(drained.map(|ordinal| (strand, ordinal)));
            }
            let unplaced = std::mem::take(&mut plan.unplaced).into_values().flatten();
            pending.extend(unplaced.map(|ordinal| (strand, ordinal)));
            pending[before..].sort_unstable();
        }
        self.lane(device, devices).settle(profile);
        for (strand, ordinal) in pending {
            self.place(strand, ordinal, devices);
        }
    }

    /// Put an admitted entry into its device's sweep, or aside until its file's layout is known.
    pub(super) fn place(&mut self, strand: StrandId, ordinal: u64, devices: &mut impl Devices) {
        let plan = &mut self.plans[strand.0];
        let Some(entry) = plan.queue.get(ordinal) else {
            return;
        };
        if entry.state != EntryState::Admitted {
            return;
        }
        let Some(device) = devices.device(entry.file) else {
            plan.leave(ordinal, entry.range(), &mut self.budget);
            return;
        };
        let lane = lane(&mut self.lanes, device, devices);
        let place = match lane.profile.order {
            Order::Program => SweepPlace::InTurn(Beside {
                kin: devices.kin(entry.file),
                file: entry.file,
                page: entry.first,
            }),
            Order::Position => match devices.layout(entry.file) {
                Some(layout) => SweepPlace::At(layout.position(entry.first)),
                None => {
                    let ordinals = plan.unplaced.entry(entry.file).or_default();
                    if ordinals.is_empty() && !lane.settled {
                        plan.unproved.push(entry.file);
                    }
                    ordinals.push(ordinal);
                    return;
                }
            },
        };
        lane.of(strand)
            .sweep
            .push(place, entry.pages.into(), ordinal);
    }

    /// If devices are served in passes, the first pass does not wait for a device to prove itself and uses the offsets in the files: by the
    /// time a moving head is proved, the pass may be over. Entries not requested then are placed again.
    pub(super) fn place_unproved(
        &mut self,
        strand: StrandId,
        now: u64,
        devices: &mut impl Devices,
    ) {
        let plan = &mut self.plans[strand.0];
        if plan.unproved.is_empty() {
            plan.unproved_since = None;
            return;
        }
        let since = *plan.unproved_since.get_or_insert(now);
        if !self.passes || now.saturating_sub(since) < PROOF_NS {
            return;
        }
        for file in std::mem::take(&mut plan.unproved) {
            let Some(device) = devices.device(file) else {
                continue;
            };
            let lane = lane(&mut self.lanes, device, devices);
            if lane.settled {
                continue;
            }
            let ordinals = plan.unplaced.remove(&file).unwrap_or_default();
            for ordinal in ordinals {
                if let Some(entry) = plan.queue.get(ordinal) {
                    let (offset, pages) = (entry.first * PAGE, u64::from(entry.pages));
                    let place = SweepPlace::At((u64::from(file.0) << APART) + offset);
                    lane.of(strand).sweep.push(place, pages, ordinal);
                }
            }
        }
    }
}
