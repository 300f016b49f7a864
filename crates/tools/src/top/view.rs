//! The screen of `foreread top`: one line per run, and the daemon's status.
//!
//! Data flow: [`Now`] → [`View`] → [`View::draw`] on a terminal, [`View::text`] anywhere else.

use std::time::{Duration, Instant, SystemTime};

use foreread_daemon::{Program, Status};
use foreread_words::units::{bytes, cut, duration, wrapped};
use foreread_words::{plain, shown};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Table};

use super::Now;
use super::runs::{Run, how};
use crate::daemon::status::{self, COLUMN, HEADS, WIDTHS, facts, row};

/// Columns of a run before the command: head and width, separated by blanks. On a narrow terminal the last ones are left out first.
const COLUMNS: [(&str, usize); 13] = [
    ("PID", 7),
    ("TIME", 11),
    ("BY", 8),
    ("AHEAD", 8),
    ("USEFUL", 8),
    ("LATE", 8),
    ("WASTED", 8),
    ("MISSED", 8),
    ("WAITED", 11),
    ("DEVICE/s", 8),
    ("QUEUE", 5),
    ("FETCHED", 8),
    ("READ", 8),
];
/// Least width of the command. Other columns except the first give way to it.
const COMMAND: usize = 14;

/// The facts on the screen.
#[derive(Default)]
pub(super) struct View {
    runs: Vec<Run>,
    /// The runs of the update before, and the time since then.
    earlier: Option<(Vec<Run>, Duration)>,
    status: Option<Status>,
    /// The daemon's status before, and the time since then.
    before: Option<(Status, Duration)>,
    /// The reason why there is no newer status.
    problem: Option<String>,
    at: Option<Instant>,
}

impl View {
    pub(super) fn take(&mut self, now: Now) {
        let passed = self.at.map_or(Duration::ZERO, |before| now.at - before);
        let runs = std::mem::replace(&mut self.runs, now.runs);
        self.earlier = self.at.map(|_| (runs, passed));
        match now.daemon {
            Some(Ok(status)) => {
                let last = self.status.replace(status);
                // Counts of another daemon cannot be subtracted.
                let same =
                    |last: &Status| Some(last.pid) == self.status.as_ref().map(|now| now.pid);
                self.before = last.filter(same).map(|last| (last, passed));
                self.problem = None;
            }
            Some(Err(why)) => self.problem = Some(plain(&format!("{why:#}"))),
            None => {
                self.problem = self
                    .status
                    .as_ref()
                    .map(|_| "no daemon is running".to_owned());
            }
        }
        self.at = Some(now.at);
    }

    /// The runs, one line each below a line of heads, in this width.
    fn runs(&self, width: Option<usize>) -> Vec<String> {
        let count = match width {
            None => COLUMNS.len(),
            Some(width) => {
                let fits = |count: &usize| {
                    let taken: usize = COLUMNS[..*count].iter().map(|(_, width)| width + 1).sum();
                    taken + COMMAND <= width
                };
                (1..=COLUMNS.len()).rev().find(fits).unwrap_or(0)
            }
        };
        let line = |cells: [String; COLUMNS.len()], command: &str| {
            let mut line = String::new();
            for (cell, (_, width)) in cells.iter().zip(COLUMNS).take(count) {
                line += &format!("{cell:>width$} ");
            }
            match width {
                None => line + command,
                Some(width) => {
                    let room = width.saturating_sub(line.chars().count()).max(1);
                    line + &cut(command, room, false)
                }
            }
        };
        if self.runs.is_empty() {
            let none = "No foreread run of yours is going on.";
            let lines = width.map(|width| wrapped(none, width.max(1)));
            let lines = lines.map(|lines| lines.into_iter().map(|line| line.into_owned()));
            return lines.map_or(vec![none.to_owned()], Iterator::collect);
        }
        let mut lines = vec![line(COLUMNS.map(|(name, _)| name.to_owned()), "COMMAND")];
        lines.extend(
            self.runs
                .iter()
                .map(|run| line(self.cells(run), &shown(&run.command))),
        );
        lines
    }

