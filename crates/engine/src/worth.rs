//! Whether a program that has read its plan to the end is worth watching: by how many of its reads waited since.

/// Reads by which a program is judged not to wait any more: one that has read its plan to the end, and one whose
/// reads only a guess foretells. Ten times a lead of a hundred reads. Half and double: no simulated case differs.
pub const IDLE_READS: u32 = 1000;
/// One read in this many has to have waited for a program to be worth watching: at 100 µs a wait, 3 µs a read, sixty
/// times what observing one costs. Half and double: no simulated case differs.
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
