//! A trace of any length, made up: what `foreread sim` is measured by.
//!
//! It is one of a build that goes on for ever, as text of strace: a process for each unit, which opens the unit and its
//! headers in an order of its own, and now and then, in place of one of them, any other file, and ends.

use std::io::{BufWriter, Write, stdout};

use anyhow::{Context, Result};

use crate::cases::Random;

/// Units, and the headers they choose from.
const UNITS: u64 = 2000;
const HEADERS: u64 = 5000;
/// Headers of a unit.
const OPENED: u64 = 38;
/// One in so many opens is of any other file, of so many.
const STRAY: u64 = 50;
const OTHERS: u64 = 100_000;

/// Writes a trace of so many events to standard output.
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