    fn cells(&self, run: &Run) -> [String; COLUMNS.len()] {
        let none = || "-".to_owned();
        let age = duration(run.age_ns);
        let Some(live) = &run.live else {
            let mut cells = COLUMNS.map(|_| none());
            cells[0] = run.pid.to_string();
            cells[1] = age;
            return cells;
        };
        let earlier = self.earlier.as_ref().and_then(|(runs, passed)| {
            let same = runs.iter().find(|one| one.pid == run.pid)?;
            Some((same.live?, passed.as_secs_f64().max(0.001)))
        });
        let rate = earlier
            .filter(|_| live.is_observed)
            .map(|(before, seconds)| {
                let more = live.device_bytes.saturating_sub(before.device_bytes);
                bytes((more as f64 / seconds) as u64)
            });
        [
            run.pid.to_string(),
            age,
            how(live).to_owned(),
            bytes(live.ahead_bytes.saturating_sub(live.passed_bytes)),
            bytes(live.useful_bytes),
            bytes(live.late_bytes),
            live.wasted_bytes.map_or_else(none, bytes),
            bytes(live.missed_bytes),
            duration(live.waited_ns),
            rate.unwrap_or_else(none),
            live.queue.to_string(),
            bytes(live.ahead_bytes),
            bytes(live.passed_bytes),
        ]
    }

    /// The screen as text: as wide as the terminal, or not cut at all.
    pub(super) fn text(&self, width: Option<usize>, now: SystemTime) -> String {
        let mut text: String = self
            .runs(width)
            .into_iter()
            .map(|line| line + "\n")
            .collect();
        text.push('\n');
        match (&self.status, &self.problem) {
            (Some(status), _) => text += &status::text(status, now, width),
            (None, Some(problem)) => text += &format!("daemon     {problem}\n"),
            (None, None) => text += "daemon     none is running\n",
        }
        text
    }

    /// The daemon's work since the status before, in a sentence.
    fn lately(&self) -> Option<String> {
        let (status, (before, passed)) = (self.status.as_ref()?, self.before.as_ref()?);
        let seconds = passed.as_secs_f64().max(0.001);
        let rate = |now: u64, before: u64| (now.saturating_sub(before) as f64 / seconds) as u64;
        let (now, then) = (&status.bytes, &before.bytes);
        let used = status.processor_ns.saturating_sub(before.processor_ns);
        let missed = status.missed().map_or(String::new(), |missed| {
            format!(", {} missed", bytes(rate(missed, then.missed)))
        });
        Some(format!(
            "per second {} events, {} fetched, {} used in time, {} late{missed}; {:.1} % of one core",
            rate(status.events, before.events),
            bytes(rate(now.issued, then.issued)),
            bytes(rate(now.useful, then.useful)),
            bytes(rate(now.late, then.late)),
            used as f64 / seconds / 1e7
        ))
    }
}

impl View {
    /// Draws the screen.
    pub(super) fn draw(&self, frame: &mut Frame<'_>, now: SystemTime) {
        let area = frame.area();
        let runs = self.runs(Some(area.width.into()));
        let mut lines: Vec<Line<'_>> = runs.into_iter().map(Line::from).collect();
        if let Some(heads) = lines.first_mut().filter(|_| !self.runs.is_empty()) {
            *heads = std::mem::take(heads).bold();
        }
        let room = |lines: usize| u16::try_from(lines).unwrap_or(u16::MAX);
        let head = head(self, area.width, now);
        // The daemon has half of the terminal, if there is one.
        let most = match self.status {
            Some(_) => area.height / 2,
            None => area.height.saturating_sub(2),
        };
        let [top, facts, table, foot] = Layout::vertical([
            Constraint::Length(room(lines.len() + 1).min(most)),
            Constraint::Max(room(head.len() + 1)),
            Constraint::Fill(1),
            Constraint::Length(1),
        ])
        .areas(area);
        frame.render_widget(Paragraph::new(lines), top);
        frame.render_widget(Paragraph::new(head), facts);
        if let Some(status) = &self.status {
            programs(frame, table, &status.programs);
        }
        let foot_line = match &self.problem {
            Some(problem) => Line::from(format!("{problem}  q quits")).red(),
            None => Line::from("q quits").dim(),
        };
        frame.render_widget(foot_line, foot);
    }
}

