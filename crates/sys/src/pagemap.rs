//! Finds the touched pages of a process's mapping.
//!
//! Invariant: the other process is examined through `/proc` and never stopped. A page counts when it has an entry in the page table, so the
//! kernel's fault-around (64 KiB of already cached neighbours by default) counts together with the page that was really touched.
//!
//! Data flow: a process and an address range in, page-aligned address ranges out.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use crate::{checked, page_size};

/// Regions per call to the kernel.
const BATCH: usize = 256;
/// Page-map entries read at once if the kernel cannot scan.
const ENTRIES: usize = 4096;

const PAGE_IS_PRESENT: u64 = 1 << 3;
const PAGE_IS_SWAPPED: u64 = 1 << 4;
/// A page in memory, or a private copy swapped out: touched either way.
const TOUCHED: u64 = PAGE_IS_PRESENT | PAGE_IS_SWAPPED;
/// The same two, as bits of a `/proc/PID/pagemap` entry.
const ENTRY_TOUCHED: u64 = 1 << 63 | 1 << 62;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PageRegion {
    start: u64,
    end: u64,
    categories: u64,
}

#[repr(C)]
struct ScanArg {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `_IOWR('f', 16, struct pm_scan_arg)`, Linux 6.7.
const PAGEMAP_SCAN: libc::Ioctl =
    rustix::ioctl::opcode::read_write::<ScanArg>(b'f', 16) as libc::Ioctl;

/// The page map of one process, as long as that runs the same program.
#[derive(Debug)]
pub struct PageMap(File);

impl PageMap {
    /// Open the page map of process `pid`.
    ///
    /// # Errors
    ///
    /// `ENOENT` if the process is gone, `EACCES` or `EPERM` if it may not be examined.
    pub fn open(pid: u32) -> io::Result<Self> {
        Ok(Self(File::open(format!("/proc/{pid}/pagemap"))?))
    }

    /// The touched pages of `addresses`, as page-aligned address ranges in order; none when the process has
    /// ended or become another program since.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    pub fn touched(&self, addresses: Range<u64>) -> io::Result<Vec<Range<u64>>> {
        let page = page_size();
        let aligned = addresses.start / page * page..addresses.end.next_multiple_of(page);
        match scan(&self.0, aligned.clone()) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTTY | libc::EINVAL)) => {
                read_entries(&self.0, aligned)
            }
            // Newer kernels return this for a process that has ended; older ones find nothing.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(Vec::new()),
            scanned => scanned,
        }
    }
}

/// Asks the kernel to walk the page table (`PAGEMAP_SCAN`); `ENOTTY` before Linux 6.7.
pub(crate) fn scan(map: &File, addresses: Range<u64>) -> io::Result<Vec<Range<u64>>> {
    let mut found = Vec::new();
    let mut regions = [PageRegion::default(); BATCH];
    let mut start = addresses.start;
    while start < addresses.end {
        let mut arg = ScanArg {
            size: size_of::<ScanArg>() as u64,
            flags: 0,
            start,
            end: addresses.end,
            walk_end: 0,
            vec: regions.as_mut_ptr() as u64,
            vec_len: BATCH as u64,
            max_pages: 0,
            category_inverted: 0,
            category_mask: 0,
            category_anyof_mask: TOUCHED,
            return_mask: TOUCHED,
        };
        // SAFETY: the descriptor is open, the structure is the one the call documents, and
        // `vec` names `vec_len` regions that outlive the call.
        let filled = unsafe { libc::ioctl(map.as_raw_fd(), PAGEMAP_SCAN, &raw mut arg) };
        let filled = checked(filled)? as usize;
        for region in &regions[..filled.min(BATCH)] {
            push(&mut found, region.start..region.end);
        }
        if arg.walk_end <= start {
            break;
        }
        start = arg.walk_end;
    }
    Ok(found)
}

/// Reads the page map an entry a page.
fn read_entries(map: &File, addresses: Range<u64>) -> io::Result<Vec<Range<u64>>> {
    let page = page_size();
    let mut found = Vec::new();
    let mut buffer = vec![0u8; ENTRIES * 8];
    let mut number = addresses.start / page;
    let end = addresses.end / page;
    while number < end {
        let wanted = ((end - number) as usize).min(ENTRIES) * 8;
        let got = map.read_at(&mut buffer[..wanted], number * 8)? / 8;
        if got == 0 {
            break;
        }
        for (index, entry) in buffer[..got * 8].as_chunks::<8>().0.iter().enumerate() {
            if u64::from_ne_bytes(*entry) & ENTRY_TOUCHED != 0 {
                let address = (number + index as u64) * page;
                push(&mut found, address..address + page);
            }
        }
        number += got as u64;
    }
    Ok(found)
}

/// Adds a range, joining it to the last where they meet.
fn push(found: &mut Vec<Range<u64>>, range: Range<u64>) {
    match found.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => found.push(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_entries_finds_what_scanning_finds() {
        let page = page_size() as usize;
        let mut memory = vec![0u8; 300 * page];
        let base = memory.as_ptr().align_offset(page);
        for index in [0, 1, 7, 250] {
            memory[base + index * page] = 1;
        }
        let start = memory[base..].as_ptr() as u64;
        let addresses = start..start + 256 * page as u64;
        let map = File::open("/proc/self/pagemap").unwrap();
        let read = read_entries(&map, addresses.clone()).unwrap();
        assert!(read.iter().any(|range| range.contains(&start)));
        match scan(&map, addresses) {
            Ok(scanned) => assert_eq!(read, scanned),
            Err(error) => println!("skipped: no PAGEMAP_SCAN here: {error}"),
        }
    }
}
