//! Finds the current runs of `foreread run` and `record`, and asks for their progress.
//!
//! A run does no work for this command until it is asked: it has no file and no socket for it. Its helper is found by its process name, and
//! the memory that it shares with the program by its open files. The question is put into this memory. The helper answers there at its next
//! poll ([`foreread_ring::Board`]): every few ms while it observes the program, and not at all otherwise.
//!
//! Data flow: /proc → helpers → [`Visit`] → [`Run`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::Duration;

use foreread::words;
use foreread_ring::Visit;
use foreread_run::Live;
use foreread_words::quoted;
use rustix::time::{ClockId, clock_gettime};
use serde::{Serialize, Serializer};

/// The helpers' process name, cut by the kernel to 15 bytes.
const HELPER: &str = "foreread-helper\n";
/// The shared memory's name among a process's open files.
const AREA: &str = "/memfd:foreread-ring (deleted)";
/// Time for an answer: a few of the longest intervals between two polls.
const ANSWER: Duration = Duration::from_millis(20);

/// A current run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Run {
    /// The process that the shell waits for.
    pub(crate) pid: u32,
    /// The command, quoted for a shell.
    pub(crate) command: String,
    /// Its duration so far, in ns.
    pub(crate) age_ns: u64,
    /// Its progress; `None` before its first answer.
    #[serde(serialize_with = "live")]
    pub(crate) live: Option<Live>,
}

fn live<S: Serializer>(live: &Option<Live>, out: S) -> Result<S::Ok, S::Error> {
    use serde::ser::SerializeStruct;

    let Some(live) = live else {
        return out.serialize_none();
    };
    let mut fields = out.serialize_struct("Live", 13)?;
    fields.serialize_field("how", how(live))?;
    fields.serialize_field("is_observed", &live.is_observed)?;
    fields.serialize_field("at_ns", &live.at_ns)?;
    fields.serialize_field("ahead_bytes", &live.ahead_bytes)?;
    fields.serialize_field("passed_bytes", &live.passed_bytes)?;
    fields.serialize_field("device_bytes", &live.device_bytes)?;
    fields.serialize_field("queue", &live.queue)?;
    fields.serialize_field("reads", &live.reads)?;
    fields.serialize_field("waited_ns", &live.waited_ns)?;
    fields.serialize_field("useful_bytes", &live.useful_bytes)?;
    fields.serialize_field("late_bytes", &live.late_bytes)?;
    fields.serialize_field("wasted_bytes", &live.wasted_bytes)?;
    fields.serialize_field("missed_bytes", &live.missed_bytes)?;
    fields.end()
}

/// The kind of prefetching of a run, in a word.
pub(crate) fn how(live: &Live) -> &'static str {
    use foreread_run::How;

    match live.how {
        How::Served => "record",
        How::Strayed => "strayed",
        How::Guessed => "patterns",
        How::Observed => "observed",
        How::Alone => "alone",
    }
}

/// The known runs.
#[derive(Default)]
pub(super) struct Runs(BTreeMap<u32, KnownRun>);

struct KnownRun {
    /// Start of its helper in the kernel's ticks, to distinguish it from a later process with this id.
    started: u64,
    front: u32,
    command: String,
    visit: Visit,
}

impl Runs {
    /// The current runs by process id. Only root sees those of other users.
    pub(super) fn look(&mut self) -> Vec<Run> {
        let mut there = Vec::new();
        for helper in helpers() {
            let Some((_, started)) = parent_and_start(helper) else {
                continue;
            };
            let Some(front) = front_of(helper) else {
                continue;
            };
            there.push(helper);
            if self
                .0
                .get(&helper)
                .is_none_or(|known| known.started != started)
            {
                self.0.remove(&helper);
                if let Some(visit) = visit(helper) {
                    let command = command(helper);
                    let known = KnownRun {
                        started,
                        front,
                        command,
                        visit,
                    };
                    self.0.insert(helper, known);
                }
            }
        }
        self.0.retain(|helper, _| there.contains(helper));
        for known in self.0.values() {
            known.visit.ask();
        }
        if !self.0.is_empty() {
            std::thread::sleep(ANSWER);
        }
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        let up = clock_gettime(ClockId::Boottime);
        let up = up.tv_sec as u64 * 1_000_000_000 + up.tv_nsec as u64;
        let runs = self.0.values().map(|known| {
            let started = u128::from(known.started) * 1_000_000_000 / u128::from(ticks);
            Run {
                pid: known.front,
                command: known.command.clone(),
                age_ns: up.saturating_sub(started.try_into().unwrap_or(u64::MAX)),
                live: known.visit.answer().and_then(Live::read),
            }
        });
        runs.collect()
    }
}

/// The processes with the helpers' name.
fn helpers() -> Vec<u32> {
    let Ok(all) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbers = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter(|pid| is_helper(*pid)).collect()
}

fn is_helper(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == HELPER)
}

/// The process that the shell waits for. It is the helper itself if the helper runs beside the program as nobody's child. `None` if the
/// process is no helper.
pub(crate) fn front_of(helper: u32) -> Option<u32> {
    let (parent, _) = parent_and_start(helper).filter(|_| is_helper(helper))?;
    let program = |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).ok();
    let is_front = program(parent).is_some_and(|one| Some(one) == program(helper));
    Some(if is_front { parent } else { helper })
}

/// The parent of a helper, and the helper's start in ticks.
fn parent_and_start(pid: u32) -> Option<(u32, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain anything; it ends at the last parenthesis.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    Some((parent, fields.nth(17)?.parse().ok()?))
}

/// The shared memory among a process's open files.
fn visit(pid: u32) -> Option<Visit> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let mut areas = open.filter_map(|entry| {
        let path = entry.ok()?.path();
        (fs::read_link(&path).ok()? == Path::new(AREA)).then_some(path)
    });
    areas.find_map(|path| Visit::at(&path).ok())
}

/// The command of a helper's run.
fn command(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    let all: Vec<OsString> = line
        .split(|byte| *byte == 0)
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect();
    let plain = words::run(all.iter().skip(1).cloned()).map(|run| run.command);
    let all = plain.unwrap_or(all);
    let all = all.iter().map(|word| quoted(&word.to_string_lossy()));
    all.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_parent_and_a_start_and_is_no_run() {
        let own = std::process::id();
        let (parent, started) = parent_and_start(own).expect("it runs");
        assert_eq!(parent, std::os::unix::process::parent_id());
        assert!(started > 0 && !helpers().contains(&own));
        assert!(visit(own).is_none() && front_of(own).is_none());
        assert!(parent_and_start(u32::MAX).is_none());
    }
}
