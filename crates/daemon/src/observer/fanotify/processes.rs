//! Processes that open files: whose they are, what they run, and how many of their events are looked at.
//!
//! To execute a program the kernel opens the program, a script's interpreter and the dynamic linker, one after the other, each to
//! be executed. The first is the program that was started; the others are files that it opens.
//!
//! Invariants: bounded; a process is told of (made, started) before anything that it opens, and its end is told once.
//!
//! Data flow: a process's number and an opened file → [`Event`].

use std::num::NonZeroUsize;

use foreread_observe::{Allowance, Event, File, How, Rate, What, Who};
use lru::LruCache;

use super::super::look::{about, has_ended, program};

/// Processes known at once.
const KEPT: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// How often is looked which processes have ended, in ns: 0.2 µs for each that is known.
const SWEEP: u64 = 1_000_000_000;

struct Process {
    allowance: Allowance,
    /// Whether it was told of, and whose it is, if it did not end before anybody could look.
    is_told: bool,
    uid: Option<u32>,
    /// Whether its last event was the start of a program.
    starting: bool,
}

/// The processes that have opened files of late.
pub(super) struct Processes {
    known: LruCache<u32, Process>,
    swept: u64,
}

impl Default for Processes {
    fn default() -> Self {
        Self {
            known: LruCache::new(KEPT),
            swept: 0,
        }
    }
}

impl Processes {
    /// Whether another event of this process is looked at.
    pub(super) fn allows(&mut self, pid: u32, at: u64) -> bool {
        let process = self.known.get_or_insert_mut(pid, || Process {
            allowance: Allowance::new(Rate::ONE, at),
            is_told: false,
            uid: None,
            starting: false,
        });
        process.allowance.take(at)
    }

    /// Tells that a process has opened a file, and of the process before that.
    pub(super) fn tell(
        &mut self,
        pid: u32,
        executed: bool,
        file: File,
        at: u64,
        out: &mut dyn FnMut(Event),
    ) {
        let Some(process) = self.known.peek(&pid) else {
            return;
        };
        let starts = executed && !process.starting;
        let mut who = Who {
            pid,
            tid: 0,
            uid: process.uid,
        };
        if starts || !process.is_told {
            let about = about(pid);
            let parent = about.map_or(0, |(parent, _)| parent);
            who.uid = about.map(|(_, uid)| uid).or(who.uid);
            let is_told = |pid| self.known.peek(pid).is_some_and(|one| one.is_told);
            if starts {
                out(started(who, parent, file.clone(), at));
            } else if is_told(&parent) {
                let what = What::Forked { parent };
                out(Event { who, at, what });
            } else if let Some(program) = program(pid) {
                out(started(who, parent, program, at));
            }
        }
        if let Some(process) = self.known.peek_mut(&pid) {
            (process.is_told, process.uid) = (true, who.uid);
            process.starting = executed;
        }
        if !starts {
            let what = What::Open {
                handle: 0,
                file,
                took: 0,
                how: How::default(),
            };
            out(Event { who, at, what });
        }
    }

    /// Tells now and then which processes have ended.
    pub(super) fn sweep(&mut self, at: u64, out: &mut dyn FnMut(Event)) {
        if at.saturating_sub(self.swept) < SWEEP {
            return;
        }
        self.swept = at;
        let ended: Vec<u32> = self
            .known
            .iter()
            .map(|(pid, _)| *pid)
            .filter(|pid| has_ended(*pid))
            .collect();
        for pid in ended {
            let process = self.known.pop(&pid);
            if let Some(Process { uid, .. }) = process.filter(|process| process.is_told) {
                let who = Who { pid, tid: 0, uid };
                let what = What::Ended;
                out(Event { who, at, what });
            }
        }
    }
}

fn started(who: Who, parent: u32, program: File, at: u64) -> Event {
    let what = What::Begin {
        parent,
        program,
        stdio: true,
    };
    Event { who, at, what }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn the_first_of_the_files_opened_to_be_executed_is_the_program() {
        let mut processes = Processes::default();
        let file = |name: &str| File::from(PathBuf::from(name));
        let pid = std::process::id();
        let mut told = Vec::new();
        for (executed, name) in [
            (true, "/script"),
            (true, "/sh"),
            (true, "/ld.so"),
            (false, "/libc"),
            (true, "/next"),
        ] {
            assert!(processes.allows(pid, 0));
            processes.tell(pid, executed, file(name), 0, &mut |event| {
                told.push(match event.what {
                    What::Begin { program, .. } => {
                        format!("start {}", program.path.display())
                    }
                    What::Open { file, .. } => format!("open {}", file.path.display()),
                    other => panic!("{other:?}"),
                });
            });
        }
        let expected = [
            "start /script",
            "open /sh",
            "open /ld.so",
            "open /libc",
            "start /next",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_process_that_is_gone_ends_once() {
        let mut child = std::process::Command::new("true").spawn().expect("a child");
        let pid = child.id();
        let mut processes = Processes::default();
        let file = File::from(PathBuf::from("/x"));
        assert!(processes.allows(pid, 0));
        processes.tell(pid, true, file, 0, &mut |_| {});
        child.wait().expect("its end");
        let mut ended = Vec::new();
        for at in 1..4 {
            processes.sweep(at * SWEEP, &mut |event| ended.push(event));
        }
        let [only] = &ended[..] else {
            panic!("{ended:?}");
        };
        assert_eq!(
            (only.who.pid, only.at, &only.what),
            (pid, SWEEP, &What::Ended)
        );
    }
}
