//! A plan that is being fetched, what the program is seen to read, and the account of both.
//!
//! Reads are not set against the plan one by one. What is kept of them is which pages were read, and which of them waited; the
//! account is made of that at the end. Every [`WINDOW`] reads the plan is judged by its outcome: if it did not have half of them,
//! the program does something else, and nothing more is fetched.
//!
//! Invariant of the account: issued = useful + late + evicted + wasted + unknown.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use foreread_plan::{FileId, PAGE};
use foreread_sys::thread;
use rustc_hash::FxHashSet;

use crate::Files;
use crate::fetch::{Difference, Shared};
use crate::pages::{Pages, Planned};
use crate::wants::{Trace, Wants};

/// Reads by which a plan is judged.
const WINDOW: u64 = 1000;

/// What came of a plan. Bytes are whole pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Bytes fetched from the device.
    pub issued: u64,
    /// Of these, bytes that were in memory when the program read them.
    pub useful: u64,
    /// Bytes that the program had to wait for all the same.
    pub late: u64,
    /// Bytes that were gone from memory again when the program read them.
    pub evicted: u64,
    /// Bytes that the program did not read, which was observed all the time.
    pub wasted: u64,
    /// Bytes that the program was not seen to read, which was not observed all the time.
    pub unknown: u64,
    /// Bytes that the program waited for and that were not issued.
    pub missed: u64,
    /// Whether fetching ever had to wait for the program, for want of memory.
    pub was_full: bool,
    /// Names looked up; of these, names that took a device, and names that the program used.
    pub names: Names,
    /// Reads seen, and of these, reads that the plan had.
    pub reads: u64,
    /// Reads that the plan had.
    pub foreseen: u64,
    /// Whether the program has left the plan.
    pub has_left: bool,
    /// Files that differ from the record.
    pub differences: Vec<(FileId, Difference)>,
    /// Devices fetched from, by `st_dev`.
    pub devices: Vec<u64>,
}

/// What became of names. asked = used + unused + unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Looked up.
    pub asked: u64,
    /// Of these, names that a device was waited for.
    pub fetched: u64,
    /// Names that the program used.
    pub used: u64,
    /// Names that the program did not use, which was observed all the time.
    pub unused: u64,
    /// Names that the program was not seen to use, which was not observed all the time.
    pub unknown: u64,
}

/// A plan being fetched.
pub struct Session {
    shared: Arc<Shared>,
    planned: Arc<Mutex<Planned>>,
    read: Pages,
    waited: Pages,
    named: FxHashSet<FileId>,
    reads: u64,
    foreseen: u64,
    /// Reads of the current window, and of these, reads that the plan had.
    window: (u64, u64),
    /// Reads since the last one of a page that was not read before.
    idle: u64,
    has_left: bool,
    has_strayed: bool,
    is_unobserved: bool,
}

