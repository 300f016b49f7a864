//! The control socket: how other processes ask the daemon.
//!
//! | part | what it is |
//! | --- | --- |
//! | [`wire`] | questions and answers as bytes |
//! | [`Server`] | the daemon's side: who may ask for what |
//! | [`ask`] | the side of whoever asks |
//! | [`Lock`] | one daemon for each socket and each folder of models |
//!
//! | who | status | predict | stop |
//! | --- | --- | --- | --- |
//! | root, and the user whose daemon it is | all | all | yes |
//! | others | the sums, and their own programs | files whose names they can list and which they can read | no |
//!
//! Invariants: a client holds up nobody but itself: each has a thread of its own, limits of size and time, and there are at most
//! [`server::CLIENTS`] of them, and fewer of one user. What a client is told of depends on who the kernel says that it is.
//!
//! Data flow: a connection → the user at its other end → one question → [`Desk`](crate::Desk) → what the user may know of the
//! answer.

mod client;
mod lock;
mod server;
pub mod wire;

pub use client::{AskError, ask};
pub use lock::{Held, Lock};
pub use server::Server;
