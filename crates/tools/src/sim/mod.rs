//! `foreread sim`: compares models that predict files, on traces.
//!
//! Data flow: trace → [`events`] → each model's [`Measured`](measure::Measured), and one cache without prefetching → [`report`]. All models
//! see an event before the next one is read.
//!
//! Invariant: memory is bounded by the limits of models, caches and tables, for traces of any length.

mod cache;
mod device;
mod events;
mod measure;
pub(crate) mod models;
mod plots;
mod quantiles;
mod report;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use foreread_sources::files::{Context, Symbols};
use indicatif::{ProgressBar, ProgressStyle};

use crate::args;
use crate::output::output;
use cache::Cache;
use device::{Device, Reads};
use events::{Event, TraceRead};
use measure::{Measured, Sizes};
use models::{Limits, ModelChoice, Sequences};

/// Known symbols per file of a model. Caches still need the symbols of files that the model has forgotten, and files and programs with the
/// same path have different symbols.
const SYMBOLS: usize = 4;
/// Events between two updates of the progress bar.
const TICK: u64 = 1 << 16;

/// The results.
pub(crate) struct Compared<'a> {
    args: &'a args::Sim,
    trained: Vec<TraceRead>,
    tested: Vec<TraceRead>,
    models: Vec<Measured>,
    /// Hits of a cache without prefetching, by size of memory.
    plain_hits: Vec<u64>,
    /// Hits, misses and waits without prefetching, by size of memory; empty if reads take no time.
    plain_reads: Vec<Reads>,
    events: u64,
    /// True if the traces lack the size of any file.
    assumed: bool,
    timed: bool,
}

/// Compares models on traces.
pub(crate) fn sim(args: &args::Sim) -> Result<ExitCode> {
    let limits = Limits {
        files: args.max_files,
        contexts: args.max_contexts,
        nodes: args.max_nodes,
    };
    let asked = match args.models.as_slice() {
        [] => &ModelChoice::USUAL[..],
        given => given,
    };
    let each = asked
        .iter()
        .flat_map(|one| one.each(&args.sizes, &args.orders));
    let models: Vec<Measured> = each
        .map(|one| {
            let model = one.make(args.sequences, limits);
            Measured::new(
                one.to_string(),
                model,
                &args.thresholds,
                &args.memory,
                args.read_ns,
                limits,
            )
        })
        .collect();
    if models.is_empty() {
        bail!("no order given (--order) is within a size (--size)");
    }
    if let Some(folder) = &args.plots {
        plots::ready(folder)?;
    }
    let compared = compare(args, limits, models)?;
    let mut out = output();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &report::json(&compared))
            .map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        report::print(&mut out, &compared)?;
    }
    if let Some(folder) = &args.plots {
        plots::draw(&compared, folder)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the traces and feeds the models.
fn compare(args: &args::Sim, limits: Limits, mut models: Vec<Measured>) -> Result<Compared<'_>> {
    let mut symbols = Symbols::new(limits.files.saturating_mul(SYMBOLS));
    let mut sizes = Sizes::new(limits.files.saturating_mul(SYMBOLS));
    // The machine's single sequence is one context.
    let whose = |event: Event| match args.sequences {
        Sequences::Machine => Event {
            context: Context(0),
            ..event
        },
        Sequences::Both | Sequences::Process => event,
    };
    let progress = progress();
    let mut seen = 0;
    let mut tick = || {
        seen += 1;
        if seen % TICK == 0 {
            progress.set_message(format!("{seen} events"));
        }
    };
    let mut trained = Vec::new();
    for path in &args.train {
        let told = events::read(path, &mut symbols, &mut |event| {
            let event = whose(event);
            tick();
            sizes.learn(&event);
            models.iter_mut().for_each(|model| model.train(&event));
        })?;
        models.iter_mut().for_each(Measured::end_all);
        trained.push(told);
    }
    let new = |memory: &u64| Cache::new(*memory, limits.files);
    let mut plain: Vec<Cache> = args.memory.iter().map(new).collect();
    let mut plain_hits = vec![0; plain.len()];
    let mut hits = vec![false; plain.len()];
    let device = |ns| Device::new(ns, limits.files);
    let each = args.memory.iter().filter_map(|_| args.read_ns.map(device));
    let mut devices: Vec<Device> = each.collect();
    let (mut count, mut timed) = (0, false);
    let mut tested = Vec::new();
    for path in &args.traces {
        let told = events::read(path, &mut symbols, &mut |event| {
            let event = whose(event);
            tick();
            sizes.learn(&event);
            for (place, cache) in plain.iter_mut().enumerate() {
                (hits[place], _) = cache.read(event.symbol, sizes.of(event.symbol));
                plain_hits[place] += u64::from(hits[place]);
            }
            count += 1;
            timed |= event.time.is_some();
            if let Some(time) = event.time {
                let each = devices.iter_mut().zip(&hits);
                each.for_each(|(device, hit)| device.read(event.symbol, *hit, time));
            }
            for model in &mut models {
                model.test(&event, &hits, &sizes, !args.frozen);
            }
        })?;
        models.iter_mut().for_each(Measured::end_all);
        tested.push(told);
    }
    progress.finish_and_clear();
    if count == 0 {
        bail!("no file is opened in these traces");
    }
    if args.read_ns.is_some() && !timed {
        bail!("--read-ms: the traces have no times (strace has them with -ttt)");
    }
    Ok(Compared {
        args,
        trained,
        tested,
        models,
        plain_hits,
        plain_reads: devices.iter().map(|device| device.reads).collect(),
        events: count,
        assumed: sizes.assumed,
        timed,
    })
}

/// A progress bar, shown on a terminal only and for long traces only.
fn progress() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("reading {msg}") {
        bar.set_style(style);
    }
    bar
}
