//! The whole loop with a fake observer and backend: events in, requests out.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use foreread_backend::{
    Answer as Looked, Backend, DeviceFacts, Event as OfBackend, Outcome, Question, Standing,
};
use foreread_observe::{File, Node, Progress, What};
use foreread_plan::{FileId, FileMeta, Kind, Request};

use super::*;
use crate::accounts::Accounts;
use crate::observer::made::{began, event, opened};
use crate::{Desk, desk};

/// Long enough for a machine that others use.
const PATIENCE: Duration = Duration::from_secs(60);

type Events = Arc<Mutex<VecDeque<Event>>>;
type Requested = Arc<Mutex<BTreeMap<String, Vec<Range<u64>>>>>;

struct Fake(Events);

impl Observer for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn poll(&mut self, _: &mut Budget, out: &mut dyn FnMut(Event)) -> Progress {
        self.0.lock().expect("events").drain(..).for_each(out);
        Progress::default()
    }

    fn lost(&self) -> Vec<(&'static str, u64)> {
        vec![("fake", 3)]
    }
}

/// An observer whose alarm is triggered by writing to the other end of the pipe.
struct Alarmed(std::io::PipeReader);

impl Observer for Alarmed {
    fn name(&self) -> &'static str {
        "alarmed"
    }

    fn alarm_fd(&self) -> Option<rustix::fd::BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }

    fn poll(&mut self, _: &mut Budget, _: &mut dyn FnMut(Event)) -> Progress {
        Progress::default()
    }

    fn lost(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

#[test]
fn a_process_that_is_about_to_wait_for_a_device_ends_the_rest() {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let (over, is_over) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        rest(&Alarmed(reader), PATIENCE * 100);
        let _ = over.send(());
    });
    writer.write_all(&[1]).expect("written");
    is_over.recv_timeout(PATIENCE).expect("the rest has ended");
}

/// Fetches everything at once, and remembers the requests.
struct Instantly {
    files: BTreeMap<FileId, FileMeta>,
    events: Vec<OfBackend>,
    asked: Requested,
}

impl Backend for Instantly {
    fn add(&mut self, file: FileId, meta: FileMeta) {
        self.files.insert(file, meta);
    }

    fn device(&mut self, file: FileId) -> Option<u64> {
        self.files.get(&file).map(|meta| meta.dev)
    }

    fn facts(&mut self, _: u64) -> DeviceFacts {
        DeviceFacts {
            name: "fake".to_owned(),
            positions: Some(false),
        }
    }

    fn prepare(&mut self, _: FileId) {}

    fn submit(&mut self, request: Request) {
        let Request { id, file, pages } = request;
        let name = self.files[&file].path.display().to_string();
        let mut asked = self.asked.lock().expect("what was asked");
        asked.entry(name).or_default().push(pages.clone());
        let (fetched, complete) = (true, true);
        self.events.push(OfBackend::Issued { id, file, pages });
        self.events.push(OfBackend::Done {
            id,
            fetched,
            complete,
        });
    }

    fn poll(&mut self, events: &mut Vec<OfBackend>) {
        events.append(&mut self.events);
    }

    fn look(&mut self, names: &[(FileId, Kind)]) {
        let outcome = Outcome::Fetched;
        let looked = |&(file, kind): &(FileId, Kind)| OfBackend::Looked {
            file,
            kind,
            outcome,
        };
        self.events.extend(names.iter().map(looked));
    }

    fn ask(&mut self, question: Question) {
        let standing = |part: &Range<u64>| Standing {
            resident: Some(part.end - part.start),
            evicted: Some(0),
            gone: Vec::new(),
        };
        let answer = Looked {
            length: None,
            parts: question.parts.iter().map(standing).collect(),
        };
        let ticket = question.ticket;
        self.events.push(OfBackend::Answered { ticket, answer });
    }

    fn discard(&mut self, _: FileId, _: Range<u64>) {}
}

/// A daemon that serves.
struct Lab {
    events: Events,
    asked: Requested,
    desk: Desk,
    thread: JoinHandle<Status>,
    told: u64,
    state: tempfile::TempDir,
}

impl Lab {
    fn new(pressure: &'static str) -> Self {
        Self::with(tempfile::tempdir().expect("a folder"), pressure)
    }

    fn with(state: tempfile::TempDir, pressure: &'static str) -> Self {
        Self::after(state, pressure, "a start of the system")
    }

