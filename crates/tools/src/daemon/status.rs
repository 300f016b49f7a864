//! `foreread daemon status`: the daemon's status, as text or JSON.
//!
//! Data flow: [`Status`] → [`facts`] and [`programs`], shared with [`top`](crate::top) → text.

use std::borrow::Cow;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use foreread_daemon::{Program, Status};
use foreread_words::units::{ago, bytes, cut, duration, folded};
use foreread_words::{counted, shown};

use super::asking::{status_at, to_ask};
use crate::args;
use crate::output::{output, width};

/// Column at which a fact's text begins.
pub(crate) const COLUMN: usize = 11;
/// Widths of the columns of programs. A longer name is cut.
pub(crate) const WIDTHS: [usize; 8] = [20, 11, 10, 8, 7, 7, 7, 9];
/// Heads of these columns.
pub(crate) const HEADS: [&str; 8] = [
    "PROGRAM", "UID", "FETCHED", "IN TIME", "LATE", "UNUSED", "RIGHT", "LEAD",
];
/// Number of programs listed.
const LISTED: usize = 20;

/// Prints the daemon's status.
pub(super) fn status(args: &args::daemon::Status) -> Result<ExitCode> {
    let status = status_at(&to_ask(&args.place))?;
    let mut out = output();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &status).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        out.write_all(text(&status, SystemTime::now(), width()).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The status as text, wrapped to the terminal's width; not wrapped without a terminal.
pub(crate) fn text(status: &Status, now: SystemTime, width: Option<usize>) -> String {
    let mut out = String::new();
    for (name, words) in facts(status, now) {
        let mut name = name;
        for line in lines(&words, width) {
            out += &format!("{name:COLUMN$}{line}\n");
            name = "";
        }
    }
    let mut rows: Vec<_> = status.programs.iter().take(LISTED).map(row).collect();
    let mut room = WIDTHS[0].min(width.unwrap_or(usize::MAX).max(1));
    if width.is_none() {
        for (cells, program) in rows.iter_mut().zip(&status.programs) {
            cells[0] = shown(&program.name).into_owned();
            room = room.max(cells[0].chars().count());
        }
    }
    if !rows.is_empty() {
        let heads = HEADS.map(str::to_owned);
        out += &format!("\n{}\n", line(&heads, room, width));
    }
    for cells in rows {
        out += &format!("{}\n", line(&cells, room, width));
    }
    let more = status.programs.len().saturating_sub(LISTED);
    if more > 0 {
        let more = counted(more as u64, "more program", "more programs");
        let more = format!("and {more}: --json lists all");
        let width = width.unwrap_or(usize::MAX);
        for line in folded(&more, width) {
            out += &format!("{line}\n");
        }
    }
    out
}

/// Words in lines that leave room for the fact's name on a terminal of this width; one line without a terminal.
pub(crate) fn lines(words: &str, width: Option<usize>) -> Vec<String> {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(COLUMN).max(1));
    let lines = folded(words, room).into_iter();
    lines.map(Cow::into_owned).collect()
}

/// Number of table columns that fit a terminal of this width. A column is shown whole or not at all: a cut number would be another number.
pub(crate) fn columns(width: Option<usize>) -> usize {
    let fits = |count: &usize| {
        let taken = WIDTHS[..*count].iter().sum::<usize>();
        width.is_none_or(|width| taken <= width)
    };
    (1..=WIDTHS.len()).rev().find(fits).unwrap_or(1)
}

/// A row of the table of programs, with this width for the name.
fn line(cells: &[String; 8], room: usize, width: Option<usize>) -> String {
    let [first, others @ ..] = cells;
    let first = cut(first, room, false);
    let mut line = format!("{first:room$}");
    let others = others.iter().zip(&WIDTHS[1..]);
    for (cell, width) in others.take(columns(width) - 1) {
        line += &format!(" {cell:>width$}", width = width - 1);
    }
    line.trim_end().to_owned()
}

