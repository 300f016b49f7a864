//! A session keeps ahead of a thread that reads a file, and accounts for it.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use foreread_backend::{Backend, DeviceFacts, Event, PageCache, Question, Ticket};
use foreread_engine::{Config, Engine, Report, Session};
use foreread_plan::{
    Expected, FileId, FileMeta, Kind, Odds, PAGE, Pattern, Request, RequestId, Seen, Sequence,
    ThreadId,
};
use foreread_sources::{Nature, Outlook, Replay, Shown, Source};
use foreread_steady::{check, rounds};
use foreread_sys::cache;

use super::backend::wait_for;
use super::{FILE, PAGES, cold_file, dir, files, read};

/// Pages that are known to be read.
fn known(pages: Vec<u64>) -> Box<dyn Source> {
    let reads = pages.into_iter().map(|page| read(page, 0, 0));
    Box::new(Replay::new(reads))
}

/// Every 5th page, backwards: nothing the kernel would guess.
fn pages() -> Vec<u64> {
    (0..PAGES).rev().step_by(5).collect()
}

fn follow(meta: FileMeta, plan: Vec<u64>, program: &[u64], file: &File) -> Report {
    let backend = PageCache::new(&files(meta));
    let source = known(plan);
    let start = Instant::now();
    let engine = Engine::new(backend, Config::default()).with_strand("replay", source);
    let session = Session::start(move || engine, start).unwrap();
    let mut buffer = vec![0; PAGE as usize];
    for &page in program {
        std::thread::sleep(Duration::from_micros(200));
        let begun = start.elapsed();
        file.read_exact_at(&mut buffer, page * PAGE).unwrap();
        let took = start.elapsed() - begun;
        session.see(Seen::Read(
            read(page, begun.as_nanos() as u64, took.as_nanos() as u64).into(),
        ));
        session.wake();
    }
    session.finish().unwrap()
}

/// Guesses that the program continues with the difference of its last two reads, for any added file.
#[derive(Default)]
struct GoesOn {
    sizes: BTreeMap<FileId, u64>,
    last: Option<(FileId, u64)>,
    said: Vec<Expected>,
}

impl Source for GoesOn {
    fn nature(&self) -> Nature {
        Nature::Guess
    }

    fn see(&mut self, seen: &Seen) {
        match *seen {
            Seen::File { file, size, .. } => {
                self.sizes.insert(file, size / PAGE);
            }
            Seen::Read(Sequence { first, .. }) => {
                let (file, page) = (first.file, first.extent.pages().start);
                let last = self.last.replace((file, page));
                let (Some((last, before)), Some(size)) = (last, self.sizes.get(&file)) else {
                    return;
                };
                let next = (page + 32 * page).checked_sub(32 * before);
                if let Some(next) = next.filter(|next| last == file && next < size) {
                    self.said.push(Expected {
                        file,
                        pages: next..next + 1,
                        thread: first.thread,
                        pattern: Pattern::Scattered,
                        odds: Odds(250),
                    });
                }
            }
            _ => {}
        }
    }

    fn disclose(&mut self, room: usize, out: &mut Vec<Expected>) -> Outlook {
        out.extend(self.said.drain(..room.min(self.said.len())));
        Outlook::Later
    }
}

#[test]
fn a_file_that_is_met_while_the_session_lasts_is_fetched_of() {
    rounds(|| {
        let dir = dir();
        let Some((file, meta)) = cold_file(dir.path()) else {
            return;
        };
        let start = Instant::now();
        let make = || {
            let backend = PageCache::new(&Arc::default());
            Engine::new(backend, Config::default()).with_strand("guess", Box::<GoesOn>::default())
        };
        let session = Session::start(make, start).unwrap();
        // A read of a file that nobody knows is in no account.
        session.see(Seen::Read(read(9, 0, 1_000_000).into()));
        let size = meta.size;
        session.add_file(FILE, meta);
        session.see(Seen::File {
            file: FILE,
            size,
            written: false,
        });
        let mut buffer = vec![0; PAGE as usize];
        for page in pages() {
            let begun = start.elapsed();
            file.read_exact_at(&mut buffer, page * PAGE).unwrap();
            let took = start.elapsed() - begun;
            let read = read(page, begun.as_nanos() as u64, took.as_nanos() as u64);
            session.see(Seen::Read(read.into()));
            session.wake();
            std::thread::sleep(Duration::from_micros(200));
        }
        let report = session.finish().unwrap();
        let ledger = report.ledger;
        assert!(ledger.is_closed(), "{ledger:?}");
        assert_eq!(report.strands.len(), 1);
        assert_eq!(report.strands[0].ledger, ledger);
        let read = pages().len() as u64 * PAGE;
        check!(ledger.useful + ledger.late > read / 2, "{report:?}");
    });
}

