//! A plan being fetched, the program's reads, and the account of both: [`Fetching`] and [`ReadsSeen`], with real threads.
//!
//! Data flow: trace → [`Wants`] → [`Shared`]; reads → [`ReadsSeen`] → [`Shared`]; at the end the [`Account`].

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foreread_plan::FileId;
use foreread_sys::thread;

use crate::Files;
use crate::account::{Account, ReadsSeen, SoFar};
use crate::fetch::Fetching;
use crate::pages::Planned;
use crate::threads::Shared;
use crate::wants::{JOINED, Trace, Wants};

/// A plan being fetched.
pub struct Session {
    shared: Arc<Shared>,
    planned: Arc<Mutex<Planned>>,
    seen: ReadsSeen,
    /// Pages of the last read that were not read before.
    new: Vec<Range<u64>>,
}

impl Session {
    /// Starts fetching the reads of `trace`, within a part of the free memory, given in pages. A plan `on_trial` begins with one request,
    /// and each planned page that the program reads permits one more, until the plan has contained most of a window's reads.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        trace: impl Trace + Send + 'static,
        files: Arc<dyn Files>,
        memory: u64,
        on_trial: bool,
    ) -> io::Result<Self> {
        let trial = on_trial.then_some(JOINED);
        let shared = Arc::new(Shared::new(
            Arc::clone(&files),
            Fetching::new(memory, trial),
        ));
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
            seen: ReadsSeen::default(),
            new: Vec::new(),
        })
    }

    /// The same for a plan that may contain only a part of the program's reads: unexpected reads do not end it.
    pub fn of_part(mut self, is_partial: bool) -> Self {
        self.seen.is_partial = is_partial;
        self
    }

    /// The program has read these pages in `count` reads; `waited` if it waited for a device.
    pub fn read(&mut self, file: FileId, pages: Range<u64>, waited: bool, count: u64) {
        let shared = &self.shared;
        self.new.clear();
        let is_complete = shared.read(file, pages.clone(), &mut self.new);
        let planned = lock(&self.planned);
        let (pages, how) = ((pages, &*self.new), (waited, count));
        let news = self.seen.read(file, pages, how, &planned, is_complete);
        drop(planned);
        if waited && self.new.is_empty() {
            shared.waited_again();
        }
        if news.passed > 0 {
            shared.passed(news.passed);
        }
        match news.holds {
            Some(true) => shared.trust(),
            Some(false) => shared.stop(),
            None => {}
        }
    }

    /// True if the plan reads this file by calls, so its path was found to lead to a regular file.
    pub fn plans(&self, file: FileId) -> bool {
        lock(&self.planned).files.contains(&file)
    }

    /// The program has waited for a name.
    pub fn named(&mut self, file: FileId) {
        self.seen.named(file);
    }

    /// True if the program has left the plan.
    pub fn has_left(&self) -> bool {
        self.seen.has_left
    }

    /// Pages of the plan requested so far, or found in memory, and of these, pages that the program has passed.
    pub fn progress(&self) -> (u64, u64) {
        self.shared.lock().progress()
    }

    /// The ledger so far. It visits all fetched pages, so it is not for every step.
    pub fn so_far(&self) -> SoFar {
        self.seen.so_far(&self.shared.lock(), &lock(&self.planned))
    }

    /// True if the program has waited for a read that the plan does not have.
    pub fn has_strayed(&self) -> bool {
        self.seen.has_strayed
    }

    /// True if everything is fetched and the program reads nothing new.
    pub fn is_over(&self) -> bool {
        self.seen.is_idle() && self.shared.is_done()
    }

    /// The program was not observed, or will not be from now on: pages with no read seen count as unknown, not as wasted.
    pub fn look_away(&mut self) {
        self.seen.is_unobserved = true;
    }

    /// The program may have read pages of this file unseen: its touches are sampled, and the last ones come after the last sample.
    pub fn doubt(&mut self, file: FileId) {
        self.seen.doubted.insert(file);
    }

    /// Ends fetching; the account. Threads that a file system holds up end with the process.
    pub fn finish(self) -> Account {
        let mut state = self.shared.settle();
        self.seen.account(&mut state, &lock(&self.planned))
    }
}

