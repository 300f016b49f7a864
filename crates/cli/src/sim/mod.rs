//! `foreread sim`: models of which file follows which, compared on traces.
//!
//! Data flow: trace → [`events`] → each model's [`Measured`](measure::Measured), and one cache without prefetching →
//! [`report`]. All models see each event before the next one is read.
//!
//! Invariant: memory is bounded by the models', caches' and tables' limits, however long the traces are.

mod cache;
mod events;
mod measure;
mod models;
mod quantiles;
mod report;

use std::io::{Write, stdout};
use std::process::ExitCode;

use anyhow::{Result, bail};
use foreread_sources::files::{Context, Symbols};
use indicatif::{ProgressBar, ProgressStyle};

use crate::args;
use cache::Cache;
use events::{Event, Told};
use measure::{Measured, Sizes};

pub(crate) use models::{Named, Sequences};

/// Symbols that are known at once.
const SYMBOLS: usize = 1 << 20;
/// Events between two moves of the progress bar.
const TICK: u64 = 1 << 16;

/// All that is said.
pub(crate) struct Compared<'a> {
    args: &'a args::Sim,
    trained: Vec<Told>,
    tested: Vec<Told>,
    models: Vec<Measured>,
    plain_hits: u64,
    events: u64,
    /// Whether the size of any file was not in the traces.
    assumed: bool,
    timed: bool,
}

/// Compares the models asked for on the traces asked for.
pub(crate) fn sim(args: &args::Sim) -> Result<ExitCode> {
    let mut symbols = Symbols::new(SYMBOLS);
    let mut sizes = Sizes::default();
    let named = match args.models.as_slice() {
        [] => &Named::USUAL[..],
        given => given,
    };
    let mut models: Vec<Measured> = named
        .iter()
        .map(|one| {
            let model = one.make(args.sequences);
            Measured::new(one.to_string(), model, args.threshold, args.memory)
        })
        .collect();
    // The machine's one sequence is one context.
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
    let mut plain = Cache::new(args.memory);
    let (mut plain_hits, mut count, mut timed) = (0, 0, false);
    let mut tested = Vec::new();
    for path in &args.traces {
        let told = events::read(path, &mut symbols, &mut |event| {
            let event = whose(event);
            tick();
            sizes.learn(&event);
            let (hit, _) = plain.read(event.symbol, sizes.of(event.symbol));
            plain_hits += u64::from(hit);
            count += 1;
            timed |= event.time.is_some();
            for model in &mut models {
                model.test(&event, hit, &sizes, !args.frozen);
            }
        })?;
        models.iter_mut().for_each(Measured::end_all);
        tested.push(told);
    }
    progress.finish_and_clear();
    if count == 0 {
        bail!("no file is opened in these traces");
    }
    let compared = Compared {
        args,
        trained,
        tested,
        models,
        plain_hits,
        events: count,
        assumed: sizes.assumed,
        timed,
    };
    let mut out = stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &report::json(&compared))
            .map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        report::print(&mut out, &compared)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows on a terminal how far reading is, of a trace that takes a while.
fn progress() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("reading {msg}") {
        bar.set_style(style);
    }
    bar
}
