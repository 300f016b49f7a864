//! What following a program may cost: foreread's own processor time is bounded by what it has shown to save.
//!
//! An account in ns of processor time. Paid in are a hundredth of the time that the program runs, half of the processor time that
//! the machine loses to its devices, which nobody else has a use for, and for each read that is seen to need its device what such
//! a read waits. Paid out are the processor time that this process uses, all its threads together,
//! and what the program pays to have a read observed. Where the account is overdrawn, the session is quiet until it is paid
//! back and the program is seen to read from its device.
//!
//! The start of a session has a bound of its own and is not charged: before the program's first read is seen there is nothing to
//! weigh it against, and its cost does not depend on what the program does.
//!
//! Invariant: while no read has needed its device, what was paid out is at most [`START`], [`OVERDRAFT`], a hundredth of
//! the time, half of what was lost, and what one step takes.

use foreread_sources::Past;

/// The most that a session may use before the first read of the program is seen, in ns of processor time. Measured in 120 runs of five
/// programs (a stream, scattered reads, a search through a tree, an interpreter, twelve processes that read a store) with nothing paid
/// in: 1.2 ms to 5.1 ms where the machine was idle, up to 7.3 ms beside two busy loops; once it was 19.8 ms. Of that the
/// sample of the plan takes 0.3 ms to 1.2 ms; the rest is threads that start and code that runs for the first time.
const START: i64 = 10_000_000;
/// How far the account may be overdrawn after that, in ns: two of the largest steps measured in those runs, of 0.4 ms to 1.3 ms.
/// Half and double: no simulated case differs.
const OVERDRAFT: i64 = 2_000_000;
/// Of the program's time, one part in so many is paid in: the 1 % by which a program may at most be slower. Half and double: no
/// simulated case differs.
const PARTS: u64 = 100;
/// And of the processor time that is lost to devices, one part in so many. Without, LibreOffice's cold start from a disk that
/// turns was left to itself most of the time, and took 5.2 to 6.5 s in three of four runs, 2.9 in the fourth.
const LOST: u64 = 2;
/// The least time between two looks at how much is lost, in ns. A look took 36 µs of the processor, beside a compile: 0.2 %.
const EVERY: u64 = 20_000_000;
/// The most that is saved up, in ns, beside a share of what was gained: some 1,600 files opened for nothing. Where the program comes from what it waits
/// for to what it does not, no more is lost. With a quarter of that, a cold run on a busy machine, which makes all
/// work take several times as long, was given up now and then. Half and double: no simulated case differs.
const MOST: i64 = 20_000_000;
/// And that share, as one part in so many: a program loses no more than that of what it gained when it comes to what does not wait. A disk
/// gains 8 ms by each request, in some hundreds one after another, and takes nothing in while the program reads what came.
const SHARE: u64 = 16;
/// Of what a sample of the plan promises, one part in so many counts, and no more than is saved up: it may be left to
/// the kernel's read-ahead after all, or not be read. Half and double: no simulated case differs.
const KEPT: u64 = 8;
/// Of what a stream waits for the kernel's read-ahead, one part in so many is gained by reading twice as far ahead,
/// at least: 512 MiB from a virtio SSD took 15 % less. Half and double: no simulated case differs.
pub(crate) const STREAMED: u64 = 32;
/// What a read that needs its device waits, at least, in ns: 4 KiB from a local SSD took 54 µs to 97 µs. Of slower
/// devices what is measured counts, by this run or the one that the plan comes from. Half and double: no simulated case differs.
pub(crate) const WAIT: u64 = 100_000;
/// And at most, where an earlier run tells, in ns: a random read of a disk that turns, by 8.5 ms for its seek and half a
/// turn of 8.33 ms.
const LONGEST_WAIT: u64 = 13_000_000;
/// What a read that is observed costs the program, in ns: 25 to 50 were measured.
const OBSERVED: i64 = 50;