fn lock(planned: &Mutex<Planned>) -> MutexGuard<'_, Planned> {
    planned.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Difference;
    use crate::account::WINDOW;
    use foreread_plan::{Access, Extent, FileMeta, Kind, PAGE, ThreadId};
    use foreread_sys::cache;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::ops::Range;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::sync::Mutex;
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
        let meta = |path: &Path| {
            FileMeta::regular(
                path.to_owned(),
                (facts.dev(), facts.ino()),
                facts.size(),
                facts.mtime() * 1_000_000_000 + facts.mtime_nsec(),
            )
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

    fn start(files: &Arc<dyn Files>, reads: Vec<Access>, memory: u64) -> Session {
        Session::start(List(reads.into_iter()), Arc::clone(files), memory, false).unwrap()
    }

    fn wait(what: &str, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
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
        let so_far = session.so_far();
        let account = session.finish();
        assert!(account.is_closed(), "{account:?}");
        assert_eq!(
            (so_far.useful, so_far.late),
            (account.ledger.useful, account.ledger.late)
        );
        assert_eq!(
            (so_far.missed, so_far.wasted),
            (account.ledger.missed, None)
        );
        assert_eq!((account.reads, account.foreseen), (200, 200));
        let gone = |(file, how): &(FileId, Difference)| {
            *file == FileId(1) && matches!(how, Difference::Gone(_))
        };
        assert!(account.differences.iter().any(gone), "{account:?}");
    }

    /// A file whose pages go to a cache, and that nobody can open before all of them have arrived there.
    struct Cached {
        meta: FileMeta,
        all: usize,
        brought: Mutex<Vec<Range<u64>>>,
    }

    impl Files for Cached {
        fn file(&self, _: FileId) -> Option<&FileMeta> {
            wait("all pages", || {
                self.brought.lock().unwrap().len() == self.all
            });
            Some(&self.meta)
        }

        fn cache(&self) -> Option<&dyn crate::Cache> {
            Some(self)
        }
    }

    impl crate::Cache for Cached {
        fn takes(&self, _: FileId) -> bool {
            true
        }

        fn bring(&self, _: FileId, pages: Range<u64>) {
            self.brought.lock().unwrap().push(pages);
        }

        fn is_full(&self) -> bool {
            false
        }

        fn stop(&self) {}

        fn brought(&self) -> Vec<(FileId, Range<u64>)> {
            Vec::new()
        }
    }

    #[test]
    fn pages_for_a_cache_arrive_there_in_order_however_long_their_file_takes_to_open() {
        let (_folder, files) = lab();
        let reads: Vec<_> = scattered(4).map(|page| read(0, page)).collect();
        let cached = Arc::new(Cached {
            meta: files.file(FileId(0)).unwrap().clone(),
            all: reads.len(),
            brought: Mutex::default(),
        });
        let session = start(&(Arc::clone(&cached) as Arc<dyn Files>), reads, 1 << 20);
        wait("the plan", || session.shared.is_done());
        let brought = cached.brought.lock().unwrap();
        assert!(brought.iter().map(|pages| pages.start).eq(scattered(4)));
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
        assert!(session.finish().ledger.issued > 0);
    }

    #[test]
    fn no_more_than_the_budget_is_ahead_of_the_program() {
        let (_folder, files) = lab();
        let reads: Vec<_> = (0..PAGES).rev().map(|page| read(0, page)).collect();
        let mut session = start(&files, reads, 128);
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
        assert!(account.was_full && account.is_closed(), "{account:?}");
        assert_eq!(account.ledger.wasted, 0, "{account:?}");
    }

    #[test]
    fn a_plan_on_trial_is_fetched_as_a_whole_once_it_has_told_what_is_read() {
        let (_folder, files) = lab();
        let reads: Vec<_> = (0..PAGES).rev().map(|page| read(0, page)).collect();
        let trace = List(reads.into_iter());
        let mut session = Session::start(trace, Arc::clone(&files), 1 << 20, true).unwrap();
        wait("the plan", || session.shared.lock().is_complete());
        assert!(session.shared.lock().is_on_trial());
        session.read(FileId(0), 0..1, false, WINDOW);
        assert!(!session.shared.lock().is_on_trial());
        assert!(session.finish().is_closed());
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
        assert_eq!(session.so_far().missed, WINDOW * PAGE);
        assert!(session.so_far().wasted.is_some());
        let account = session.finish();
        assert!(account.has_left && account.is_closed(), "{account:?}");
        assert_eq!(account.ledger.missed, WINDOW * PAGE);
    }

    #[test]
    fn a_plan_of_a_part_is_not_given_up_for_what_it_does_not_have() {
        let (_folder, files) = lab();
        let mut session = start(&files, vec![read(0, 1)], 1 << 20).of_part(true);
        wait("the plan", || session.shared.is_done());
        for page in 0..2 * WINDOW {
            session.read(FileId(9), page..page + 1, true, 1);
        }
        assert!(!session.has_left());
        let account = session.finish();
        assert!(!account.has_left && account.is_closed(), "{account:?}");
    }

    /// Asserts that the fate of all pages is unknown, except for infill.
    fn assert_unknown(account: &Account) {
        assert!(account.is_closed(), "{account:?}");
        let ledger = account.ledger;
        assert_eq!(ledger.unknown + ledger.infill, ledger.issued, "{ledger:?}");
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
        assert_unknown(&session.finish());
    }

    #[test]
    fn what_may_have_been_touched_after_the_last_sample_is_not_said_to_be_wasted() {
        let (_folder, files) = lab();
        let planned = scattered(100).map(|page| read(0, page));
        let mut session = start(&files, planned.collect(), 1 << 20);
        wait("the plan", || session.shared.is_done());
        session.doubt(FileId(0));
        assert_unknown(&session.finish());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn the_account_is_closed_whatever_is_planned_and_read(
            planned in prop::collection::vec((0u32..2, 0u64..600), 0..400),
            seen in prop::collection::vec((0u32..3, 0u64..600, any::<bool>()), 0..400),
            memory in 1u64..1200,
            looks_away in any::<bool>(),
        ) {
            let (_folder, files) = lab();
            let reads = planned.iter().map(|&(file, page)| read(file, page));
            let mut session = start(&files, reads.collect(), memory);
            for &(file, page, waited) in &seen {
                session.read(FileId(file), page..page + 1, waited, 1);
            }
            if looks_away {
                session.look_away();
            }
            let account = session.finish();
            prop_assert!(account.is_closed(), "{:?}", account);
            prop_assert_eq!(account.reads, seen.len() as u64);
            prop_assert!(account.foreseen <= account.reads);
        }
    }
}