/// A guess of the pages 0 to 512, which has been right about so much before.
struct Has(u64, bool);

impl Source for Has {
    fn nature(&self) -> Nature {
        Nature::Guess
    }
    fn shown(&self) -> Shown {
        Shown {
            right: self.0,
            wrong: 0,
        }
    }
    fn disclose(&mut self, room: usize, out: &mut Vec<Expected>) -> Outlook {
        if room > 0 && !std::mem::replace(&mut self.1, true) {
            out.extend((0..512).step_by(16).map(|page| Expected {
                file: FILE,
                pages: page..page + 16,
                thread: ThreadId(0),
                pattern: Pattern::Scattered,
                odds: Odds::SURE,
            }));
        }
        Outlook::Later
    }
}

#[test]
fn a_strand_is_added_while_the_session_lasts_and_believed_by_what_it_has_shown() {
    rounds(|| {
        let dir = dir();
        let issued = [0, 4096].map(|right| {
            let (_, meta) = cold_file(dir.path())?;
            let make = || Engine::new(PageCache::new(&Arc::default()), Config::default());
            let session = Session::start(make, Instant::now()).unwrap();
            assert!(session.ledgers().is_empty());
            session.add_file(FILE, meta);
            session.add_strand("guess", Box::new(Has(right, false)));
            session.wake();
            let until = Instant::now() + Duration::from_secs(20);
            while session.ledgers().is_empty() {
                assert!(Instant::now() < until, "no strand is added");
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(300));
            assert_eq!(session.ledgers().len(), 1);
            let report = session.finish().unwrap();
            assert_eq!(report.strands.len(), 1);
            Some(report.ledger.issued)
        });
        if let [Some(little), Some(much)] = issued {
            // Unread pages never prove a guess right, so a guess without any success stops soon.
            assert!(little <= 256 << 10, "{little}");
            check!(much == 512 * PAGE, "{much}");
        }
    });
}

#[test]
fn a_cold_plan_is_fetched_and_every_byte_accounted_for() {
    rounds(|| {
        let dir = dir();
        let Some((file, meta)) = cold_file(dir.path()) else {
            return;
        };
        let plan = pages();
        let report = follow(meta, plan.clone(), &plan, &file);
        let ledger = report.ledger;
        assert!(ledger.is_closed(), "{ledger:?}");
        // Reads that the engine had not handled at the program's end are accounted for, and not judged.
        assert_eq!(report.foreseen, report.reads);
        check!(report.reads > plan.len() as u64 / 2, "{report:?}");
        check!(
            ledger.issued >= plan.len() as u64 * PAGE * 9 / 10,
            "{ledger:?}"
        );
        // A momentarily slow device may be taken for a rotating disk, so gaps may be read as well.
        let wanted = ledger.issued - ledger.infill;
        check!(ledger.useful > wanted / 2, "{ledger:?}");
        assert!(report.changed.is_empty() && report.gone.is_empty());
    });
}

#[test]
fn reads_that_nobody_wakes_the_engine_for_are_seen_when_its_timer_ends() {
    rounds(|| {
        let dir = dir();
        let Some((file, meta)) = cold_file(dir.path()) else {
            return;
        };
        let plan = pages();
        let start = Instant::now();
        let engine = Engine::new(
            PageCache::new(&files(meta)),
            Config {
                budget_pages: 256,
                ..Config::default()
            },
        )
        .with_strand("replay", known(plan.clone()));
        let session = Session::start(move || engine, start).unwrap();
        let mut unseen = 0;
        for &page in &plan {
            let until = Instant::now() + Duration::from_secs(2);
            let bytes = page * PAGE..(page + 1) * PAGE;
            let there = || cache::stat(&file, bytes.clone()).unwrap().cached > 0;
            while !there() && Instant::now() < until {
                std::thread::sleep(Duration::from_micros(100));
            }
            unseen += usize::from(!there());
            check!(unseen <= plan.len() / 100, "{unseen} pages do not come");
            session.see(Seen::Read(
                read(page, start.elapsed().as_nanos() as u64, 1000).into(),
            ));
        }
        let ledger = session.finish().unwrap().ledger;
        let wanted = ledger.issued - ledger.infill;
        check!(wanted >= plan.len() as u64 * PAGE * 9 / 10, "{ledger:?}");
    });
}

