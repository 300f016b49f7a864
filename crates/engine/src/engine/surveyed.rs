//! Whether a plan is followed at all: it is not where it is in memory.

use foreread_backend::Backend;
use foreread_sources::Nature;

use super::ask::Purpose;
use super::{Engine, Phase};
use crate::strand::Strand;
use crate::survey::{Survey, Told};

impl<B: Backend> Engine<B> {
    /// Look whether literal plans' pages are in memory already, at a small sample of them; if so, the session is
    /// [`Phase::Hot`] and the program need not be observed. A plan that is still being made counts as cold, as does one
    /// whose head was missing. Nothing is fetched until that is known, or has taken so long that it is not in memory.
    pub fn survey(&mut self, now: u64) {
        let is_sampled = |one: &&Strand| one.nature == Nature::Literal && one.head.is_none();
        let sampled = self.strands.iter().filter(is_sampled);
        self.survey = Survey::new(sampled.map(|one| one.id.0), now);
        self.survey_on(now);
    }

    /// Whether it is still to be found out whether the plans are in memory. Until then nothing is to be said of the program.
    pub fn is_surveying(&self) -> bool {
        self.survey.is_some()
    }

    /// Go on with the survey, as far as it goes without waiting.
    pub(super) fn survey_on(&mut self, now: u64) {
        while let Some(mut survey) = self.survey.take() {
            let source = self.strands[survey.strand()].source.as_mut();
            match survey.step(source, now, || self.backend.is_held_up()) {
                Told::Ask { samples, names } => {
                    self.survey = Some(survey);
                    self.backend.look(&names);
                    for one in samples {
                        let purpose = Purpose::Survey;
                        self.ask(one.file, vec![one.pages], purpose);
                    }
                    self.collect(now);
                }
                Told::Wait => {
                    self.survey = Some(survey);
                    return;
                }
                Told::Hot => {
                    source.rewind();
                    // Nobody will come to what is damaged of it.
                    source.check();
                    self.go_on(survey);
                }
                Told::Cold => {
                    source.rewind();
                    self.go_on(survey);
                }
            }
        }
    }

    /// A plan was sampled: go on to the next.
    fn go_on(&mut self, mut survey: Survey) {
        self.survey = survey.next();
        if self.survey.is_none() {
            self.surveyed(&survey);
        }
    }

    /// All literal plans were sampled.
    fn surveyed(&mut self, survey: &Survey) {
        let may_rest = |one: &Strand| {
            one.nature == Nature::Literal && one.head.is_none() || one.nature == Nature::Guess
        };
        self.was_hot = survey.all_hot() && self.strands.iter().all(may_rest);
        if self.was_hot {
            let strands = self.strands.iter_mut();
            strands.for_each(|one| one.phase = Phase::Hot);
        }
    }
}