    fn after(state: tempfile::TempDir, pressure: &'static str, boot: &'static str) -> Self {
        let (events, asked) = (Events::default(), Requested::default());
        let (desk, counter) = desk().expect("a desk");
        let options = Options {
            state: state.path().join("state"),
            ..Options::default()
        };
        let (watched, kept) = (Arc::clone(&events), Arc::clone(&asked));
        let stalls = state.path().join("pressure");
        std::fs::create_dir_all(&stalls).expect("a folder");
        std::fs::write(stalls.join("memory"), pressure).expect("written");
        let thread = std::thread::spawn(move || {
            let make: MakeBackend = Box::new(move || {
                Box::new(Instantly {
                    files: BTreeMap::new(),
                    events: Vec::new(),
                    asked: Arc::clone(&kept),
                })
            });
            let machine = Machine {
                make,
                places: Places::of("/ 0:1 ext4\n/proc 0:2 proc\n", false),
                pressure: Pressure::at(stalls),
                // Other tests share this process's.
                used: || 0,
                boot: Some(boot.into()),
            };
            let daemon = Daemon::new(&options, "fake", machine).expect("a state");
            run(daemon, Box::new(Fake(watched)), counter).expect("served")
        });
        Self {
            events,
            asked,
            desk,
            thread,
            told: 0,
            state,
        }
    }

    /// Reports these events, and waits until the daemon has seen them and the engine has had its time.
    fn tell(&mut self, happened: impl IntoIterator<Item = Event>) {
        for one in happened {
            self.told += 1;
            self.events.lock().expect("events").push_back(one);
        }
        let begun = Instant::now();
        while self.status().events < self.told {
            assert!(begun.elapsed() < PATIENCE, "the daemon takes no events");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(5));
    }

    fn status(&self) -> Status {
        match self.desk.ask(Ask::Status, PATIENCE) {
            Some(Answer::Status(status)) => *status,
            other => panic!("{other:?}"),
        }
    }

    /// A process of a program opens these files one after the other.
    fn run(&mut self, pid: u32, folder: &str, files: Range<u64>) {
        let at = clock::now();
        let (parent, uid) = (1, 1000);
        let program = file("/bin", 9999);
        self.tell([
            event((pid, 0), at, What::Forked { parent }),
            event((pid, uid), at, began(parent, program)),
        ]);
        for number in files {
            let opened = opened(file(folder, number));
            self.tell([event((pid, uid), clock::now(), opened)]);
        }
        self.tell([event((pid, 0), clock::now(), What::Ended)]);
    }

    fn asked(&self) -> BTreeMap<String, Vec<Range<u64>>> {
        self.asked.lock().expect("what was asked").clone()
    }

