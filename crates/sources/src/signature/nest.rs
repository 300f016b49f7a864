//! One thread's reads of one file as nested loops: the recogniser, or a signature learnt from another file, with the disclosed reads.

use std::iter::Peekable;
use std::sync::Arc;

use foreread_plan::Extent;

use super::adjust::{Learnt, Model};
use super::builder::{Ahead, Builder, Limits};
use super::lead::{Caution, Lead, Pause};
use super::pattern::Loop;
use super::rounded::{self, Fit, Rounding};

/// The relation of a read to a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// The nest predicted it.
    Right,
    /// The nest allows this read but predicted another one: the disclosed reads are void.
    Near,
    /// Another read was predicted: this many disclosed reads are void.
    Wrong(u64),
    /// No read was predicted.
    Nothing,
}

/// The nest of one thread's reads of one file.
#[derive(Clone, Debug)]
pub(super) struct Nest {
    builder: Builder,
    /// Recogniser of loops whose offsets are rounded.
    rounding: Rounding,
    /// A signature learnt elsewhere, while it holds.
    model: Option<Model>,
    pub(super) lead: Lead,
    /// The reads after the disclosed ones.
    ahead: Option<Peekable<Predicted>>,
    caution: Caution,
    rest: Pause,
}

/// The reads that a nest expects.
#[derive(Clone, Debug)]
pub(super) enum Predicted {
    Built(Ahead),
    Rounded(rounded::Ahead),
    Learnt(Model),
}

impl Iterator for Predicted {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        match self {
            Self::Built(ahead) => ahead.next(),
            Self::Rounded(ahead) => ahead.next(),
            Self::Learnt(model) => model.next(),
        }
    }
}

impl Nest {
    /// A nest for a thread and a file that begin at this read of all.
    pub(super) fn new(now: u64) -> Self {
        Self {
            builder: Builder::new(Limits::ONLINE),
            rounding: Rounding::default(),
            model: None,
            lead: Lead::new(now, now),
            ahead: None,
            caution: Caution::default(),
            rest: Pause::default(),
        }
    }

    /// The next read; `now` counts the reads of all files.
    pub(super) fn read(&mut self, extent: Extent, now: u64) -> Said {
        if !self.rest.looks() {
            return Said::Nothing;
        }
        let (confirmed, epoch) = (self.builder.confirmed(), self.builder.epoch());
        self.builder.push(extent);
        let mut is_right = self.builder.confirmed() > confirmed;
        let mut is_changed = self.builder.epoch() != epoch;
        let mut is_near = false;
        let fit = self.rounding.read(extent, is_right);
        if let Some(model) = &mut self.model {
            is_right = model.peek() == Some(extent);
            is_changed = !is_right;
            if is_right {
                model.next();
            } else {
                self.model = None;
            }
        } else if let Some(fit) = fit {
            is_right = fit != Fit::Strange;
            is_near = fit == Fit::Possible;
            is_changed = !is_right;
        } else {
            is_changed |= self.rounding.followed().is_some();
        }
        if self.rest.note(is_right) {
            self.builder = Builder::new(Limits::ONLINE);
            self.rounding = Rounding::default();
        }
        if is_right {
            self.lead.hit(now, now);
            self.caution.paid(&self.lead);
            if !is_near {
                return Said::Right;
            }
            self.lead.void();
            self.ahead = None;
            return Said::Near;
        }
        let right = self.lead.right();
        let vain = self.lead.breaks();
        self.caution.broke(right, vain);
        self.lead.renews();
        if is_changed {
            self.ahead = None;
        }
        if vain > 0 {
            Said::Wrong(vain)
        } else {
            Said::Nothing
        }
    }

    /// Follow a signature learnt elsewhere from here on.
    pub(super) fn follow(&mut self, model: Model) {
        self.ahead = None;
        self.model = Some(model);
    }

    /// True if the nest has reads to disclose, and may disclose them.
    pub(super) fn may_disclose(&self) -> bool {
        self.caution.allows(&self.lead)
            && (self.model.is_some()
                || self.rounding.followed().is_some()
                || self.builder.nest().is_some()
                || self.lead.right() > 0)
    }

    /// Takes the reads that follow the disclosed ones.
    pub(super) fn ahead(&mut self) -> Peekable<Predicted> {
        match self.ahead.take() {
            Some(ahead) if self.lead.disclosed() > 0 => ahead,
            _ => {
                let ahead = match (&self.model, self.rounding.followed()) {
                    (Some(model), _) => Predicted::Learnt(model.clone()),
                    (None, Some(rounded)) => Predicted::Rounded(rounded.ahead()),
                    (None, None) => Predicted::Built(self.builder.ahead()),
                };
                ahead.peekable()
            }
        }
    }

    /// Sets the reads that follow the disclosed ones.
    pub(super) fn goes_on(&mut self, ahead: Peekable<Predicted>) {
        self.ahead = Some(ahead);
    }

    /// The learnt loop, if there is one.
    pub(super) fn learnt(&self) -> Option<Arc<Loop>> {
        let nest = self.builder.nest()?;
        Learnt::fits(nest).then(|| Arc::new(nest.clone()))
    }
}
