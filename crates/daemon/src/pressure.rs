//! Detects a lack of memory or of device time, in which nothing is fetched.
//!
//! The kernel reports for how much of the last ten seconds tasks have waited for either (PSI). The daemon's purpose is to shorten waits for
//! devices, so a busy device is a reason to pause only if others keep it busy: if most of the bytes that programs have fetched from it went
//! to process trees without predictions.
//!
//! Data flow: `/proc/pressure` and [`Pressure::fetched`] → [`Pressure::reason`].

use std::fs;
use std::path::PathBuf;

use foreread_sys::pressure::lost_in;
use rustc_hash::FxHashMap;

/// Share of time, in %, that some task waited for memory, from which on nothing is fetched: a machine with free memory shows 0.
const MEMORY_SOME: f64 = 10.0;
/// And that all did.
const MEMORY_FULL: f64 = 2.0;
/// Share of time that some task waited for devices, from which on it matters for whom.
const IO_SOME: f64 = 40.0;
/// Bytes fetched by programs below which their share is not judged.
const TELLING: u64 = 4 << 20;
/// Number of devices distinguished; bytes from more devices are not counted.
const DEVICES: usize = 64;
/// Interval of questions to the kernel, in ns. Its averages move every two seconds, but a cold start that lasts half a second is paid for
/// by the time it has lost so far ([`upkeep`](crate::upkeep)). Asking for both took 66 µs of processor time beside a compile: 0.07 %.
const EVERY: u64 = 100_000_000;
/// Approximate time for which bytes count, in ns: as long as the kernel's figures are new. With 10 s a compile's first, unpredicted run
/// blocked the predictions for its third run, 8 s later.
const FADES: u64 = 1_000_000_000;

/// The kernel's figure for one resource, in % of the last ten seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Stall {
    some: f64,
    full: f64,
    /// Processor time since the system started in which all tasks waited, in ns.
    lost: u64,
}

impl Stall {
    /// Parses the text of a file below `/proc/pressure`.
    pub(crate) fn parse(text: &str) -> Self {
        let value = |word: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(word))?;
            let value = line.trim_start().strip_prefix("avg10=")?;
            value.split(' ').next()?.parse().ok()
        };
        Self {
            some: value("some").unwrap_or(0.0),
            full: value("full").unwrap_or(0.0),
            lost: lost_in(text),
        }
    }
}

/// The figures for both resources.
#[derive(Debug, Default)]
pub(crate) struct Pressure {
    /// Folder of the kernel's files.
    folder: PathBuf,
    asked: Option<u64>,
    memory: Stall,
    io: Stall,
    /// Bytes that programs have fetched from each device, and of these those for process trees that nothing is predicted for.
    fetched: FxHashMap<u64, (u64, u64)>,
    faded: u64,
}

impl Pressure {
    /// Reads the figures from the files of this folder: `/proc/pressure`.
    pub(crate) fn at(folder: PathBuf) -> Self {
        Self {
            folder,
            ..Self::default()
        }
    }

    /// A program has fetched this many bytes from a device; `is_ours` if anything is predicted for its process tree.
    pub(crate) fn fetched(&mut self, device: u64, bytes: u64, is_ours: bool, now: u64) {
        self.fade(now);
        if self.fetched.len() >= DEVICES && !self.fetched.contains_key(&device) {
            return;
        }
        let (all, foreign) = self.fetched.entry(device).or_default();
        *all += bytes;
        *foreign += if is_ours { 0 } else { bytes };
    }

    fn fade(&mut self, now: u64) {
        while now.saturating_sub(self.faded) > FADES && !self.fetched.is_empty() {
            self.fetched.retain(|_, (all, foreign)| {
                *all /= 2;
                *foreign /= 2;
                *all > 0
            });
            self.faded += FADES;
        }
        if self.fetched.is_empty() {
            self.faded = now;
        }
    }

    /// Why nothing is to be fetched from a device at present, or from some device.
    pub(crate) fn reason(&mut self, device: Option<u64>, now: u64) -> Option<String> {
        self.ask(now);
        self.fade(now);
        self.judge(device)
    }

    /// Processor time, in ns, in which all tasks waited for devices, since the system started; 0 if unknown.
    pub(crate) fn lost(&mut self, now: u64) -> u64 {
        self.ask(now);
        self.io.lost
    }

    fn ask(&mut self, now: u64) {
        if self.asked.is_none_or(|at| now.saturating_sub(at) >= EVERY) {
            self.asked = Some(now);
            // A kernel without PSI says nothing, and shows no pressure.
            let read = |name: &str| {
                let text = fs::read_to_string(self.folder.join(name));
                Stall::parse(&text.unwrap_or_default())
            };
            (self.memory, self.io) = (read("memory"), read("io"));
        }
    }

    fn judge(&self, device: Option<u64>) -> Option<String> {
        let Stall { some, full, .. } = self.memory;
        if some >= MEMORY_SOME || full >= MEMORY_FULL {
            return Some(format!(
                "memory is short: tasks wait {some:.0} % of the time"
            ));
        }
        let some = self.io.some;
        let is_foreign = |&(all, foreign): &(u64, u64)| all >= TELLING && foreign > all / 2;
        let for_others = match device {
            Some(device) => self.fetched.get(&device).is_some_and(is_foreign),
            None => self.fetched.values().any(is_foreign),
        };
        (some >= IO_SOME && for_others)
            .then(|| format!("others use the devices: tasks wait {some:.0} % of the time"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "some avg10=41.50 avg60=0.09 avg300=0.10 total=28916441\n\
                        full avg10=0.25 avg60=0.00 avg300=0.00 total=10376998\n";

    #[test]
    fn what_the_kernel_says_is_understood() {
        let stall = Stall::parse(TEXT);
        assert_eq!(
            (stall.some, stall.full, stall.lost),
            (41.5, 0.25, 10_376_998_000)
        );
        assert_eq!(Stall::parse(""), Stall::default());
    }

    #[test]
    fn devices_that_are_waited_for_hold_back_only_where_others_wait() {
        let busy = |is_ours| {
            let mut pressure = Pressure {
                io: Stall::parse(TEXT),
                asked: Some(0),
                ..Pressure::default()
            };
            pressure.fetched(7, TELLING, is_ours, 0);
            assert_eq!(pressure.reason(Some(8), 1), None, "another device");
            pressure.reason(Some(7), 1)
        };
        assert_eq!(busy(true), None);
        assert!(busy(false).is_some_and(|why| why.contains("others")));
        let mut before = Pressure {
            io: Stall::parse(TEXT),
            asked: Some(10 * FADES),
            ..Pressure::default()
        };
        before.fetched(7, 8 * TELLING, false, 0);
        assert!(before.reason(None, 1).is_some());
        assert_eq!(before.reason(None, 10 * FADES), None, "others have ended");
        let short = Pressure {
            memory: Stall::parse(TEXT),
            ..Pressure::default()
        };
        assert!(short.judge(None).is_some_and(|why| why.contains("memory")));
    }
}
