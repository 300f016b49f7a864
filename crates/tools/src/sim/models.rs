//! The models, with their names on the command line.
//!
//! `last`; `trie:ORDER`; `pcm:SIZE/ORDER`; `epcm:SIZE/ORDER`; `epcm:SIZE/ORDER+JUMP` with partition jumping; `ahead:…` in place of `epcm:…`
//! is the daemon's model, which looks ahead.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use foreread_sources::files::{
    Epcm, Folded, LastSuccessor, Levels, Model, Pcm, Shape, StartUps, Trie,
};

/// The largest partition.
const MOST_NODES: usize = 4096;
/// The longest jump: each context remembers this many events.
const MOST_JUMP: usize = 64;
/// Default order of the trie and of PCM.
const ORDER: usize = 8;
/// Default size of partitions: the largest in the paper.
const SIZE: usize = 64;

/// Limits of models, caches and tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Files known by each model and each cache.
    pub(crate) files: usize,
    /// Contexts followed at the same time.
    pub(crate) contexts: usize,
    /// Nodes of a trie: 24 bytes and a place in a list each.
    pub(crate) nodes: usize,
}

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
        ahead: bool,
    },
}

/// A kind of model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Last,
    Trie,
    Pcm,
    Epcm,
    Ahead,
}

/// A model as given on the command line. Missing parameters are taken from the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModelChoice {
    sort: Sort,
    size: Option<usize>,
    order: Option<usize>,
    jump: usize,
}

/// Sequences of events that a model learns from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sequences {
    /// Each process's, then the machine's where the process's predicts nothing
    Both,
    /// Each process's
    Process,
    /// The machine's single sequence, as in the paper
    Machine,
}

impl ModelChoice {
    /// The default models: the paper's with its parameters, and partition jumping.
    pub(crate) const USUAL: [ModelChoice; 6] = [
        ModelChoice::any(Sort::Last, 0),
        ModelChoice::any(Sort::Trie, 0),
        ModelChoice::any(Sort::Pcm, 0),
        ModelChoice::any(Sort::Epcm, 0),
        ModelChoice::any(Sort::Epcm, 8),
        ModelChoice::any(Sort::Ahead, 8),
    ];

    const fn any(sort: Sort, jump: usize) -> Self {
        Self {
            sort,
            size: None,
            order: None,
            jump,
        }
    }

    /// Expands missing parameters to all sizes and orders of the lists. Orders above the size are left out, because a pattern cannot be
    /// longer than its partition has nodes.
    pub(crate) fn each(self, sizes: &[usize], orders: &[usize]) -> Vec<Named> {
        let listed = |given: Option<usize>, list: &[usize], usual| match (given, list) {
            (Some(given), _) => vec![given],
            (None, []) => vec![usual],
            (None, list) => list.to_vec(),
        };
        let sizes = listed(self.size, sizes, SIZE);
        match self.sort {
            Sort::Last => vec![Named::Last],
            Sort::Trie => {
                let orders = listed(self.order, orders, ORDER).into_iter();
                orders.map(|order| Named::Trie { order }).collect()
            }
            Sort::Pcm => shapes(&sizes, |_| listed(self.order, orders, ORDER))
                .map(|(size, order)| Named::Pcm { size, order })
                .collect(),
            Sort::Epcm | Sort::Ahead => {
                let usual = Epcm::usual_order;
                shapes(&sizes, |size| listed(self.order, orders, usual(size)))
                    .map(|(size, order)| Named::Epcm {
                        size,
                        order,
                        jump: self.jump,
                        ahead: self.sort == Sort::Ahead,
                    })
                    .collect()
            }
        }
    }
}

/// Sizes with the orders that fit them.
fn shapes(
    sizes: &[usize],
    orders: impl Fn(usize) -> Vec<usize>,
) -> impl Iterator<Item = (usize, usize)> {
    sizes.iter().flat_map(move |&size| {
        let fitting = orders(size).into_iter().filter(move |order| *order <= size);
        fitting.map(move |order| (size, order))
    })
}

impl Named {
    /// The model, before any training.
    pub(crate) fn make(self, sequences: Sequences, limits: Limits) -> Box<dyn Model> {
        let model: Box<dyn Model> = match sequences {
            Sequences::Both => Box::new(Levels::new(self.one(limits), self.one(limits))),
            Sequences::Machine | Sequences::Process => self.one(limits),
        };
        match self {
            // The daemon's setting.
            Named::Epcm { ahead: true, .. } => {
                Box::new(Folded::new(model, StartUps::default(), limits.contexts))
            }
            _ => model,
        }
    }

