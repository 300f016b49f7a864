//! The whole account of a run, a row a fact, for `--explain`.

use std::fmt::{Display, Write as _};

use foreread_plan::Rank;
use foreread_words::units::{WIDTH, bytes, duration, wrapped};
use foreread_words::{counted, shown};

use super::Account;
use super::ahead::in_words;
use crate::report::Phase;
use crate::report::became;

/// Column at which a row's text begins.
const COLUMN: usize = 25;
/// Files named one by one.
const NAMED_FILES: usize = 8;

impl Account {
    /// The whole account, for `--explain`.
    pub(super) fn full(&self) -> String {
        // Continuation lines have the indentation of a row's text.
        let line = self.line();
        let mut lines = wrapped(&line, WIDTH - 2).into_iter();
        let mut text = lines.next().unwrap_or_default().into_owned();
        let rest = lines.collect::<Vec<_>>().join(" ");
        for line in wrapped(&rest, WIDTH - 12)
            .iter()
            .filter(|line| !line.is_empty())
        {
            let _ = write!(text, "\nforeread:   {line}");
        }
        let mut row = |name: &str, value: &dyn Display| {
            let value = value.to_string();
            let mut name = name;
            for line in wrapped(&shown(&value), WIDTH - COLUMN) {
                let _ = write!(text, "\nforeread:   {name:<12} {line}");
                name = "";
            }
        };
        row(
            "run",
            &format_args!("{}, exit status {}", duration(self.wall_ns), self.status),
        );
        if let Some(Rank { rank, of }) = self.rank {
            row("rank", &format_args!("{rank} of {of}"));
        }
        match self.device_bytes {
            Some(0) => row("from device", &"nothing that the program waited for itself"),
            Some(device) => row(
                "from device",
                &format_args!("{} waited for by the program itself", bytes(device)),
            ),
            None => {}
        }
        if let Some(found) = &self.followed {
            row("followed", &found.path.display());
        }
        if let Some(report) = &self.report {
            let left = match (report.phase, report.reads) {
                (Phase::Hot, _) => "; then it was left to itself",
                (Phase::GaveUp, _) => "; then the record was given up",
                (Phase::Finished, 1..) => "; then there was nothing left to fetch",
                _ => "",
            };
            match report.reads {
                0 => row("reads seen", &format_args!("none{left}")),
                reads => row(
                    "reads seen",
                    &format_args!("{reads}, {} foreseen{left}", report.foreseen),
                ),
            }
            let ledger = &report.ledger;
            match (ledger.issued, report.names.fetched) {
                (0, 0) => row("fetched", &"nothing"),
                (0, _) => row("fetched", &"names, and nothing of files"),
                _ => {}
            }
            // A share of nothing is left out.
            let mut share = |name: &str, part: Option<f64>, of: &str| {
                if let Some(part) = part.filter(|_| ledger.issued > 0) {
                    row(name, &format_args!("{:.1} % {of}", part * 100.0));
                }
            };
            let accuracy = ledger.accuracy();
            let of = match ledger.unknown {
                0 => "of what was asked for was read",
                _ => "of what was fetched was read, as far as known",
            };
            share("accuracy", accuracy, of);
            let coverage = ledger.coverage(self.device_bytes);
            let of = match ledger.unknown {
                0 => "of what the device gave was fetched ahead",
                _ => "of what the device gave was fetched ahead, at least",
            };
            share("coverage", coverage, of);
            let timeliness = ledger.timeliness();
            let of = "of what was read of that was there in time";
            share("timeliness", timeliness, of);
            let names = &report.names;
            if names.asked > 0 {
                row(
                    "names",
                    &format_args!(
                        "{} looked up, {} of them not in memory; {}",
                        names.asked,
                        names.fetched,
                        in_words(names)
                    ),
                );
            }
            for strand in report.strands.iter().filter(|one| one.ledger.issued > 0) {
                let (issued, became) = (bytes(strand.ledger.issued), became(&strand.ledger));
                let reads = counted(strand.foreseen, "read", "reads");
                row(
                    strand.name,
                    &format_args!("{issued}: {became}; {reads} foreseen"),
                );
            }
            if !report.devices.is_empty() {
                row("devices", &report.devices.join(", "));
            }
        }
        if let Some(cache) = &self.cache {
            cache.chosen().for_each(|said| row("ranks", &said));
            if cache.is_used() {
                cache.rows().iter().for_each(|said| row("cache", said));
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
        if let Some(unseen) = self.unseen_bytes {
            let by = match self.by_kernel {
                true => "",
                false => {
                    ", by direct system calls, by statically linked or privileged children, by libraries loaded apart, or in \
                     folders"
                }
            };
            row(
                "unseen",
                &format_args!("{} from the device{by}", bytes(unseen)),
            );
        }
        if let Some(path) = &self.recorded {
            row("recorded", &path.display());
        }
        // The first line has the first note, and all remarks.
        for note in self.notes.iter().skip(1) {
            row("note", note);
        }
        text
    }
}
