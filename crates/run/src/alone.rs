//! Whether the program can take foreread's place at once, because all that its record says is in memory, or has to.
//!
//! Everything here is found in the kernel's caches or not at all: no file system is asked, so none can hold the program up. Where
//! anything is missing, the helper process looks it up.
//!
//! Data flow: command → its record, if that is in memory → the record's sample, held against memory.

use foreread_core::Difference;
use foreread_core::cold::{Look, WORTH};
use foreread_plan::Summary;
use foreread_sys::processor;

use super::RunArgs;
use super::observer::Choice;
use super::served::not_worth;
use super::summary::Why;

/// Of the runs whose plan is in memory one in so many is accompanied to its end, to find out whether the program still reads what
/// its record says.
const ACCOMPANIED: u32 = 16;

/// Why foreread did nothing for a service that reports to its manager, if it cannot live beside the service.
pub(super) const LISTENED_TO: &str = "its service manager listens to the process that it has started, which the program has to be (NOTIFY_SOCKET)";

/// Whether a service manager has started this process, and listens to it alone: it refuses messages of a child, such as "ready". The
/// manager may be an ancestor's; systemd (since version 248) names the process that it has started.
pub(super) fn is_listened_to() -> bool {
    let started = std::env::var("SYSTEMD_EXEC_PID").ok();
    let is_own = |pid: String| pid == std::process::id().to_string();
    std::env::var_os("NOTIFY_SOCKET").is_some() && started.is_none_or(is_own)
}

/// If the plan of the command is in memory, and no account of the run is wanted: the unobserved parts of the recorded run, in
/// sentences, and why foreread does nothing.
pub(super) fn is_in_memory(args: &RunArgs) -> Option<(Vec<String>, Why)> {
    let is_plain = args.prefetch && !args.redact && !args.explain && args.map.is_empty();
    let has_files = args.json.is_some() || args.output.is_some();
    let is_accompanied = std::process::id().is_multiple_of(ACCOMPANIED);
    if !is_plain || has_files || is_accompanied || args.observer != Choice::Auto {
        return None;
    }
    let (found, record) = foreread_store::find_in_memory(&args.command)?;
    // What differs from the record is said at the end of a run that is accompanied.
    let is_copy = |(_, how): &(_, Difference)| *how == Difference::Copied;
    let look = not_worth(&found, &record, &record.files())
        .filter(|look| look.differences.iter().all(is_copy))?;
    let summary = record.summary()?;
    if summary.is_half_unseen() && args.observer.may_be_kernel() {
        return None;
    }
    foreread_store::mark_used(record.handle().file());
    Some((summary.unobserved.clone(), why(&look, summary)))
}

/// Why nothing is done for a program of whose plan this was found in memory, by the foot of its record.
pub(super) fn why(look: &Look, recorded: &Summary) -> Why {
    match (look.missing, look.gain(recorded, processor::count())) {
        (1.., Some(gain_ns)) => Why::LittleGain {
            gain_ns,
            cost_ns: WORTH,
        },
        _ => Why::InMemory,
    }
}
