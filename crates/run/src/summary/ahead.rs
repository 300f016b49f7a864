//! The work done ahead of the program, in the words of one line.

use std::fmt::Write as _;

use foreread_engine::NameLedger;
use foreread_words::counted;
use foreread_words::units::bytes;

use super::Account;
use crate::report::became;

impl Account {
    /// Bytes fetched and names looked up, with their ledger.
    pub(super) fn ahead(&self) -> String {
        let ledger = self.ledger();
        let names = self.names();
        let mut text = String::new();
        if ledger.issued > 0 {
            let _ = write!(
                text,
                "{} ahead of {}: {}",
                bytes(ledger.issued),
                self.program,
                became(&ledger)
            );
            if let Some(guessed) = self.guessed() {
                let _ = write!(text, ", {guessed}");
            }
        }
        if names.fetched > 0 {
            let asked = counted(names.asked, "name", "names");
            let _ = match ledger.issued {
                0 => write!(text, "{asked} ahead of {}", self.program),
                _ => write!(text, "; {asked}"),
            };
            let _ = write!(text, ": {}", in_words(&names));
        }
        text
    }

    /// The account of the names that were looked up ahead.
    pub(super) fn names(&self) -> NameLedger {
        let report = self.report.as_ref();
        report.map_or_else(NameLedger::default, |report| report.names)
    }
}

/// The ledger of names that were looked up ahead. Only names that the program waits for are reported.
pub(super) fn in_words(names: &NameLedger) -> String {
    match names.late {
        0 => "none of them waited for".to_owned(),
        late => format!("{late} of them waited for"),
    }
}