/// Facts about the whole daemon, each with its name.
pub(crate) fn facts(status: &Status, now: SystemTime) -> Vec<(&'static str, String)> {
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let running = now.duration_since(at(status.since)).unwrap_or_default();
    let mut facts = vec![(
        "daemon",
        format!(
            "foreread {}, process {}, started {}",
            shown(&status.version),
            status.pid,
            ago(at(status.since), now)
        ),
    )];
    let lost: u64 = status.lost.iter().map(|(_, count)| count).sum();
    facts.push((
        "observer",
        format!(
            "{}: {}, {} ignored, {lost} lost{}",
            shown(&status.observer),
            counted(status.events, "event", "events"),
            status.ignored,
            lost_by(status)
        ),
    ));
    let model = &status.model;
    let saved = match model.saved {
        0 => "not saved yet".to_owned(),
        saved => format!("saved {}", ago(at(saved), now)),
    };
    facts.push((
        "model",
        format!(
            "{}: {} and programs known, {}, {saved}",
            shown(&model.kind),
            counted(model.symbols, "file", "files"),
            bytes(model.bytes)
        ),
    ));
    let predictions = &status.predictions;
    let judged = predictions.right + predictions.wrong;
    facts.push((
        "predicted",
        format!(
            "{} of files opened; of {} {} right",
            percent(predictions.foretold, predictions.events),
            counted(judged, "prediction", "predictions"),
            percent(predictions.right, judged)
        ),
    ));
    let lead = &status.lead;
    facts.push((
        "lead",
        match lead.count {
            0 => "none yet".to_owned(),
            _ => format!(
                "{} in the median; a tenth of them under {}",
                duration(lead.median),
                duration(lead.tenth)
            ),
        },
    ));
    facts.push(("fetched", fetched(status)));
    facts.push((
        "cost",
        format!(
            "{} of processor time, {} % of one core; {} of memory",
            duration(status.processor_ns),
            core(status.processor_ns, running),
            bytes(status.memory)
        ),
    ));
    let now = match &status.pressure {
        Some(why) => format!("nothing is fetched: {}", shown(why)),
        None => "files are fetched as they are predicted".to_owned(),
    };
    facts.push(("now", now));
    let problems = status.problems.iter();
    facts.extend(problems.map(|problem| ("problem", shown(problem).into_owned())));
    facts
}

fn lost_by(status: &Status) -> String {
    let by: Vec<String> = status
        .lost
        .iter()
        .map(|(probe, count)| format!("{count} {}", shown(probe)))
        .collect();
    match by.is_empty() {
        true => String::new(),
        false => format!(" ({})", by.join(", ")),
    }
}

fn fetched(status: &Status) -> String {
    let all = &status.bytes;
    let themselves = status.missed().map_or(String::new(), |missed| {
        format!("; programs fetched {} themselves", bytes(missed))
    });
    if all.issued == 0 {
        return format!("nothing{themselves}");
    }
    format!(
        "{}: {} in time, {} late, {} not used, {} evicted before use{themselves}",
        bytes(all.issued),
        percent(all.useful, all.issued),
        percent(all.late, all.issued),
        percent(all.wasted, all.issued),
        percent(all.evicted, all.issued),
    )
}

/// A program's cells.
pub(crate) fn row(program: &Program) -> [String; 8] {
    let of = program.bytes.issued;
    let lead = match program.lead.count {
        0 => "-".to_owned(),
        _ => duration(program.lead.median),
    };
    let predictions = &program.predictions;
    let judged = predictions.right + predictions.wrong;
    // The owners of these processes were unknown.
    let uid = match program.uid {
        u32::MAX => "?".to_owned(),
        uid => uid.to_string(),
    };
    [
        cut(&shown(&program.name), WIDTHS[0], false),
        uid,
        bytes(of),
        percent(program.bytes.useful, of),
        percent(program.bytes.late, of),
        percent(program.bytes.wasted, of),
        percent(predictions.right, judged),
        lead,
    ]
}

/// Percentage, or "-" if `all` is 0.
pub(super) fn percent(part: u64, all: u64) -> String {
    match all {
        0 => "-".to_owned(),
        _ => format!("{:.0} %", part as f64 * 100.0 / all as f64),
    }
}

