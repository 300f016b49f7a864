//! `foreread run` and `foreread record`: a program is observed, prefetched for and recorded.
//!
//! Top down: [`run`] divides into two processes ([`helper`]). The front starts the program, and waits for its end; the
//! helper looks for a record of the program, supervises it, and writes the account. Errors of foreread
//! appear in the summary and cost the program nothing.
//!
//! Data flow: program → [`observer`] → [`watch`] → [`record`] and [`follow`] side by side.

#![forbid(unsafe_code)]

mod alone;
mod args;
mod cache;
mod child;
mod files;
mod follow;
mod helper;
mod known;
mod live;
mod making;
mod observer;
mod pace;
mod paths;
mod profile;
mod ranks;
mod record;
mod recording;
mod report;
mod served;
mod sinks;
mod start_up;
mod summary;
mod supervisor;
mod timeline;
mod told;
mod touched;
mod unseen;
mod user_space;
mod watch;

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::{Context as _, Result};
use foreread_observe::Wanted;
use foreread_plan::{Identity, Summary};
use foreread_ring::{Clock, Ring};
use foreread_segment::Segment;
use foreread_sys::helper::{self as processes, Side};
use foreread_sys::process::End;
use foreread_sys::processor::Aside;
use foreread_sys::{lease, memory, own, spawn, thread, usage};
use foreread_words::units::bytes;
use foreread_words::{plain, quoted};
use rustix::process::{Resource, getrlimit};

use child::{Child, Incoming};
use files::Files;
use follow::Guesses;
use helper::{Finished, Front, Link, Started, Without};
use known::Lookup;
use observer::{Observing, Seat, mpi_library};
use pace::Pace;
use paths::from_front;
use record::Recorder;
use sinks::Sinks;
use start_up::StartUp;
use summary::Account;
use supervisor::{Kept, Supervisor};
use watch::Watch;

pub use args::RunArgs;
pub use cache::parse_cache;
pub use foreread_core::Fate;
pub use live::{How, Live};
pub use making::{Made, Making};
pub use observer::{Choice, find_preload, preload_variables};
pub use paths::destination;
pub use profile::in_words;
pub use record::part::Limits;
pub use report::FileFates;
pub use summary::{Outcome, Why};
pub use timeline::{Sample, Waited, Waits, Went};
pub use told::RunAccount;

/// If a smaller share of the reads was foreseen, the record is replaced by this run's: unforeseen reads wait as without foreread.
const FORESEEN_ENOUGH: f64 = 0.9;

/// Least room in the program's control group, in bytes. With less, foreread stands aside. foreread shares the group: its three processes
/// and the ring take 1.2 MiB, and the least budget takes 1 MiB. An LU decomposition of 17 MiB in a group of 12 MiB read 45 MiB alone and 80
/// MiB beside foreread, and took 1.4 times as long, even with nothing fetched ahead; alone in a group of 10 MiB it took as long. Above this
/// room foreread takes less than an eighth.
const LEAST_ROOM: u64 = 16 << 20;

/// The reason why a program with limited memory is not observed.
const SHORT: &str = "the address space or the data of the program is limited, and the preload library would take some of that (ulimit -v, ulimit -d)";

/// When a run began.
#[derive(Clone, Copy)]
struct Beginning {
    instant: Instant,
    time: SystemTime,
}

