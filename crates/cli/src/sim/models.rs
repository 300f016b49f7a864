//! The models by the names that the command line has for them.
//!
//! `last`; `trie:ORDER`; `pcm:SIZE/ORDER`; `epcm:SIZE/ORDER`, and with `+JUMP` at the end partition jumping.

use std::fmt;
use std::str::FromStr;

use foreread_sources::files::{Epcm, LastSuccessor, Levels, Model, Pcm, Shape, Trie};

/// Files that a model knows, at most: a partition of 64 nodes takes 1.3 KiB, all of them 340 MiB.
const FILES: usize = 1 << 18;
/// Contexts that are followed at once.
const CONTEXTS: usize = 1 << 12;
/// Nodes of a trie, at most: 24 bytes and a place in a list each.
const NODES: usize = 1 << 23;
/// The largest partition.
const MOST_NODES: usize = 4096;
/// The longest jump: as many events of each context are remembered.
const MOST_JUMP: usize = 64;

/// A model with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Last,
    Trie {
        order: usize,
    },
    Pcm {
        size: usize,
        order: usize,
    },
    Epcm {
        size: usize,
        order: usize,
        jump: usize,
    },
}

/// Which sequences of events a model learns from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sequences {
    /// Those of each process, and where they say nothing the machine's
    Both,
    /// Those of each process
    Process,
    /// The machine's whole sequence, as in the paper
    Machine,
}

impl Named {
    /// What is compared unless asked otherwise: the paper's models with its parameters, and jumps.
    pub(crate) const USUAL: [Named; 5] = [
        Named::Last,
        Named::Trie { order: 8 },
        Named::Pcm { size: 64, order: 8 },
        Named::Epcm {
            size: 64,
            order: 51,
            jump: 0,
        },
        Named::Epcm {
            size: 64,
            order: 51,
            jump: 8,
        },
    ];

    /// The model, knowing nothing.
    pub(crate) fn make(self, sequences: Sequences) -> Box<dyn Model> {
        if sequences == Sequences::Both {
            return Box::new(Levels::new(self.one(), self.one()));
        }
        self.one()
    }

    fn one(self) -> Box<dyn Model> {
        let shape = |size, order| Shape {
            size,
            order,
            partitions: FILES,
            contexts: CONTEXTS,
        };
        match self {
            Named::Last => Box::new(LastSuccessor::new(FILES, CONTEXTS)),
            Named::Trie { order } => Box::new(Trie::new(order, NODES, CONTEXTS)),
            Named::Pcm { size, order } => Box::new(Pcm::new(shape(size, order))),
            Named::Epcm { size, order, jump } => Box::new(Epcm::new(shape(size, order), jump)),
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Named::Last => write!(f, "last"),
            Named::Trie { order } => write!(f, "trie:{order}"),
            Named::Pcm { size, order } => write!(f, "pcm:{size}/{order}"),
            Named::Epcm {
                size,
                order,
                jump: 0,
            } => write!(f, "epcm:{size}/{order}"),
            Named::Epcm { size, order, jump } => write!(f, "epcm:{size}/{order}+{jump}"),
        }
    }
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str, range: std::ops::RangeInclusive<usize>| {
            let number = text.parse().ok().filter(|number| range.contains(number));
            number.ok_or_else(|| {
                format!(
                    "{text:?} is no number from {} to {}",
                    range.start(),
                    range.end()
                )
            })
        };
        let (name, shape) = text.split_once(':').unwrap_or((text, ""));
        let (shape, jump) = shape.split_once('+').unwrap_or((shape, "0"));
        let (size, order) = shape.split_once('/').unwrap_or((shape, ""));
        let size_of = |default| match size {
            "" => Ok(default),
            size => number(size, 2..=MOST_NODES),
        };
        let order_of = |default| match order {
            "" => Ok(default),
            order => number(order, 2..=MOST_NODES),
        };
        let named = match name {
            "last" if shape.is_empty() => Named::Last,
            "trie" if order.is_empty() => Named::Trie { order: size_of(8)? },
            "pcm" => Named::Pcm {
                size: size_of(64)?,
                order: order_of(8)?,
            },
            "epcm" => {
                let size = size_of(64)?;
                let order = order_of(Epcm::shape(size, 0, 0).order)?;
                let jump = number(jump, 0..=MOST_JUMP)?;
                return Ok(Named::Epcm { size, order, jump });
            }
            _ => {
                return Err(format!(
                    "{text:?} is no model (last, trie:ORDER, pcm:SIZE/ORDER, epcm:SIZE/ORDER+JUMP)"
                ));
            }
        };
        match jump {
            "0" => Ok(named),
            _ => Err(format!("{name} does not jump")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_name_is_read_as_it_is_printed() {
        for named in Named::USUAL {
            assert_eq!(named.to_string().parse(), Ok(named));
        }
        let short = Named::Epcm {
            size: 100,
            order: 80,
            jump: 0,
        };
        assert_eq!("epcm:100".parse(), Ok(short));
        for wrong in [
            "",
            "lru",
            "last:3",
            "pcm:1/2",
            "pcm:64/8+2",
            "epcm:64/x",
            "trie:5000",
        ] {
            assert!(wrong.parse::<Named>().is_err(), "{wrong}");
        }
    }
}
