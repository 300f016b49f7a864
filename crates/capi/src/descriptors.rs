//! The descriptors whose reads are matched: those for which a client has a region.
//!
//! Invariant: a byte of [`FLAGS`] shows whether a descriptor may be in the table. It is set after the
//! descriptor was entered in the table, and cleared, without any lock, when the program closes the descriptor. A
//! cleared flag makes the entry invalid: a new registration of the same number replaces it. A closing that was
//! not intercepted (fclose, direct system calls) is noticed because device and inode differ. They are compared
//! at one of every 16 reads and before any callback: a comparison at each read would cost as much as the read.
//!
//! Data flow: [`crate::regions`] and [`crate::process`] add and remove users; [`crate::intercept`] looks up the
//! descriptor of each read, and reports closings.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use foreread_client::{Advice, Extent, FileId, Match};

use crate::handle::Handle;
use crate::real;

/// Descriptors that can be registered: the kernel's default limit. Unused pages of [`FLAGS`] take no memory.
const DESCRIPTORS: usize = 1 << 20;
/// The descriptor is in the table.
const REGISTERED: u8 = 1;
/// The program has given advice on the kernel's read-ahead for it.
const CHOSEN: u8 = 2;
/// The library has turned the kernel's read-ahead off on it.
const QUIET: u8 = 4;
/// The library has doubled the kernel's read-ahead on it.
const LONG: u8 = 8;
/// At one of this many reads of a descriptor, its file is compared, and the advice for its read-ahead is updated.
const LOOK_EVERY: u32 = 16;

static FLAGS: [AtomicU8; DESCRIPTORS] = [const { AtomicU8::new(0) }; DESCRIPTORS];

#[inline(always)]
fn flags(fd: c_int) -> Option<&'static AtomicU8> {
    FLAGS.get(usize::try_from(fd).ok()?)
}

/// True if a client may have a region for this descriptor.
#[inline(always)]
pub fn flagged(fd: c_int) -> bool {
    flags(fd).is_some_and(|flags| flags.load(Ordering::Relaxed) & REGISTERED != 0)
}

/// True if any flag of this descriptor is set.
#[inline(always)]
pub fn known(fd: c_int) -> bool {
    flags(fd).is_some_and(|flags| flags.load(Ordering::Relaxed) != 0)
}

/// The descriptor was closed or replaced: clears its flags. Takes no lock.
pub fn closed(fd: c_int) {
    if let Some(flags) = flags(fd) {
        flags.store(0, Ordering::Relaxed);
    }
}

/// Restores the kernel's read-ahead, unless the program has chosen it meanwhile: other descriptors may share the
/// opening (`dup`, `fork`). Takes no lock.
pub fn restore(fd: c_int) {
    let Some(flags) = flags(fd) else { return };
    let before = flags.fetch_and(!(QUIET | LONG), Ordering::Relaxed);
    if before & (QUIET | LONG) != 0 && before & CHOSEN == 0 {
        real::advise(fd, libc::POSIX_FADV_NORMAL);
    }
}

/// The program gives advice on the kernel's read-ahead for this descriptor. True if it had given none before.
pub fn chosen(fd: c_int) -> bool {
    flags(fd).is_some_and(|flags| flags.fetch_or(CHOSEN, Ordering::Relaxed) & CHOSEN == 0)
}

/// The program's first advice was refused.
pub fn not_chosen(fd: c_int) {
    if let Some(flags) = flags(fd) {
        flags.fetch_and(!CHOSEN, Ordering::Relaxed);
    }
}

/// Gives this advice for a registered descriptor, unless its read-ahead is already in the state `how` ([`QUIET`] or
/// [`LONG`]), or the program has chosen the read-ahead.
fn change(fd: c_int, how: u8, advice: c_int) {
    let Some(flags) = flags(fd) else { return };
    let wanted = |now: u8| {
        let ours = now & REGISTERED != 0 && now & CHOSEN == 0;
        (ours && now != REGISTERED | how).then_some(REGISTERED | how)
    };
    let (ordering, before) = (Ordering::Relaxed, Ordering::Relaxed);
    if flags.fetch_update(ordering, before, wanted).is_ok() {
        real::advise(fd, advice);
    }
}

/// Clears all flags but [`CHOSEN`]: the program's own advice still holds.
pub fn unflag_all() {
    for flags in &FLAGS {
        if flags.load(Ordering::Relaxed) & (REGISTERED | QUIET | LONG) != 0 {
            flags.fetch_and(!(REGISTERED | QUIET | LONG), Ordering::Relaxed);
        }
    }
}

/// A client with regions for a descriptor.
#[derive(Clone)]
struct User {
    handle: Arc<Handle>,
    file: FileId,
    regions: u32,
}

/// A descriptor in the table.
pub struct Descriptor {
    /// Device and inode when it was registered.
    file: (u64, u64),
    users: Vec<User>,
    seen: Arc<Seen>,
}

/// State of a descriptor that all its users share.
#[derive(Default)]
struct Seen {
    reads: AtomicU32,
    /// The file's size in bytes at the last look.
    size: AtomicU64,
}

