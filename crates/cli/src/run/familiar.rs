//! Programs whose processes have nothing new to tell of the pages they touch.
//!
//! To look which pages of its objects it has touched takes a process 20 to 120 µs as it ends. A build runs one compiler
//! some hundred times, and a page counts once in a run. So when enough processes of a program in a row had nothing new
//! to tell, only some of the next ones look, until one does.
//!
//! Data flow: what each process's pages brought, and its end → [`Familiar::changes`], for the ring to tell the processes.

use std::collections::HashMap;

/// Processes in a row that had nothing new to tell.
const ENOUGH: u32 = 8;

/// How many processes of each program have ended since one had something new to tell.
#[derive(Debug, Default)]
pub(super) struct Familiar {
    programs: HashMap<String, u32>,
    changes: Vec<(String, bool)>,
}

impl Familiar {
    /// A process of this program has touched pages that were not touched before.
    pub(super) fn has_news(&mut self, program: &str) {
        if let Some(quiet) = self.programs.get_mut(program) {
            if *quiet >= ENOUGH {
                self.changes.push((program.to_owned(), false));
            }
            *quiet = 0;
        }
    }

    /// A process of this program has ended.
    pub(super) fn has_ended(&mut self, program: String) {
        let quiet = self.programs.entry(program.clone()).or_default();
        *quiet = quiet.saturating_add(1);
        if *quiet == ENOUGH {
            self.changes.push((program, true));
        }
    }

    /// The programs that have become familiar, or are no more, since this was last asked.
    pub(super) fn changes(&mut self) -> impl Iterator<Item = (String, bool)> {
        self.changes.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_familiar_while_its_processes_tell_nothing_new() {
        let mut familiar = Familiar::default();
        let mut run = |news: bool| {
            if news {
                familiar.has_news("/bin/cc");
            }
            familiar.has_ended("/bin/cc".into());
            familiar.changes().collect::<Vec<_>>()
        };
        let now = |familiar| vec![("/bin/cc".to_owned(), familiar)];
        assert_eq!(run(true), [], "the first of all");
        assert!((2..ENOUGH).all(|_| run(false).is_empty()));
        assert_eq!(run(false), now(true));
        assert!((0..100).all(|_| run(false).is_empty()));
        assert_eq!(run(true), now(false));
        assert!((2..ENOUGH).all(|_| run(false).is_empty()));
        assert_eq!(run(false), now(true));
    }
}
