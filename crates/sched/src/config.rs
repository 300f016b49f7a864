//! Configuration of a session.

/// Sizes of one session.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Entries the plan queue holds.
    pub queue_entries: usize,
    /// The budget to start from, in pages.
    pub budget_pages: u64,
    /// Measures the pages that the budget may have. It is called when the budget is at its ceiling, filled, and no page was evicted.
    /// Without it the budget never exceeds its initial value.
    pub free_pages: Option<fn() -> u64>,
    /// Give pages back that the session brought in and the program is past, once they and the unread
    /// ones exceed the budget: right where nobody else reads them.
    pub evict_behind: bool,
    /// Serve devices that are read by position in passes: a short one with the program's first reads, then longer ones, until the program
    /// proves I/O-bound. Passes suit a program that computes between its reads. Without them everything that fits in memory is one pass,
    /// which takes the device the least time.
    pub passes: bool,
    /// Adapt the budget by AIMD; without, it stays where it starts.
    pub adapt: bool,
    /// Factor of the engine's timers and of the time between two checks of fetched pages: 1 for a session that follows one program. A
    /// session that lasts all day beside other programs pays for each wake-up.
    pub calm: u32,
}

impl Default for Config {
    /// A queue of 256 Ki entries (under 6 MiB), a budget of 256 MiB, nothing given back, one pass.
    fn default() -> Self {
        Self {
            queue_entries: 1 << 18,
            budget_pages: 1 << 16,
            free_pages: None,
            evict_behind: false,
            passes: false,
            adapt: true,
            calm: 1,
        }
    }
}
