//! How a curve is measured: this program as reader, cold, point after point.

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
use crate::device::{DEFAULT_READ_AHEAD_KB, Device};
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
    say("data");
    let original = RANDOM.folder(Size::Quick, tools)?;
    let disk = Disk::ready(kind, &original, tools)?;
    say("copying");
    let data = disk.holding(&original)?;
    let device = Device::holding(&data)?;
    let _read_ahead = device
        .as_ref()
        .map(|device| device.set_read_ahead(DEFAULT_READ_AHEAD_KB))
        .transpose()?;
    let scratch = Scratch::new(curve.name, tools)?;
    let bench = Bench {
        file: data.join(RANDOM_FILE),
        disk,
        device,
        scratch: &scratch.0,
        program: std::env::current_exe().context("finding this program")?,
    };
    let points = match &curve.kind {
        Kind::Option(changing) => bench.option(changing, None, say),
        Kind::Adapt(changing, memory) => {
            let group = MemoryGroup::new(curve.name, *memory)?;
            bench.option(changing, Some(&group), say)
        }
        Kind::Contend { processes } => bench.contend(processes, curve.name, say),
    }?;
    Ok(Measured {
        curve: curve.name.into(),
        about: curve.about.into(),
        unit: curve.unit.into(),
        disk: kind.name().into(),
        points,
    })
}

/// What does not change between runs.
struct Bench<'a> {
    file: PathBuf,
    disk: Disk,
    device: Option<Device>,
    scratch: &'a Path,
    program: PathBuf,
}

impl Bench<'_> {
    /// One reader, plain once and then at every value. In a memory group, which is there to have the
    /// target adapt, once more with a target that does not.
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
            let value = (x * changing.scale.0 / changing.scale.1).to_string();
            let mut more = vec![changing.option.to_owned(), value];
            let foreread = self.run(&reader(changing.ahead, &more), memory, &mut expected)?;
            more.push("--fixed".into());
            let fixed = memory
                .map(|_| self.run(&reader(changing.ahead, &more), memory, &mut expected))
                .transpose()?;
            points.push(Point {
                x,
                readers: 1,
                needed_bytes: changing.block * changing.count,
                plain,
                foreread,
                fixed,
            });
        }
        Ok(points)
    }

    /// So many readers at once, without foresight and with it, in turn.
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

    /// Runs all `commands` at once, cold, in `memory`. With one command its outcome is held
    /// against the `expected` one.
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
