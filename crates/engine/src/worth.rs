//! Whether a program that has read its plan to the end is worth watching: by how many of its reads waited since.

/// After this many reads without a wait a program counts as no longer waiting. This is asked once its plan is read to the
/// end, or while only guesses predict its reads. Ten times a lead of a hundred reads.
pub const IDLE_READS: u32 = 1000;
/// One read in this many must have waited for a program to be worth observing: at 100 µs a wait, 3 µs a read, sixty times
/// the cost of observing one.
const WORTH: u32 = 32;

/// Reads weighed, and how many of them waited.
#[derive(Debug, Default)]
pub(crate) struct Worth {
    reads: u32,
    waited: u32,
}

impl Worth {
    /// Weigh a read; whether the program is not worth watching any more.
    pub(crate) fn weigh(&mut self, waited: bool) -> bool {
        self.reads += 1;
        self.waited += u32::from(waited);
        if self.reads < IDLE_READS {
            return false;
        }
        let few = self.waited * WORTH < IDLE_READS;
        *self = Self::default();
        few
    }
}
