//! Disturbances by other processes during a measurement: an emptied page cache, busy processors.
//!
//! Data flow: the kernel's counters → [`Watch::begin`] → the measurement → [`Watch::disturbed`].

use std::fs;

use foreread_sys::procfs::{self, Stat};

/// The share of all processors' time that other processes may use before it counts as a disturbance. The kernel counts in ticks
/// of 10 ms; a busy loop on one of two processors uses half.
const OTHERS: f64 = 0.05;

/// The kernel's counters at the start of a measurement.
#[derive(Debug)]
pub struct Watch {
    drops: u64,
    ticks: Ticks,
}

/// Processor time since the machine's start, in the kernel's ticks, of all processors together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Ticks {
    /// All ticks, idle or not.
    all: u64,
    /// Ticks in use, or taken by other guests of the same host.
    busy: u64,
    /// Ticks used by this process and by the children that it has waited for.
    ours: u64,
}

impl Watch {
    /// Reads the counters.
    pub fn begin() -> Self {
        Self {
            drops: drops(),
            ticks: Ticks::now(),
        }
    }

    /// The disturbance by other processes since then, as text; `None` if there was none that counts.
    pub fn disturbed(&self) -> Option<String> {
        let drops = drops() - self.drops;
        let others = self.ticks.others(Ticks::now());
        let mut said = Vec::new();
        if drops > 0 {
            said.push(format!("the page cache was emptied, times: {drops}"));
        }
        if others > OTHERS {
            let percent = others * 100.0;
            said.push(format!(
                "others took {percent:.0} % of the processors' time"
            ));
        }
        (!said.is_empty()).then(|| said.join("; "))
    }
}

impl Ticks {
    fn now() -> Self {
        let machine = fs::read_to_string("/proc/stat").unwrap_or_default();
        let process = procfs::stat(std::process::id()).unwrap_or_default();
        Self::parse(&machine, &process)
    }

    /// Parses the texts of `/proc/stat` and `/proc/self/stat`; zeros if a text has another format.
    fn parse(machine: &str, process: &[u8]) -> Self {
        let number = |word: &str| word.parse::<u64>().unwrap_or(0);
        // user nice system idle iowait irq softirq steal; guests' time is in user and nice already.
        let columns = machine.lines().next().unwrap_or("").split_whitespace();
        let columns: Vec<u64> = columns.skip(1).take(8).map(number).collect();
        let all: u64 = columns.iter().sum();
        let idle: u64 = columns.iter().skip(3).take(2).sum();
        let ours = Stat::of(process).map_or(0, |fields| {
            let times = Stat::TIMES.filter_map(|field| fields.number::<u64>(field));
            times.sum()
        });
        Self {
            all,
            busy: all - idle,
            ours,
        }
    }

    /// The share of all processors' time between `self` and `later` that other processes used.
    fn others(self, later: Self) -> f64 {
        let all = later.all.saturating_sub(self.all);
        let ours = later.ours.saturating_sub(self.ours);
        let busy = later.busy.saturating_sub(self.busy);
        busy.saturating_sub(ours) as f64 / all.max(1) as f64
    }
}

/// How many times the page cache has been dropped by request since the machine's start.
fn drops() -> u64 {
    let counters = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let count = counters
        .lines()
        .find_map(|line| line.strip_prefix("drop_pagecache "));
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_told_from_this_process_and_its_children() {
        let before = Ticks::parse(
            "cpu  100 10 50 800 40 0 0 0 0 0\ncpu0 1 2 3\n",
            b"7 (a b) c) S 1 7 7 0 -1 0 0 0 0 0 10 5 3 2 20 0 1 0",
        );
        let expected = Ticks {
            all: 1000,
            busy: 160,
            ours: 20,
        };
        assert_eq!(before, expected);
        let later = Ticks::parse(
            "cpu  150 10 60 830 40 0 0 10 0 0\n",
            b"7 (a) S 1 7 7 0 -1 0 0 0 0 0 30 5 13 2 20 0 1 0",
        );
        // 70 of 100 ticks were busy, 30 of them ours.
        assert!((before.others(later) - 0.4).abs() < 1e-9);
        assert_eq!(Ticks::parse("", b""), Ticks::default());
    }
}
