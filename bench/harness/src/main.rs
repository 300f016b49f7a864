//! `foreread-bench`: paired whole-process benchmarks.
//!
//! cases/ say what to run, disk where, measure how; stats, results, table, plot and
//! targets turn samples into what is read. Nothing here asserts a speed.

#![forbid(unsafe_code)]

mod cache;
mod case;
mod cases;
mod cgroup;
mod cost;
mod curves;
mod deep;
mod device;
mod disk;
mod foreread;
mod lines;
mod list_cost;
mod measure;
mod peer;
mod plot;
mod process;
mod reader;
mod results;
mod signals;
mod stats;
mod table;
mod targets;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};

use crate::case::{Case, Group, Purpose, Size, Tools, in_path};
use crate::disk::{Disk, DiskKind};
use crate::foreread::Foreread;
use crate::measure::Settings;
use crate::results::{Environment, Results, Summary};

/// Times whole programs: plain, under foreread, with a hot cache, and the limit.
///
/// Cold runs are proved cold; the read-ahead of the disk under test is set to Linux's
/// default 128 KiB for the run and put back afterwards. Needs root.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// A subset with smaller data, in under 10 minutes.
    #[arg(long)]
    quick: bool,
    /// Only these cases (see --list).
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// Only the cases of this group.
    #[arg(long, value_name = "NAME", value_enum)]
    group: Option<Group>,
    /// Only these disks.
    #[arg(long = "disk", value_name = "NAME", value_enum)]
    disks: Vec<DiskKind>,
    /// Rounds per case [default: 3 quick, 5 otherwise; short cases run more, long ones fewer].
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// After so many minutes, leave out what was not begun [default: 9 quick, 42 otherwise].
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// Leave foreread out: plain, hot and limit only.
    #[arg(long)]
    no_foreread: bool,
    /// The foreread binary [default: beside this program].
    #[arg(long, value_name = "FILE")]
    foreread: Option<PathBuf>,
    /// Where the data is kept between runs.
    #[arg(
        long,
        value_name = "DIR",
        env = "FOREREAD_BENCH_DIR",
        default_value = "target/bench-data"
    )]
    data_dir: PathBuf,
    /// The checkout, with sqlite/foreread.so, python/wheels and examples.
    #[arg(long, value_name = "DIR", default_value = ".")]
    checkout: PathBuf,
    /// Where the results go.
    #[arg(long, value_name = "DIR", default_value = "bench/out")]
    out: PathBuf,
    /// List the cases and what they need.
    #[arg(long)]
    list: bool,
    /// Install the Debian packages the cases need, then stop.
    #[arg(long)]
    install: bool,
    /// Measure the added time per hot read instead.
    #[arg(long)]
    pread_cost: bool,
    /// Measure the price of recording instead.
    #[arg(long)]
    record_cost: bool,
    /// Measure what a list handed over costs instead.
    #[arg(long)]
    list_cost: bool,
    /// Entries of that list.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10_000_000,
        requires = "list_cost"
    )]
    entries: u64,
    #[command(subcommand)]
    command: Option<Task>,
}

#[derive(Subcommand)]
enum Task {
    /// Generate a case's data in a folder of your own.
    Data {
        #[command(subcommand)]
        what: Data,
    },
    /// Reads a file in a known order: what the curves measure.
    #[command(hide = true)]
    ReadFile(reader::Reading),
    /// Serves a slow disk for the benchmark that started it.
    #[command(hide = true)]
    ServeDisk {
        #[arg(long)]
        model: String,
        #[arg(long)]
        dir: PathBuf,
        #[arg(long)]
        size: u64,
    },
}

#[derive(Subcommand)]
enum Data {
    /// The sqlite3 database `tpch.db`, with its secondary indexes.
    Sqlite {
        /// The folder, made if need be.
        #[arg(long)]
        dir: PathBuf,
        /// Rows, about 136 bytes each with the indexes.
        #[arg(long, default_value_t = 1_500_000)]
        rows: u64,
        /// The size instead, in MiB.
        #[arg(long, conflicts_with = "rows")]
        size_mib: Option<u64>,
    },
}

