//! A made-up trace of any length, with which `foreread sim` is measured.
//!
//! The trace is strace's text of a build that never ends. Each process compiles one unit: it opens the unit and then its headers
//! in an order of the unit's own, occasionally opens any other file in place of a header, and ends.

use std::io::{BufWriter, Write, stdout};

use anyhow::{Context, Result};

use crate::cases::Random;

/// The number of units, and the number of headers that they choose from.
const UNITS: u64 = 2000;
const HEADERS: u64 = 5000;
/// Headers that a unit opens.
const OPENED: u64 = 38;
/// One in this many opens is of another file, one of `OTHERS`.
const STRAY: u64 = 50;
const OTHERS: u64 = 100_000;

/// Writes a trace of `events` events to standard output.
pub fn write(events: u64) -> Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, stdout().lock());
    let mut random = Random(31);
    let mut written = 0;
    let mut pid = 100;
    while written < events {
        let unit = pid % UNITS;
        let (exe, source) = ("/usr/bin/cc".to_owned(), format!("/src/u{unit}.c"));
        for place in 0..OPENED + 2 {
            // Times are 1 ms apart.
            let (seconds, millis) = (1_000_000 + written / 1000, written % 1000);
            let call = match place {
                0 => format!("execve(\"{exe}\", [\"cc\"], 0x7ffe /* 3 vars */) = 0"),
                place => {
                    let path = match place {
                        1 => source.clone(),
                        _ if random.below(STRAY) == 0 => {
                            format!("/usr/share/o{}", random.below(OTHERS))
                        }
                        _ => format!("/usr/include/h{}.h", (unit * 7 + place * 131) % HEADERS),
                    };
                    format!("openat(AT_FDCWD, \"{path}\", O_RDONLY) = 3")
                }
            };
            writeln!(out, "{pid} {seconds}.{millis:03}000 {call}").context("writing the trace")?;
            written += 1;
            if written == events {
                break;
            }
        }
        let (seconds, millis) = (1_000_000 + written / 1000, written % 1000);
        writeln!(out, "{pid} {seconds}.{millis:03}000 +++ exited with 0 +++")
            .context("writing the trace")?;
        pid += 1;
    }
    out.flush().context("writing the trace")
}