impl Session {
    /// Starts fetching what `trace` reads; at most `budget` pages are ahead of the program, and no more than [`WINDOW`] as long as a
    /// plan `on_trial` has not had most of a window's reads.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        trace: impl Trace + 'static,
        files: Arc<dyn Files>,
        budget: u64,
        on_trial: bool,
    ) -> io::Result<Self> {
        let trial = on_trial.then_some(WINDOW);
        let shared = Arc::new(Shared::new(Arc::clone(&files), budget, trial));
        let planned = Arc::<Mutex<Planned>>::default();
        let (adds, plans) = (Arc::clone(&shared), Arc::clone(&planned));
        thread::builder("foreread-wants").spawn(move || {
            let mut wants = Wants::new(trace, &*files);
            let mut batch = Vec::new();
            while wants.next(&plans, &mut batch) {
                if !adds.add(&mut batch) {
                    return;
                }
            }
            adds.complete();
        })?;
        Ok(Self {
            shared,
            planned,
            read: Pages::default(),
            waited: Pages::default(),
            named: FxHashSet::default(),
            reads: 0,
            foreseen: 0,
            window: (0, 0),
            idle: 0,
            has_left: false,
            has_strayed: false,
            is_unobserved: false,
        })
    }

    /// The program has read these pages by so many reads, and waited for a device or not.
    pub fn read(&mut self, file: FileId, pages: Range<u64>, waited: bool, count: u64) {
        let is_planned = self.planned().all.has_any(file, pages.clone());
        let new = self.read.add(file, pages.clone());
        if new > 0 {
            if waited {
                self.waited.add(file, pages);
            }
            if is_planned {
                self.shared.passed(new);
            }
            self.has_strayed |= waited && !is_planned && self.shared.is_complete();
            self.idle = 0;
        } else {
            self.idle += count;
        }
        let foreseen = if is_planned { count } else { 0 };
        self.reads += count;
        self.foreseen += foreseen;
        self.window.0 += count;
        self.window.1 += foreseen;
        if self.window.0 >= WINDOW {
            self.has_left |= self.window.1 < self.window.0 / 2;
            self.window = (0, 0);
            if self.has_left {
                self.shared.stop();
            } else {
                self.shared.trust();
            }
        }
    }

    /// Whether the plan has pages of this file by calls, so that its path was found to lead to a regular file.
    pub fn plans(&self, file: FileId) -> bool {
        self.planned().files.contains(&file)
    }

    /// The program has used a name.
    pub fn named(&mut self, file: FileId) {
        self.named.insert(file);
    }

    fn planned(&self) -> std::sync::MutexGuard<'_, Planned> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the program has left the plan.
    pub fn has_left(&self) -> bool {
        self.has_left
    }

    /// Whether the program has waited for anything that the plan does not have.
    pub fn has_strayed(&self) -> bool {
        self.has_strayed
    }

    /// Whether there is nothing more to fetch, nor anything new to be seen of the program.
    pub fn is_over(&self) -> bool {
        self.idle >= WINDOW && self.shared.is_done()
    }

    /// The program was not observed, or is not from now on: nobody can say whether it reads what it was not seen to read.
    pub fn look_away(&mut self) {
        self.is_unobserved = true;
    }

    /// Ends fetching; the account. Threads that a file system holds up end with the process.
    pub fn finish(self) -> Account {
        let mut state = self.shared.settle();
        let mut account = Account {
            reads: self.reads,
            foreseen: self.foreseen,
            has_left: self.has_left,
            was_full: state.was_full(),
            differences: std::mem::take(&mut state.differences),
            devices: state.devices.iter().copied().collect(),
            ..Account::default()
        };
        let (mut issued, mut read, mut late) = (0, 0, 0);
        for (file, pages) in &state.issued {
            issued += pages.end - pages.start;
            read += self.read.count(*file, pages.clone());
            late += self.waited.count(*file, pages.clone());
        }
        account.issued = issued * PAGE;
        account.late = late * PAGE;
        account.useful = (read - late) * PAGE;
        let left = self.waited.common(&self.planned().left);
        account.missed = self.waited.len().saturating_sub(late + left) * PAGE;
        let unread = (issued - read) * PAGE;
        *if self.is_unobserved {
            &mut account.unknown
        } else {
            &mut account.wasted
        } = unread;
        let names = &mut account.names;
        for (file, waited) in &state.names {
            names.asked += 1;
            names.fetched += u64::from(*waited);
            names.used += u64::from(self.named.contains(file));
        }
        let unused = names.asked - names.used;
        *if self.is_unobserved {
            &mut names.unknown
        } else {
            &mut names.unused
        } = unused;
        account
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreread_plan::{Access, Advice, Extent, FileMeta, Kind, ThreadId};
    use foreread_sys::cache;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::time::{Duration, Instant};
    use tempfile::TempDir;

    const PAGES: u64 = 512;

    struct List(std::vec::IntoIter<Access>);

    impl Trace for List {
        fn next(&mut self) -> Option<Access> {
            self.0.next()
        }
    }

    /// A file that is not in memory, on a real file system, and a file that is not there.
    fn lab() -> (TempDir, Arc<dyn Files>) {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().canonicalize().unwrap().join("data");
        std::fs::write(&path, vec![7; (PAGES * PAGE) as usize]).unwrap();
        let facts = path.metadata().unwrap();
        let meta = |path: &Path| FileMeta {
            path: path.to_owned(),
            dev: facts.dev(),
            ino: facts.ino(),
            size: facts.size(),
            mtime_ns: facts.mtime() * 1_000_000_000 + facts.mtime_nsec(),
            written: false,
            advice: Advice::Normal,
            directory: false,
        };
        let files = [
            (FileId(0), meta(&path)),
            (FileId(1), meta(Path::new("/none/here"))),
        ];
        cache::evict(File::open(&path).unwrap()).unwrap();
        (folder, Arc::new(BTreeMap::from(files)))
    }

    fn read(file: u32, page: u64) -> Access {
        Access {
            file: FileId(file),
            extent: Extent::new(page * PAGE, PAGE),
            thread: ThreadId(0),
            kind: Kind::Pread,
            start: 0,
            took: 0,
        }
    }

    fn start(files: &Arc<dyn Files>, reads: Vec<Access>, budget: u64) -> Session {
        Session::start(List(reads.into_iter()), Arc::clone(files), budget, false).unwrap()
    }

    fn wait(what: &str, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn is_closed(account: &Account) -> bool {
        let Account {
            useful,
            late,
            evicted,
            wasted,
            unknown,
            ..
        } = account;
        account.issued == useful + late + evicted + wasted + unknown
    }

    fn scattered(count: u64) -> impl Iterator<Item = u64> {
        (0..count).map(|n| n * 37 % PAGES)
    }

    #[test]
    fn a_plan_is_fetched_as_a_whole_and_accounted_for() {
        let (_folder, files) = lab();
        let reads = scattered(300).map(|page| read(0, page)).chain([read(1, 0)]);
        let mut session = start(&files, reads.collect(), 1 << 20);
        wait("the plan", || session.shared.is_done());
        for page in scattered(200) {
            session.read(FileId(0), page..page + 1, page % 10 == 0, 1);
        }
        let account = session.finish();
        assert!(is_closed(&account), "{account:?}");
        assert_eq!((account.reads, account.foreseen), (200, 200));
        let gone = |(file, how): &(FileId, Difference)| {
            *file == FileId(1) && matches!(how, Difference::Gone(_))
        };
        assert!(account.differences.iter().any(gone), "{account:?}");
    }

    #[test]
    fn nothing_is_left_open_once_a_plan_is_fetched() {
        let (folder, files) = lab();
        let path = folder.path().canonicalize().unwrap();
        let is_open = || {
            let open = std::fs::read_dir("/proc/self/fd").unwrap();
            let mut open = open.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
            open.any(|name| name.starts_with(&path))
        };
        let session = start(
            &files,
            scattered(300).map(|page| read(0, page)).collect(),
            1 << 20,
        );
        wait("the plan", || session.shared.is_done());
        wait("the end of its threads", || !is_open());
        assert!(session.finish().issued > 0);
    }

    #[test]
    fn no_more_than_the_budget_is_ahead_of_the_program() {
        let (_folder, files) = lab();
        let reads: Vec<_> = (0..PAGES).rev().map(|page| read(0, page)).collect();
        let mut session = start(&files, reads, 64);
        wait("the budget", || session.shared.lock().was_full());
        let issued = |session: &Session| -> u64 {
            let state = session.shared.lock();
            state
                .issued
                .iter()
                .map(|(_, pages)| pages.end - pages.start)
                .sum()
        };
        // Each of the threads may be at work on one request beyond the budget.
        assert!(issued(&session) <= 64 + 16 * 32);
        for page in (0..PAGES).rev() {
            session.read(FileId(0), page..page + 1, false, 1);
        }
        wait("the rest", || session.shared.is_done());
        let account = session.finish();
        assert!(account.was_full && is_closed(&account), "{account:?}");
        assert_eq!(account.wasted, 0, "{account:?}");
    }

    #[test]
    fn a_plan_on_trial_is_fetched_as_a_whole_once_it_has_told_what_is_read() {
        let (_folder, files) = lab();
        let reads: Vec<_> = (0..PAGES).rev().map(|page| read(0, page)).collect();
        let trace = List(reads.into_iter());
        let mut session = Session::start(trace, Arc::clone(&files), 1 << 20, true).unwrap();
        wait("the plan", || session.shared.is_complete());
        assert!(session.shared.lock().is_on_trial());
        session.read(FileId(0), 0..1, false, WINDOW);
        assert!(!session.shared.lock().is_on_trial());
        assert!(is_closed(&session.finish()));
    }

    #[test]
    fn a_program_that_reads_something_else_is_fetched_no_more_for() {
        let (_folder, files) = lab();
        let mut session = start(&files, vec![read(0, 1)], 1 << 20);
        wait("the plan", || session.shared.is_done());
        for page in 0..WINDOW {
            session.read(FileId(9), page..page + 1, true, 1);
        }
        assert!(session.has_left() && session.has_strayed());
        let account = session.finish();
        assert!(account.has_left && is_closed(&account), "{account:?}");
        assert_eq!(account.missed, WINDOW * PAGE);
    }

    #[test]
    fn what_is_read_while_nobody_looks_is_not_said_to_be_wasted() {
        let (_folder, files) = lab();
        let mut session = start(
            &files,
            scattered(100).map(|page| read(0, page)).collect(),
            1 << 20,
        );
        wait("the plan", || session.shared.is_done());
        session.look_away();
        let account = session.finish();
        assert!(is_closed(&account) && account.wasted == 0, "{account:?}");
        assert_eq!(account.unknown, account.issued);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn the_account_is_closed_whatever_is_planned_and_read(
            planned in prop::collection::vec((0u32..2, 0u64..600), 0..400),
            seen in prop::collection::vec((0u32..3, 0u64..600, any::<bool>()), 0..400),
            budget in 1u64..600,
            looks_away in any::<bool>(),
        ) {
            let (_folder, files) = lab();
            let reads = planned.iter().map(|&(file, page)| read(file, page));
            let mut session = start(&files, reads.collect(), budget);
            for &(file, page, waited) in &seen {
                session.read(FileId(file), page..page + 1, waited, 1);
            }
            if looks_away {
                session.look_away();
            }
            let account = session.finish();
            prop_assert!(is_closed(&account), "{:?}", account);
            prop_assert_eq!(account.reads, seen.len() as u64);
            prop_assert!(account.foreseen <= account.reads);
        }
    }
}
