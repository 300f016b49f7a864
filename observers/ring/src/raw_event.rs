//! An event as the supervisor receives it: decoded, with the thread that it belongs to.

use std::path::PathBuf;

use crate::event::What;

/// An event of a thread, or an access and others like it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawEvent {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// When the call began, in ns since [`Ring::create`](crate::Ring::create).
    pub start: u64,
    /// The content of the event.
    pub what: What<PathBuf>,
    /// For an access: the number of following ones with the same length and duration, each beginning where and when the previous one ended.
    pub more: u16,
}

impl RawEvent {
    /// The same, each access by itself.
    pub fn singly(self) -> impl Iterator<Item = Self> {
        (0..=u64::from(self.more)).map(move |number| {
            let mut one = Self {
                more: 0,
                ..self.clone()
            };
            if let What::Access {
                offset, len, took, ..
            } = &mut one.what
            {
                one.start += number * *took;
                *offset += number * u64::from(*len);
            }
            one
        })
    }
}
