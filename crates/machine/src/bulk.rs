//! The simplest prefetcher: some threads go through the whole list at once, in the program's order, and request it.
//!
//! It is the C program of a hundred lines with which foreread is compared: it follows nothing, paces nothing, and accounts for nothing.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use crate::{Machine, Process};

/// Threads.
const THREADS: usize = 16;
/// Pages of one hint: 128 KiB.
const HINT: u64 = 32;

/// A line of its list: a file and pages; without pages, a name to be looked up.
pub type Line = (u32, Range<u64>);

/// Starts it.
pub fn start(machine: &Machine, list: Vec<Line>) {
    let list: Rc<[Line]> = joined(list).into();
    let next = Rc::new(Cell::new(0));
    let process = Process::new(u64::MAX);
    for _ in 0..THREADS.min(list.len()) {
        let machine = machine.clone();
        let (list, next, process) = (Rc::clone(&list), Rc::clone(&next), Rc::clone(&process));
        machine.clone().spawn(async move {
            let mut open = None;
            loop {
                let Some((file, pages)) = list.get(next.replace(next.get() + 1)).cloned() else {
                    return;
                };
                if pages.is_empty() {
                    machine.stat(file).await;
                    continue;
                }
                let held = open.take().filter(|(last, _)| *last == file);
                let fd = match held {
                    Some((_, fd)) => Some(fd),
                    None => machine.open(&process, file).await,
                };
                let Some(fd) = fd else {
                    continue;
                };
                let mut start = pages.start;
                while start < pages.end {
                    let end = pages.end.min(start + HINT);
                    fd.hint(start..end).await;
                    start = end;
                }
                open = Some((file, fd));
            }
        });
    }
}

/// Neighbours that follow each other are one line of at most 128 KiB.
fn joined(list: Vec<Line>) -> Vec<Line> {
    let mut out: Vec<Line> = Vec::with_capacity(list.len());
    for (file, pages) in list {
        if let Some((last, before)) = out.last_mut()
            && *last == file
            && !pages.is_empty()
            && (before.start..=before.end).contains(&pages.start)
            && pages.end - before.start <= HINT
        {
            before.end = before.end.max(pages.end);
            continue;
        }
        out.push((file, pages));
    }
    out
}
