//! Decides whether the program replaces foreread's process at once, because its whole plan is in memory or because it must.
//!
//! Every answer here comes from the kernel's caches. No file system is called, so none can delay the program. If an answer is missing, the
//! helper process finds it.
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

/// Of the runs whose plan is in memory, one in this many is observed to its end, to check that the program still reads what its record
/// says.
const ACCOMPANIED: u32 = 16;

/// The reason why foreread did nothing for a service that reports to its manager, if it cannot run beside the service.
pub(super) const LISTENED_TO: &str = "its service manager listens to the process that it has started, which the program has to be (NOTIFY_SOCKET)";

/// True if a service manager started this process and accepts messages of this process only: it ignores a child's message such as "ready".
/// The environment may come from an ancestor's manager; systemd names the process that it started (since version 248).
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
    // Differences from the record are reported at the end of an observed run.
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

/// The reason for doing nothing if the look found the plan in memory, from the foot of the program's record.
pub(super) fn why(look: &Look, recorded: &Summary) -> Why {
    match (look.missing, look.gain(recorded, processor::count())) {
        (1.., Some(gain_ns)) => Why::LittleGain {
            gain_ns,
            cost_ns: WORTH,
        },
        _ => Why::InMemory,
    }
}
