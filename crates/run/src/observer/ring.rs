//! The preload library as an observer: processes report through a ring of shared memory.
//!
//! Data flow: [`Ring::poll`] → checked and put into the supervisor's terms → whoever polls. The front, which starts the
//! program, has the ring's [`Seat`]: what the program is given so that it finds library and ring.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use foreread_plan::{Extent, Kind, Rank};
use foreread_ring::{
    self as ring, Advice, Mode, NAME_FOLLOWED, NAME_LISTED, OPEN_DIRECTORY, OPEN_TRUNCATED,
    OPEN_WRITTEN, RawEvent, Ring,
};
use foreread_segment::Segment;
use foreread_sys::process;

use super::unobserved::Missing;
use super::{Event, How, Observer, Wanted, What, preload, why_hidden};

/// The helper's side.
pub(crate) struct Preload {
    ring: Ring,
    missing: Missing,
}

impl Preload {
    /// Observe by the library that fills this ring.
    pub(crate) fn new(ring: Ring) -> Self {
        Self {
            ring,
            missing: Missing::default(),
        }
    }

    /// What programs are to tell the kernel of the files at these absolute paths, before the program is started.
    pub(crate) fn advise<'a>(&self, files: impl Iterator<Item = (&'a Path, Advice)>) {
        self.ring.set_advice(files);
    }
}

impl Observer for Preload {
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

    fn poll(&mut self, each: &mut dyn FnMut(Event)) -> usize {
        let mut seen = 0;
        self.ring.poll(&mut |event| {
            seen += 1;
            if let Some(event) = checked(event) {
                each(event);
            }
        });
        self.missing.look(&self.ring);
        seen
    }

    fn is_drained(&self) -> bool {
        self.ring.drained()
    }

    fn foresee(&mut self, foreseen: bool) {
        self.ring.give_up(!foreseen);
    }

    fn waiting(&self, wait: &mut dyn FnMut()) {
        self.ring.waiting(wait);
    }

    fn lost(&self) -> u64 {
        self.ring.lost()
    }

    fn unobserved(&self) -> Vec<String> {
        self.missing.sentences(&self.ring)
    }

    fn why_hidden(&self, exe: &Path) -> Option<&'static str> {
        why_hidden(exe)
    }
}

/// An event in the supervisor's terms; `None` if no process can tell of it.
fn checked(event: RawEvent) -> Option<Event> {
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
        } => What::Begin { ppid, exe, stdio },
        ring::What::Open {
            inst,
            flags,
            took,
            path,
        } => What::Open {
            handle: inst,
            path,
            took,
            how: How {
                directory: flags & OPEN_DIRECTORY != 0,
                writes: flags & OPEN_WRITTEN != 0,
                truncates: flags & OPEN_TRUNCATED != 0,
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
            // The kernel's lists alone tell of touched pages.
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
        pid,
        tid,
        start,
        what,
    })
}

/// The front's side: what the program is given.
pub(crate) struct Seat {
    ring: Ring,
    segment: Option<Segment>,
    libraries: Vec<PathBuf>,
}

impl Seat {
    pub(crate) fn new(ring: Ring, segment: Option<Segment>, libraries: Vec<PathBuf>) -> Self {
        Self {
            ring,
            segment,
            libraries,
        }
    }

    /// The helper is late: what the program reports meanwhile is not to hold it up.
    pub(crate) fn go_on_alone(&self) {
        self.ring.set_mode(Mode::Progress);
    }

    /// The variables that the program is to find in its environment.
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let mut variables = Vec::from(preload::variables(&self.libraries));
        variables.push((
            ring::ENV,
            self.ring.env_value_under(process::filters()).into(),
        ));
        if let Some(segment) = &self.segment {
            variables.push((foreread_segment::ENV, segment.env_value().into()));
        }
        variables
    }

    /// The program has been started as this process.
    pub(crate) fn started(&self, pid: u32) {
        self.ring.started(pid);
    }
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
            assert_eq!(checked(event(kind as u8)).is_some(), told, "{kind:?}");
        }
        assert_eq!(checked(event(200)), None);
    }
}
