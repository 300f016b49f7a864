//! Latencies of reads: the program runs under strace, and its reads of regular files are counted.
//!
//! strace stops a process at these calls only (`--seccomp-bpf`). Its own cost is in each figure: some 20 µs per call, the same
//! for all variants.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::process::Invocation;

const STRACE: &str = "strace";
/// Upper bounds of the buckets, in µs; one more bucket holds the longer reads.
pub const BUCKETS: [u64; 7] = [32, 64, 128, 512, 2048, 8192, 32_768];

/// The latencies of reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Latencies {
    /// Each read's time in µs, in ascending order.
    #[serde(skip)]
    sorted: Vec<u64>,
    /// Number of reads.
    pub calls: u64,
    /// The sum, in µs.
    pub sum_us: u64,
    /// Reads in each of [`BUCKETS`], and in the bucket of longer reads.
    pub buckets: [u64; BUCKETS.len() + 1],
}

impl Latencies {
    /// Adds the reads of another run.
    pub fn add(&mut self, other: &Latencies) {
        self.sorted.extend(&other.sorted);
        self.sorted.sort_unstable();
        self.calls += other.calls;
        self.sum_us += other.sum_us;
        for (mine, more) in self.buckets.iter_mut().zip(other.buckets) {
            *mine += more;
        }
    }

    fn one(&mut self, us: u64) {
        self.sorted.push(us);
        self.calls += 1;
        self.sum_us += us;
        let bucket = BUCKETS.iter().position(|bound| us <= *bound);
        self.buckets[bucket.unwrap_or(BUCKETS.len())] += 1;
    }

    /// The mean, in µs.
    pub fn mean_us(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.sum_us as f64 / self.calls as f64)
    }

    /// The latency, in µs, that this share of the reads did not exceed.
    pub fn at(&self, share: f64) -> Option<u64> {
        let rank = (self.sorted.len() as f64 * share).ceil() as usize;
        self.sorted.get(rank.saturating_sub(1)).copied()
    }
}

/// The command under strace, which writes the reads to `trace`.
pub fn watched(command: &Invocation, trace: &Path) -> Invocation {
    let mut leading: Vec<std::ffi::OsString> = [
        "-f",
        "--seccomp-bpf",
        "-qq",
        "-y",
        "-T",
        "-s0",
        "-e",
        "trace=read,pread64,readv,preadv",
        "-e",
        "signal=none",
        "-o",
    ]
    .map(Into::into)
    .to_vec();
    leading.push(trace.into());
    leading.push("--".into());
    command.under(Path::new(STRACE), leading)
}

/// The reads in a trace.
pub fn read(trace: &Path) -> Result<Latencies> {
    let within = || format!("reading {}", trace.display());
    let mut all = Latencies::default();
    for line in BufReader::new(File::open(trace).with_context(within)?).split(b'\n') {
        let line = line.with_context(within)?;
        if let Some(us) = took(&String::from_utf8_lossy(&line)) {
            all.one(us);
        }
    }
    all.sorted.sort_unstable();
    Ok(all)
}

/// The latency of a read of a file, in µs, from a line such as `7 read(3</etc/passwd>, ""..., 4096) = 100 <0.000123>`.
fn took(line: &str) -> Option<u64> {
    // A call that a call of another process interrupts has two lines: the first names the file and has no time, the second does
    // not name the file. Such calls are few, and are left out.
    let (_, call) = line.split_once('(')?;
    let path = call.split_once('<')?.1.split_once('>')?.0;
    let regular = path.starts_with('/')
        && !["/dev/", "/proc/", "/sys/"]
            .iter()
            .any(|no| path.starts_with(no));
    let (call, time) = call.rsplit_once(" <")?;
    let failed = call.contains(") = -1 ");
    let time = time.strip_suffix('>').filter(|_| regular && !failed)?;
    Some((time.parse::<f64>().ok()? * 1e6).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_files_are_counted_with_their_time() {
        let text = "\
7 read(3</etc/a (b)>, \"\"..., 4096) = 100 <0.000031>
7 read(4<pipe:[12]>, \"\"..., 4096) = 100 <0.500000>
8 pread64(3</data/x>, \"\"..., 4096, 0) = 4096 <0.012000>
8 read(5</dev/urandom>, \"\"..., 16) = 16 <0.000040>
8 read(6</data/y>, \"\", 4096) = 0 <0.000012>
8 read(6</data/y>, \"\", 4096) = -1 EIO (Input/output error) <0.000012>
9 read(6</data/y>,  <unfinished ...>
9 <... read resumed>\"\"..., 4096) = 4096 <0.700000>
+++ exited with 0 +++
";
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace");
        std::fs::write(&trace, text).unwrap();
        let mut all = read(&trace).unwrap();
        assert_eq!((all.calls, all.sum_us), (3, 12_043));
        assert_eq!(all.buckets, [2, 0, 0, 0, 0, 0, 1, 0]);
        assert_eq!((all.at(0.5), all.at(1.0)), (Some(31), Some(12_000)));
        let again = all.clone();
        all.add(&again);
        assert_eq!((all.calls, all.at(0.5)), (6, Some(31)));
        assert_eq!(Latencies::default().at(0.5), None);
    }
}
