//! Whether the program can take foreread's place at once, because all that its record says is in memory.
//!
//! Everything here is found in the kernel's caches or not at all: no file system is asked, so none can hold the program up. Where
//! anything is missing, the helper process looks it up.
//!
//! Data flow: command → its record, if that is in memory → the record's sample, held against memory.

use foreread_plan::format::Record;

use super::RunArgs;
use super::observer::Choice;
use super::served::not_worth;

/// Why foreread did nothing, in words.
pub(super) const WHY: &str = "all of it was in memory already";
/// Of the runs whose plan is in memory one in so many is accompanied to its end, to find out whether the program still reads what
/// its record says.
const ACCOMPANIED: u32 = 16;

/// Whether the plan of the command is in memory, and nobody wants an account of the run.
pub(super) fn is_in_memory(args: &RunArgs) -> bool {
    let is_plain = args.prefetch && !args.redact && !args.explain;
    let has_files = args.json.is_some() || args.output.is_some();
    let is_accompanied = std::process::id().is_multiple_of(ACCOMPANIED);
    if !is_plain || has_files || is_accompanied || args.observer != Choice::Auto {
        return false;
    }
    let Some((found, outline)) = foreread_store::find_in_memory(&args.command) else {
        return false;
    };
    let handle = outline.handle();
    let record = Record::Outlined(Box::new(outline));
    // What differs from the record is said at the end of a run that is accompanied.
    if not_worth(&found, &record).is_none_or(|look| !look.differences.is_empty()) {
        return false;
    }
    foreread_store::mark_used(handle.file());
    true
}
