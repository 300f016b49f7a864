//! When groups of terms are iterations of one loop.
//!
//! Three consecutive groups are iterations of one loop if all their numbers change by the same step from the first to the second and from
//! the second to the third (Ketterlin and Clauss, "Prediction and trace compression of data access addresses through nested loop
//! recognition", CGO 2008). Two groups count as iterations if only a part of the second was seen, and that part is a loop like the first
//! group's.
//!
//! All functions here are pure: terms in, a loop or nothing out.

use super::pattern::{Affine, Loop, Read, Term};

/// The body of the loop whose iterations these groups are. Without a third group any two similar ones match. `open`: the last term of the
/// last group is a loop in progress, so its count is not final.
pub(crate) fn merge(
    first: &[Term],
    second: &[Term],
    third: Option<&[Term]>,
    open: bool,
) -> Option<Vec<Term>> {
    body(first, second, third, 0, open)
}

fn body(a: &[Term], b: &[Term], c: Option<&[Term]>, depth: usize, open: bool) -> Option<Vec<Term>> {
    let size = a.len();
    if b.len() != size || c.is_some_and(|c| c.len() != size) {
        return None;
    }
    // Last term first: it is the one that the caller has not compared yet.
    let mut merged = Vec::with_capacity(size);
    for number in (0..size).rev() {
        let open = open && number + 1 == size;
        let c = c.map(|c| &c[number]);
        merged.push(term(&a[number], &b[number], c, depth, open)?);
    }
    merged.reverse();
    Some(merged)
}

fn term(a: &Term, b: &Term, c: Option<&Term>, depth: usize, open: bool) -> Option<Term> {
    match (a, b) {
        (Term::Read(a), Term::Read(b)) => {
            let c = match c {
                Some(Term::Read(c)) => Some(c),
                Some(Term::Loop(_)) => return None,
                None => None,
            };
            let offset = affine(&a.offset, &b.offset, c.map(|c| &c.offset), depth)?;
            let len = affine(&a.len, &b.len, c.map(|c| &c.len), depth)?;
            Some(Term::Read(Read { offset, len }))
        }
        (Term::Loop(a), Term::Loop(b)) => {
            let c = match c {
                Some(Term::Loop(c)) => Some(c),
                Some(Term::Read(_)) => return None,
                None => None,
            };
            let count = match (open, c) {
                (false, c) => affine(&a.count, &b.count, c.map(|c| &c.count), depth)?,
                (true, None) => a.count.clone(),
                (true, Some(_)) => affine(&a.count, &b.count, None, depth)?,
            };
            let body = body(&a.body, &b.body, c.map(|c| &c.body[..]), depth + 1, false)?;
            Some(Term::Loop(Loop { count, body }))
        }
        _ => None,
    }
}

/// The affine number with these values in the first iterations; the loop is at this depth.
fn affine(a: &Affine, b: &Affine, c: Option<&Affine>, depth: usize) -> Option<Affine> {
    let step = b.base.wrapping_sub(a.base);
    if a.steps != b.steps
        || c.is_some_and(|c| c.base.wrapping_sub(b.base) != step || c.steps != b.steps)
    {
        return None;
    }
    let mut merged = a.clone();
    merged.enclose(depth, step);
    Some(merged)
}

/// The iterations before a loop.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Absorbed {
    /// Terms of the stack that belong to the loop.
    pub(crate) terms: usize,
    /// Whole iterations before the loop's first.
    pub(crate) iterations: u64,
    /// Terms of the body that the iteration before those has, at its end.
    pub(crate) rest: usize,
}

/// The number of terms at the end of `stack` that are iterations before the first of `nest`: whole ones, then a part of one. If an inner
/// count grows, the first iterations of a nest differ from later ones: one or two repetitions are not a loop yet.
pub(crate) fn before(nest: &Loop, stack: &[Term]) -> Absorbed {
    let mut found = Absorbed::default();
    loop {
        let parts = nest.iteration(-1 - found.iterations as i64);
        let mut end = stack.len() - found.terms;
        let mut matched = 0;
        for part in parts.iter().rev() {
            if !stack[..end].ends_with(part) {
                break;
            }
            end -= part.len();
            matched += 1;
        }
        let terms = stack.len() - end;
        if terms == found.terms {
            return found;
        }
        found.terms = terms;
        if matched < parts.len() {
            found.rest = matched;
            return found;
        }
        found.iterations += 1;
    }
}

/// The loop whose iterations begin with the last `rest` terms of the body, one iteration earlier.
pub(crate) fn rotated(nest: &mut Loop, rest: usize) {
    let keep = nest.body.len() - rest;
    for term in &mut nest.body[keep..] {
        term.shift(0, -1);
    }
    nest.body.rotate_right(rest);
}
