//! A plan's pages, looked at before anything is scheduled: what will the program wait for first, and is all of it in
//! memory already?
//!
//! Data flow: [`fetch_head`], before the program is started; [`Survey`], while it is.

use std::collections::VecDeque;

use foreread_backend::Backend;
use foreread_plan::{Expected, FileId, Head, Kind, Name, PAGE, Pattern, Request, RequestId};
use foreread_sched::untried_gap;
use foreread_sources::{STREAM_AFTER, Source};

use crate::engine::FIRST;

/// Disclosures sampled to decide whether a plan is in memory. Where one in twenty is missing, a sample of this size
/// contains a missing one in eleven cases of twelve. The look takes 0.5 ms.
const SAMPLE: usize = 48;
/// Parts of a plan that a sample is drawn from, at most: the program may have ended before it reached the missing ones.
const PARTS: u64 = 8;
/// Disclosures of a part, at least: the start of each part costs reading one block of the record.
const PART: u64 = 512;
/// A plan is long if each sampled disclosure stands for at least this many.
const LONG: u64 = 64;
/// A long plan counts as hot if at most one disclosure in this many is missing: the program's own reads show it if they
/// have to wait.
const FEW: u64 = 16;
/// Names looked up to decide whether a plan's names are in memory: the names of one block.
const NAMES: usize = 16;
/// Names of those that must be missing for the plan to count as cold: one alone may be new.
const FEW_NAMES: u64 = 2;
/// A survey of which no question is answered for so many ns, and one of whose threads waits for anything but a processor, has met a
/// device: to open a file that is in memory takes 10 µs, and a thread that competes for a processor gets one within a turn of the
/// scheduler's, of 3 to 4 ms, where few compete. With twelve busy processes on two processors half of the runs with everything in memory
/// were taken for cold ones by the time alone.
const PATIENCE: u64 = 5_000_000;
/// And one of which no question is answered for so many ns is not waited for, whatever holds it up: a bound for where no thread can
/// be had.
const STARVED: u64 = 1_000_000_000;
/// Planned pages that must be missing for a plan to be worth following: 64 KiB.
pub const COLD_PAGES: u64 = 16;
/// Pages of a stream that are fetched at once: as many as a source discloses before it leaves a stream to the kernel.
const HEAD_PAGES: u64 = STREAM_AFTER / PAGE;
/// Disclosures among which the first streams are looked for. The program waits for that, some 0.1 ms.
const AMONG: usize = 2 * FIRST;
/// Streams among those that are checked for being in memory.
const STREAMS: usize = 4;

/// The request made before anything is scheduled.
pub(crate) const HEAD: RequestId = RequestId(u64::MAX);

/// Fetch the head of the first stream of the plan that is not in memory, if its beginning has one: some 0.1 ms before
/// the program is started, so that its first read waits for less. To be handed to [`crate::Engine::with_head`].
pub fn fetch_head(source: &mut dyn Source, backend: &mut impl Backend) -> Option<Head> {
    let heads = match source.heads() {
        Some(heads) => heads.to_vec(),
        None => heads_of(source),
    };
    heads.into_iter().take(STREAMS).find(|head| {
        backend.submit_now(Request {
            id: HEAD,
            file: head.file,
            pages: head.pages.clone(),
        })
    })
}

/// The streams that a source begins with, as far as they are looked for in memory.
fn heads_of(source: &mut dyn Source) -> Vec<Head> {
    let mut expected = Vec::new();
    source.disclose(AMONG, &mut expected);
    source.rewind();
    let mut heads = Vec::new();
    let mut rest = &expected[..];
    while heads.len() < STREAMS && !rest.is_empty() {
        match head_of(rest) {
            Some(head) => {
                rest = after(&head, rest);
                heads.push(head);
            }
            None => rest = &rest[1..],
        }
    }
    heads
}

/// Of how many parts of a plan samples are taken.
fn parts_of(source: &dyn Source) -> u64 {
    (source.size().unwrap_or(0) / PART).clamp(1, PARTS)
}