#[test]
fn pages_fetched_for_nothing_are_accounted_as_wasted() {
    rounds(|| {
        let dir = dir();
        let Some((file, meta)) = cold_file(dir.path()) else {
            return;
        };
        let report = follow(meta, pages(), &[], &file);
        let ledger = report.ledger;
        assert!(ledger.is_closed());
        check!(ledger.wasted == ledger.issued, "{ledger:?}");
    });
}

/// True if this process has the file open or mapped, so a lease of it would be refused.
fn is_held(path: &Path) -> bool {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let mut open = open.filter_map(|one| std::fs::read_link(one.ok()?.path()).ok());
    let mapped = std::fs::read_to_string("/proc/self/maps").unwrap();
    open.any(|one| one == path) || mapped.contains(path.to_str().unwrap())
}

#[test]
fn a_file_is_held_no_longer_than_it_is_worked_on() {
    rounds(|| {
        let dir = dir();
        // Many requests in a row, and a few.
        for count in [PAGES / 5, 6] {
            let Some((file, meta)) = cold_file(dir.path()) else {
                return;
            };
            drop(file);
            let path = meta.path.canonicalize().unwrap();
            let mut backend = PageCache::new(&files(meta));
            for id in 0..count {
                let page = id * 5;
                backend.submit(Request {
                    id: RequestId(id),
                    file: FILE,
                    pages: page..page + 1,
                });
            }
            let mut done = 0;
            let until = Instant::now() + Duration::from_secs(10);
            while done < count {
                assert!(Instant::now() < until, "{done} of {count} requests");
                let mut events = Vec::new();
                backend.poll(&mut events);
                let is_done = |event: &&Event| matches!(event, Event::Done { .. });
                done += events.iter().filter(is_done).count() as u64;
                std::thread::sleep(Duration::from_micros(100));
            }
            // A thread may not have got a processor yet.
            while is_held(&path) {
                assert!(Instant::now() < until, "it is still held");
                std::thread::sleep(Duration::from_millis(1));
            }
            // A file with an open question is checked no longer than until the answer.
            backend.ask(Question {
                ticket: Ticket(0),
                file: FILE,
                parts: std::iter::once(0..1).collect(),
                which: false,
            });
            let events = wait_for(&mut backend, |event| {
                matches!(event, Event::Answered { .. })
            });
            let answered = events.iter().find_map(|event| match event {
                Event::Answered { answer, .. } => answer.parts[0].resident,
                _ => None,
            });
            check!(answered == Some(1), "{answered:?}");
            while is_held(&path) {
                assert!(Instant::now() < until, "it is still held");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
}

#[test]
fn an_engine_that_fails_costs_its_report_and_nothing_else() {
    let make = || -> Engine<PageCache> { panic!("as a test wants it") };
    let session = Session::start(make, Instant::now()).unwrap();
    session.see(Seen::Read(read(0, 0, 1000).into()));
    session.wake();
    assert!(session.finish().is_none());
    let make = || -> Engine<PageCache> { panic!("as a test wants it") };
    let session = Session::start(make, Instant::now()).unwrap();
    assert!(session.account().is_none());
}

/// A backend on a file system that does not answer: whoever asks it waits until the test is over.
struct Stuck(Receiver<()>);

impl Backend for Stuck {
    fn device(&mut self, _: FileId) -> Option<u64> {
        let _ = self.0.recv();
        None
    }
    fn facts(&mut self, _: u64) -> DeviceFacts {
        unreachable!("no file has a device")
    }
    fn prepare(&mut self, _: FileId) {}
    fn submit(&mut self, _: Request) {}
    fn poll(&mut self, _: &mut Vec<Event>) {}
    fn look(&mut self, _: &[(FileId, Kind)]) {}
    fn ask(&mut self, _: Question) {}
    fn discard(&mut self, _: FileId, _: Range<u64>) {}
}

#[test]
fn a_session_ends_though_a_file_system_does_not_answer_its_engine() {
    let end: [fn(Session) -> Option<Report>; 2] = [Session::finish, Session::account];
    for end in end {
        let (answer, asked) = channel();
        let source = known(pages());
        let make = || Engine::new(Stuck(asked), Config::default()).with_strand("replay", source);
        let session = Session::start(make, Instant::now()).unwrap();
        session.see(Seen::Read(read(0, 0, 1000).into()));
        assert!(end(session).is_none());
        drop(answer);
    }
}
