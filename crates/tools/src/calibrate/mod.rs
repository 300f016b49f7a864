//! `foreread calibrate`: measures the device of a folder and stores its profile.
//!
//! Data flow: [`probe`] writes a file on the device and reads it → the engine's experiments → a profile → [`crate::profiles`], read by
//! `run`.

pub(crate) mod probe;

use std::borrow::Cow;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use foreread_engine::Profile;
use foreread_engine::calibrate::{DepthSample, Samples, Stage, decide, measure};
use foreread_profiles::{Constants, Key, Profiles};
use foreread_run::in_words;
use foreread_sys::mounts::Mount;
use foreread_words::shown;
use foreread_words::units::{WIDTH, bytes, duration, wrapped};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::args;
use crate::output::output;
use probe::ColdFile;

/// The measured profile as JSON.
#[derive(Serialize)]
struct Calibrated<'a> {
    #[serde(flatten)]
    key: &'a Key,
    /// Size of the file that was measured with, in bytes.
    file_bytes: u64,
    profile: Constants,
    samples: &'a Samples,
    stored: PathBuf,
}

/// Measures the device, stores the profile, and prints it.
pub(crate) fn calibrate(args: &args::Calibrate) -> Result<ExitCode> {
    let progress = progress();
    let file = ColdFile::create(&args.dir, args.size, &progress);
    let mut file = file.with_context(|| format!("measuring in {}", args.dir.display()))?;
    let total = Duration::from_secs(args.seconds.into());
    let samples = measure(&mut file, total, |stage| {
        progress.inc(1);
        progress.set_message(stage.name());
    })
    .with_context(|| format!("measuring in {}", args.dir.display()))?;
    file.prove()
        .with_context(|| format!("measuring in {}", args.dir.display()))?;
    progress.finish_and_clear();
    let profile = decide(&samples);
    let key = Key::of(file.device(), &Mount::all()?);
    let stored = Profiles::put(key.clone(), &profile, samples.clone())?;
    let mut out = output();
    if args.json {
        let found = Calibrated {
            key: &key,
            file_bytes: file.bytes(),
            profile: (&profile).into(),
            samples: &samples,
            stored,
        };
        serde_json::to_writer_pretty(&mut out, &found).map_err(std::io::Error::from)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let head = format!(
        "{}, measured on a file of {} in {}:",
        key.name,
        bytes(file.bytes()),
        shown(&args.dir.to_string_lossy())
    );
    let kept = format!(
        "Kept in {}; `foreread run` goes by it from now on.",
        shown(&stored.to_string_lossy())
    );
    out.write_all(report(&head, &lines(&samples, &profile), &kept).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Column at which the values of the report begin.
const FOUND_COLUMN: usize = 15;

/// The report, wrapped to the terminal's width where file names permit.
fn report(head: &str, found: &[(&str, String)], kept: &str) -> String {
    let lines = |text: &str, width: usize| -> Vec<String> {
        let lines = wrapped(text, width);
        lines.into_iter().map(Cow::into_owned).collect()
    };
    let mut out = lines(head, WIDTH).join("\n") + "\n";
    for (name, found) in found {
        let indent = format!("\n{:FOUND_COLUMN$}", "");
        let found = lines(found, WIDTH - FOUND_COLUMN).join(&indent);
        out += &format!("  {name:<12} {found}\n");
    }
    out + &lines(kept, WIDTH).join("\n") + "\n"
}

fn progress() -> ProgressBar {
    // The file is written before the stages begin.
    let bar = ProgressBar::new(1 + Stage::ALL.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{msg:<22} {bar:40} {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// The profile in words.
fn lines(samples: &Samples, profile: &Profile) -> Vec<(&'static str, String)> {
    let at = |wanted: usize| samples.scattered.iter().find(|one| one.depth == wanted);
    let rate = |sample: &DepthSample| format!("{:.0}/s", 1e9 / sample.page_ns);
    let best = samples
        .scattered
        .iter()
        .min_by(|a, b| a.page_ns.total_cmp(&b.page_ns));
    let together = match (at(1), best) {
        (Some(one), Some(best)) => format!(
            "{} one at a time, {} with {} at once",
            rate(one),
            rate(best),
            best.depth
        ),
        _ => "not measured".to_owned(),
    };
    let order = &samples.order;
    vec![
        ("a page", duration(samples.service_ns)),
        ("pages", together),
        ("in order", {
            let rate = samples.sequential_bytes_per_s() as f64 / 1e6;
            format!("{rate:.0} MB/s")
        }),
        (
            "by position",
            format!(
                "{} a page, {} in random order",
                duration(order.ordered_ns as u64),
                duration(order.random_ns as u64)
            ),
        ),
        ("so", in_words(profile)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_fits_a_terminal_and_nothing_of_it_is_left_out() {
        let profile = in_words(&Profile::solid_state());
        let stored = "/a/folder/of/a/long/name/.local/share/foreread/devices/ee7cf2d5-1234-4321-8765-0123456789ab.json";
        let kept = format!("Kept in {stored}; `foreread run` goes by it from now on.");
        let text = report(
            "head",
            &[("a page", "90 us".into()), ("so", profile.clone())],
            &kept,
        );
        let wide = text.lines().filter(|line| line.chars().count() > WIDTH);
        assert!(wide.eq([&*format!("{stored};")]), "{text}");
        let words: Vec<_> = text.split_whitespace().collect();
        for part in [&profile, &kept] {
            let part: Vec<_> = part.split_whitespace().collect();
            assert!(words.windows(part.len()).any(|these| these == part));
        }
        assert!(text.contains("\n  a page       90 us\n  so           in the program's"));
    }
}
