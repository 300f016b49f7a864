//! What one thread reads in one file, as nested loops: the recogniser, or a signature learnt elsewhere, and what was told
//! of it.

use std::sync::Arc;

use foreread_plan::Extent;

use super::adjust::{Learnt, Model};
use super::builder::{Ahead, Builder, Limits};
use super::lead::{Caution, Lead, Rest};
use super::pattern::Loop;

/// What a read is to a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// The nest foretold it.
    Right,
    /// Another was foretold: so many that were told are void.
    Wrong(u64),
    /// None was foretold.
    Nothing,
}

/// The nest of one thread's reads of one file.
#[derive(Clone, Debug)]
pub(super) struct Nest {
    builder: Builder,
    /// A signature learnt elsewhere, while it holds.
    model: Option<Model>,
    pub(super) lead: Lead,
    /// Where telling goes on.
    ahead: Option<Foretold>,
    caution: Caution,
    rest: Rest,
}

#[derive(Clone, Debug)]
enum Foretold {
    Built(Ahead),
    Learnt(Model),
}

impl Iterator for Foretold {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        match self {
            Self::Built(ahead) => ahead.next(),
            Self::Learnt(model) => model.next(),
        }
    }
}

impl Nest {
    /// Of a thread and a file that begin at this read of all.
    pub(super) fn new(now: u64) -> Self {
        Self {
            builder: Builder::new(Limits::ONLINE),
            model: None,
            lead: Lead::new(now, now),
            ahead: None,
            caution: Caution::default(),
            rest: Rest::default(),
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
        if let Some(model) = &mut self.model {
            is_right = model.peek() == Some(extent);
            is_changed = !is_right;
            if is_right {
                model.next();
            } else {
                self.model = None;
            }
        }
        if self.rest.note(is_right) {
            self.builder = Builder::new(Limits::ONLINE);
        }
        if is_right {
            self.lead.hit(now, now);
            self.caution.paid(&self.lead);
            return Said::Right;
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

    /// Whether the nest has anything to tell, and may.
    pub(super) fn may_tell(&self) -> bool {
        self.caution.allows(&self.lead)
            && (self.model.is_some() || self.builder.nest().is_some() || self.lead.right() > 0)
    }

    /// The reads that follow what was told.
    pub(super) fn ahead(&mut self) -> impl Iterator<Item = Extent> + use<> {
        if self.lead.told() == 0 {
            self.ahead = None;
        }
        let (model, builder) = (&self.model, &self.builder);
        let ahead = self.ahead.get_or_insert_with(|| match model {
            Some(model) => Foretold::Learnt(model.clone()),
            None => Foretold::Built(builder.ahead()),
        });
        ahead.clone()
    }

    /// So many of those are told now.
    pub(super) fn told(&mut self, reads: u64) {
        if let Some(last) = reads.checked_sub(1)
            && let Some(ahead) = &mut self.ahead
        {
            ahead.nth(last as usize);
        }
    }

    /// What was learnt of it, where there is a loop.
    pub(super) fn learnt(&self) -> Option<Arc<Loop>> {
        let nest = self.builder.nest()?;
        Learnt::fits(nest).then(|| Arc::new(nest.clone()))
    }
}