impl Descriptor {
    /// Bytes of a read that are inside the file; `None` if there are none, or if the number refers to another
    /// file by now.
    pub fn span(&self, fd: c_int, offset: u64, wanted: u64) -> Option<u64> {
        let reads = self.seen.reads.fetch_add(1, Ordering::Relaxed);
        let mut size = self.seen.size.load(Ordering::Relaxed);
        if reads.is_multiple_of(LOOK_EVERY) || offset.saturating_add(wanted) > size {
            let facts = real::facts(fd).ok()?;
            if facts.file != self.file {
                return None;
            }
            size = facts.size;
            self.seen.size.store(size, Ordering::Relaxed);
        }
        let length = wanted.min(size.saturating_sub(offset));
        (length > 0).then_some(length)
    }

    /// The program is about to read: passes the read to the clients, which may call their callbacks.
    pub fn reading(&self, fd: c_int, extent: Extent) {
        let mut parted = false;
        for user in &self.users {
            let matched = user.handle.reading(fd, user.file, extent);
            parted |= matches!(matched, Ok(Match::Unlisted | Match::RanOut));
        }
        if parted || self.seen.reads.load(Ordering::Relaxed) % LOOK_EVERY == 1 {
            self.adjust(fd);
        }
    }

    /// The read is over.
    pub fn read_done(&self, extent: Extent, start: std::time::Instant) {
        let took = start.elapsed();
        for user in &self.users {
            user.handle.client.read_done(user.file, extent, start, took);
        }
    }

    /// Turns the kernel's read-ahead off while the reads jump in all lists, and doubles it while they go from front
    /// to back in all lists.
    fn adjust(&self, fd: c_int) {
        let of = |user: &User| user.handle.client.advice(user.file);
        let mut advice = self.users.iter().map(of);
        let first = advice.next().unwrap_or_default();
        let agreed = advice.all(|other| other == first);
        match first {
            _ if !agreed => restore(fd),
            Advice::Random => change(fd, QUIET, libc::POSIX_FADV_RANDOM),
            Advice::Sequential => change(fd, LONG, libc::POSIX_FADV_SEQUENTIAL),
            Advice::Normal | Advice::Dropped => restore(fd),
        }
    }

    /// Restores the kernel's read-ahead, if the descriptor still refers to its file.
    fn restore(&self, fd: c_int) {
        if real::facts(fd).is_ok_and(|facts| facts.file == self.file) {
            restore(fd);
        }
    }

    /// This descriptor with other users.
    fn with(&self, users: Vec<User>) -> Arc<Self> {
        Arc::new(Self {
            file: self.file,
            users,
            seen: Arc::clone(&self.seen),
        })
    }
}

/// The registered descriptors of one process.
#[derive(Default)]
pub struct Descriptors(RwLock<HashMap<c_int, Arc<Descriptor>>>);

impl Descriptors {
    /// A registered descriptor.
    pub fn get(&self, fd: c_int) -> Option<Arc<Descriptor>> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        table.get(&fd).cloned()
    }

    /// Adds one region of a client to a descriptor of the file `identity` (device and inode).
    ///
    /// # Errors
    /// `-EMFILE` if its number is too high.
    pub fn join(
        &self,
        fd: c_int,
        identity: (u64, u64),
        handle: &Arc<Handle>,
        file: FileId,
    ) -> Result<(), c_int> {
        let flags = flags(fd).ok_or(-libc::EMFILE)?;
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let known = table
            .remove(&fd)
            .filter(|old| flagged(fd) && old.file == identity)
            .unwrap_or_else(|| {
                Arc::new(Descriptor {
                    file: identity,
                    users: Vec::new(),
                    seen: Arc::default(),
                })
            });
        let mut users = known.users.clone();
        match users
            .iter_mut()
            .find(|user| Arc::ptr_eq(&user.handle, handle))
        {
            Some(user) => user.regions += 1,
            None => users.push(User {
                handle: Arc::clone(handle),
                file,
                regions: 1,
            }),
        }
        table.insert(fd, known.with(users));
        flags.fetch_or(REGISTERED, Ordering::Relaxed);
        Ok(())
    }

    /// Removes one region of a client from a descriptor.
    pub fn part(&self, fd: c_int, handle: &Arc<Handle>) {
        self.change(Some(fd), |users| {
            for user in users.iter_mut() {
                user.regions -= u32::from(Arc::ptr_eq(&user.handle, handle));
            }
            users.retain(|user| user.regions > 0);
        });
    }

    /// Removes a client from all descriptors.
    pub fn leave(&self, handle: &Arc<Handle>) {
        self.change(None, |users| {
            users.retain(|user| !Arc::ptr_eq(&user.handle, handle));
        });
    }

    /// Restores the kernel's read-ahead on all descriptors, unless a thread is changing the table.
    pub fn restore_all(&self) {
        let Ok(table) = self.0.try_read() else { return };
        for (&fd, descriptor) in table.iter().filter(|&(&fd, _)| flagged(fd)) {
            descriptor.restore(fd);
        }
    }

    fn change(&self, only: Option<c_int>, change: impl Fn(&mut Vec<User>)) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        table.retain(|&fd, descriptor| {
            if only.is_some_and(|only| only != fd) {
                return true;
            }
            let mut users = descriptor.users.clone();
            change(&mut users);
            if users.is_empty() {
                if flagged(fd) {
                    descriptor.restore(fd);
                }
                if let Some(flags) = flags(fd) {
                    flags.fetch_and(!REGISTERED, Ordering::Relaxed);
                }
                return false;
            }
            *descriptor = descriptor.with(users);
            true
        });
    }
}
