//! What a session is given to work with.

/// Sizes of one session.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Entries the plan queue holds.
    pub queue_entries: usize,
    /// The budget to start from, in pages.
    pub budget_pages: u64,
    /// How many pages the budget may have now: asked when it is as large as it may be, filled, and everything stays
    /// in memory. Without, it rises to its start at most.
    pub free_pages: Option<fn() -> u64>,
    /// Give pages back that the session brought in and the program is past, once they and the unread
    /// ones exceed the budget: right where nobody else reads them.
    pub evict_behind: bool,
    /// Ask devices by position for what is read first in a first short pass, and in longer ones after it, until the
    /// program turns out to mostly wait: right where it computes between its reads. Without, all that there is
    /// room for is one pass, which takes the device least time.
    pub passes: bool,
    /// Adapt the budget by AIMD; without, it stays where it starts.
    pub adapt: bool,
    /// How many times longer the engine's timers are, and the times between two looks at what was fetched: 1 for one program that
    /// is kept ahead of. A session that lasts all day beside everybody's programs pays for each time that it wakes.
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
