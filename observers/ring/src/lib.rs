//! The shared-memory ring through which programs report their reads.
//!
//! The supervising process creates one [`Shared`] area in a memfd (module `consumer`, feature `std`) and passes its name in the environment
//! variable [`ENV`]. Every observed process maps it, and each of its threads claims one ring and writes fixed-size slots into it
//! ([`Writer`]). Data flow one way, from program to supervisor. Only the wishes, the heartbeat, the advice and the test of the kernel's
//! marks ([`Switches`]) flow back.
//!
//! Invariants: a ring has one producer and one consumer, and only slots below the
//! tail are ever read, so a producer killed in mid-write loses its own unpublished
//! event and nothing else. Neither side waits for the other inside this crate. The
//! consumer treats everything it reads as untrusted.

#![cfg_attr(not(feature = "std"), no_std)]

mod atomic;
mod event;
mod layout;
mod passage;
mod switched;
mod writer;

#[cfg(feature = "std")]
mod area;
#[cfg(all(feature = "std", not(all(test, loom))))]
mod board;
#[cfg(feature = "std")]
mod clock;
#[cfg(feature = "std")]
mod consumer;
#[cfg(feature = "std")]
mod lanes;
#[cfg(all(test, loom))]
mod models;
#[cfg(feature = "std")]
mod raw_event;

pub use event::{
    EXTRA_MAX, Inode, MORE_MAX, Malformed, NAME_FOLLOWED, NAME_INODE, NAME_LISTED, OPEN_CREATED,
    OPEN_DIRECT, OPEN_DIRECTORY, OPEN_FOUND, OPEN_TRUNCATED, OPEN_UNREAD, OPEN_WRITTEN, PATH_MAX,
    Slot, THREAD_NO_STDIO, What, code, decode, encode, kind,
};
pub use layout::{
    ADVICE_SLOTS, AREA_SIZE, Address, Advice, BOARD_WORDS, Clock, ENV, Header, MAGIC, Mode,
    PASSAGES, RING_SLOTS, RINGS, Shared, Slots, VERSION, Wishes, address, path_hash, slots_at,
};
pub use passage::{Passage, Unobserved};
pub use switched::{Switches, thread};
pub use writer::{Full, Writer};

#[cfg(all(feature = "std", not(all(test, loom))))]
pub use board::{Board, Visit};
#[cfg(feature = "std")]
pub use consumer::{Error, Ring};
#[cfg(feature = "std")]
pub use raw_event::RawEvent;
