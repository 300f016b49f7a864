//! What a list costs: time for an entry from the program to the read that uses it up, and memory.
//!
//! All the entries name is in memory, so that only foreread's own work is measured. The list comes in
//! both ways there are for one too long to be handed over at once: drawn from an iterator, and supplied by
//! the callback, piece by piece, whenever it has run out.

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
/// Entries the callback hands over in one request.
const PIECE: u64 = 64 << 10;
/// How long the program waits for an entry that has not come.
const PATIENCE: Duration = Duration::from_secs(20);
/// Memory is looked at once in so many entries.
const LOOK: u64 = 1 << 20;

/// What one way took.
struct Cost {
    seconds: f64,
    /// Entries held at once, at most.
    ahead: u64,
    /// Memory grown, at most, in KiB.
    grown: u64,
}

/// Uses up a list of so many `entries` in both ways; a table.
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

/// Has the list supplied by the callback, the first pieces now.
fn call_back(client: &Client, file: FileId, entries: u64) -> Result<()> {
    let told = Arc::new(AtomicU64::new(0));
    client.on_miss(move |client, _| {
        // Nobody can be told here; the program ends for want of entries.
        if let Err(error) = supply(client, file, &told, entries) {
            eprintln!("the callback could not supply: {error}");
        }
    });
    // Asked for at once: the list is complete and has nothing on it.
    client.request(&[entry(file, 0)], Flags::SET | Flags::DONE)?;
    Ok(())
}

/// Hands over what there is room for, from entry `told` + 1 on: the first was there to begin with.
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
        // An iterator's list is drawn from as it is used up: wait for what is not there yet.
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