/// What a use of a name that is observed costs the program, in ns: 0.44 µs where it took 0.30 µs.
const NAMED: i64 = 140;

/// What it takes to follow a program, in ns of processor time for each access of its plan: `git status` in 26,000 files took 21 ms more itself,
/// its plan 37 ms to be taken in and gone through, and its reports 27 ms.
const FOLLOWED: u64 = 3_000;
/// Names that one wait brings into memory: as many inodes of ext4 lie in one block.
const BROUGHT: u64 = 16;

/// How much more than it can gain following a cold plan costs, in ns; `None` if it may gain more. The plan comes from this run.
///
/// At most each page is waited for, and each block of inodes. A program that waits in many threads at once is saved one wait of a
/// thread's in so many.
pub(crate) fn shortfall(past: &Past) -> Option<u64> {
    let waits = |count: u64, each: Option<u64>| count.saturating_mul(each.unwrap_or(0).max(WAIT));
    let pages = waits(past.pages, past.wait_ns);
    let names = waits(past.files / BROUGHT, past.name_wait_ns.or(past.wait_ns));
    let gain = pages.saturating_add(names) / past.at_a_time.max(1);
    let cost = past.accesses.saturating_mul(FOLLOWED);
    cost.checked_sub(gain).filter(|&short| short > 0)
}

/// How much processor time this process has used so far, in ns.
pub(crate) type Used = Box<dyn Fn() -> u64 + Send>;

/// How much processor time the machine has lost to its devices so far, in ns.
pub(crate) type Lost = Box<dyn Fn() -> u64 + Send>;

/// The account.
#[derive(Default)]
pub(crate) struct Upkeep {
    balance: i64,
    /// All that was paid in for reads that need their device, in ns.
    gained: u64,
    /// What such a read waits, and such a use of a name, by the run that a plan comes from, in ns; 0 where that does not tell.
    read_waits: u64,
    name_waits: u64,
    /// What was invested in plans that were taken in, and in finding the program's place again; 0 or less.
    floor: i64,
    /// Whether that was since the account was settled.
    found: bool,
    /// Whether a read of the program has been seen.
    began: bool,
    used: Option<Used>,
    /// Of that, what is paid out.
    paid: u64,
    lost: Option<Lost>,
    /// Of that, what is paid in, and when that was asked last, in ns.
    lost_paid: u64,
    lost_at: u64,
    /// The time up to which the program's is paid in, in ns.
    at: u64,
}

impl Upkeep {
    /// Count from here on what this process uses, as `used` tells it.
    pub(crate) fn count(&mut self, used: Used) {
        self.paid = used();
        self.used = Some(used);
    }

    /// Count what the machine loses from here on, as `lost` tells it.
    pub(crate) fn count_lost(&mut self, lost: Lost) {
        self.lost_paid = lost();
        self.lost = Some(lost);
    }

    /// Enter what has come up to `now`.
    pub(crate) fn settle(&mut self, now: u64) {
        self.add(now.saturating_sub(self.at) / PARTS);
        self.at = self.at.max(now);
        if let Some(lost) = &self.lost
            && now.saturating_sub(self.lost_at) >= EVERY
        {
            let lost = lost();
            self.add(lost.saturating_sub(self.lost_paid) / LOST);
            (self.lost_paid, self.lost_at) = (lost, now);
        }
        if let Some(used) = &self.used {
            let used = used();
            let out = used.saturating_sub(self.paid);
            self.balance = self.balance.saturating_sub_unsigned(out);
            self.paid = used;
        }
        if std::mem::take(&mut self.found) || self.balance > self.floor {
            self.floor = self.balance.min(0);
        }
    }

    /// A read of the program is seen. What was used before the first is written off.
    pub(crate) fn began(&mut self) {
        if !std::mem::replace(&mut self.began, true) {
            self.balance = self.balance.max(0);
            self.paid = self.used.as_ref().map_or(0, |used| used());
        }
    }