/// Run the command to its end.
///
/// # Errors
/// Only when the command could not be watched to its end.
pub fn run(args: &RunArgs) -> Result<End> {
    if let Some((unobserved, why)) = alone::is_in_memory(args) {
        let mut account = Account::aside(args, why.sentence(&summary::program_of(args)));
        account.was_unobserved(&unobserved);
        return Ok(replaced(args, &account, None));
    }
    let in_place = alone::is_listened_to();
    if in_place && !args.may_make_way() {
        let aside = Account::aside(args, alone::LISTENED_TO.to_owned());
        return Ok(replaced(args, &aside, None));
    }
    if let Some(room) = memory::cgroup_room().filter(|&room| room < LEAST_ROOM)
        && args.prefetch
    {
        let why = format!(
            "the control group has {} left for the program, and foreread would take more than an eighth of that",
            bytes(room)
        );
        return Ok(replaced(args, &Account::aside(args, why), None));
    }
    let mut account = Account::new(args);
    let mut incoming = match Incoming::block() {
        Ok(incoming) => incoming,
        Err(why) => {
            // Not one descriptor to hear of the program by.
            return Ok(replaced(args, &Account::aside(args, why.to_string()), None));
        }
    };
    let began = Beginning {
        instant: Instant::now(),
        time: SystemTime::now(),
    };
    let ring = account.note(Ring::create(Clock::detect()).map_err(anyhow::Error::new));
    if let Some(ring) = &ring {
        lease::watch(ring.leases());
    }
    let segment = Some(args).filter(|args| args.prefetch && !in_place);
    let segment = segment.and_then(|args| account.note(cache::segment(args.cache)).flatten());
    let front = std::process::id();
    let forked = match in_place {
        true => processes::fork_apart(),
        false => processes::fork(),
    };
    let helper = match forked {
        Ok(Side::Helper(link)) => {
            let mut link = Link::new(link, front);
            let mut args = args.clone();
            if in_place {
                // The kernel's observer sees children of the front, and not the program that replaces the front.
                args.observer = Choice::Preload;
            }
            let None = help(&args, (ring, segment), began, account, &mut link);
            link.account("");
            std::process::exit(0);
        }
        Ok(Side::Front(helper)) => Ok(Front::new(helper)),
        Err(why) => Err(why),
    };
    let helper = match helper {
        Ok(front) if in_place => return Ok(run_in_place(args, front, ring, incoming)),
        Err(why) if in_place => {
            let aside = Account::aside(args, why.to_string());
            return Ok(replaced(args, &aside, Some(incoming)));
        }
        helper => helper,
    };
    // While the helper looks the program up.
    incoming.watch_group();
    match helper {
        Ok(front) => run_beside(args, front, (ring, segment), incoming, began),
        Err(why) => run_alone(args, incoming, began, why.to_string()),
    }
}

/// Run the command, the rest being done by the helper.
fn run_beside(
    args: &RunArgs,
    mut front: Front,
    (ring, segment): (Option<Ring>, Option<Segment>),
    incoming: Incoming,
    began: Beginning,
) -> Result<End> {
    let (observed, late) = take_seat(&mut front, ring, segment);
    let child = match start(args, observed.as_ref(), incoming, Some(&front)) {
        Ok(child) => child,
        Err(end) => return Ok(end),
    };
    front.started(&Started {
        pid: child.pid(),
        has_library: observed.is_some(),
        late: late.as_ref().map(Without::told),
        in_place: false,
    });
    args.let_go();
    let ended = child.watch()?;
    let finished = Finished::new(&ended, began.instant.elapsed());
    match front.ended(&finished, child.incoming()) {
        Ok(text) if text.is_empty() => {}
        Ok(text) => summary::print(&text),
        // The kernel may have killed the helper because memory ran out: its knowledge is lost, but a script still finds an account.
        Err(without @ Without::Ended) => {
            let mut account = Account::aside(args, without.told());
            account.ended(&finished);
            account.print(args);
        }
        Err(without) => summary::print_without(args, &without.told()),
    }
    // Programs that outlive this one may still look for the ring.
    drop(observed);
    Ok(ended.ending)
}

/// Runs the command in place of this process, while the helper does the rest beside it. Nothing is printed, because no process is left to
/// print.
fn run_in_place(args: &RunArgs, mut front: Front, ring: Option<Ring>, incoming: Incoming) -> End {
    let (seat, late) = take_seat(&mut front, ring, None);
    let pid = std::process::id();
    if let Some(seat) = &seat {
        seat.started(pid);
    }
    front.started(&Started {
        pid,
        has_library: seat.is_some(),
        late: late.as_ref().map(Without::told),
        in_place: true,
    });
    let variables = seat.map(|seat| seat.variables(front.helper()));
    let why = incoming.make_way(&args.command, &variables.unwrap_or_default());
    front.dismiss();
    not_run(args, child::failed(why))
}

