//! Whether a program that has read its plan to the end is worth watching: by how many of its reads waited since.

/// Reads weighed at a time.
const WEIGHED: u64 = 1024;
/// One read in this many has to have waited for a program to be worth watching.
const WORTH: u64 = 32;

/// Reads weighed, and how many of them waited.
#[derive(Debug, Default)]
pub(crate) struct Worth {
    reads: u64,
    waited: u64,
}

impl Worth {
    /// Weigh a read; whether the program is not worth watching any more.
    pub(crate) fn weigh(&mut self, waited: bool) -> bool {
        self.reads += 1;
        self.waited += u64::from(waited);
        if self.reads < WEIGHED {
            return false;
        }
        let few = self.waited * WORTH < WEIGHED;
        *self = Self::default();
        few
    }
}