    fn one(self, limits: Limits) -> Box<dyn Model> {
        let Limits {
            files,
            contexts,
            nodes,
        } = limits;
        let shape = |size, order| Shape {
            size,
            order,
            partitions: files,
            contexts,
        };
        match self {
            Named::Last => Box::new(LastSuccessor::new(files, contexts)),
            Named::Trie { order } => Box::new(Trie::new(order, nodes, contexts)),
            Named::Pcm { size, order } => Box::new(Pcm::new(shape(size, order))),
            Named::Epcm {
                size,
                order,
                jump,
                ahead,
            } => {
                let model = Epcm::new(shape(size, order), jump);
                Box::new(if ahead { model.looking_ahead() } else { model })
            }
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
                jump,
                ahead,
            } => {
                let name = if *ahead { "ahead" } else { "epcm" };
                write!(f, "{name}:{size}/{order}")?;
                match jump {
                    0 => Ok(()),
                    jump => write!(f, "+{jump}"),
                }
            }
        }
    }
}

/// Parses a parameter.
pub(crate) fn parameter(text: &str) -> Result<usize, String> {
    number(text, 2..=MOST_NODES)
}

fn number(text: &str, range: RangeInclusive<usize>) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        format!(
            "{text:?} is no number from {} to {}",
            range.start(),
            range.end()
        )
    })
}

impl FromStr for ModelChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let given = |text: &str| match text {
            "" => Ok(None),
            text => parameter(text).map(Some),
        };
        let (name, shape) = text.split_once(':').unwrap_or((text, ""));
        let (shape, jump) = shape.split_once('+').unwrap_or((shape, "0"));
        let (size, order) = shape.split_once('/').unwrap_or((shape, ""));
        let jump = number(jump, 0..=MOST_JUMP)?;
        let (sort, size, order) = match name {
            "last" if shape.is_empty() => (Sort::Last, None, None),
            "trie" if order.is_empty() => (Sort::Trie, None, given(size)?),
            "pcm" => (Sort::Pcm, given(size)?, given(order)?),
            "epcm" => (Sort::Epcm, given(size)?, given(order)?),
            "ahead" => (Sort::Ahead, given(size)?, given(order)?),
            _ => {
                return Err(format!(
                    "{text:?} is no model (last, trie:ORDER, pcm:SIZE/ORDER, epcm:SIZE/ORDER+JUMP, ahead:SIZE/ORDER+JUMP)"
                ));
            }
        };
        if jump > 0 && !matches!(sort, Sort::Epcm | Sort::Ahead) {
            return Err(format!("{name} does not jump"));
        }
        Ok(Self {
            sort,
            size,
            order,
            jump,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(text: &str, sizes: &[usize], orders: &[usize]) -> Vec<String> {
        let asked: ModelChoice = text.parse().expect("a model");
        let named = asked.each(sizes, orders).into_iter();
        named.map(|named| named.to_string()).collect()
    }

    #[test]
    fn a_models_name_is_read_as_it_is_printed() {
        for text in [
            "last",
            "trie:8",
            "pcm:64/8",
            "epcm:64/51",
            "epcm:64/51+8",
            "ahead:64/51",
            "ahead:64/51+8",
        ] {
            assert_eq!(each(text, &[2], &[2]), [text], "its own parameters stand");
        }
        let usual = ModelChoice::USUAL.iter().flat_map(|one| one.each(&[], &[]));
        let usual: Vec<String> = usual.map(|named| named.to_string()).collect();
        assert_eq!(
            usual,
            [
                "last",
                "trie:8",
                "pcm:64/8",
                "epcm:64/51",
                "epcm:64/51+8",
                "ahead:64/51+8"
            ]
        );
        assert_eq!(each("epcm:100", &[], &[]), ["epcm:100/80"]);
        for wrong in [
            "",
            "lru",
            "last:3",
            "pcm:1/2",
            "pcm:64/8+2",
            "epcm:64/x",
            "trie:5000",
        ] {
            assert!(wrong.parse::<ModelChoice>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn parameters_left_open_stand_for_each_of_the_lists_that_fits() {
        let (sizes, orders) = (&[16, 64], &[4, 45]);
        assert_eq!(each("last", sizes, orders), ["last"]);
        assert_eq!(each("trie", sizes, orders), ["trie:4", "trie:45"]);
        assert_eq!(
            each("epcm:+8", sizes, orders),
            ["epcm:16/4+8", "epcm:64/4+8", "epcm:64/45+8"]
        );
        assert_eq!(each("epcm", sizes, &[]), ["epcm:16/12", "epcm:64/51"]);
        assert_eq!(each("pcm:32", sizes, orders), ["pcm:32/4"]);
    }
}
