//! Processes that open files: their users and programs.
//!
//! To execute a program the kernel opens the program, a script's interpreter and the dynamic linker, one after the other, each to
//! be executed. The first is the program that was started; the others are files that it opens.
//!
//! Invariant: a process is reported (made, started) before its opens, and its end is reported once.
//!
//! Data flow: a process's number and an opened file → [`Event`].

use foreread_observe::look::{about, program};
use foreread_observe::{Event, File, How, Processes, What, Who};

#[derive(Default)]
struct Process {
    /// True if it was reported, with its user, unless it ended before it could be examined.
    is_told: bool,
    uid: Option<u32>,
    /// True if its last event was the start of a program.
    starting: bool,
}

/// The processes that have opened files of late.
pub(super) struct Starts(Processes<Process>);

impl Starts {
    /// None yet, at a time in ns.
    pub(super) fn new(at: u64) -> Self {
        Self(Processes::new(at))
    }

    /// True if another event of this process is examined.
    pub(super) fn admits(&mut self, pid: u32, at: u64) -> bool {
        if self.0.get(pid).is_none() {
            self.0.put(pid, Process::default(), at);
        }
        self.0.admits(pid, at)
    }

    /// Number of events that were not examined.
    pub(super) fn beyond(&self) -> u64 {
        self.0.beyond()
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
        let Some(process) = self.0.get(pid) else {
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
            let is_told = |pid| self.0.get(pid).is_some_and(|one| one.is_told);
            if starts {
                out(started(who, parent, file.clone(), at));
            } else if is_told(parent) {
                let what = What::Forked { parent };
                out(Event { who, at, what });
            } else if let Some(program) = program(pid) {
                out(started(who, parent, program, at));
            }
        }
        if let Some(process) = self.0.get_mut(pid) {
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
        for (pid, Process { is_told, uid, .. }) in self.0.ended(at) {
            if is_told {
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

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn the_first_of_the_files_opened_to_be_executed_is_the_program() {
        let mut starts = Starts::new(0);
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
            assert!(starts.admits(pid, 0));
            starts.tell(pid, executed, file(name), 0, &mut |event| {
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
        let mut starts = Starts::new(0);
        let file = File::from(PathBuf::from("/x"));
        assert!(starts.admits(pid, 0));
        starts.tell(pid, true, file, 0, &mut |_| {});
        child.wait().expect("its end");
        let mut ended = Vec::new();
        for at in 1..4 {
            starts.sweep(at * SECOND, &mut |event| ended.push(event));
        }
        let [only] = &ended[..] else {
            panic!("{ended:?}");
        };
        assert_eq!(
            (only.who.pid, only.at, &only.what),
            (pid, SECOND, &What::Ended)
        );
    }
}
