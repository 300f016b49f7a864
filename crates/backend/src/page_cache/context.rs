//! The context of every thread of a backend: the files that it may open, its channel of events, and the processors that it avoids. Each
//! thread has clones of these parts, which share their state.

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
