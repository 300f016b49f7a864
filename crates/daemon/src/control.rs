//! The control socket: how other processes ask the daemon.
//!
//! | part | purpose |
//! | --- | --- |
//! | [`wire`] | questions and answers as bytes |
//! | [`Server`] | the daemon's side: users and their permitted questions |
//! | [`ask`] | the side of whoever asks |
//! | [`Lock`] | one daemon for each socket and each folder of models |
//!
//! | who | status | predict | stop |
//! | --- | --- | --- | --- |
//! | root, and the user whose daemon it is | all | all | yes |
//! | others | the sums, and their own programs | files whose names they can list and which they can read | no |
//!
//! Invariants: a client delays only itself: each has a thread of its own, with limits of size and time. There are at most
//! [`server::CLIENTS`] of them, and fewer of one user. The answer depends on the client's user, as reported by the kernel.
//!
//! Data flow: a connection → the user at its other end → one question → [`Desk`](crate::Desk) → the part of the answer that the user may
//! know.

mod client;
mod lock;
mod server;
pub mod wire;

pub use client::{AskError, ask};
pub use lock::{Held, Lock};
pub use server::Server;