    /// A plan was taken in, or the program's place in it found again: what that took is paid back later, and what comes is judged
    /// by itself. A record of 26,000 files takes 0.1 s.
    pub(crate) fn invested(&mut self) {
        self.found = true;
    }

    /// A plan that comes from this run is followed.
    pub(crate) fn follows(&mut self, past: &Past) {
        let told = |ns: Option<u64>| ns.unwrap_or(0).min(LONGEST_WAIT);
        self.read_waits = self.read_waits.max(told(past.wait_ns));
        self.name_waits = self.name_waits.max(told(past.name_wait_ns));
    }

    /// What a read that needs its device waits, in ns, as far as is known: one that was fetched in time does not tell.
    pub(crate) fn wait(&self) -> u64 {
        self.read_waits.max(WAIT)
    }

    /// The same of a use of a name.
    pub(crate) fn name_wait(&self) -> u64 {
        self.name_waits.max(WAIT)
    }

    /// A sample of the plan tells that so many reads will need their device.
    pub(crate) fn promised(&mut self, reads: u64) {
        let ns = reads.saturating_mul(self.wait());
        let kept = i64::try_from(ns / KEPT).unwrap_or(i64::MAX);
        self.balance = self.balance.saturating_add(kept.min(MOST));
    }

    /// A plan is not followed, because that would cost so many ns more than it could gain: they are to be saved up first.
    pub(crate) fn declined(&mut self, ns: u64) {
        self.balance = self.balance.min(0).saturating_sub_unsigned(ns);
    }

    /// A read was observed.
    pub(crate) fn observed(&mut self) {
        self.balance -= OBSERVED;
    }

    /// A use of a name was observed.
    pub(crate) fn named(&mut self) {
        self.balance -= NAMED;
    }

    /// Reads that need their device, for `ns` in all, are seen or foreseen.
    pub(crate) fn pay_in(&mut self, ns: u64) {
        self.gained = self.gained.saturating_add(ns);
        self.add(ns);
    }

    /// All that was paid in for reads that need their device, in ns.
    pub(crate) fn gained(&self) -> u64 {
        self.gained
    }

    fn add(&mut self, ns: u64) {
        let most = MOST.saturating_add_unsigned(self.gained / SHARE);
        if self.balance < most {
            self.balance = self.balance.saturating_add_unsigned(ns).min(most);
        }
    }

    /// Whether there is nothing left to go on with.
    pub(crate) fn is_overdrawn(&self) -> bool {
        let most = if self.began { OVERDRAFT } else { START };
        self.balance < self.floor - most
    }

