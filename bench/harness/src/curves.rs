//! The talk's other figures: how fast a known random order is read, against the memory for
//! reordering, the largest request and the infill; and several programs under one memory limit.
//!
//! Each curve is measured with this program itself as the reader ([`crate::reader`]): plain
//! once, then with foresight at every point.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::cache;
use crate::case::{Size, Tools};
use crate::cases::RandomFile;
use crate::cgroup::MemoryGroup;
use crate::device::{DEFAULT_READ_AHEAD_KB, Device};
use crate::disk::{Disk, DiskKind};
use crate::measure::Scratch;
use crate::process::{self, Invocation, Outcome};
use crate::stats;

/// A curve: what changes, and what it is measured on.
pub struct Curve {
    /// Name, as in `--case`.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// What changes, as an axis has it.
    unit: &'static str,
    kind: Kind,
}

enum Kind {
    /// One reader; the option of `read-file` that changes, its values, and the fixed options.
    Option {
        option: &'static str,
        /// In the curve's unit.
        values: &'static [u64],
        /// What the option takes, as a fraction of the curve's unit.
        scale: (u64, u64),
        fixed: &'static [&'static str],
    },
    /// So many readers at once, each of its own part of the data, under one memory limit.
    Contend { processes: &'static [u64] },
}

/// The disk the curves are drawn for: the one where order matters.
pub const DISK: DiskKind = DiskKind::Hdd7200;

/// Memory for all contending processes together, in bytes.
const SHARED_MEMORY: u64 = 64 << 20;
/// Each contending process reads so many blocks of this many bytes.
const CONTEND_BLOCKS: u64 = 500;
const CONTEND_BLOCK: u64 = 32 << 10;

/// All curves.
pub const ALL: &[Curve] = &[
    Curve {
        name: "buffer",
        about: "3,000 random 4 KiB reads against the memory for reordering",
        unit: "MiB for reordering",
        kind: Kind::Option {
            option: "--budget",
            values: &[1, 2, 4, 8, 16],
            scale: (1 << 20, 1),
            fixed: &[
                "--order", "random", "--block", "4096", "--count", "3000", "--ahead", "library",
            ],
        },
    },
    Curve {
        name: "request",
        about: "96 random 1 MiB reads against the largest request",
        unit: "KiB a request",
        kind: Kind::Option {
            option: "--request-pages",
            values: &[4, 16, 64, 256, 1024],
            scale: (1, 4),
            fixed: &[
                "--order", "random", "--block", "1048576", "--count", "96", "--ahead", "engine",
            ],
        },
    },
    Curve {
        name: "infill",
        about: "3,000 shuffled 4 KiB reads, gaps up to 256 KiB, against the infill",
        unit: "KiB of infill",
        kind: Kind::Option {
            option: "--infill-pages",
            values: &[0, 16, 64, 128, 256],
            scale: (1, 4),
            fixed: &[
                "--order", "gaps", "--block", "4096", "--count", "3000", "--ahead", "engine",
            ],
        },
    },
    Curve {
        name: "contend",
        about: "1 to 8 programs, 500 random 32 KiB reads each, 64 MiB of memory",
        unit: "programs",
        kind: Kind::Contend {
            processes: &[1, 2, 4, 8],
        },
    },
];

/// A measured curve.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Its name.
    pub curve: String,
    /// What it shows.
    pub about: String,
    /// What changes, as an axis has it.
    pub unit: String,
    /// The disk.
    pub disk: String,
    /// Its points, in order.
    pub points: Vec<Point>,
}

/// One point.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// What changes, in its unit.
    pub x: u64,
    /// Without foresight, in seconds from the first start to the last end.
    pub plain: Run,
    /// With it.
    pub foreread: Run,
}

/// One run of all processes of a point.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Run {
    /// From the first start to the last end, in seconds.
    pub seconds: f64,
    /// Bytes read from the device.
    pub device_bytes: Option<u64>,
    /// Jain's fairness of the processes' speeds; 1 is equal.
    pub fairness: f64,
}

/// Measures `curve`.
pub fn measure(curve: &Curve, tools: &Tools, say: &dyn Fn(&str)) -> Result<Measured> {
    say("data");
    let original = tools.data(&RandomFile, Size::Quick)?;
    let disk = Disk::ready(DISK, &original, tools)?;
    say("copying");
    let data = disk.holding(&original)?;
    let device = Device::holding(&data)?;
    let _read_ahead = device
        .as_ref()
        .map(|device| device.set_read_ahead(DEFAULT_READ_AHEAD_KB))
        .transpose()?;
    let scratch = Scratch::new(curve.name, tools)?;
    let bench = Bench {
        file: RandomFile::path(&data),
        disk,
        device,
        scratch: &scratch.0,
        program: std::env::current_exe().context("finding this program")?,
    };
    let mut points = Vec::new();
    match curve.kind {
        Kind::Option {
            option,
            values,
            scale,
            fixed,
        } => {
            let options: Vec<String> = fixed.iter().map(|word| (*word).to_owned()).collect();
            say("plain");
            let mut unaided = options.clone();
            // The last word says who keeps ahead.
            if let Some(ahead) = unaided.last_mut() {
                *ahead = "none".into();
            }
            let mut expected = None;
            let plain = bench.run(&[bench.reader(&unaided)], None, &mut expected)?;
            for &x in values {
                say(&format!("{option} {x}"));
                let mut with = options.clone();
                with.extend([option.to_owned(), (x * scale.0 / scale.1).to_string()]);
                let foreread = bench.run(&[bench.reader(&with)], None, &mut expected)?;
                points.push(Point { x, plain, foreread });
            }
        }
        Kind::Contend { processes } => {
            for &x in processes {
                let run = |ahead: &str| -> Result<Run> {
                    say(&format!("{x} programs, {ahead}"));
                    let memory = MemoryGroup::new(curve.name, SHARED_MEMORY)?;
                    let commands: Vec<Invocation> = (0..x)
                        .map(|part| {
                            let words = [
                                "--order",
                                "random",
                                "--block",
                                &CONTEND_BLOCK.to_string(),
                                "--count",
                                &CONTEND_BLOCKS.to_string(),
                                "--part",
                                &part.to_string(),
                                "--ahead",
                                ahead,
                            ]
                            .map(str::to_owned);
                            bench.reader(&words)
                        })
                        .collect();
                    bench.run(&commands, Some(&memory), &mut None)
                };
                points.push(Point {
                    x,
                    plain: run("none")?,
                    foreread: run("library")?,
                });
            }
        }
    }
    Ok(Measured {
        curve: curve.name.into(),
        about: curve.about.into(),
        unit: curve.unit.into(),
        disk: DISK.name().into(),
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
