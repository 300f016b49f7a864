//! Why foreread could not help, or not fully.

use foreread_sys::mounts::Mount;
use foreread_words::units::bytes;

use super::{Account, FEW_NAMES, Why};
use crate::cache::CacheAccount;
use crate::report::{Phase, Report, Strand};

impl Account {
    /// The reasons why foreread could not help, or not fully, and other remarks, in sentences.
    pub(super) fn reason(&self) -> Option<String> {
        let cause = self.cause();
        let cached = self.cache.as_ref().filter(|cache| cache.is_used());
        let told = cause.iter().chain(&self.remarks).map(String::as_str);
        let told = told.chain(cached.map(|_| CacheAccount::SHORT));
        let told = told.collect::<Vec<_>>().join("; ");
        (!told.is_empty()).then_some(told)
    }

    /// True if foreread would have done nothing even with a full observation.
    fn needs_nobody(&self) -> bool {
        let is_left = |(report, plan): (&Report, &Strand)| {
            let hot = plan.phase == Phase::Hot && report.ledger.issued == 0;
            hot && !self.was_cold()
        };
        self.of_plan().is_some_and(is_left) || !self.prefetch && !self.record
    }

    /// The reason why nothing was gained, if it is one of six.
    pub(crate) fn why(&self) -> Option<Why> {
        if let Some(why) = self.hidden
            && !self.needs_nobody()
        {
            let because = format!(
                "{} could not be observed: it is {why}, and the preload library cannot be loaded into it",
                self.program
            );
            return Some(Why::Unobserved {
                because: vec![because],
            });
        }
        let (report, plan) = self.of_plan()?;
        match plan.phase {
            // A difference from the record is the more specific reason.
            Phase::Hot if !self.was_cold() && self.files.is_empty() => {
                Some(self.alone.clone().unwrap_or(Why::InMemory))
            }
            Phase::Hot if !self.was_cold() => None,
            // Other content leads a program elsewhere.
            Phase::GaveUp if !self.files.is_empty() => None,
            Phase::GaveUp => Some(match &self.left {
                Some((read, file, offset)) => Why::Left {
                    read: read + 1,
                    at: Some((file.clone(), *offset)),
                    since: plan.reads.saturating_sub(*read),
                },
                None => Why::Left {
                    read: plan.foreseen + 1,
                    at: None,
                    since: plan.reads.saturating_sub(plan.foreseen),
                },
            }),
            _ if report.ledger.evicted > report.ledger.issued / 2 => Some(Why::LittleMemory {
                fetched: report.ledger.issued,
                gone: report.ledger.evicted,
            }),
            _ if !self.was_helped() && self.was_cold() && self.is_onward => Some(Why::FrontToBack),
            _ => None,
        }
    }

    /// Why foreread could not help, or not fully.
    fn cause(&self) -> Option<String> {
        if let Some(note) = self.notes.first() {
            return Some(note.clone());
        }
        if let Some(why) = self.why() {
            return Some(why.sentence(&self.program));
        }
        if let Some((_, plan)) = self.of_plan() {
            let file = self.files.first().cloned();
            if self.was_helped() || plan.phase == Phase::GaveUp {
                return file;
            }
            let waited = self.device_bytes.filter(|_| self.was_cold());
            let why = || match (Mount::table().err(), waited) {
                (Some(why), _) => format!("the table of mounts cannot be read: {why}"),
                (None, None) => "nothing was missing that it could have fetched".to_owned(),
                (None, Some(waited)) => format!(
                    "nothing was fetched, and {} waited for {} itself",
                    self.program,
                    bytes(waited)
                ),
            };
            return file.or_else(|| Some(why()));
        }
        if self.was_helped() {
            return None;
        }
        if !self.record {
            return Some(if self.prefetch {
                format!(
                    "nothing is known of {}, and it was not to be recorded",
                    self.program
                )
            } else {
                "neither prefetching nor recording was asked for".into()
            });
        }
        if !self.observed {
            return Some(format!(
                "{} could not be observed: it ended before foreread could see why",
                self.program
            ));
        }
        if self.recorded.is_none() && self.reads_recorded == 0 && self.names_recorded < FEW_NAMES {
            if self.was_cold() || self.lost > 0 {
                return Some(format!("no read of {} could be observed", self.program));
            }
            // Its last actions before it was killed may be unreported.
            let read = if self.killed {
                "was killed before it was seen to read a regular file"
            } else {
                "read no regular file"
            };
            return Some(format!("{} {read}", self.program));
        }
        None
    }
}
