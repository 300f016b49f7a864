//! Makes the requests: whose turn it is, and which entries leave its sweep.

use foreread_plan::{Kin, Request, RequestId};

use super::{Flight, Gaps, Scheduler, StrandId, Turns};
use crate::lane::Lane;
use crate::{DeviceId, EntryState, Profile, Verdict};

/// A request as it leaves its plan.
pub(super) struct Issued {
    /// The last ordinal it serves.
    last: u64,
    request: Request,
    infill: Gaps,
    /// The number of its file's kin.
    kin: Option<Kin>,
}

impl Scheduler {
    /// The next request of a lane: among equal strands, the one with the fewest pages in flight is served first. Returns the strand, and
    /// the number of its file's kin.
    pub(super) fn serve(
        &mut self,
        turns: &Turns,
        device: DeviceId,
        lane: &mut Lane,
        now: u64,
        requests: &mut Vec<Request>,
    ) -> Option<(StrandId, Option<Kin>)> {
        let mut turns = turns.clone();
        if turns.len() > 1 {
            turns.sort_by_key(|&(weight, strand)| (weight, lane.of(strand).pages_in_flight));
        }
        turns.into_iter().find_map(|(_, strand)| {
            let issued = self.issue(strand, None, lane, now)?;
            let kin = issued.kin;
            requests.push(self.depart(strand, device, issued));
            Some((strand, kin))
        })
    }

    /// A request is on its way.
    pub(super) fn depart(&mut self, strand: StrandId, device: DeviceId, issued: Issued) -> Request {
        let Issued {
            last,
            request,
            infill,
            ..
        } = issued;
        let flight = Flight {
            strand,
            device,
            last,
            pages: request.pages.end - request.pages.start,
            infill,
        };
        self.in_flight.insert(request.id, flight);
        request
    }

    /// The next request of a strand in a lane, by its order and the pacing rule; of small files of this kin only, if there is one.
    pub(super) fn issue(
        &mut self,
        strand: StrandId,
        kin: Option<Kin>,
        lane: &mut Lane,
        now: u64,
    ) -> Option<Issued> {
        let plan = &mut self.plans[strand.0];
        let (position, floor) = (plan.queue.position(), plan.queue.floor());
        let (c, t) = (self.feedback.compute_ns(), lane.service.service_ns());
        let k = lane.in_flight;
        let horizon = lane.profile.horizon;
        let queue = &plan.queue;
        let mut dropped = Vec::new();
        let mut late = 0;
        let profile = Profile {
            infill_pages: lane.largest_gap(&self.budget),
            ..lane.profile.clone()
        };
        let reach = lane.reach(position);
        let wanted = |ordinal: u64| {
            let entry = queue.get(ordinal)?;
            if entry.state != EntryState::Admitted || ordinal < floor {
                return None;
            }
            let lead = ordinal.saturating_sub(position);
            // Behind the position (threads, samples), and before C is measured, the rule has nothing to say.
            let c = c.filter(|_| ordinal >= position);
            let in_time = c.is_none_or(|c| horizon.judge(lead, c, t, k) != Verdict::TooLate);
            late += u64::from(!in_time);
            in_time.then(|| (entry.file, entry.range()))
        };
        let sweep = &mut lane.of(strand).sweep;
        let batch = match kin {
            None => sweep.next(&profile, reach, wanted, &mut dropped),
            Some(kin) => sweep.next_of_kin(&profile, kin, wanted, &mut dropped),
        };
        self.too_late += late;
        for ordinal in dropped {
            if let Some(entry) = plan.queue.get(ordinal)
                && entry.state == EntryState::Admitted
            {
                plan.leave(ordinal, entry.range(), &mut self.budget);
            }
        }
        let batch = batch?;
        let id = RequestId(self.next_request);
        self.next_request += 1;
        let request = Request {
            id,
            file: batch.file,
            pages: batch.pages,
        };
        let infill = batch.infill.iter().map(|gap| gap.end - gap.start).sum();
        self.budget.hold(infill);
        let pages = request.pages.end - request.pages.start;
        lane.started(strand, pages, infill, now);
        // An entry that is requested again no longer belongs to an earlier request.
        for &ordinal in &batch.ordinals {
            self.budget.release(plan.asked.served(ordinal));
        }
        let last = plan
            .asked
            .add(request.clone(), batch.infill.clone(), &batch.ordinals);
        Some(Issued {
            last,
            request,
            infill: batch.infill,
            kin: batch.kin,
        })
    }
}