/// The sample of one part of so many: its disclosures and names. Parts are sampled in order.
fn sample_part(source: &mut dyn Source, part: u64, parts: u64) -> (Vec<Expected>, Vec<Name>) {
    // The beginning, which the program comes to first, and the middle of each other part.
    let share = if part == 0 {
        0.0
    } else {
        (part as f64 + 0.5) / parts as f64
    };
    let (mut expected, mut names) = (Vec::new(), Vec::new());
    source.sample(share, SAMPLE / parts as usize, &mut expected);
    source.sample_names(NAMES / parts as usize, &mut names);
    (expected, names)
}

/// The stream that the first of these begin; `None` if they go elsewhere too soon.
fn head_of(expected: &[Expected]) -> Option<Head> {
    let first = expected.first()?;
    let mut head = Head {
        file: first.file,
        pages: first.pages.clone(),
        gaps: Vec::new(),
    };
    if first.pattern == Pattern::Loose || first.pages.is_empty() {
        return None;
    }
    let others = expected[1..].iter();
    for one in others.filter(|one| one.file == head.file && !one.pages.is_empty()) {
        let end = head.pages.end;
        if one.pattern == Pattern::Loose
            || !(head.pages.start..=end + untried_gap()).contains(&one.pages.start)
        {
            break;
        }
        if one.pages.start > end {
            head.gaps.push(end..one.pages.start);
        }
        head.pages.end = end.max(one.pages.end);
        if length(&head) >= HEAD_PAGES {
            break;
        }
    }
    (length(&head) >= COLD_PAGES).then_some(head)
}

/// What of these is not in a head, from the first on that is not.
fn after<'a>(head: &Head, expected: &'a [Expected]) -> &'a [Expected] {
    let is_in = |one: &Expected| {
        one.file == head.file && (head.pages.start..=head.pages.end).contains(&one.pages.start)
    };
    let past = expected.iter().position(|one| !is_in(one));
    &expected[past.unwrap_or(expected.len())..]
}

fn length(head: &Head) -> u64 {
    head.pages.end - head.pages.start
}

/// What a sample of a plan tells.
#[derive(Debug, Default)]
pub(crate) struct Sampled {
    /// Disclosures that each one of the sample stands for.
    each: u64,
    /// Pages of the sample that are missing, and how many of its disclosures are of such.
    missing: u64,
    absent: u64,
    /// Of its names, those that were waited for.
    unknown: u64,
}

impl Sampled {
    /// One disclosure was looked at, of which so many pages are missing.
    fn add(&mut self, missing: u64) {
        self.missing += missing;
        self.absent += u64::from(missing > 0);
    }

    /// One name was looked up.
    fn add_name(&mut self, fetched: bool) {
        self.unknown += u64::from(fetched);
    }

    /// Whether enough of the plan is known to be missing.
    fn is_cold(&self) -> bool {
        !self.is_hot() && (self.absent + self.unknown) * FEW >= SAMPLE as u64
    }

    /// Whether next to nothing of the plan is missing, as far as can be told.
    pub(crate) fn is_hot(&self) -> bool {
        if self.unknown >= FEW_NAMES {
            return false;
        }
        let few = self.each >= LONG && self.absent * FEW < SAMPLE as u64;
        few || self.missing.saturating_mul(self.each) < COLD_PAGES
    }
}

/// A survey of several plans, one after the other, no further than until one is known to be cold. To look at
/// what is, or to read a record that is, takes as long as the device does.
///
/// Data flow: [`Survey::step`] says what to ask → the backend → [`Survey::answered`].
#[derive(Debug)]
pub(crate) struct Survey {
    /// The strands whose plans are still to be sampled; the first is being sampled.
    strands: VecDeque<usize>,
    all_hot: bool,
    sampling: Option<Sampling>,
    /// When it was last asked or answered, in ns.
    since: u64,
}

/// One plan that is being sampled.
#[derive(Debug)]
struct Sampling {
    found: Sampled,
    /// Parts of the plan, and how many of them samples were taken of.
    parts: u64,
    taken: u64,
    unanswered: u64,
}

/// What is to be done for a survey.
#[derive(Debug)]
pub(crate) enum Told {
    /// Ask whether these pages are in memory, and look these names up.
    Ask {
        samples: Vec<Expected>,
        names: Vec<(FileId, Kind)>,
    },
    /// Wait for answers.
    Wait,
    /// The plan is in memory.
    Hot,
    /// It is not.
    Cold,
}

