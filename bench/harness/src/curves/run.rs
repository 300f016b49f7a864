//! How a curve is measured: this program is the reader, from cold, point after point.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};

use super::{
    CONTEND_BLOCK, CONTEND_BLOCKS, Changing, Curve, Kind, Measured, Point, ROUNDS, Run,
    SHARED_MEMORY,
};
use crate::cache;
use crate::case::Size;
use crate::cases::{RANDOM, RANDOM_FILE};
use crate::cgroup::MemoryGroup;
use crate::device::{DEFAULT_READ_AHEAD_KB, Device, ReadAhead};
use crate::disk::{Disk, DiskKind};
use crate::process::{self, Invocation, Outcome};
use crate::scratch::Scratch;
use crate::stats;
use crate::tools::Tools;

/// Measures `curve` on a disk of this `kind`.
pub fn measure(
    curve: &Curve,
    kind: DiskKind,
    tools: &Tools,
    say: &dyn Fn(&str),
) -> Result<Measured> {
    let scratch = Scratch::new(curve.name, tools)?;
    let from = |begins| Bench::from(begins, kind, &scratch.0, tools, say);
    let points = match &curve.kind {
        Kind::Option(changing) => from(0)?.option(changing, None, say),
        Kind::Seek(changing) => {
            let (disk, file) = Disk::whole(kind, tools)?;
            Bench::of(disk, file, &scratch.0)?.seek(changing, say)
        }
        Kind::Platter(changing) => {
            let point = |&x| from(changing.value(x))?.reading(changing, x, say);
            changing.values.iter().map(point).collect()
        }
        Kind::Adapt(changing, memory) => {
            let group = MemoryGroup::new(curve.name, *memory)?;
            from(0)?.option(changing, Some(&group), say)
        }
        Kind::Contend { processes } => from(0)?.contend(processes, curve.name, say),
    }?;
    Ok(Measured {
        curve: curve.name.into(),
        about: curve.about.into(),
        unit: curve.unit.into(),
        disk: kind.name().into(),
        single: matches!(curve.kind, Kind::Seek(_)),
        points,
    })
}

/// The parts that do not change between runs.
struct Bench<'a> {
    file: PathBuf,
    disk: Disk,
    device: Option<Device>,
    _read_ahead: Option<ReadAhead>,
    scratch: &'a Path,
    program: PathBuf,
}

impl<'a> Bench<'a> {
    /// The common data on a disk that begins at byte `begins` of its model's disk.
    fn from(
        begins: u64,
        kind: DiskKind,
        scratch: &'a Path,
        tools: &Tools,
        say: &dyn Fn(&str),
    ) -> Result<Self> {
        say("data");
        let original = RANDOM.folder(Size::Quick, tools)?;
        let disk = Disk::beginning(begins, kind, &original, tools)?;
        say("copying");
        let file = disk.holding(&original)?.join(RANDOM_FILE);
        Self::of(disk, file, scratch)
    }

    /// A bench over `file` on `disk`.
    fn of(disk: Disk, file: PathBuf, scratch: &'a Path) -> Result<Self> {
        let device = Device::holding(&file)?;
        let read_ahead = device
            .as_ref()
            .map(|device| device.set_read_ahead(DEFAULT_READ_AHEAD_KB))
            .transpose()?;
        Ok(Self {
            file,
            disk,
            device,
            _read_ahead: read_ahead,
            scratch,
            program: std::env::current_exe().context("finding this program")?,
        })
    }

    /// One reader; its blocks are different ones at each point, so a plain run is made at each point.
    fn seek(&self, changing: &Changing, say: &dyn Fn(&str)) -> Result<Vec<Point>> {
        let point = |&x: &u64| {
            say(&format!("{} {x}", changing.option));
            let way = [changing.option.to_owned(), changing.value(x).to_string()];
            self.pair(changing, x, &way)
        };
        changing.values.iter().map(point).collect()
    }

    /// One reader, on a disk chosen for this point.
    fn reading(&self, changing: &Changing, x: u64, say: &dyn Fn(&str)) -> Result<Point> {
        say(&format!("{} {x}", changing.option));
        self.pair(changing, x, &[])
    }

    /// A point: the reader with these additional options, plain and with foresight.
    fn pair(&self, changing: &Changing, x: u64, more: &[String]) -> Result<Point> {
        let mut expected = None;
        let mut run = |ahead: &str| {
            let mut words = Self::words(changing.order, changing.block, changing.count, ahead);
            words.extend_from_slice(more);
            self.run(&[self.reader(&words)], None, &mut expected)
        };
        let plain = run("none")?;
        let foreread = run(changing.ahead)?;
        Ok(Point {
            x,
            readers: 1,
            needed_bytes: changing.block * changing.count,
            reads: changing.count,
            plain,
            foreread,
            fixed: None,
        })
    }

