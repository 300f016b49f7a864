//! Pure policy: when to prefetch, in what order, and how much.
//!
//! Nothing here makes a system call or reads a clock. Times come in as ns since the start of the session, decisions go out as
//! [`foreread_plan::Request`]s. So every policy runs deterministically against a reference and on the sim backend.
//!
//! - [`Queue`]: the plan queue, and where in it the program is (AASFP §5.1).
//! - [`Horizon`]: how far ahead to fetch (AASFP §5.2, equations 1 and 2).
//! - [`Sweep`]: which pending entry comes next, by position or in program order (libprefetch).
//! - [`Budget`]: how many pages may lie in memory unread, by AIMD (libprefetch).
//! - Evict behind: evicts pages that the program has passed (libprefetch's implementation sketch).
//! - [`Feedback`]: the measured T, C and K the others decide from.
//! - Stall: whether the program mostly waits or computes, and so whether devices by position are asked in passes.
//! - [`Scheduler`]: all of these together.

#![forbid(unsafe_code)]

mod asked;
mod behind;
mod budget;
mod config;
mod devices;
mod feedback;
mod gaps;
mod horizon;
mod index;
mod lane;
mod profile;
mod queue;
mod scheduler;
mod stall;
mod sweep;

pub use asked::Asked;
pub use budget::Budget;
pub use config::Config;
pub use devices::Devices;
pub use feedback::Feedback;
pub use horizon::{Horizon, Verdict};
pub use profile::{DeviceId, Layout, Order, Profile, Stretch};
pub use queue::{Entry, EntryState, Matched, Queue, Taken};
pub use scheduler::{Scheduler, StrandId};
pub use sweep::{Batch, Beside, Sweep, SweepPlace};