    /// After how long, in ns, all that was paid out is paid back by the time that passes.
    pub(crate) fn paid_back_in(&self) -> u64 {
        let owed = self.balance.min(0).unsigned_abs();
        owed.saturating_mul(PARTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// The most that one step uses here, in ns.
    const STEP: u64 = 300_000;

    /// An account of what a process uses that has used something before, and that process's clock.
    fn counted() -> (Upkeep, Arc<AtomicU64>) {
        let used = Arc::new(AtomicU64::new(77));
        let told = Arc::clone(&used);
        let mut upkeep = Upkeep::default();
        upkeep.count(Box::new(move || told.load(Ordering::Relaxed)));
        (upkeep, used)
    }

    #[test]
    fn half_of_what_the_machine_loses_to_devices_may_be_used() {
        let (mut upkeep, used) = counted();
        let lost = Arc::new(AtomicU64::new(1_000));
        let told = Arc::clone(&lost);
        upkeep.count_lost(Box::new(move || told.load(Ordering::Relaxed)));
        for step in 1..1_000 {
            lost.fetch_add(EVERY, Ordering::Relaxed);
            used.fetch_add(EVERY / LOST, Ordering::Relaxed);
            upkeep.settle(step * EVERY);
            assert!(!upkeep.is_overdrawn(), "{step}");
        }
        for step in 1_000..1_100 {
            used.fetch_add(EVERY / LOST, Ordering::Relaxed);
            upkeep.settle(step * EVERY);
        }
        assert!(upkeep.is_overdrawn(), "nothing is lost any more");
    }

    #[test]
    fn what_is_fetched_in_time_is_worth_what_the_run_before_waited() {
        let past = |wait_ns, name_wait_ns| Past {
            accesses: 100,
            pages: 100,
            files: 1,
            at_a_time: 1,
            wait_ns,
            name_wait_ns,
        };
        let mut upkeep = Upkeep::default();
        upkeep.follows(&past(None, Some(10)));
        assert_eq!((upkeep.wait(), upkeep.name_wait()), (WAIT, WAIT));
        upkeep.follows(&past(Some(800_000), Some(u64::MAX)));
        assert_eq!((upkeep.wait(), upkeep.name_wait()), (800_000, LONGEST_WAIT));
        upkeep.promised(10);
        assert_eq!(upkeep.balance, 8_000_000 / KEPT as i64);
    }

    proptest! {
        /// Whatever is done whenever: without a read that needs its device, what is paid out before the account says that
        /// there is nothing left is no more than the start and its last step, the overdraft and a hundredth of the time.
        #[test]
        fn what_is_spent_without_gain_is_bounded(
            steps in proptest::collection::vec((0u64..10_000_000, 0u64..STEP), 1..400),
            first_read in 0usize..200,
        ) {
            let (mut upkeep, used) = counted();
            let (mut now, mut spent) = (0, 0);
            for (n, (pause, work)) in steps.into_iter().enumerate() {
                if n == first_read {
                    upkeep.began();
                }
                now += pause;
                upkeep.settle(now);
                let least = if n < first_read { START } else { OVERDRAFT };
                if upkeep.is_overdrawn() {
                    prop_assert!(upkeep.paid_back_in() > least as u64 * PARTS);
                    continue;
                }
                let most = if n < first_read { START } else { START + STEP as i64 + OVERDRAFT };
                prop_assert!(spent <= most as u64 + now / PARTS);
                spent += work;
                used.fetch_add(work, Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn the_start_of_a_session_is_not_charged_to_what_follows() {
        let (mut upkeep, used) = counted();
        used.fetch_add(START as u64, Ordering::Relaxed);
        upkeep.settle(0);
        assert!(!upkeep.is_overdrawn());
        used.fetch_add(OVERDRAFT as u64, Ordering::Relaxed);
        upkeep.began();
        upkeep.settle(0);
        assert_eq!(upkeep.paid_back_in(), 0);
        used.fetch_add(OVERDRAFT as u64, Ordering::Relaxed);
        upkeep.settle(0);
        assert!(!upkeep.is_overdrawn());
        used.fetch_add(1, Ordering::Relaxed);
        upkeep.settle(0);
        assert!(upkeep.is_overdrawn());
    }

    #[test]
    fn a_session_that_never_sees_a_read_may_not_use_more_than_its_start() {
        let (mut upkeep, used) = counted();
        used.fetch_add(START as u64 + 1, Ordering::Relaxed);
        upkeep.settle(0);
        assert!(upkeep.is_overdrawn());
    }

    #[test]
    fn reads_that_need_their_device_pay_for_what_is_done_for_them() {
        let mut upkeep = Upkeep::default();
        upkeep.began();
        for _ in 0..1_000_000 {
            upkeep.observed();
            upkeep.observed();
            upkeep.pay_in(WAIT);
            assert!(!upkeep.is_overdrawn());
        }
        // And not for ever.
        let reads = (0..).take_while(|_| {
            upkeep.observed();
            !upkeep.is_overdrawn()
        });
        let kept = (1_000_000 * WAIT / SHARE) as i64 + MOST;
        assert_eq!(reads.count() as i64, (kept + OVERDRAFT) / OBSERVED);
    }
}
