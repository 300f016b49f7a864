//! `foreread-bench`: paired whole-process benchmarks.
//!
//! cases/ define the commands, disk the place of their data, measure the order of the runs; stats, results, table, charts and
//! targets turn samples into reports. Nothing here asserts a speed.

#![forbid(unsafe_code)]

mod alone;
mod busy;
mod cache;
mod case;
mod cases;
mod cgroup;
mod charts;
mod cost;
mod curves;
mod deep;
mod device;
mod disk;
mod files;
mod fitting;
mod foreread;
mod list_cost;
mod made_trace;
mod measure;
mod mpi;
mod names;
mod options;
mod paper;
mod parallel;
mod peer;
mod process;
mod reader;
mod results;
mod runs;
mod sample;
mod scratch;
mod selection;
mod signals;
mod stats;
mod table;
mod targets;
mod tools;
mod translated;
mod tree;
mod want;
mod want_cost;
mod watch;

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

use crate::case::{Case, Group, Size};
use crate::cost::{Cost, Rounds};
use crate::disk::{Disk, DiskKind};
use crate::foreread::Foreread;
use crate::options::{Cli, Data, Task};
use crate::results::{Environment, Results, Summary};
use crate::runs::Settings;
use crate::tools::Tools;

fn main() -> ExitCode {
    match act(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("foreread-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the command that the options ask for.
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
        Some(Task::Data {
            what: Data::Trace { events },
        }) => return made_trace::write(*events),
        Some(Task::ReadFile(reading)) => return reader::read(reading),
        Some(Task::ServeDisk {
            model,
            dir,
            size,
            begins,
            image,
        }) => {
            let place = disk::ServedPart {
                size: *size,
                begins: *begins,
                image: *image,
            };
            return disk::serve(model, dir, place);
        }
        None => {}
    }
    if cli.list {
        return say(&selection::list());
    }
    if cli.install {
        return selection::install();
    }
    signals::install()?;
    let _alone = alone::wait()?;
    fs::create_dir_all(&cli.data_dir)
        .with_context(|| format!("creating {}", cli.data_dir.display()))?;
    let root = fs::canonicalize(&cli.data_dir)
        .with_context(|| format!("resolving {}", cli.data_dir.display()))?;
    let checkout = fs::canonicalize(&cli.checkout)
        .with_context(|| format!("resolving {}", cli.checkout.display()))?;
    let tools = Tools { root, checkout };
    if cli.list_cost {
        return say(&list_cost::measure(&tools, cli.entries)?);
    }
    if cli.cost {
        let binary = Foreread::find(cli.foreread.as_deref())?;
        return say(&want_cost::measure(
            &binary,
            &tools,
            cli.rounds.unwrap_or(5),
        )?);
    }
    if cli.pread_cost || cli.record_cost {
        return cost_alone(&cli, &tools);
    }
    // Before anything is measured, so that no measurement is lost for want of a folder.
    fs::create_dir_all(&cli.out).with_context(|| format!("creating {}", cli.out.display()))?;
    bench(&cli, &tools)
}

/// Measures only the cost of observation.
fn cost_alone(cli: &Cli, tools: &Tools) -> Result<()> {
    let binary = Foreread::find(cli.foreread.as_deref())?;
    let rounds = Rounds {
        most: cli.rounds.unwrap_or(5),
        within: None,
        more_pairs_within: more_pairs(cli, Size::Full),
    };
    let mut cost = Cost::default();
    if cli.pread_cost {
        cost.reads = cost::per_read(&binary, tools, rounds)?;
        say(&(table::cost::reads(&cost.reads) + "\n"))?;
    }
    if cli.record_cost {
        for case in cases::all() {
            if cost::RECORDED.contains(&case.name) {
                let measured = cost::recording(case, &binary, tools, rounds)?;
                cost.recording.push(measured);
            }
        }
        say(&(table::cost::recording(&cost.recording) + "\n"))?;
    }
    say(&format!("to reach\n\n{}", targets::render_cost(&cost)))
}

/// How long further pairs are run after the rounds: not at all if the number of rounds was given.
fn more_pairs(cli: &Cli, size: Size) -> Duration {
    match cli.rounds {
        Some(_) => Duration::ZERO,
        None => measure::more_pairs_within(size),
    }
}

/// Measures the cost of observation for the report of a whole run. A failed measurement is listed as skipped.
fn add_cost(
    results: &mut Results,
    cases: &[Case],
    binary: &Path,
    (tools, rounds): (&Tools, Rounds),
    say: &dyn Fn(&str),
) -> Result<()> {
    let mut skip = |what: &str, reason: String| {
        results.skipped.push((what.into(), "memory".into(), reason));
    };
    say("a hot pread's cost");
    match cost::per_read(binary, tools, rounds) {
        Ok(reads) => results.cost.reads = reads,
        Err(error) => skip("the cost of a pread", format!("{error:#}")),
    }
    signals::check()?;
    for case in cases
        .iter()
        .filter(|case| cost::RECORDED.contains(&case.name))
    {
        say(&format!("the cost of recording {}", case.name));
        let measured = match selection::missing(case) {
            Some(reason) => Err(anyhow::anyhow!(reason)),
            None => cost::recording(case, binary, tools, rounds),
        };
        signals::check()?;
        match measured {
            Ok(measured) => results.cost.recording.push(measured),
            Err(error) => skip(&format!("recording {}", case.name), format!("{error:#}")),
        }
    }
    Ok(())
}

/// Measures one case or curve into the results; the second argument receives the current step.
type Measured<'a> = dyn FnMut(&mut Results, &dyn Fn(&str)) -> Result<()> + 'a;

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
        strace: !cli.no_strace,
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
        files: Vec::new(),
        files_figures: Vec::new(),
        mpi: Vec::new(),
        curves: Vec::new(),
        cost: Cost::default(),
        skipped: Vec::new(),
    };
    let cases = cases::all();
    let mut chosen = selection::choose(cases, cli)?;
    let curves = selection::choose_curves(cli);
    if chosen.is_empty() && curves.is_empty() {
        bail!("no case runs on the disks asked for");
    }
    let translated = |case: &Case| case.group == Group::Slice;
    if chosen.iter().any(|(case, _)| translated(case))
        && let Some(reason) = translated::missing(tools)
    {
        chosen.retain(|(case, _)| !translated(case));
        eprintln!("the group slice skipped: {reason}");
        let (group, disks) = ("the group slice".into(), "any disk".into());
        results.skipped.push((group, disks, reason));
    }
    let bar = ProgressBar::new((chosen.len() + curves.len()) as u64);
    bar.set_style(
        ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed} {msg}")
            .context("progress bar")?,
    );
    bar.enable_steady_tick(Duration::from_millis(500));
    let minutes = cli.minutes.or(size.pick(Some(9), None));
    let began = Instant::now();
    let late = || {
        let minutes = minutes.filter(|minutes| began.elapsed().as_secs() >= minutes * 60)?;
        Some(format!("the {minutes} minutes are over (--minutes)"))
    };
    if let Some(foreread) = settings
        .foreread
        .as_ref()
        .filter(|_| selection::with_cost(cli))
    {
        // Four parts, which together take half a minute with --quick.
        let rounds = Rounds {
            most: cli.rounds.unwrap_or(size.pick(5, 15)),
            within: size.pick(Some(Duration::from_secs(7)), None),
            more_pairs_within: size.pick(Duration::ZERO, more_pairs(cli, size)),
        };
        let say = |what: &str| bar.set_message(what.to_owned());
        add_cost(&mut results, cases, foreread, (tools, rounds), &say)?;
        report(&results, &cli.out)?;
    }
    let mut measure = |name: &str, disk: DiskKind, measured: &mut Measured<'_>| {
        let say = |what: &str| bar.set_message(format!("{name} on {}: {what}", disk.name()));
        let outcome = match late() {
            Some(reason) => Err(anyhow::anyhow!(reason)),
            None => measured(&mut results, &say),
        };
        signals::check()?;
        match outcome {
            // A terminal shows the progress bar; elsewhere these lines show progress.
            Ok(()) if bar.is_hidden() => eprintln!("{name} on {} measured", disk.name()),
            Ok(()) => {}
            Err(error) => {
                bar.suspend(|| eprintln!("{name} on {} skipped: {error:#}", disk.name()));
                let skipped = (name.into(), disk.name().into(), format!("{error:#}"));
                results.skipped.push(skipped);
            }
        }
        bar.inc(1);
        // Written after every case, so that a later failure loses no results.
        report(&results, &cli.out)
    };
    for (case, kind) in chosen {
        measure(case.name, kind, &mut |results, say| {
            if let Some(reason) = selection::missing(case) {
                bail!(reason);
            }
            say("data");
            let data = case.data.folder(size, tools)?;
            let disk = Disk::ready(kind, &data, tools)?;
            match case.group {
                Group::Files => {
                    let how = (&settings, cli.variants());
                    let keep = |line: &str| bar.suspend(|| eprintln!("{line}"));
                    let measured = files::measure(case, &disk, &data, how, tools, say, &keep)?;
                    results.files_figures.push(files::figures::of(&measured));
                    results.files.push(measured);
                }
                Group::Mpi => {
                    let measured = mpi::measure(case, &disk, &data, &settings, tools, say)?;
                    results.mpi.push(measured);
                }
                _ => {
                    let measured = measure::measure(case, &disk, &data, &settings, tools, say)?;
                    results.summaries.extend(Summary::of(&measured));
                    results.measurements.push(measured);
                }
            }
            Ok(())
        })?;
    }
    for (curve, disk) in curves {
        measure(curve.name, disk, &mut |results, say| {
            results
                .curves
                .push(curves::measure(curve, disk, tools, say)?);
            Ok(())
        })?;
    }
    bar.finish_and_clear();
    let mut text = table::render(&results);
    let mut reached = targets::render(&results.summaries);
    reached += &targets::render_contention(&results.curves);
    reached += &targets::render_files(&results.files);
    reached += &targets::render_mpi(&results.mpi);
    reached += &targets::render_cost(&results.cost);
    if !reached.is_empty() {
        text += &format!("\nto reach\n\n{reached}");
    }
    let charts = charts::draw(&results, &cli.out)?;
    text += &format!(
        "\nresults.json and the charts ({}) are in {}\n",
        charts.len(),
        cli.out.display()
    );
    say(&text)
}

/// Writes to standard output; a reader that has left is no error (`foreread-bench --list | head`).
fn say(text: &str) -> Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("writing to standard output"),
    }
}

/// Writes results.json.
fn report(results: &Results, out: &Path) -> Result<()> {
    results::write(results, &out.join("results.json"))
}