    /// One reader: one plain run, then one with foresight at every value. In a memory group, in which the memory target adapts,
    /// each value also gets a run with a target that does not.
    fn option(
        &self,
        changing: &Changing,
        memory: Option<&MemoryGroup>,
        say: &dyn Fn(&str),
    ) -> Result<Vec<Point>> {
        let reader = |ahead: &str, more: &[String]| {
            let mut words = Self::words(changing.order, changing.block, changing.count, ahead);
            words.extend_from_slice(more);
            [self.reader(&words)]
        };
        let mut expected = None;
        say("plain");
        let plain = self.run(&reader("none", &[]), memory, &mut expected)?;
        let mut points = Vec::new();
        for &x in changing.values {
            say(&format!("{} {x}", changing.option));
            let mut more = vec![changing.option.to_owned(), changing.value(x).to_string()];
            let foreread = self.run(&reader(changing.ahead, &more), memory, &mut expected)?;
            more.push("--fixed".into());
            let fixed = memory
                .map(|_| self.run(&reader(changing.ahead, &more), memory, &mut expected))
                .transpose()?;
            points.push(Point {
                x,
                readers: 1,
                needed_bytes: changing.block * changing.count,
                reads: changing.count,
                plain,
                foreread,
                fixed,
            });
        }
        Ok(points)
    }

    /// Several readers at once, without foresight and with it in alternation.
    fn contend(&self, processes: &[u64], name: &str, say: &dyn Fn(&str)) -> Result<Vec<Point>> {
        let mut points = Vec::new();
        for &x in processes {
            let run = |ahead: &str| -> Result<Run> {
                say(&format!("{x} programs, {ahead}"));
                let memory = MemoryGroup::new(name, SHARED_MEMORY)?;
                let reader = |part: u64| {
                    let mut words = Self::words("random", CONTEND_BLOCK, CONTEND_BLOCKS, ahead);
                    words.extend(["--part".to_owned(), part.to_string()]);
                    self.reader(&words)
                };
                let readers: Vec<Invocation> = (0..x).map(reader).collect();
                self.run(&readers, Some(&memory), &mut None)
            };
            let (mut plain, mut foreread) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                plain.push(run("none")?);
                foreread.push(run("library")?);
            }
            let median = |runs: &[Run]| Run::median(runs).context("no runs");
            points.push(Point {
                x,
                readers: x,
                reads: x * CONTEND_BLOCKS,
                needed_bytes: x * CONTEND_BLOCKS * CONTEND_BLOCK,
                plain: median(&plain)?,
                foreread: median(&foreread)?,
                fixed: None,
            });
        }
        Ok(points)
    }

    /// The options every reader has.
    fn words(order: &str, block: u64, count: u64, ahead: &str) -> Vec<String> {
        let (block, count) = (block.to_string(), count.to_string());
        [
            "--order", order, "--block", &block, "--count", &count, "--ahead", ahead,
        ]
        .map(str::to_owned)
        .into()
    }

    /// This program as a reader of the file.
    fn reader(&self, options: &[String]) -> Invocation {
        let mut args = vec![
            "read-file".into(),
            "--file".into(),
            self.file.clone().into(),
        ];
        args.extend(options.iter().map(Into::into));
        Invocation {
            program: self.program.clone(),
            args,
            cwd: self.scratch.to_owned(),
            env: Vec::new(),
        }
    }

    /// Runs all `commands` at once, cold, in `memory`. With one command its outcome is compared with the `expected` one.
    fn run(
        &self,
        commands: &[Invocation],
        memory: Option<&MemoryGroup>,
        expected: &mut Option<Outcome>,
    ) -> Result<Run> {
        cache::evict(std::slice::from_ref(&self.file))?;
        self.disk.forget()?;
        let bytes_read = || self.device.as_ref().map(Device::bytes_read).transpose();
        let before = bytes_read()?;
        let began = Instant::now();
        let runs: Vec<Result<process::Run>> = std::thread::scope(|scope| {
            let started: Vec<_> = commands
                .iter()
                .enumerate()
                .map(|(number, command)| {
                    let command = memory.map_or(command.clone(), |group| group.inside(command));
                    let scratch = self.scratch.join(number.to_string());
                    scope.spawn(move || {
                        std::fs::create_dir_all(&scratch)
                            .with_context(|| format!("creating {}", scratch.display()))?;
                        process::run(&command, &scratch, &[])
                    })
                })
                .collect();
            started
                .into_iter()
                .map(|thread| match thread.join() {
                    Ok(run) => run,
                    Err(_) => Err(anyhow::anyhow!("a thread ended early")),
                })
                .collect()
        });
        let seconds = began.elapsed().as_secs_f64();
        let after = bytes_read()?;
        let runs = runs.into_iter().collect::<Result<Vec<_>>>()?;
        for (run, command) in runs.iter().zip(commands) {
            let first = if commands.len() == 1 {
                *expected.get_or_insert(run.outcome)
            } else {
                run.outcome
            };
            if run.outcome.status != 0 || run.outcome != first {
                anyhow::bail!(
                    "`{}` ended with status {} and {} output: {}",
                    command.line(),
                    run.outcome.status,
                    if run.outcome == first {
                        "its"
                    } else {
                        "another"
                    },
                    run.stderr
                );
            }
        }
        Ok(Run {
            seconds,
            device_bytes: before
                .zip(after)
                .map(|(before, after)| after.saturating_sub(before)),
            fairness: stats::fairness(runs.iter().map(|run| 1.0 / run.seconds)),
        })
    }
}