impl Survey {
    /// A survey of these strands' plans, begun at `since`, in ns; `None` if there are none.
    pub(crate) fn new(strands: impl Iterator<Item = usize>, since: u64) -> Option<Self> {
        let strands: VecDeque<usize> = strands.collect();
        (!strands.is_empty()).then_some(Self {
            strands,
            all_hot: true,
            sampling: None,
            since,
        })
    }

    /// The strand whose plan is being sampled.
    pub(crate) fn strand(&self) -> usize {
        self.strands.front().copied().unwrap_or_default()
    }

    /// Whether all plans were in memory, as far as they were sampled.
    pub(crate) fn all_hot(&self) -> bool {
        self.all_hot
    }

    /// The survey of the other plans, if there are more and none is known to be cold: that decides. So no answer about a plan that was
    /// given up comes to be taken for one about the next.
    pub(crate) fn next(&mut self) -> Option<Self> {
        self.strands.pop_front();
        (self.all_hot && !self.strands.is_empty()).then(|| Self {
            strands: std::mem::take(&mut self.strands),
            sampling: None,
            ..*self
        })
    }

    /// One of the sample, of so many pages, has so many in memory.
    pub(crate) fn answered(&mut self, pages: u64, resident: Option<u64>, now: u64) {
        self.since = now;
        if let Some(sampling) = &mut self.sampling {
            sampling.unanswered = sampling.unanswered.saturating_sub(1);
            let missing = pages.saturating_sub(resident.unwrap_or(0));
            sampling.found.add(missing);
        }
    }

    /// A name of the sample was looked up, and had to be fetched or not.
    pub(crate) fn looked(&mut self, fetched: bool, now: u64) {
        self.since = now;
        if let Some(sampling) = &mut self.sampling {
            sampling.unanswered = sampling.unanswered.saturating_sub(1);
            sampling.found.add_name(fetched);
        }
    }

    /// What is to be done next for the plan that is being sampled, which `source` discloses and which is left anywhere. Whoever answers
    /// may be held up by a device, which is asked only if that decides.
    pub(crate) fn step(
        &mut self,
        source: &mut dyn Source,
        now: u64,
        is_held_up: impl FnOnce() -> bool,
    ) -> Told {
        let sampling = self.sampling.get_or_insert_with(|| {
            let size = source.size().unwrap_or(0);
            let parts = parts_of(source);
            Sampling {
                found: Sampled {
                    each: (size / SAMPLE as u64).max(1),
                    ..Sampled::default()
                },
                parts,
                taken: 0,
                unanswered: 0,
            }
        });
        if sampling.found.is_cold() {
            return self.cold();
        }
        if sampling.unanswered > 0 {
            let waited = now.saturating_sub(self.since);
            if waited < PATIENCE || waited < STARVED && !is_held_up() {
                return Told::Wait;
            }
            // What takes so long to be opened is not in memory.
            for _ in 0..sampling.unanswered {
                sampling.found.add(1);
            }
            return self.cold();
        }
        let (mut samples, mut names) = (Vec::new(), Vec::new());
        while samples.is_empty() && names.is_empty() && sampling.taken < sampling.parts {
            let part = sampling.taken;
            sampling.taken += 1;
            (samples, names) = sample_part(source, part, sampling.parts);
        }
        if samples.is_empty() && names.is_empty() {
            return if sampling.found.is_hot() {
                Told::Hot
            } else {
                self.cold()
            };
        }
        let names: Vec<_> = names.iter().map(|name| (name.file, name.kind)).collect();
        sampling.unanswered = (samples.len() + names.len()) as u64;
        self.since = now;
        Told::Ask { samples, names }
    }

