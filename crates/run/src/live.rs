//! The progress of a run, as reported to `foreread top`.
//!
//! Data flow: supervisor → [`Live::words`] → [`foreread_ring::Board`] → [`Live::read`], in another process.

use foreread_ring::BOARD_WORDS;

/// foreread's present work for the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Its record is fetched.
    Served,
    /// Nothing: the program does not follow its record.
    Strayed,
    /// Its reads form patterns, or may.
    Guessed,
    /// Its reads are observed, and nothing is fetched.
    Observed,
    /// Nothing: the program is not observed.
    Alone,
}

impl How {
    const ALL: [Self; 5] = [
        Self::Served,
        Self::Strayed,
        Self::Guessed,
        Self::Observed,
        Self::Alone,
    ];
}

/// Progress of a run. Counts are since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// foreread's present work.
    pub how: How,
    /// True if the program is observed. Otherwise the counts are those of the moment at which observation ended.
    pub is_observed: bool,
    /// ns into the run.
    pub at_ns: u64,
    /// Bytes fetched, or found in memory.
    pub ahead_bytes: u64,
    /// Bytes of these that the program has read.
    pub passed_bytes: u64,
    /// Bytes that the devices of its files have read, for anyone.
    pub device_bytes: u64,
    /// Requests that these devices have, of anyone.
    pub queue: u64,
    /// Reads that waited.
    pub reads: u64,
    /// Their waiting, in ns, summed over threads.
    pub waited_ns: u64,
    /// Fetched bytes that were in memory when they were read.
    pub useful_bytes: u64,
    /// Bytes that were waited for all the same.
    pub late_bytes: u64,
    /// Bytes that will not be read, if that is known already.
    pub wasted_bytes: Option<u64>,
    /// Bytes that were waited for, and not fetched.
    pub missed_bytes: u64,
}

/// The word for an unknown value.
const NOT_KNOWN: u64 = u64::MAX;

impl Live {
    /// As words of shared memory.
    pub(crate) fn words(&self) -> [u64; BOARD_WORDS] {
        [
            self.how as u64 | u64::from(self.is_observed) << 8,
            self.at_ns,
            self.ahead_bytes,
            self.passed_bytes,
            self.device_bytes,
            self.queue,
            self.reads,
            self.waited_ns,
            self.useful_bytes,
            self.late_bytes,
            self.wasted_bytes.unwrap_or(NOT_KNOWN),
            self.missed_bytes,
        ]
    }

    /// Out of words of shared memory, which may hold anything.
    pub fn read(words: [u64; BOARD_WORDS]) -> Option<Self> {
        let [
            first,
            at_ns,
            ahead_bytes,
            passed_bytes,
            device_bytes,
            queue,
            reads,
            waited_ns,
            useful_bytes,
            late_bytes,
            wasted_bytes,
            missed_bytes,
        ] = words;
        let how = usize::try_from(first & 0xff).ok()?;
        Some(Self {
            how: *How::ALL.get(how)?,
            is_observed: first >> 8 & 1 == 1,
            at_ns,
            ahead_bytes,
            passed_bytes,
            device_bytes,
            queue,
            reads,
            waited_ns,
            useful_bytes,
            late_bytes,
            wasted_bytes: Some(wasted_bytes).filter(|bytes| *bytes != NOT_KNOWN),
            missed_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_no_word_is_too_odd() {
        for how in How::ALL {
            for is_observed in [false, true] {
                let live = Live {
                    how,
                    is_observed,
                    at_ns: 1,
                    ahead_bytes: 2,
                    passed_bytes: 3,
                    device_bytes: 4,
                    queue: 5,
                    reads: 6,
                    waited_ns: 7,
                    useful_bytes: 8,
                    late_bytes: 9,
                    wasted_bytes: is_observed.then_some(10),
                    missed_bytes: 11,
                };
                assert_eq!(Live::read(live.words()), Some(live));
            }
        }
        assert_eq!(Live::read([u64::MAX; BOARD_WORDS]), None);
    }
}
