//! The account of a run in one line.

use std::fmt::Write as _;

use foreread_words::units::{bytes, duration};
use foreread_words::{counted, shown};

use super::{Account, Outcome, REPLAY, was_killed};

impl Account {
    /// The outcome in one line.
    pub(super) fn line(&self) -> String {
        let mut line = String::from("foreread: ");
        let told = match self.outcome() {
            Outcome::Recorded if self.was_helped() => Outcome::Prefetched,
            outcome => outcome,
        };
        match told {
            Outcome::Prefetched => {
                line.push_str(&self.ahead());
                let _ = write!(line, "; {}", duration(self.wall_ns));
                line.push_str(&self.against());
                if let Some(found) = self.followed.as_ref().filter(|found| !found.exact) {
                    let _ = write!(line, ", by the record of {}", found.differs);
                }
                if self.followed.is_none() && self.recorded.is_some() {
                    let _ = write!(line, "; recorded ");
                    self.write_recorded(&mut line);
                }
            }
            Outcome::Recorded => {
                let _ = write!(line, "recorded ");
                self.write_recorded(&mut line);
            }
            Outcome::Aside => {
                let _ = write!(line, "stood aside");
            }
        }
        if let Some(reason) = self.reason() {
            // The reason does not explain the outcome.
            let joint = match self.outcome() {
                Outcome::Recorded | Outcome::Prefetched => ";",
                Outcome::Aside => ":",
            };
            let _ = write!(line, "{joint} {reason}");
        }
        shown(&line).into_owned()
    }

    /// Bytes fetched by guesses, in words; `None` if there are none.
    pub(super) fn guessed(&self) -> Option<String> {
        let strands = &self.report.as_ref()?.strands;
        let helped = strands.iter().filter(|one| one.ledger.issued > 0);
        let mut guessed = helped.clone().filter(|one| one.name != REPLAY).peekable();
        guessed.peek()?;
        if helped.count() == 1 {
            return guessed.next().map(|one| format!("all by {}", one.name));
        }
        let parts =
            guessed.map(|one| format!("{} of it by {}", bytes(one.ledger.issued), one.name));
        Some(parts.collect::<Vec<_>>().join(", "))
    }

    /// The recorded content, after "recorded".
    fn write_recorded(&self, line: &mut String) {
        let mut reads = counted(self.reads_recorded, "read", "reads");
        // A program that mostly looks for files waits for names.
        if self.names_recorded > self.reads_recorded {
            let names = counted(self.names_recorded, "name", "names");
            reads = format!("{reads} and {names}");
        }
        // Else the line names the program and its time already.
        let whose = if self.was_helped() {
            String::new()
        } else {
            format!(" of {} in {}", self.program, duration(self.wall_ns))
        };
        let _ = write!(line, "{reads}{whose}");
        if self.lost > 0 {
            let all = self.accesses_recorded.saturating_add(self.lost);
            let _ = write!(
                line,
                " ({} of {} came too fast to be recorded)",
                self.lost,
                counted(all, "access", "accesses")
            );
        }
        if let Some(left_out) = &self.left_out {
            let _ = write!(line, " ({})", left_out.in_words());
        }
        match self.recorded.as_ref().filter(|_| self.apart) {
            Some(path) => {
                let _ = write!(line, ", to {}", path.display());
            }
            None => line.push_str(", to keep ahead of the next run"),
        }
    }

    /// The time against the recorded run's.
    pub(super) fn against(&self) -> String {
        let Some(baseline) = self.baseline.as_ref().filter(|_| self.has_own_record()) else {
            return String::new();
        };
        if let Some(list) = &baseline.imported {
            return format!(", by {list}");
        }
        match baseline.cold_wall_ns {
            _ if was_killed(baseline) => format!(
                ", by the record of a run that was killed after {}",
                duration(baseline.wall_ns)
            ),
            Some(cold) => format!(" against {} recorded cold", duration(cold)),
            None if baseline.helped => format!(
                " against {} when recorded, with reads fetched ahead",
                duration(baseline.wall_ns)
            ),
            None => format!(
                " against {} when recorded, {} in memory",
                duration(baseline.wall_ns),
                match baseline.device_bytes {
                    Some(0) => "with everything",
                    _ => "partly",
                }
            ),
        }
    }
}
