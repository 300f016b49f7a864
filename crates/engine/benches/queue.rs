//! Cost of the policy alone: entries per second through the engine, on backends that do nothing.
//!
//! `whole` is disclosure, admission, issue, completion and observation together; `observe` only
//! the last: matching a read against the plan and entering it in the ledger. `null` fetches nothing;
//! `instant` says of every page that it came from the device, so that the ledger has work to do.
//! Times are the thread's processor time, whatever else the machine does.

use std::hint::black_box;
use std::ops::Range;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use foreread_backend::{
    Answer, Backend, DeviceFacts, Event, NullBackend, Outcome, Question, Standing,
};
use foreread_engine::{Config, Engine};
use foreread_plan::{Access, Extent, FileId, Kind, PAGE, Request, Seen, ThreadId};
use foreread_sources::Replay;
use rustix::time::{ClockId, clock_gettime};

/// Reads in one pass: more than the queue holds.
const READS: u64 = 1 << 19;
/// Reads between two steps, as at half a million a second.
const BATCH: usize = 100;
/// Duration of a read, in ns: short, so that none counts as waiting.
const TOOK: u64 = 1_000;

/// A backend that fetches everything at once.
#[derive(Default)]
struct Instantly(Vec<Event>);

impl Backend for Instantly {
    fn device(&mut self, _: FileId) -> Option<u64> {
        Some(0)
    }
    fn facts(&mut self, _: u64) -> DeviceFacts {
        DeviceFacts {
            name: "instant".into(),
            positions: Some(false),
        }
    }
    fn prepare(&mut self, _: FileId) {}
    fn submit(&mut self, Request { id, file, pages }: Request) {
        self.0.push(Event::Issued { id, file, pages });
        self.0.push(Event::Done {
            id,
            fetched: true,
            complete: true,
        });
    }
    fn poll(&mut self, events: &mut Vec<Event>) {
        events.append(&mut self.0);
    }
    fn look(&mut self, names: &[(FileId, Kind)]) {
        let looked = names.iter().map(|&(file, kind)| Event::Looked {
            file,
            kind,
            outcome: Outcome::InMemory,
        });
        self.0.extend(looked);
    }
    fn ask(&mut self, question: Question) {
        let answer = Answer {
            length: None,
            parts: vec![Standing::default(); question.parts.len()],
        };
        self.0.push(Event::Answered {
            ticket: question.ticket,
            answer,
        });
    }
    fn discard(&mut self, _: FileId, _: Range<u64>) {}
}

/// The `n`-th read: eight files, no two pages together.
fn read(n: u64) -> Access {
    Access {
        file: FileId((n % 8) as u32),
        extent: Extent::new((n * 7919 % 1_000_003) * 2 * PAGE, PAGE),
        thread: ThreadId(0),
        kind: Kind::Pread,
        start: n * 10_000,
        took: TOOK,
    }
}

fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// One pass over all reads. Returns its total time, and the time of the observations alone.
fn pass(backend: impl Backend) -> (Duration, Duration) {
    let source = Box::new(Replay::new((0..READS).map(read)));
    let mut engine = Engine::new(backend, Config::default()).with_strand("replay", source);
    let program: Vec<Access> = (0..READS).map(read).collect();
    let mut observing = Duration::ZERO;
    let begun = processor_time();
    for batch in program.chunks(BATCH) {
        engine.step(batch[0].start);
        engine.collect(batch[0].start);
        let from = processor_time();
        for access in batch {
            engine.see(&Seen::Read((*black_box(access)).into()));
        }
        observing += processor_time() - from;
    }
    let all = processor_time() - begun;
    let report = engine.finish(READS * 10_000);
    assert_eq!(report.foreseen, READS);
    assert!(report.ledger.is_closed());
    (all, observing)
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("engine");
    group
        .throughput(Throughput::Elements(READS))
        .sample_size(10);
    let sum = |times: u64, one: &dyn Fn() -> Duration| (0..times).map(|_| one()).sum();
    group.bench_function("whole/null", |b| {
        b.iter_custom(|times| sum(times, &|| pass(NullBackend::default()).0));
    });
    group.bench_function("whole/instant", |b| {
        b.iter_custom(|times| sum(times, &|| pass(Instantly::default()).0));
    });
    group.bench_function("observe/null", |b| {
        b.iter_custom(|times| sum(times, &|| pass(NullBackend::default()).1));
    });
    group.bench_function("observe/instant", |b| {
        b.iter_custom(|times| sum(times, &|| pass(Instantly::default()).1));
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