    /// The requests, once there are this many files, or after a time: the engine may have to wait for a processor.
    fn asked_for(&self, files: usize) -> BTreeMap<String, Vec<Range<u64>>> {
        let begun = Instant::now();
        loop {
            let asked = self.asked();
            if asked.len() >= files || begun.elapsed() > PATIENCE {
                return asked;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Stops the daemon: its last account, and its folder.
    fn stop(self) -> (Status, tempfile::TempDir) {
        let answer = self.desk.ask(Ask::Stop, PATIENCE);
        let status = self.thread.join().expect("the daemon's end");
        let unsaved = status.model.unsaved.clone();
        assert_eq!(answer, Some(Answer::Stopping(unsaved)));
        (status, self.state)
    }
}

fn file(folder: &str, number: u64) -> File {
    File {
        path: format!("{folder}/{number}").into(),
        node: Some(Node {
            device: if folder == "/proc" { 2 } else { 1 },
            inode: number + 1,
            generation: 0,
            size: if folder == "/large" { 1 << 17 } else { 10_000 },
        }),
    }
}

#[test]
fn files_that_will_be_opened_are_asked_for_before_they_are_and_accounted_for() {
    let mut lab = Lab::new("");
    let begun = Instant::now();
    // A file that is opened before the engine had a processor is not asked for: there may have to be more rounds.
    for round in 0.. {
        lab.run(100 + round, "/files", 0..20);
        if round >= 7 && lab.asked().len() >= 10 || begun.elapsed() > PATIENCE {
            break;
        }
    }
    let asked = lab.asked();
    assert!(asked.len() >= 10, "{asked:?}");
    assert!(
        asked
            .values()
            .all(|pages| pages.len() == 1 && pages[0] == (0..3)),
        "once, and all of it: {asked:?}"
    );
    let (status, _) = lab.stop();
    assert_eq!(status.observer, "fake");
    assert_eq!(status.lost, [("fake".to_owned(), 3)]);
    let bytes = status.bytes;
    assert_eq!(bytes.issued, asked.len() as u64 * 3 * 4096);
    assert!(bytes.useful > bytes.issued / 2, "{bytes:?}");
    let sum = bytes.useful + bytes.late + bytes.wasted + bytes.evicted + bytes.infill;
    assert_eq!(bytes.issued, sum);
    let program = status.programs.first().expect("a program");
    assert_eq!((program.name.as_str(), program.uid), ("9999", 1000));
    assert_eq!(program.bytes.issued, bytes.issued);
    assert!(
        status.lead.count > 0 && status.lead.median > 0,
        "{:?}",
        status.lead
    );
    let predictions = status.predictions;
    assert!(predictions.right > 0 && predictions.made >= predictions.right + predictions.wrong);
}

#[test]
fn what_was_learnt_is_known_after_the_next_start() {
    let mut lab = Lab::new("");
    for round in 0..8 {
        lab.run(100 + round, "/files", 0..20);
    }
    let (_, folder) = lab.stop();
    let mut lab = Lab::with(folder, "");
    lab.run(7, "/files", 0..1);
    let asked = lab.asked_for(3);
    assert!(asked.len() >= 3, "{asked:?}");
    lab.stop();
}

#[test]
fn what_follows_the_systems_start_is_asked_for_after_the_next() {
    let mut folder = tempfile::tempdir().expect("a folder");
    for boot in ["1", "2", "3", "4", "5"] {
        let mut lab = Lab::after(folder, "", boot);
        lab.run(7, "/files", 0..20);
        folder = lab.stop().1;
    }
    // Another daemon, and the same start of the system.
    let lab = Lab::after(folder, "", "5");
    let (status, folder) = lab.stop();
    assert_eq!((status.bytes.issued, status.predictions.made), (0, 0));
    let lab = Lab::after(folder, "", "6");
    let asked = lab.asked_for(3);
    assert!(asked.len() >= 3, "{asked:?}");
    let (status, _) = lab.stop();
    assert_eq!(status.events, 0, "before anything has happened");
    let told = status.programs.iter().map(|one| one.name.as_str());
    assert_eq!(told.collect::<Vec<_>>(), ["system start"]);
}

#[test]
fn what_predictions_came_to_is_believed_after_the_next_start() {
    let mut lab = Lab::new("");
    let begun = Instant::now();
    for round in 0.. {
        lab.run(100 + round, "/large", 0..20);
        if round >= 12 && lab.asked().len() >= 10 || begun.elapsed() > PATIENCE {
            break;
        }
    }
    let (status, folder) = lab.stop();
    let bytes = status.bytes;
    // More than is believed of one that has shown nothing: 256 KiB may lie unread.
    assert!(bytes.useful + bytes.late >= 10 << 17, "{bytes:?}");
    let mut lab = Lab::with(folder, "");
    lab.run(7, "/large", 0..1);
    let asked = lab.asked_for(6);
    assert!(asked.len() >= 6, "{asked:?}");
    // Each start counts it half.
    lab.stop();
}

/// A fetcher, with its requests.
fn fetcher() -> (Fetcher, Requested) {
    let asked = Requested::default();
    let kept = Arc::clone(&asked);
    let make: MakeBackend = Box::new(move || {
        Box::new(Instantly {
            files: BTreeMap::new(),
            events: Vec::new(),
            asked: Arc::clone(&kept),
        })
    });
    (Fetcher::new(make, Some(1 << 30)), asked)
}

/// A program's predictions, at one moment: nothing is read later.
struct Predictions {
    fetcher: Fetcher,
    asked: Requested,
    accounts: Accounts,
    now: u64,
}

impl Predictions {
    fn new() -> Self {
        let (fetcher, asked) = fetcher();
        Self {
            fetcher,
            asked,
            accounts: Accounts::default(),
            now: clock::now(),
        }
    }

    /// Predicts the file with this number, with this many pages.
    fn want(&mut self, number: u32, pages: u32) {
        let facts = crate::files::FileFacts {
            device: 1,
            size: u64::from(pages) * foreread_plan::PAGE,
            ..Default::default()
        };
        let path = std::path::PathBuf::from(format!("/{number}"));
        let file = (foreread_sources::files::Symbol(number), &*path, &facts);
        let key = (Arc::from("build"), 1000);
        let pages = vec![(0, pages)];
        let accounts = &mut self.accounts;
        assert!(
            self.fetcher
                .want(&key, file, pages, 0.9, accounts, self.now)
        );
    }

    /// Waits until this many pages of the file with this number were requested.
    fn await_pages(&mut self, number: u32, pages: u64) {
        let begun = Instant::now();
        let name = format!("/{number}");
        let count = |asked: &Requested| -> u64 {
            let asked = asked.lock().expect("what was asked");
            let all = asked.get(&name).into_iter().flatten();
            all.map(|pages| pages.end - pages.start).sum()
        };
        while count(&self.asked) < pages {
            let asked = count(&self.asked);
            assert!(begun.elapsed() < PATIENCE, "{asked} of {pages} of {name}");
            self.fetcher.settle(self.now);
            self.fetcher.wake();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_large_program_that_was_opened_holds_back_nothing_that_is_predicted_next() {
    let mut predictions = Predictions::new();
    // Its pages count as read some time after it was opened, which does not happen here.
    predictions.want(1, 5000);
    predictions.await_pages(1, 256);
    let now = predictions.now;
    let symbol = foreread_sources::files::Symbol(1);
    predictions.fetcher.opened(symbol, now, now);
    predictions.await_pages(1, 5000);
    predictions.want(2, 1000);
    predictions.await_pages(2, 1000);
}

#[test]
fn what_is_asked_for_anew_because_memory_lost_it_was_no_mistake() {
    let mut predictions = Predictions::new();
    // A guess that is not believed is left to the program.
    for round in 1..=20 {
        predictions.want(1, 256);
        predictions.await_pages(1, 256 * round);
    }
}

#[test]
fn a_session_that_has_met_many_files_gives_way_to_another() {
    let (mut fetcher, _) = fetcher();
    let mut accounts = Accounts::default();
    let key = (Arc::from("walk"), 1000);
    let facts = crate::files::FileFacts {
        device: 1,
        size: 4096,
        ..Default::default()
    };
    let begun = Instant::now();
    for number in 1..=2 * crate::fetch::FILES + 10 {
        let symbol = foreread_sources::files::Symbol(number);
        let path = std::path::PathBuf::from(format!("/walk/{number}"));
        // Until the engine has taken the waiting files. There is no pause meanwhile.
        while !fetcher.want(
            &key,
            (symbol, &path, &facts),
            vec![(0, 1)],
            0.9,
            &mut accounts,
            clock::now(),
        ) {
            assert!(begun.elapsed() < PATIENCE, "{number} is never asked for");
            fetcher.wake();
            std::thread::sleep(Duration::from_millis(1));
        }
        fetcher.opened(symbol, clock::now(), clock::now());
        fetcher.rest(&mut accounts, clock::now());
    }
    assert!(fetcher.running().len() <= 2, "one, and the one before");
    fetcher.end(&mut accounts);
    assert!(!fetcher.runs());
    let bytes = accounts.all.bytes;
    let sum = bytes.useful + bytes.late + bytes.wasted + bytes.evicted + bytes.infill;
    assert_eq!(bytes.issued, sum);
}

#[test]
fn nothing_is_asked_for_while_memory_is_short() {
    let mut lab = Lab::new("some avg10=55.00 avg60=0.00 avg300=0.00 total=1\n");
    for round in 0..8 {
        lab.run(100 + round, "/files", 0..20);
    }
    assert!(lab.asked().is_empty());
    let (status, _) = lab.stop();
    assert!(status.pressure.is_some_and(|why| why.contains("memory")));
    assert!(status.predictions.made > 0);
}

#[test]
fn files_that_no_device_has_are_not_asked_for() {
    let mut lab = Lab::new("");
    for round in 0..8 {
        lab.run(100 + round, "/proc", 0..20);
    }
    let asked = lab.asked();
    assert!(
        asked.keys().all(|name| !name.starts_with("/proc")),
        "{asked:?}"
    );
    let (status, _) = lab.stop();
    assert!(status.ignored > 0);
}

#[test]
fn a_full_disk_is_said_and_the_daemon_goes_on() {
    let mut lab = Lab::new("");
    lab.run(100, "/files", 0..5);
    // No folder to save to is as good as no room in it.
    std::fs::remove_dir_all(lab.state.path().join("state")).expect("removed");
    let (status, _) = lab.stop();
    assert!(
        status.problems.iter().any(|one| one.contains("not saved")),
        "{:?}",
        status.problems
    );
    assert_eq!(status.model.saved, 0);
    assert!(status.model.unsaved.is_some());
}

#[test]
fn floods_of_names_leave_memory_bounded() {
    let mut lab = Lab::new("");
    for chunk in 0..20_u64 {
        let at = clock::now();
        let opened = |number: u64| {
            let who = (100 + (number % 7) as u32, 1000);
            event(who, at, opened(file("/flood", number)))
        };
        lab.tell((chunk * 5000..(chunk + 1) * 5000).map(opened));
    }
    let (status, _) = lab.stop();
    assert_eq!(status.events, 100_000);
    assert!(status.model.symbols <= 1 << 16);
    assert!(status.model.bytes < 128 << 20, "{}", status.model.bytes);
}
