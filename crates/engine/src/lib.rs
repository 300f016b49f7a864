//! The session: its strands, scheduler, backend and ledger in one loop.
//!
//! A *strand* is one source with its queue, position and account. A session has any number of strands. They share devices, memory and
//! eviction.
//!
//! The engine waits for no file system. Questions about files (residency, evictions, lengths) go to the
//! backend's `ask`; the answers are events. Each device has threads of its own, so that one that does not answer delays no
//! other.
//!
//! ```text
//! source.disclose(&mut queue);              // what will be read
//! let batch = scheduler.next(now, …);       // distance, order, budget: pure
//! backend.submit(batch);                    // hints only: never an error for the program
//! scheduler.completed(backend.poll());      // feedback
//! ```
//!
//! - [`Engine`]: this loop, one step at a time, in real or virtual time.
//! - [`Session`]: an engine on its own thread, in real time, fed with observations.
//! - [`Ledger`]: the account of every byte issued.
//! - [`calibrate`]: finding a device's [`Profile`] by measurement, with the engine itself as one instrument.

#![forbid(unsafe_code)]

mod beyond;
pub mod calibrate;
mod engine;
mod pages;
mod session;
mod site;
mod strand;
mod sync;
mod walker;

pub use engine::{Config, Engine, Report};
pub use foreread_plan::{Ledger, NameLedger};
pub use foreread_sched::{Horizon, Order, Profile};
pub use session::Session;
pub use strand::{IDLE_READS, StrandReport};