/// Waits for the helper. Returns the program's seat in the ring, and, if the helper is not ready, the reason for going on without it.
fn take_seat(
    front: &mut Front,
    ring: Option<Ring>,
    segment: Option<Segment>,
) -> (Option<Seat>, Option<Without>) {
    let (by_library, late) = match front.wait_ready() {
        Ok(by_library) => (by_library, None),
        // The helper may begin to observe later; until then the program does not wait for room in the ring.
        Err(without) => (true, Some(without)),
    };
    let libraries = std::mem::take(&mut front.libraries);
    let by_library = by_library && !libraries.is_empty();
    let observed = ring.filter(|_| by_library).map(|ring| {
        let seat = Seat::new(ring, segment, libraries);
        if late.is_some() {
            seat.go_on_alone();
        }
        seat
    });
    (observed, late)
}

/// Run the command where there can be no helper.
fn run_alone(args: &RunArgs, incoming: Incoming, began: Beginning, why: String) -> Result<End> {
    let child = match start(args, None, incoming, None) {
        Ok(child) => child,
        Err(end) => return Ok(end),
    };
    args.let_go();
    let ended = child.watch()?;
    let mut account = Account::aside(args, why);
    account.ended(&Finished::new(&ended, began.instant.elapsed()));
    account.print(args);
    Ok(ended.ending)
}

/// Starts the command. If no process can be created, the command replaces this process. Returns the exit status if that fails, too.
fn start(
    args: &RunArgs,
    observed: Option<&Seat>,
    incoming: Incoming,
    front: Option<&Front>,
) -> std::result::Result<Child, End> {
    let why = match Child::start(&args.command, observed, &incoming) {
        Ok(pid) => match Child::new(pid, incoming) {
            Ok(child) => return Ok(child),
            Err(why) => {
                front.map(Front::dismiss);
                why
            }
        },
        Err(why) => {
            let is_alone = front.is_none_or(Front::dismiss);
            if is_alone && child::lacks_process(&why) {
                let aside = Account::aside(args, format!("no process can be made: {why}"));
                return Err(replaced(args, &aside, Some(incoming)));
            }
            why
        }
    };
    Err(not_run(args, child::failed(why)))
}

/// Run the command in this process's place, so that nothing of foreread stays in memory. The account is written before: of the
/// program's end and time, which it cannot know, it has zeros.
fn replaced(args: &RunArgs, account: &Account, incoming: Option<Incoming>) -> End {
    account.print(args);
    let why = match incoming {
        Some(incoming) => incoming.make_way(&args.command, &[]),
        None => spawn::replace(Path::new(&args.command[0]), &args.command, &[], None),
    };
    not_run(args, child::failed(why))
}

