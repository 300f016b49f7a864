//! forereadd: learns which files follow which, on the whole system, and fetches those that will be opened next.
//!
//! | part | what it is |
//! | --- | --- |
//! | [`open`] | the observer: eBPF, fanotify or the preload library |
//! | [`serve`] | the loop: events → models → predictions → the engine |
//! | [`desk`] | how others ask the loop: [`Ask`] and [`Answer`] |
//! | [`control`] | the socket that programs ask at |
//! | [`metrics`] | the status in Prometheus's text format |
//! | [`Status`] | what the daemon has seen, predicted and fetched |
//! | [`Options`] | what the daemon is started with; [`cli`]: the same on a command line |
//!
//! Data flow: [`Observer`](foreread_observe::Observer) → events → symbols → models (one of each process tree, one of the machine) →
//! predictions → a strand of the engine for the process trees of each program → hints. [`Status`] accounts for all of them.

#![forbid(unsafe_code)]

mod accounts;
mod ask;
pub mod cli;
mod clock;
pub mod control;
mod disks;
mod fetch;
mod files;
pub mod metrics;
mod mind;
mod observer;
mod options;
mod places;
mod pressure;
mod programs;
mod proofs;
mod saved;
mod serve;
mod source;
mod state;
mod status;
mod trees;
mod upkeep;

pub use ask::{Answer, Ask, Counter, Desk, Predicted, desk};
pub use foreread_plan::Ledger;
pub use observer::open;
pub use options::{IoPriority, Model, ObserverChoice, Options, PartitionLimits};
pub use saved::predict_saved;
pub use serve::serve;
pub use status::{Lead, ModelStatus, Predictions, Program, Status};