/// Facts about the whole daemon, in lines of this width.
fn head(view: &View, width: u16, now: SystemTime) -> Vec<Line<'static>> {
    let mut all = view.status.as_ref().map_or_else(
        || vec![("daemon", "none is running".to_owned())],
        |status| facts(status, now),
    );
    all.extend(view.lately().map(|lately| ("lately", lately)));
    let mut lines = Vec::new();
    for (mut name, words) in all {
        let alarming = name == "problem";
        for words in status::lines(&words, Some(width.into())) {
            let style = if alarming {
                Style::new().red()
            } else {
                Style::new()
            };
            lines.push(Line::from(vec![
                Span::from(format!("{name:COLUMN$}")).bold(),
                Span::styled(words, style),
            ]));
            name = "";
        }
    }
    lines
}

/// The table of programs. Used files are green; large shares of late or unused ones are yellow.
fn programs(frame: &mut Frame<'_>, area: Rect, programs: &[Program]) {
    let columns = status::columns(Some(area.width.into()));
    let rows = programs.iter().take(area.height.into()).map(|program| {
        let cells = row(program);
        let much = |part: u64| part > 0 && part * 5 > program.bytes.issued;
        let [name, uid, fetched, in_time, late, unused, right, lead] = cells;
        let tint = |cell: String, much| {
            let line = Line::from(cell).right_aligned();
            if much { line.yellow() } else { line }
        };
        let cells = [
            Line::from(name),
            Line::from(uid).right_aligned(),
            Line::from(fetched).right_aligned(),
            Line::from(in_time).right_aligned().green(),
            tint(late, much(program.bytes.late)),
            tint(unused, much(program.bytes.wasted)),
            Line::from(right).right_aligned(),
            Line::from(lead).right_aligned(),
        ];
        Row::new(cells.into_iter().take(columns))
    });
    let [first, others @ ..] = HEADS;
    let heads = others.iter().map(|head| Line::from(*head).right_aligned());
    let heads = std::iter::once(Line::from(first))
        .chain(heads)
        .take(columns);
    let first = Constraint::Length(WIDTHS[0] as u16);
    let others = WIDTHS[1..]
        .iter()
        .map(|width| Constraint::Length(*width as u16 - 1));
    let widths = std::iter::once(first).chain(others).take(columns);
    let table = Table::new(rows, widths).header(Row::new(heads).bold());
    frame.render_widget(table, area);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::daemon::status::tests::full;
    use foreread_run::{How, Live};

    fn shown(view: &View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_010_000);
        terminal.draw(|frame| view.draw(frame, now)).expect("drawn");
        let buffer = terminal.backend().buffer();
        let lines = buffer.content.chunks(width.into());
        let line = |cells: &[ratatui::buffer::Cell]| {
            let line: String = cells.iter().map(|cell| cell.symbol()).collect();
            line.trim_end().to_owned()
        };
        lines.map(line).collect::<Vec<_>>().join("\n")
    }

    fn at(daemon: Option<anyhow::Result<Status>>, at: Instant) -> Now {
        Now {
            runs: Vec::new(),
            daemon,
            at,
        }
    }

    /// A run that has fetched `ahead_bytes`.
    fn run(pid: u32, ahead_bytes: u64) -> Run {
        Run {
            pid,
            command: "python3 train.py --epochs 100 \x1b[2J".to_owned(),
            age_ns: 12_000_000_000,
            live: Some(Live {
                how: How::Served,
                is_observed: true,
                at_ns: 12_000_000_000,
                ahead_bytes,
                passed_bytes: 1 << 20,
                device_bytes: ahead_bytes,
                queue: 7,
                reads: 10,
                waited_ns: 1_200_000,
                useful_bytes: 768 << 10,
                late_bytes: 256 << 10,
                wasted_bytes: None,
                missed_bytes: 4096,
            }),
        }
    }

    fn live() -> View {
        let mut view = View::default();
        let began = Instant::now();
        view.take(at(Some(Ok(full())), began));
        let mut later = full();
        later.events += 500;
        later.bytes.issued += 4 << 20;
        later.bytes.useful += 2 << 20;
        later.processor_ns += 10_000_000;
        view.take(at(Some(Ok(later)), began + Duration::from_secs(2)));
        view
    }

    #[test]
    fn hits_lateness_waste_the_observer_losses_and_pressure_are_shown_in_80_columns() {
        let text = shown(&live(), 80, 40);
        println!("{text}");
        for said in [
            "per second 250 events, 2.00 MiB fetched, 1.00 MiB used in time",
            "0.5 % of one core",
            "fanotify",
            "overflows, 123456 beyond the allowance",
            "nothing is fetched",
            "cc1",
            "IN TIME   LATE UNUSED",
            "q quits",
        ] {
            assert!(text.contains(said), "{said}\n{text}");
        }
        assert!(text.contains("90 %    4 %    1 %   97 %"), "{text}");
    }

    #[test]
    fn columns_that_do_not_fit_are_left_out_whole() {
        let text = shown(&live(), 60, 40);
        let line = |text: &str| {
            text.lines()
                .find(|line| line.starts_with("cc1"))
                .map(str::to_owned)
        };
        let (wide, narrow) = (line(&shown(&live(), 80, 40)), line(&text));
        let (wide, narrow) = (wide.expect("a program"), narrow.expect("a program"));
        assert!(
            narrow.len() > 40 && wide.starts_with(&narrow),
            "{wide}\n{narrow}"
        );
        assert!(text.contains("LATE") && !text.contains("LEAD"), "{text}");
    }

    #[test]
    fn any_size_of_terminal_will_do() {
        for (width, height) in [(1, 1), (10, 3), (40, 10), (80, 24), (300, 100)] {
            shown(&live(), width, height);
            shown(&View::default(), width, height);
        }
    }

    #[test]
    fn a_daemon_that_is_gone_is_said_and_the_last_status_stays() {
        let mut view = live();
        view.take(at(None, Instant::now()));
        let text = shown(&view, 80, 30);
        assert!(text.contains("no daemon is running  q quits") && text.contains("cc1"));
        // The counts are another daemon's, so there is no difference to show.
        let mut other = full();
        other.pid += 1;
        view.take(at(Some(Ok(other)), Instant::now()));
        let text = shown(&view, 80, 30);
        assert!(!text.contains("per second") && !text.contains("no daemon"));
    }

    #[test]
    fn runs_are_shown_as_wide_as_the_terminal_and_whole_elsewhere() {
        let mut view = View::default();
        let began = Instant::now();
        for (seconds, ahead) in [(0, 4 << 20), (2, 8 << 20)] {
            let mut silent = run(9, 0);
            silent.live = None;
            view.take(Now {
                runs: vec![run(4_194_303, ahead), silent],
                ..at(None, began + Duration::from_secs(seconds))
            });
        }
        let text = view.text(None, SystemTime::now());
        println!("{text}");
        let command = "python3 train.py --epochs 100 ?[2J\n";
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(words).collect();
        assert_eq!(
            lines[1],
            words(&format!(
                "4194303 12.0 s record 7.00 MiB 768 KiB 256 KiB - 4.00 KiB 1.20 ms 2.00 MiB 7 8.00 MiB 1.00 MiB {command}"
            ))
        );
        assert!(
            lines[2].starts_with("9 12.0 s - - - - - - - - - - - python3"),
            "{text}"
        );
        for width in [1, 8, 20, 40, 80, 200] {
            for line in view.runs(Some(width)) {
                assert!(line.chars().count() <= width, "{width}: {line}");
                assert!(!line.contains(char::is_control), "{line:?}");
            }
            shown(&view, width as u16, 24);
        }
        let narrow = view.runs(Some(20)).join("\n");
        assert!(narrow.contains("python3 train.py"), "{narrow}");
        let wide = shown(&view, 80, 24);
        assert!(
            wide.contains("AHEAD   USEFUL     LATE   WASTED COMMAND")
                && wide.contains("none is running"),
            "{wide}"
        );
        let none = View::default().text(Some(20), SystemTime::now());
        assert!(none.starts_with("No foreread run of\n"), "{none}");
    }
}