/// The helper's work, to the end of its process; `None` if the command was not started.
fn help(
    args: &RunArgs,
    (ring, segment): (Option<Ring>, Option<Segment>),
    began: Beginning,
    mut account: Account,
    link: &mut Link,
) -> Option<Infallible> {
    thread::make_room(&*link);
    let args = &args.of_this_rank();
    let known = Lookup::of(args, &mut account, link);
    account.rank = known.identity.rank;
    let mut plan = known.plan(args, &mut account, link);
    // A plan that is in memory: the program runs as without foreread, and nobody observes it.
    let recorded = plan
        .known
        .as_ref()
        .and_then(|(_, record)| record.summary().cloned());
    let is_half_unseen = recorded.as_ref().is_some_and(Summary::is_half_unseen);
    let is_whole = !(is_half_unseen && args.observer.may_be_kernel());
    let look = plan.known.as_ref().filter(|_| is_whole);
    let look = look.and_then(|(found, record)| {
        let files = args
            .map
            .files(served::fetched(record, account.rank.is_some()));
        served::not_worth(found, record, &files)
    });
    account.alone = look
        .as_ref()
        .zip(recorded.as_ref())
        .map(|(look, foot)| alone::why(look, foot));
    let board = ring.as_ref().map(Ring::board);
    let mut observed = match look {
        Some(_) => None,
        None => {
            let about = (&plan.identity, recorded.as_ref());
            observing(args, about, ring, began, &mut account, link)
        }
    };
    account.by_kernel =
        args.observer == Choice::Auto && matches!(observed, Some(Observing::Kernel(_)));
    for library in observed.iter().flat_map(Observing::libraries) {
        own::announce(library);
        link.library(library);
    }
    let libraries = observed.as_ref().map_or(&[][..], Observing::libraries);
    let collective = account
        .note(cache::collective(segment, libraries))
        .flatten();
    let is_wanted = observed.is_some() || look.is_some();
    let (mut used, mut learnt) = (None, Vec::new());
    let (mut served, mut left_alone) = (None, None);
    if let Some((found, record)) = plan.known.take().filter(|_| is_wanted) {
        let path = found.path.display();
        link.doing(&format!(
            "opening the files that the record {path} begins with"
        ));
        used = Some(record.handle());
        account.baseline = record.summary().cloned();
        learnt = record::learnt(record.signatures());
        let one = served::Plan::of(&found, record, account.rank.is_some(), &args.map);
        match look {
            Some(look) => left_alone = Some(one.left_alone(look)),
            None => served = Some(one),
        }
        account.followed = Some(found);
    }
    let recorded = served.as_ref().map(|one| &one.recorded);
    let files = Files::new(recorded.map(Arc::clone).unwrap_or_default());
    if let Some(observing) = &mut observed {
        if account.has_own_record()
            && let Observing::Library(library, _) = observing
            && let Some(plan) = &served
        {
            library.advise(plan.advice());
        }
        // Before the program starts, or its first reads would go unseen.
        observing
            .observer_mut()
            .want(match (&served, &plan.destination) {
                (Some(_), _) if account.has_lasting_record() => Wanted::Progress,
                // Only reported reads can be recorded.
                (_, Some(_)) => Wanted::Everything,
                (_, None) => Wanted::Progress,
            });
    }
    // From here on the record is read and its missing pages are fetched, while the program is started and loaded.
    let served = served.and_then(|plan| {
        let started = plan.serve(collective.clone()).context("starting to fetch");
        account.note(started)
    });
    let is_followed = served.is_some();
    if !is_followed && left_alone.is_none() {
        account.followed = None;
        account.baseline = None;
    }
    let has_library = |one: &Observing| !one.libraries().is_empty();
    link.ready(observed.as_ref().is_some_and(has_library));
    let started = link.started()?;
    account.all_cpu = usage::of_all().ok();
    args.let_go();
    if let Some(collective) = collective.as_ref().filter(|_| !started.has_library) {
        collective.give_up();
    }
    if let Some(late) = started.late {
        account.remark(format!("{late} when the program was started"));
    }
    let mut observed =
        observed.filter(|one| started.has_library || matches!(one, Observing::Kernel(_)));
    if let Some(Observing::Kernel(kernel)) = &mut observed {
        kernel.follow(started.pid);
    }
    let recorder = match (&plan.destination, &observed) {
        (Some(place), Some(_)) => {
            let meta = plan.meta(began.time);
            let recorder = Recorder::new(place, meta, foreread_store::RECORD_LIMIT);
            // Beside a plan that fits, nothing is written.
            Some(recorder.held_back(served.is_some() && account.has_lasting_record()))
        }
        _ => None,
    };
    if let Some(observing) = &mut observed
        && !is_followed
    {
        let recording = recorder.as_ref().map(|_| Wanted::Everything);
        observing
            .observer_mut()
            .want(recording.unwrap_or(match args.prefetch {
                true => Wanted::Progress,
                false => Wanted::Nothing,
            }));
    }
    link.doing("tidying up the records");
    if let Some(record) = used.filter(|_| is_followed || left_alone.is_some()) {
        foreread_store::mark_used(record.file());
    }
    if let Some(store) = &plan.store {
        store.tidy_for(&plan.identity);
    }
    if let Some(plan) = &left_alone {
        plan.check();
    }
    link.doing("observing the program");
    let libraries = observed.as_ref().map_or(&[][..], Observing::libraries);
    let watch = Watch::new(began.time, libraries.to_vec(), files);
    let by_sampling = observed.as_ref().is_none_or(|one| !one.sees_touches());
    let has_collective = collective.is_some();
    let mut supervisor = Supervisor {
        observing: observed,
        watch: watch.sampling(by_sampling),
        records: recorder.is_some() || left_alone.is_some() && plan.destination.is_some(),
        replaces: recorder.is_some() && !account.has_lasting_record(),
        guesses: (args.prefetch && left_alone.is_none()).then(|| Guesses {
            roles: plan.roles(),
            learnt,
        }),
        left_alone,
        collective,
        limits: args.limits,
        unguessed: None,
        sinks: Sinks::new(recorder, served, has_collective),
        aside: Aside::new(),
        pace: Pace::new(),
        rested: false,
        started: began.instant,
        looked_away: false,
        board,
        start_up: link.is_apart().then(|| StartUp::of(started.pid)),
    };
    let finished = supervisor.supervise(link);
    account.ended(&finished);
    // A file that the user named is not in the store.
    let store = plan.store.as_ref().filter(|_| args.output.is_none());
    let kept = store.map(|store| Kept {
        store,
        identity: &plan.identity,
    });
    let exe = Path::new(&plan.identity.exe);
    let went = supervisor.close(&mut account, exe, kept, link);
    if let Some(path) = &args.json {
        link.doing(&format!("writing the account {}", path.display()));
    }
    let shared = plan
        .store
        .as_ref()
        .map(|store| store.folder().with_file_name("ranks"));
    let text = account.report(
        args,
        |path| from_front(path, link.pid),
        |rank, part| ranks::line(shared.as_deref(), link.pid, rank, part),
    );
    link.account(&text);
    // A run without a stored account is still complete.
    if let Some(store) = store.filter(|_| args.record && account.is_worth_storing()) {
        let _ = account.told(plan.meta(began.time), went).keep(store);
    }
    // Exiting frees all memory at once. Freeing the entries of 15,000 names one by one takes 15 ms, for which the program's caller would
    // wait.
    std::process::exit(0)
}

