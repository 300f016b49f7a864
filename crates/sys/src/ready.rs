//! Finds the pages of a whole file that are in memory.

use std::io;
use std::ops::Range;
use std::os::fd::AsFd;

use crate::file::FileFacts;
use crate::residency::{self, Residency};
use crate::{cache, page_size};

/// The resident, complete pages of a file of `size` bytes, in order, neighbours joined. In a large file with few of them only parts that
/// have any are examined.
///
/// # Errors
///
/// [`io::ErrorKind::PermissionDenied`] if the kernel does not report residency to this user ([`Residency::permitted`]).
pub fn pages<Fd: AsFd>(fd: Fd, facts: &FileFacts) -> io::Result<Vec<Range<u64>>> {
    let fd = fd.as_fd();
    if !Residency::permitted(fd, facts.uid)? {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let is_hidden = cache::is_hidden(fd, facts.dev);
    let page = page_size();
    let mut map = None;
    let mut found: Vec<Range<u64>> = Vec::new();
    let mut there = Vec::new();
    for first in (0..facts.size.div_ceil(page)).step_by(residency::WINDOW as usize) {
        let bytes = first * page..(first + residency::WINDOW) * page;
        // Before Linux 6.5 each window is examined.
        let is_empty =
            !is_hidden && cache::stat(fd, bytes.clone()).is_ok_and(|now| now.cached == 0);
        if is_empty {
            continue;
        }
        let map = match &mut map {
            Some(map) => map,
            none => none.insert(Residency::new(fd, facts.size)?),
        };
        map.uptodate(bytes, &mut there)?;
        for (page, _) in (first..).zip(&there).filter(|(_, there)| **there) {
            match found.last_mut() {
                Some(last) if last.end == page => last.end += 1,
                _ => found.push(page..page + 1),
            }
        }
    }
    Ok(found)
}