fn main() -> ExitCode {
    match act(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("foreread-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Does what the options ask for.
fn act(cli: Cli) -> Result<()> {
    match &cli.command {
        Some(Task::Data {
            what:
                Data::Sqlite {
                    dir,
                    rows,
                    size_mib,
                },
        }) => {
            fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
            let rows = size_mib.map_or(*rows, |mib| (mib << 20) / cases::SQLITE_ROW_BYTES);
            return cases::generate_sqlite(dir, rows);
        }
        Some(Task::ReadFile(reading)) => return reader::read(reading),
        Some(Task::ServeDisk { model, dir, size }) => return disk::serve(model, dir, *size),
        None => {}
    }
    if cli.list {
        return list();
    }
    if cli.install {
        return install();
    }
    signals::install()?;
    fs::create_dir_all(&cli.data_dir)
        .with_context(|| format!("creating {}", cli.data_dir.display()))?;
    let root = fs::canonicalize(&cli.data_dir)
        .with_context(|| format!("resolving {}", cli.data_dir.display()))?;
    let checkout = fs::canonicalize(&cli.checkout)
        .with_context(|| format!("resolving {}", cli.checkout.display()))?;
    let tools = Tools { root, checkout };
    if cli.list_cost {
        print!("{}", list_cost::measure(&tools, cli.entries)?);
        return Ok(());
    }
    if cli.pread_cost || cli.record_cost {
        let binary = Foreread::find(cli.foreread.as_deref())?;
        let rounds = cli.rounds.unwrap_or(5);
        if cli.pread_cost {
            println!("{}", cost::per_read(&binary, &tools, rounds)?);
        }
        if cli.record_cost {
            println!("{}", cost::recording(&binary, &tools, rounds)?);
        }
        return Ok(());
    }
    bench(&cli, &tools)
}

/// Measures every case asked for, then reports.
fn bench(cli: &Cli, tools: &Tools) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("cold runs need root: the read-ahead of the disks has to be set");
    }
    let size = if cli.quick { Size::Quick } else { Size::Full };
    let settings = Settings {
        rounds: cli.rounds.unwrap_or(size.pick(3, 5)).max(1),
        exact_rounds: cli.rounds.is_some(),
        size,
        foreread: if cli.no_foreread {
            None
        } else {
            Some(Foreread::find(cli.foreread.as_deref())?)
        },
    };
    let mut results = Results {
        environment: Environment::look(&tools.root, size.name(), settings.rounds)?,
        summaries: Vec::new(),
        measurements: Vec::new(),
        curves: Vec::new(),
        skipped: Vec::new(),
    };
    let cases = cases::all();
    let chosen = choose(&cases, cli)?;
    let curves = choose_curves(cli);
    if chosen.is_empty() && curves.is_empty() {
        bail!("no case runs on the disks asked for");
    }
    let bar = ProgressBar::new((chosen.len() + curves.len()) as u64);
    bar.set_style(
        ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed} {msg}")
            .context("progress bar")?,
    );
    bar.enable_steady_tick(std::time::Duration::from_millis(500));
    let minutes = cli.minutes.unwrap_or(size.pick(9, 42));
    let began = Instant::now();
    let late = || {
        (began.elapsed().as_secs() >= minutes * 60)
            .then(|| format!("the {minutes} minutes are over (--minutes)"))
    };
    for (case, disk) in chosen {
        let say = |what: &str| bar.set_message(format!("{} on {}: {what}", case.name, disk.name()));
        let outcome = match missing(case).or_else(late) {
            Some(reason) => Err(anyhow::anyhow!(reason)),
            None => {
                say("data");
                tools
                    .data(case.work.as_ref(), size)
                    .and_then(|data| Ok((Disk::ready(disk, &data, tools)?, data)))
                    .and_then(|(disk, data)| {
                        measure::measure(case, &disk, &data, &settings, tools, &say)
                    })
            }
        };
        signals::check()?;
        match outcome {
            Ok(measurement) => {
                // On a terminal the bar shows that things move; elsewhere these lines do.
                if bar.is_hidden() {
                    eprintln!("{} on {} measured", case.name, disk.name());
                }
                results.summaries.extend(Summary::of(&measurement));
                results.measurements.push(measurement);
            }
            Err(error) => {
                bar.suspend(|| eprintln!("{} on {} skipped: {error:#}", case.name, disk.name()));
                results
                    .skipped
                    .push((case.name.into(), disk.name().into(), format!("{error:#}")));
            }
        }
        bar.inc(1);
        // Written as it grows: what was measured is not lost if the rest is.
        report(&results, &cli.out)?;
    }
    for (curve, disk) in curves {
        let say =
            |what: &str| bar.set_message(format!("{} on {}: {what}", curve.name, disk.name()));
        let outcome = match late() {
            Some(reason) => Err(anyhow::anyhow!(reason)),
            None => curves::measure(curve, disk, tools, &say),
        };
        signals::check()?;
        match outcome {
            Ok(measured) => {
                if bar.is_hidden() {
                    eprintln!("{} on {} measured", curve.name, disk.name());
                }
                results.curves.push(measured);
            }
            Err(error) => {
                bar.suspend(|| eprintln!("{} on {} skipped: {error:#}", curve.name, disk.name()));
                results
                    .skipped
                    .push((curve.name.into(), disk.name().into(), format!("{error:#}")));
            }
        }
        bar.inc(1);
        report(&results, &cli.out)?;
    }
    bar.finish_and_clear();
    print!("{}", table::render(&results));
    let mut reached = targets::render(&results.summaries);
    reached += &targets::render_contention(&results.curves);
    if !reached.is_empty() {
        print!("\nto reach\n\n{reached}");
    }
    let mut plots = plot::draw(&results.summaries, &cli.out)?;
    plots.extend(lines::draw(&results, &cli.out)?);
    println!(
        "\nresults.json and {} plots are in {}",
        plots.len(),
        cli.out.display()
    );
    Ok(())
}