/// Processor time as a percentage of one core, with at least one significant digit.
fn core(used: u64, running: Duration) -> String {
    let share = used as f64 / (running.as_nanos().max(1_000_000_000) as f64) * 100.0;
    match share < 0.1 {
        true => format!("{share:.2}"),
        false => format!("{share:.1}"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use foreread_daemon::{Lead, Ledger, ModelStatus, Predictions};

    use super::*;

    /// A status with large numbers and hostile names.
    pub(crate) fn full() -> Status {
        let predictions = Predictions {
            made: 1_234_567,
            right: 1_100_000,
            wrong: 30_000,
            foretold: 900_000,
            events: 1_000_000,
        };
        let lead = Lead {
            count: 9,
            median: 123_456_789,
            tenth: 1_234_567,
        };
        let all = Ledger {
            issued: 999 << 30,
            useful: 900 << 30,
            late: 40 << 30,
            wasted: 9 << 30,
            evicted: 1 << 30,
            infill: 1 << 20,
            unknown: 0,
            missed: 5 << 30,
        };
        let program = |name: &str, uid| Program {
            name: name.to_owned(),
            uid,
            predictions,
            lead,
            bytes: all,
        };
        Status {
            version: "0.1.0".to_owned(),
            pid: 4_194_303,
            since: 1_000_000,
            observer: "fanotify".to_owned(),
            events: 12_345_678_901,
            lost: vec![
                ("queue overflows".to_owned(), 3),
                ("beyond the allowance".to_owned(), 123_456),
            ],
            ignored: 1_234_567,
            model: ModelStatus {
                kind: "EPCM".to_owned(),
                symbols: 1_048_576,
                partitions: 1_048_576,
                bytes: 300 << 20,
                saved: 1_000_100,
                unsaved: Some("no space".to_owned()),
            },
            predictions,
            lead,
            bytes: all,
            pressure: Some("others wait for memory".to_owned()),
            problems: vec!["the models could not be saved: \x1b[2J no space".to_owned()],
            processor_ns: 123_456_789_012,
            memory: 300 << 20,
            programs: vec![
                program("a program with a\nvery long name", 4_294_967_294),
                program("cc1", 1000),
                Program {
                    name: "new".to_owned(),
                    uid: u32::MAX,
                    ..Program::default()
                },
            ],
        }
    }

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_010_000)
    }

    #[test]
    fn whatever_the_numbers_and_names_lines_fit_and_steer_no_terminal() {
        for status in [full(), Status::default()] {
            for width in [20, 40, 80, 200] {
                let text = text(&status, now(), Some(width));
                for line in text.lines() {
                    assert!(line.chars().count() <= width, "{line}");
                    assert!(!line.contains(char::is_control), "{line:?}");
                }
            }
            let whole = text(&status, now(), None);
            assert!(!whole.contains("\n           "), "{whole}");
        }
        let whole = text(&full(), now(), None);
        assert!(whole.contains("a program with a?very long name"), "{whole}");
        let table = whole
            .lines()
            .skip_while(|line| !line.starts_with("PROGRAM"));
        let ends: Vec<_> = table.map(|line| line.chars().count()).collect();
        assert!(ends.windows(2).all(|two| two[0] == two[1]), "{whole}");
        let mut many = full();
        many.programs = vec![many.programs[1].clone(); LISTED + 5];
        assert!(text(&many, now(), Some(80)).contains("and 5 more programs"));
    }

    #[test]
    fn what_was_predicted_fetched_and_lost_is_said() {
        let text = text(&full(), now(), Some(80));
        println!("{text}");
        for said in [
            "90 % of files opened; of 1130000 predictions 97 % right",
            "999 GiB: 90 % in time, 4 % late",
            "3 queue overflows",
            "nothing is fetched: others wait for memory",
            "1.2 % of one core",
        ] {
            assert!(
                text.replace("\n           ", " ").contains(said),
                "{said}\n{text}"
            );
        }
    }

    #[test]
    fn bytes_that_the_observer_does_not_see_are_not_said_to_be_none() {
        for (observer, is_said) in [("ebpf", true), ("fanotify", false), ("preload", false)] {
            let mut status = full();
            status.observer = observer.to_owned();
            for issued in [0, 1 << 30] {
                status.bytes.issued = issued;
                assert_eq!(fetched(&status).contains("themselves"), is_said);
            }
        }
    }

    #[test]
    fn nothing_has_no_share() {
        assert_eq!(
            (percent(0, 0), percent(1, 2)),
            ("-".to_owned(), "50 %".to_owned())
        );
        assert_eq!(core(1, Duration::ZERO), "0.00");
    }
}
