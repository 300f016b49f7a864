//! The cost of a list: the time per entry, from the program's call to the read that uses the entry up, and memory.
//!
//! All bytes that the entries name are in memory, so that only foreread's own work is measured. The list is handed over in both
//! ways that suit a list too long for one request: drawn from an iterator, and supplied by the callback, piece by piece, whenever
//! the list has run out.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use foreread_client::{Client, Entry, Error, Extent, FileId, Flags, Options};
use foreread_sys::procfs::{self, Status};

use crate::tools::Tools;

/// Pages of the file that all entries name.
const PAGES: u64 = 4096;
/// Entries that the callback hands over in one request.
const PIECE: u64 = 64 << 10;
/// How long the program waits for a missing entry.
const PATIENCE: Duration = Duration::from_secs(20);
/// Memory is checked once in this many entries.
const LOOK: u64 = 1 << 20;

/// The cost of one way.
struct Cost {
    seconds: f64,
    /// The most entries held at once.
    ahead: u64,
    /// The largest growth of memory, in KiB.
    grown: u64,
}

/// Uses up a list of `entries` entries in both ways; returns a table.
pub fn measure(tools: &Tools, entries: u64) -> Result<String> {
    let path = tools.root.join("hot-page");
    std::fs::write(&path, vec![1; PAGES as usize * 4096])
        .with_context(|| format!("writing {}", path.display()))?;
    let mut out = format!(
        "a list of {entries} entries through the library\n\n{:<12} {:>10} {:>12} {:>12} {:>10}\n",
        "by", "seconds", "million / s", "held", "MiB more"
    );
    for (way, start) in [
        ("iterator", stream as fn(&Client, FileId, u64) -> Result<()>),
        ("callback", call_back),
    ] {
        let cost = one(&path, entries, start)?;
        out += &format!(
            "{way:<12} {:>10.2} {:>12.2} {:>12} {:>10.1}\n",
            cost.seconds,
            entries as f64 / cost.seconds / 1e6,
            cost.ahead,
            cost.grown as f64 / 1024.0,
        );
    }
    Ok(out + "\nto reach: 1 million a second and 24 bytes an entry held\n")
}

/// Entry `n` of the list.
fn entry(file: FileId, n: u64) -> Entry {
    Entry {
        file,
        extent: Extent::new(n % PAGES * 4096, 4096),
        marked: false,
    }
}

/// Has the list drawn from an iterator.
fn stream(client: &Client, file: FileId, entries: u64) -> Result<()> {
    client.stream((0..entries).map(move |n| entry(file, n)))?;
    Ok(())
}

/// Has the list supplied by the callback.
fn call_back(client: &Client, file: FileId, entries: u64) -> Result<()> {
    let told = Arc::new(AtomicU64::new(0));
    client.on_miss(move |client, _| {
        // The callback cannot report an error; the program ends because entries are missing.
        if let Err(error) = supply(client, file, &told, entries) {
            eprintln!("the callback could not supply: {error}");
        }
    });
    // The first entry, marked as the end of the list, so that the callback is called at once.
    client.request(&[entry(file, 0)], Flags::SET | Flags::DONE)?;
    Ok(())
}

/// Hands over as many entries as there is room for, from entry `told` + 1 on; entry 0 was requested before.
fn supply(client: &Client, file: FileId, told: &AtomicU64, entries: u64) -> Result<(), Error> {
    loop {
        let from = told.load(Ordering::Relaxed) + 1;
        let piece: Vec<Entry> = (from..entries.min(from + PIECE))
            .map(|n| entry(file, n))
            .collect();
        if piece.is_empty() {
            return Ok(());
        }
        let accepted = client.request(&piece, Flags::APPEND | Flags::DONE)?;
        told.fetch_add(accepted as u64, Ordering::Relaxed);
        if accepted < piece.len() {
            return Ok(());
        }
    }
}

/// Uses up one list.
fn one(
    path: &Path,
    entries: u64,
    start: impl Fn(&Client, FileId, u64) -> Result<()>,
) -> Result<Cost> {
    let before = resident_kib()?;
    let client = Client::new(Options::default())?;
    let file = client.add_path(path)?;
    client.region(file, 0..u64::MAX)?;
    let began = Instant::now();
    start(&client, file, entries)?;
    let (mut ahead, mut most) = (0, before);
    for n in 0..entries {
        let mut waiting = None;
        // An iterator's list is drawn from as it is used up: wait for entries that are not there yet.
        while let Err(error) = client.at(n) {
            let since = waiting.get_or_insert_with(Instant::now);
            if !matches!(error, Error::NoEntry { .. }) || since.elapsed() > PATIENCE {
                bail!("entry {n} of the list has not come: {error}");
            }
            std::thread::yield_now();
        }
        if n % LOOK == LOOK / 2 {
            most = most.max(resident_kib()?);
            ahead = ahead.max(client.stats().ahead);
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    client.finish();
    Ok(Cost {
        seconds,
        ahead,
        grown: most.saturating_sub(before),
    })
}

/// Memory of this process now, in KiB.
fn resident_kib() -> Result<u64> {
    let text = procfs::own_status().context("reading /proc/self/status")?;
    let kib = Status(&text).number("VmRSS");
    kib.context("/proc/self/status has no VmRSS")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_of_a_list_longer_than_the_room_is_used_up_in_both_ways() {
        let file = tempfile::NamedTempFile::new_in(crate::cache::build_dir()).unwrap();
        std::fs::write(file.path(), vec![1; PAGES as usize * 4096]).unwrap();
        let entries = 3 << 19;
        for start in [stream as fn(&Client, FileId, u64) -> Result<()>, call_back] {
            let cost = one(file.path(), entries, start).unwrap();
            assert!(
                cost.seconds > 0.0 && cost.ahead <= 1 << 20,
                "{}",
                cost.ahead
            );
        }
    }
}