/// Starts the observer. If a part of it is not available, the user is told, and the speed-up is lost.
fn observing(
    args: &RunArgs,
    (identity, recorded): (&Identity, Option<&Summary>),
    ring: Option<Ring>,
    began: Beginning,
    account: &mut Account,
    link: &Link,
) -> Option<Observing> {
    link.doing("preparing to observe the program");
    let library = |say: &mut dyn FnMut(String)| {
        let limits = [Resource::As, Resource::Data].map(getrlimit);
        if limits.iter().any(|limit| limit.current.is_some()) {
            say(SHORT.to_owned());
            return None;
        }
        link.doing("looking for the preload library");
        let found = find_preload().map_err(&mut *say).ok()?;
        let exe = Path::new(&identity.exe);
        let mpi = mpi_library(exe, identity.rank.is_some(), &found);
        let mpi = mpi.and_then(|found| found.map_err(say).ok());
        Some((ring?, std::iter::once(found).chain(mpi).collect()))
    };
    let (mut said, mut remarks) = (Vec::new(), Vec::new());
    let observing = Observing::choose(
        args.observer,
        Path::new(&identity.exe),
        recorded,
        (link.pid, began.instant.elapsed()),
        library,
        &mut |sentence| said.push(sentence),
        &mut |sentence| remarks.push(sentence),
    );
    said.into_iter().for_each(|sentence| account.say(sentence));
    remarks
        .into_iter()
        .for_each(|sentence| account.remark(sentence));
    observing
}

/// Reports why the command could not be run. Returns foreread's exit status.
fn not_run(args: &RunArgs, (ending, why): (End, std::io::Error)) -> End {
    let name = quoted(&args.command[0].to_string_lossy());
    eprintln!("foreread: {name}: {}", plain(&why.to_string()));
    ending
}