/// Writes results.json.
fn report(results: &Results, out: &Path) -> Result<()> {
    fs::create_dir_all(out).with_context(|| format!("creating {}", out.display()))?;
    results::write(results, &out.join("results.json"))
}

/// The cases and disks the options ask for, in the order of the list.
fn choose<'a>(cases: &'a [Case], cli: &Cli) -> Result<Vec<(&'a Case, DiskKind)>> {
    if let Some(unknown) = cli.cases.iter().find(|name| {
        let curve = curves::ALL.iter().any(|curve| curve.name == **name);
        !curve && !cases.iter().any(|case| case.name == **name)
    }) {
        bail!("there is no case `{unknown}`; --list shows them");
    }
    let mut chosen = Vec::new();
    for case in cases {
        let asked_for = cli.cases.is_empty() || cli.cases.iter().any(|name| name == case.name);
        if !asked_for || cli.group.is_some_and(|group| group != case.group) {
            continue;
        }
        // A case or a disk asked for by name runs even where --quick alone would leave it out.
        let named = !cli.cases.is_empty() || !cli.disks.is_empty();
        let disks = if cli.quick && !named {
            case.quick
        } else {
            case.disks
        };
        let wanted = |disk: &&DiskKind| cli.disks.is_empty() || cli.disks.contains(disk);
        chosen.extend(disks.iter().filter(wanted).map(|disk| (case, *disk)));
    }
    Ok(chosen)
}

/// The curves the options ask for, and their disks: none with --quick alone.
fn choose_curves(cli: &Cli) -> Vec<(&'static curves::Curve, DiskKind)> {
    if cli.group.is_some_and(|group| group != Group::Api) {
        return Vec::new();
    }
    let wanted = |curve: &&curves::Curve| {
        if cli.cases.is_empty() {
            !cli.quick
        } else {
            cli.cases.iter().any(|name| name == curve.name)
        }
    };
    let on_disk = |disk: &DiskKind| cli.disks.is_empty() || cli.disks.contains(disk);
    let chosen = curves::ALL.iter().filter(wanted);
    chosen
        .flat_map(|curve| curve.disks.iter().map(move |&disk| (curve, disk)))
        .filter(|(_, disk)| on_disk(disk))
        .collect()
}

/// What a case needs and this machine does not have, in words.
fn missing(case: &Case) -> Option<String> {
    let absent = case.needs.iter().find(|(program, _)| !in_path(program))?;
    Some(format!(
        "{} is missing: install the package {} (or run --install)",
        absent.0, absent.1
    ))
}

/// Prints the cases.
fn list() -> Result<()> {
    for case in cases::all() {
        let disks: Vec<&str> = case.disks.iter().map(|disk| disk.name()).collect();
        let kind = if case.purpose == Purpose::NoHarm {
            "no harm"
        } else {
            "gain"
        };
        println!(
            "{:<12} {:<8} {:<48} {}",
            case.name,
            kind,
            case.about,
            disks.join(" ")
        );
        if let Some(reason) = missing(&case) {
            println!("{:<12} {reason}", "");
        }
    }
    for curve in curves::ALL {
        let disks: Vec<&str> = curve.disks.iter().map(|disk| disk.name()).collect();
        println!(
            "{:<12} {:<8} {:<48} {}",
            curve.name,
            "curve",
            curve.about,
            disks.join(" ")
        );
    }
    Ok(())
}

/// Installs bench/packages.txt with apt-get.
fn install() -> Result<()> {
    let packages = include_str!("../../packages.txt");
    let names = packages
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let status = Command::new("apt-get")
        .args(["install", "--yes", "--no-install-recommends"])
        .args(names)
        .status()
        .context("starting apt-get")?;
    if !status.success() {
        bail!("apt-get failed ({status}); `apt-get update` first?");
    }
    Ok(())
}
