//! A plan's pages, looked at before anything is scheduled: what will the program wait for first, and is all of it in
//! memory already?
//!
//! Data flow: [`fetch_head`], before the program is started; [`sample`], while it is.

use std::ops::Range;

use foreread_backend::Backend;
use foreread_plan::{Expected, FileId, Pattern, Request, RequestId};
use foreread_sched::untried_gap;
use foreread_sources::Source;

use crate::engine::FIRST;

/// Disclosures that are looked at to tell whether a plan is in memory. Where one in twenty is missing, a sample of so many
/// has one of those in eleven cases of twelve, and to look takes 0.5 ms.
const SAMPLE: usize = 48;
/// Parts of a plan that a sample is taken from, at most, each of at least so many disclosures.
const PARTS: u64 = 8;
const PART: u64 = 512;
/// Disclosures that each one of a sample stands for, from which on a plan is long, and one in how many of a long plan's may be
/// missing for it to be as good as hot: the program's own reads tell if they come to wait.
const LONG: u64 = 64;
const FEW: u64 = 16;
/// Planned pages that must be missing for a plan to be worth following at all.
const COLD_PAGES: u64 = 16;
/// Pages of a stream that are fetched at once: as many as a source discloses before it leaves a stream to the kernel.
const HEAD_PAGES: u64 = 64;
/// Disclosures among which the first streams are looked for, and how many of those: the program waits for that.
const AMONG: usize = 2 * FIRST;
const STREAMS: usize = 4;

/// The request made before anything is scheduled.
pub(crate) const HEAD: RequestId = RequestId(u64::MAX);

/// The first pages of a sequential stream. In whatever order the rest is fetched, these come first: what follows them
/// in the file is what is read next.
#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    file: FileId,
    pages: Range<u64>,
    /// The pages among them that nobody asked for.
    pub(crate) gaps: Vec<Range<u64>>,
}

/// Fetch the head of the first stream of the plan that is not in memory, if its beginning has one: some 0.1 ms before
/// the program is started, so that its first read waits for less. To be handed to [`crate::Engine::with_head`].
pub fn fetch_head(source: &mut dyn Source, backend: &mut impl Backend) -> Option<Head> {
    let mut expected = Vec::new();
    source.disclose(AMONG, &mut expected);
    source.rewind();
    let mut streams = STREAMS;
    let mut rest = &expected[..];
    while streams > 0 && !rest.is_empty() {
        let Some(head) = Head::of(rest) else {
            rest = &rest[1..];
            continue;
        };
        let request = Request {
            id: HEAD,
            file: head.file,
            pages: head.pages.clone(),
        };
        if backend.submit_now(request) {
            return Some(head);
        }
        streams -= 1;
        rest = head.after(rest);
    }
    None
}

impl Head {
    /// The stream that the first of these begin; `None` if they go elsewhere too soon.
    fn of(expected: &[Expected]) -> Option<Self> {
        let first = expected.first()?;
        let mut head = Self {
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
            if head.len() >= HEAD_PAGES {
                break;
            }
        }
        (head.len() >= COLD_PAGES).then_some(head)
    }

    /// What of these is not in it, from the first on that is not.
    fn after<'a>(&self, expected: &'a [Expected]) -> &'a [Expected] {
        let is_in = |one: &Expected| {
            one.file == self.file && (self.pages.start..=self.pages.end).contains(&one.pages.start)
        };
        let past = expected.iter().position(|one| !is_in(one));
        &expected[past.unwrap_or(expected.len())..]
    }

    fn len(&self) -> u64 {
        self.pages.end - self.pages.start
    }
}

/// What a sample of a plan tells.
#[derive(Debug, Default)]
pub(crate) struct Sampled {
    /// Disclosures that each one of the sample stands for.
    each: u64,
    /// How many it is.
    looked: u64,
    /// Pages of the sample that are missing, and how many of its disclosures are of such.
    missing: u64,
    absent: u64,
    /// Its disclosures of which pages are missing, but for those that are left to the kernel's read-ahead.
    waits: u64,
}

impl Sampled {
    /// Whether next to nothing of the plan is missing, as far as can be told.
    pub(crate) fn is_hot(&self) -> bool {
        let few = self.each >= LONG && self.absent * FEW < SAMPLE as u64;
        few || self.missing.saturating_mul(self.each) < COLD_PAGES
    }

    /// How many reads of the whole plan will need their device, about.
    pub(crate) fn waits(&self) -> u64 {
        let rest = SAMPLE as u64 / self.looked.max(1);
        self.waits
            .saturating_mul(self.each)
            .saturating_mul(rest.max(1))
    }
}

/// Look at a sample of what `source` discloses, no further than until it is known to be cold: to look at what is, or to read
/// a record that is, takes as long as the device does. The source is left anywhere.
pub(crate) fn sample(source: &mut dyn Source, backend: &mut impl Backend) -> Sampled {
    let size = source.size().unwrap_or(0);
    let parts = (size / PART).clamp(1, PARTS);
    let mut found = Sampled {
        each: (size / SAMPLE as u64).max(1),
        ..Sampled::default()
    };
    let mut taken = Vec::with_capacity(SAMPLE);
    for part in 0..parts {
        // The beginning, which the program comes to first, and the middle of each other part.
        let share = if part == 0 {
            0.0
        } else {
            (part as f64 + 0.5) / parts as f64
        };
        taken.clear();
        source.sample(share, SAMPLE / parts as usize, &mut taken);
        for one in &taken {
            let resident = backend.resident(one.file, one.pages.clone());
            let pages = one.pages.end - one.pages.start;
            let missing = pages.saturating_sub(resident.unwrap_or(0));
            found.looked += 1;
            found.missing += missing;
            found.absent += u64::from(missing > 0);
            found.waits += u64::from(missing > 0 && one.pattern != Pattern::Sequential);
            if !found.is_hot() && found.absent * FEW >= SAMPLE as u64 {
                backend.let_go();
                return found;
            }
        }
    }
    backend.let_go();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_hot_where_few_pages_are_missing_or_a_small_part_of_a_long_one() {
        let of = |each, missing| Sampled {
            each,
            looked: 48,
            missing,
            absent: missing,
            waits: missing,
        };
        assert!(of(1, 15).is_hot() && !of(1, 16).is_hot());
        assert!(of(8, 1).is_hot() && !of(8, 2).is_hot());
        assert!(of(500, 2).is_hot() && !of(500, 3).is_hot());
        assert!(Sampled::default().is_hot());
    }
    use foreread_plan::{Odds, ThreadId};

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
        let head = Head::of(&reads(5..500)).unwrap();
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
        assert_eq!(Head::of(&twice).unwrap().pages, 5..40);
    }

    #[test]
    fn what_a_stream_leaves_out_is_known() {
        let head = Head::of(&reads((0..40).map(|n| 2 * n))).unwrap();
        assert_eq!(head.pages, 0..65);
        assert_eq!(
            head.gaps,
            (0..32).map(|n| 2 * n + 1..2 * n + 2).collect::<Vec<_>>()
        );
        assert_eq!(Head::of(&reads((0..40).map(|n| 5 * n))), None);
    }

    #[test]
    fn what_goes_elsewhere_has_no_head() {
        assert_eq!(Head::of(&reads((0..500).rev())), None);
        assert_eq!(Head::of(&reads((0..10).chain(500..600))), None);
        let mut sampled = reads(0..500);
        sampled
            .iter_mut()
            .for_each(|one| one.pattern = Pattern::Loose);
        assert_eq!(Head::of(&sampled), None);
        assert_eq!(Head::of(&[]), None);
    }
}
