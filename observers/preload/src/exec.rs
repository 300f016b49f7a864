//! The end of this program: exit, or another program in its place.

use crate::{maps, report};

/// The process is about to end or to become another program: says what is left to say.
///
/// An exec may yet fail, so nothing is taken down but this thread's ring, which the next
/// event claims again.
pub fn leaving() {
    if report::area().is_none() || !report::at_home() {
        return;
    }
    if let Some(area) = report::active().filter(|_| !report::is_mere_fork()) {
        maps::report_objects();
        maps::report_all_touched();
        report::emit_exit(area);
    }
    report::leave_seat();
}
