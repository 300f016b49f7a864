//! Why a run gained nothing: six reasons, and no others.
//!
//! The line after a run, `foreread explain` and `foreread report` take their sentence from here. A failure of foreread itself, such as an
//! unwritable folder of records, is reported separately.

use foreread_words::units::{bytes, duration};
use serde::{Deserialize, Serialize};

/// Why a run gained nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum Why {
    /// The whole plan was in memory.
    InMemory,
    /// Files are read from front to back: the kernel reads ahead.
    FrontToBack,
    /// There is less to be gained than following a program costs.
    LittleGain {
        /// The possible gain, in ns.
        gain_ns: u64,
        /// The cost of following, in ns.
        cost_ns: u64,
    },
    /// The program does something else than when it was recorded.
    Left {
        /// The number of the first read that was not in the record.
        read: u64,
        /// Its file and offset in bytes, if they are known.
        at: Option<(String, u64)>,
        /// Reads from there on.
        since: u64,
    },
    /// There was too little memory.
    LittleMemory {
        /// Bytes that were fetched, and bytes of these that were gone before they were read.
        fetched: u64,
        /// Bytes of these that were evicted.
        gone: u64,
    },
    /// Processes could not be observed.
    Unobserved {
        /// The real reason for each, in sentences.
        because: Vec<String>,
    },
}

impl Why {
    /// The sentence, without its full stop, about a program of this name.
    pub fn sentence(&self, program: &str) -> String {
        match self {
            Self::InMemory => "all of it was in memory already".to_owned(),
            Self::FrontToBack => format!(
                "{program} reads its files from front to back, and the kernel reads ahead of that by itself"
            ),
            Self::LittleGain { gain_ns, cost_ns } => format!(
                "fetching ahead could save {}, and observing {program} costs {}",
                duration(*gain_ns),
                duration(*cost_ns)
            ),
            Self::Left { read, at, since } => {
                let place = at.as_ref().map(|(file, offset)| {
                    format!(" ({file} at offset {offset}; {since} reads since then)")
                });
                let place = place.unwrap_or_default();
                format!("{program} left its record at read {read}{place}")
            }
            Self::LittleMemory { fetched, gone } => format!(
                "memory was short: {} of the {} fetched had left it again before they were read",
                bytes(*gone),
                bytes(*fetched)
            ),
            Self::Unobserved { because } => because.join("; "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_one_sentence_with_its_numbers() {
        let said = |why: Why| why.sentence("sort");
        assert_eq!(
            said(Why::LittleGain {
                gain_ns: 3_100_000,
                cost_ns: 5_000_000
            }),
            "fetching ahead could save 3.10 ms, and observing sort costs 5.00 ms"
        );
        assert_eq!(
            said(Why::Left {
                read: 12,
                at: Some(("/srv/a".into(), 8192)),
                since: 40
            }),
            "sort left its record at read 12 (/srv/a at offset 8192; 40 reads since then)"
        );
        assert_eq!(
            said(Why::LittleMemory {
                fetched: 8 << 20,
                gone: 6 << 20
            }),
            "memory was short: 6.00 MiB of the 8.00 MiB fetched had left it again before they were read"
        );
    }
}
