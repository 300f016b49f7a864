//! The context that every thread of a backend works in: what it may open, how it reports, and how it keeps out of the
//! program's way. Each thread has clones of these parts, which share their state.

use std::sync::mpsc::Sender;

use foreread_sys::processor::Aside;

use super::devices::Devices;
use super::files::Files;
use crate::Event;

/// The parts that all threads share.
pub(super) struct Context {
    pub(super) files: Files,
    pub(super) devices: Devices,
    pub(super) event: Sender<Event>,
    pub(super) aside: Aside,
}
