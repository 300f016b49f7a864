//! Processes that open files: whose they are, what they run, and how many of their events are looked at.
//!
//! To execute a program the kernel opens the program, a script's interpreter and the dynamic linker, one after the other, each to
//! be executed. The first is the program that was started; the others are files that it opens.
//!
//! Invariants: bounded; a process is told of (made, started) before anything that it opens, and its end is told once.
//!
//! Data flow: a process's number and an opened file → [`Happened`].

use std::num::NonZeroUsize;

use lru::LruCache;

use super::super::allowance::{Allowance, ONE};
use super::super::look::{about, has_ended, program};
use crate::{File, Happened};

/// Processes known at once.
const KEPT: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// How often is looked which processes have ended, in ns: 0.2 µs for each that is known.
const SWEEP: u64 = 1_000_000_000;
/// Whose a process is that ended before anybody could look.
const NOBODY: u32 = u32::MAX;

struct Process {
    allowance: Allowance,
    /// Whose it is, once it was told of.
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
            allowance: Allowance::new(ONE, at),
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
        out: &mut dyn FnMut(Happened),
    ) {
        let Some(process) = self.known.peek(&pid) else {
            return;
        };
        let (starts, known) = (executed && !process.starting, process.uid);
        let uid = match known {
            Some(uid) if !starts => uid,
            _ => {
                let (parent, uid) = about(pid).unwrap_or((0, known.unwrap_or(NOBODY)));
                let told = |pid| self.known.peek(pid).is_some_and(|one| one.uid.is_some());
                if starts {
                    let program = file.clone();
                    out(started(pid, parent, uid, program, at));
                } else if told(&parent) {
                    out(Happened::Forked { pid, parent, at });
                } else if let Some(program) = program(pid) {
                    out(started(pid, parent, uid, program, at));
                }
                uid
            }
        };
        if let Some(process) = self.known.peek_mut(&pid) {
            process.uid = Some(uid);
            process.starting = executed;
        }
        if !starts {
            out(Happened::Opened {
                pid,
                uid,
                file,
                writes: false,
                at,
            });
        }
    }

    /// Tells now and then which processes have ended.
    pub(super) fn sweep(&mut self, at: u64, out: &mut dyn FnMut(Happened)) {
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
            if process.is_some_and(|process| process.uid.is_some()) {
                out(Happened::Ended { pid, at });
            }
        }
    }
}

fn started(pid: u32, parent: u32, uid: u32, program: File, at: u64) -> Happened {
    Happened::Started {
        pid,
        parent,
        uid,
        program,
        at,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_first_of_the_files_opened_to_be_executed_is_the_program() {
        let mut processes = Processes::default();
        let file = |name: &str| File {
            path: Arc::new(name.into()),
            device: 1,
            inode: 1,
            generation: 0,
            size: 1,
        };
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
            processes.tell(pid, executed, file(name), 0, &mut |happened| {
                told.push(match happened {
                    Happened::Started { program, .. } => {
                        format!("start {}", program.path.display())
                    }
                    Happened::Opened { file, .. } => format!("open {}", file.path.display()),
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
        let file = File {
            path: Arc::new("/x".into()),
            device: 1,
            inode: 1,
            generation: 0,
            size: 1,
        };
        assert!(processes.allows(pid, 0));
        processes.tell(pid, true, file, 0, &mut |_| {});
        child.wait().expect("its end");
        let mut ended = Vec::new();
        for at in 1..4 {
            processes.sweep(at * SWEEP, &mut |happened| ended.push(happened));
        }
        assert_eq!(ended, [Happened::Ended { pid, at: SWEEP }]);
    }
}
