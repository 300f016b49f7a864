//! The ring of the preload library as an observer: processes report through shared memory.
//!
//! Data flow: [`Ring::poll`] → [`checked`] → the caller.

use foreread_plan::{Extent, Kind, Rank};
use foreread_ring::{
    self as ring, Mode, NAME_FOLLOWED, NAME_LISTED, OPEN_DIRECT, OPEN_DIRECTORY, OPEN_FOUND,
    OPEN_TRUNCATED, OPEN_UNREAD, OPEN_WRITTEN, RawEvent, Ring,
};

use crate::{Budget, Event, How, Observer, Progress, Wanted, What, Who};

/// Reports of processes by a ring.
pub struct Reports {
    ring: Ring,
    /// When the ring was made, in ns since the origin of events' times.
    made: u64,
}

impl Reports {
    /// Reports of this ring, which was created `made` ns after the origin of event times.
    pub fn new(ring: Ring, made: u64) -> Self {
        Self { ring, made }
    }

    /// The ring itself.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }
}

impl Observer for Reports {
    fn name(&self) -> &'static str {
        "preload"
    }

    fn want(&mut self, wanted: Wanted) {
        self.ring.set_mode(match wanted {
            Wanted::Nothing => Mode::Mute,
            Wanted::Progress => Mode::Progress,
            Wanted::Everything => Mode::Record,
        });
    }

    fn wanted(&self) -> Wanted {
        match self.ring.mode() {
            Mode::Mute => Wanted::Nothing,
            Mode::Progress => Wanted::Progress,
            Mode::Record => Wanted::Everything,
        }
    }

    fn poll(&mut self, budget: &mut Budget, out: &mut dyn FnMut(Event)) -> Progress {
        let mut events = 0;
        if !budget.is_spent() {
            let made = self.made;
            self.ring.poll(&mut |event| {
                events += 1;
                if let Some(event) = checked(event, made) {
                    out(event);
                }
                budget.spend()
            });
        }
        Progress {
            events,
            more: !self.ring.drained(),
        }
    }

    fn lost(&self) -> Vec<(&'static str, u64)> {
        let lost = [("full ring", self.ring.lost())];
        lost.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    fn environment(&self) -> Option<(&'static str, String)> {
        Some((ring::ENV, self.ring.env_value()))
    }
}

/// A thread's report by a ring created at `made`; `None` if no process can have reported it.
fn checked(event: RawEvent, made: u64) -> Option<Event> {
    let RawEvent {
        pid,
        tid,
        start,
        what,
        more,
    } = event;
    let what = match what {
        ring::What::Thread {
            ppid, stdio, exe, ..
        } => What::Begin {
            parent: ppid,
            program: exe.into(),
            stdio,
        },
        ring::What::Open {
            inst,
            flags,
            took,
            path,
        } => What::Open {
            handle: inst,
            file: path.into(),
            took,
            how: How {
                directory: flags & OPEN_DIRECTORY != 0,
                writes: flags & OPEN_WRITTEN != 0,
                unread: flags & OPEN_UNREAD != 0,
                truncates: flags & OPEN_TRUNCATED != 0,
                found: flags & OPEN_FOUND != 0,
                direct: flags & OPEN_DIRECT != 0,
            },
        },
        ring::What::Access { inst, kind, .. } if kind == ring::kind::DROPPED => {
            What::Dropped { handle: inst }
        }
        ring::What::Access {
            inst,
            kind,
            offset,
            len,
            took,
        } => What::Read {
            handle: inst,
            // Touched pages are found only in the kernel's lists.
            kind: Kind::from_code(kind)
                .filter(|kind| kind.asks() || kind.reads() && *kind != Kind::Touch)?,
            extent: Extent::new(offset, u64::from(len)),
            took,
            more,
        },
        ring::What::Name {
            flags,
            took,
            path,
            inode,
        } => What::Named {
            path,
            kind: if flags & NAME_LISTED != 0 {
                Kind::List
            } else {
                Kind::Stat
            },
            took,
            follows: flags & NAME_FOLLOWED != 0,
            inode,
        },
        ring::What::Rank { rank, of } => What::Rank(Rank { rank, of }),
        ring::What::Exit => What::Exit,
        _ => return None,
    };
    Some(Event {
        who: Who {
            pid,
            tid,
            uid: None,
        },
        at: made.saturating_add(start),
        what,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_process_is_believed_to_tell_of_what_only_the_kernel_can() {
        let event = |kind: u8| RawEvent {
            pid: 1,
            tid: 1,
            start: 0,
            what: ring::What::Access {
                inst: 1,
                kind,
                offset: 0,
                len: 1 << 31,
                took: 0,
            },
            more: 0,
        };
        for kind in Kind::ALL {
            let told = kind.asks() || kind.reads() && kind != Kind::Touch;
            assert_eq!(checked(event(kind as u8), 0).is_some(), told, "{kind:?}");
        }
        assert_eq!(checked(event(200), 0), None);
    }
}
