//! The whole account of a run, a row a fact, for `--explain`.

use std::fmt::{Display, Write as _};

use super::Account;
use crate::units::{WIDTH, bytes, duration, folded};
use crate::words::{counted, shown};

/// Where a row's words begin.
const COLUMN: usize = 25;
/// Files named one by one.
const NAMED_FILES: usize = 8;

impl Account {
    /// The whole account, for `--explain`.
    pub(super) fn full(&self) -> String {
        let mut text = self.line();
        let mut row = |name: &str, value: &dyn Display| {
            let value = value.to_string();
            let mut name = name;
            for line in folded(&shown(&value), WIDTH - COLUMN) {
                let _ = write!(text, "\nforeread:   {name:<12} {line}");
                name = "";
            }
        };
        row(
            "run",
            &format_args!("{}, exit status {}", duration(self.wall_ns), self.status),
        );
        if let Some(device) = self.device_bytes {
            row(
                "from device",
                &format_args!("{} waited for by the program itself", bytes(device)),
            );
        }
        if let Some(found) = &self.followed {
            row("followed", &found.path.display());
        }
        if let Some(report) = &self.report {
            let share = |part: Option<f64>| {
                part.map_or_else(|| "-".to_owned(), |part| format!("{:.1} %", part * 100.0))
            };
            row(
                "reads seen",
                &format_args!("{}, {} foreseen", report.reads, report.foreseen),
            );
            row(
                "accuracy",
                &format_args!(
                    "{} of what was fetched was read",
                    share(report.ledger.accuracy())
                ),
            );
            row(
                "coverage",
                &format_args!(
                    "{} of what was needed was fetched",
                    share(report.ledger.coverage())
                ),
            );
            row(
                "timeliness",
                &format_args!(
                    "{} of that was there in time",
                    share(report.ledger.timeliness())
                ),
            );
            if report.found_again > 0 {
                row(
                    "lost",
                    &format_args!(
                        "and found again {}",
                        counted(report.found_again, "time", "times")
                    ),
                );
            }
            if !report.devices.is_empty() {
                row("devices", &report.devices.join(", "));
            }
        }
        for file in self.files.iter().take(NAMED_FILES) {
            row("file", file);
        }
        if self.files.len() > NAMED_FILES {
            row(
                "file",
                &format_args!("and {} more", self.files.len() - NAMED_FILES),
            );
        }
        if self.lost > 0 {
            row(
                "unseen",
                &format_args!(
                    "{} came too fast to be reported",
                    counted(self.lost, "read", "reads")
                ),
            );
        }
        if self.without_stdio {
            row(
                "unseen",
                &"reads through stdio, which this C library does not let be observed",
            );
        }
        if let Some(path) = &self.recorded {
            row("recorded", &path.display());
        }
        for note in self.notes.iter().skip(1) {
            row("note", note);
        }
        text
    }
}