    fn cold(&mut self) -> Told {
        self.all_hot = false;
        self.sampling = None;
        Told::Cold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_hot_where_few_pages_are_missing_or_a_small_part_of_a_long_one() {
        let of = |each, missing| Sampled {
            each,
            missing,
            absent: missing,
            unknown: 0,
        };
        assert!(of(1, 15).is_hot() && !of(1, 16).is_hot());
        assert!(of(8, 1).is_hot() && !of(8, 2).is_hot());
        assert!(of(500, 2).is_hot() && !of(500, 3).is_hot());
        assert!(Sampled::default().is_hot());
    }
    use foreread_plan::{Odds, ThreadId};
    use foreread_sources::{Nature, Outlook};

    /// A plan of one read.
    struct One;

    impl Source for One {
        fn nature(&self) -> Nature {
            Nature::Literal
        }

        fn disclose(&mut self, _: usize, out: &mut Vec<Expected>) -> Outlook {
            out.extend(reads([7]));
            Outlook::End
        }
    }

    #[test]
    fn what_only_waits_for_a_processor_is_not_taken_for_cold() {
        let mut survey = Survey::new(std::iter::once(0), 0).unwrap();
        let mut step = |now, is_held_up| survey.step(&mut One, now, || is_held_up);
        assert!(matches!(step(0, false), Told::Ask { .. }));
        assert!(matches!(step(PATIENCE - 1, true), Told::Wait));
        assert!(matches!(step(STARVED - 1, false), Told::Wait));
        assert!(matches!(step(PATIENCE, true), Told::Cold));
        let mut survey = Survey::new(std::iter::once(0), 0).unwrap();
        let mut step = |now, is_held_up| survey.step(&mut One, now, || is_held_up);
        assert!(matches!(step(0, false), Told::Ask { .. }));
        assert!(matches!(step(STARVED, false), Told::Cold));
    }

    #[test]
    fn a_cold_plan_ends_the_survey_and_a_hot_one_does_not() {
        let mut survey = Survey::new(0..2, 0).unwrap();
        assert!(matches!(
            survey.step(&mut One, 0, || false),
            Told::Ask { .. }
        ));
        survey.answered(1, Some(1), 1);
        assert!(matches!(survey.step(&mut One, 1, || false), Told::Hot));
        assert_eq!(survey.next().unwrap().strand(), 1);
        let mut survey = Survey::new(0..2, 0).unwrap();
        assert!(matches!(
            survey.step(&mut One, 0, || false),
            Told::Ask { .. }
        ));
        assert!(matches!(
            survey.step(&mut One, STARVED, || false),
            Told::Cold
        ));
        assert!(survey.next().is_none(), "an answer may still come");
    }

    fn reads(pages: impl IntoIterator<Item = u64>) -> Vec<Expected> {
        let read = |page| Expected {
            odds: Odds::SURE,
            file: FileId(1),
            pages: page..page + 1,
            thread: ThreadId(0),
            pattern: Pattern::Scattered,
        };
        pages.into_iter().map(read).collect()
    }

    #[test]
    fn a_streams_first_pages_are_its_head() {
        let head = head_of(&reads(5..500)).unwrap();
        assert_eq!((head.pages, head.gaps), (5..69, vec![]));
        // Each page read twice, others in between.
        let mut twice = reads((5..40).flat_map(|page| [page, page]));
        twice.insert(
            9,
            Expected {
                file: FileId(2),
                ..twice[0].clone()
            },
        );
        assert_eq!(head_of(&twice).unwrap().pages, 5..40);
    }

    #[test]
    fn what_a_stream_leaves_out_is_known() {
        let head = head_of(&reads((0..40).map(|n| 2 * n))).unwrap();
        assert_eq!(head.pages, 0..65);
        assert_eq!(
            head.gaps,
            (0..32).map(|n| 2 * n + 1..2 * n + 2).collect::<Vec<_>>()
        );
        assert_eq!(head_of(&reads((0..40).map(|n| 5 * n))), None);
    }

    #[test]
    fn what_goes_elsewhere_has_no_head() {
        assert_eq!(head_of(&reads((0..500).rev())), None);
        assert_eq!(head_of(&reads((0..10).chain(500..600))), None);
        let mut sampled = reads(0..500);
        sampled
            .iter_mut()
            .for_each(|one| one.pattern = Pattern::Loose);
        assert_eq!(head_of(&sampled), None);
        assert_eq!(head_of(&[]), None);
    }
}
