//! `foreread daemon top`: the status, live.
//!
//! Data flow: the control socket, asked in a thread so that keys are answered while a daemon is not → [`View`] → [`draw`].
//! Invariant: the terminal is left as it was, however this ends.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, bail};
use foreread_daemon::{Program, Status};
use foreread_sys::process::End;
use foreread_sys::signals::Signals;
use foreread_words::plain;
use foreread_words::units::{bytes, wrapped};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Table};
use rustix::process::Signal;

use super::status::{COLUMN, HEADS, WIDTHS, facts, row};
use super::{status_at, to_ask};
use crate::args;
use foreread::end_as;

/// How long a key is waited for before a new status is looked for.
const KEYS: Duration = Duration::from_millis(100);

/// What is shown.
#[derive(Default)]
struct View {
    status: Option<Status>,
    /// The one before, and how much earlier it was asked for.
    before: Option<(Status, Duration)>,
    /// Why there is no newer one.
    problem: Option<String>,
    at: Option<Instant>,
}

impl View {
    fn take(&mut self, told: Result<Status>, at: Instant) {
        match told {
            Ok(status) => {
                let passed = self.at.map_or(Duration::ZERO, |before| at - before);
                let last = self.status.replace(status);
                // Of another daemon there is no difference.
                let same =
                    |last: &Status| Some(last.pid) == self.status.as_ref().map(|now| now.pid);
                self.before = last.filter(same).map(|last| (last, passed));
                self.at = Some(at);
                self.problem = None;
            }
            Err(why) => self.problem = Some(plain(&format!("{why:#}"))),
        }
    }

    /// What happened since the status before, in a sentence.
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

/// Shows the status until somebody quits.
pub(super) fn top(args: &args::daemon::Top) -> Result<ExitCode> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        bail!("top takes a terminal; foreread daemon status prints the same once");
    }
    if std::env::var_os("TERM").is_some_and(|kind| kind == "dumb") {
        bail!(
            "this terminal (TERM=dumb) cannot be drawn on; foreread daemon status prints the same once"
        );
    }
    // These signals wait until the terminal is restored. They are blocked before the thread starts, for it inherits that.
    let ends = [Signal::TERM, Signal::INT, Signal::HUP].map(Signal::as_raw);
    let ends = Signals::block(&ends)?;
    let socket = to_ask(&args.place);
    // The first is asked before the terminal changes: why there is none is better read on a plain one.
    let mut view = View::default();
    view.take(Ok(status_at(&socket)?), Instant::now());
    let (sender, told) = channel();
    let every = Duration::from_secs(args.every);
    std::thread::Builder::new().spawn(move || {
        loop {
            std::thread::sleep(every);
            let status = status_at(&socket);
            if sender.send((status, Instant::now())).is_err() {
                return;
            }
        }
    })?;
    let mut terminal = ratatui::try_init()?;
    let shown = show(&mut terminal, &mut view, &told, &ends);
    let restored = ratatui::try_restore();
    // It shows the cursor again.
    drop(terminal);
    match shown? {
        // After a hangup there is no terminal to restore.
        Some(signal) => Ok(end_as(End::Killed(signal))),
        None => Ok(restored.map(|()| ExitCode::SUCCESS)?),
    }
}

/// Shows each status until a key quits (`None`) or a signal arrives (its number).
fn show(
    terminal: &mut ratatui::DefaultTerminal,
    view: &mut View,
    told: &Receiver<(Result<Status>, Instant)>,
    ends: &Signals,
) -> Result<Option<i32>> {
    loop {
        if let Some(signal) = ends.next()? {
            return Ok(Some(signal.signal));
        }
        for (status, at) in told.try_iter() {
            view.take(status, at);
        }
        terminal.draw(|frame| draw(frame, view, SystemTime::now()))?;
        if event::poll(KEYS)?
            && let Event::Key(key) = event::read()?
            && quits(key)
        {
            return Ok(None);
        }
    }
}

fn quits(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let quits = match key.code {
        KeyCode::Char('q') | KeyCode::Esc => true,
        KeyCode::Char('c') => control,
        _ => false,
    };
    quits && key.kind != KeyEventKind::Release
}

fn draw(frame: &mut Frame<'_>, view: &View, now: SystemTime) {
    let head = head(view, frame.area().width, now);
    let height = u16::try_from(head.len()).unwrap_or(u16::MAX);
    let [top, table, foot] = Layout::vertical([
        Constraint::Max(height + 1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(head), top);
    if let Some(status) = &view.status {
        programs(frame, table, &status.programs);
    }
    let foot_line = match &view.problem {
        Some(problem) => Line::from(format!("{problem}  q quits")).red(),
        None => Line::from("q quits").dim(),
    };
    frame.render_widget(foot_line, foot);
}

/// The facts on the whole daemon, in lines of this width.
fn head(view: &View, width: u16, now: SystemTime) -> Vec<Line<'static>> {
    let room = usize::from(width).saturating_sub(COLUMN).max(20);
    let mut all = view
        .status
        .as_ref()
        .map_or(Vec::new(), |status| facts(status, now));
    all.extend(view.lately().map(|lately| ("lately", lately)));
    let mut lines = Vec::new();
    for (mut name, words) in all {
        let alarming = name == "problem";
        for words in wrapped(&words, room) {
            let style = if alarming {
                Style::new().red()
            } else {
                Style::new()
            };
            lines.push(Line::from(vec![
                Span::from(format!("{name:COLUMN$}")).bold(),
                Span::styled(words.into_owned(), style),
            ]));
            name = "";
        }
    }
    lines
}

/// The table of programs: what was in time in green, what was late or not used in yellow where that is much.
fn programs(frame: &mut Frame<'_>, area: Rect, programs: &[Program]) {
    // A column is shown whole or not at all: a number without its first digits is another number.
    let mut columns = WIDTHS.len();
    while columns > 1 && WIDTHS[..columns].iter().sum::<usize>() > area.width.into() {
        columns -= 1;
    }
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

    use super::super::status::tests::full;
    use super::*;

    fn shown(view: &View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_010_000);
        terminal
            .draw(|frame| draw(frame, view, now))
            .expect("drawn");
        let buffer = terminal.backend().buffer();
        let lines = buffer.content.chunks(width.into());
        let line = |cells: &[ratatui::buffer::Cell]| {
            let line: String = cells.iter().map(|cell| cell.symbol()).collect();
            line.trim_end().to_owned()
        };
        lines.map(line).collect::<Vec<_>>().join("\n")
    }

    fn live() -> View {
        let mut view = View::default();
        let began = Instant::now();
        view.take(Ok(full()), began);
        let mut later = full();
        later.events += 500;
        later.bytes.issued += 4 << 20;
        later.bytes.useful += 2 << 20;
        later.processor_ns += 10_000_000;
        view.take(Ok(later), began + Duration::from_secs(2));
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
        view.take(Err(anyhow::anyhow!("no daemon is running")), Instant::now());
        let text = shown(&view, 80, 30);
        assert!(text.contains("no daemon is running  q quits") && text.contains("cc1"));
        // Another daemon has other counts: what it did lately is not known.
        let mut other = full();
        other.pid += 1;
        view.take(Ok(other), Instant::now());
        let text = shown(&view, 80, 30);
        assert!(!text.contains("per second") && !text.contains("no daemon"));
    }

    #[test]
    fn q_escape_and_control_c_quit_and_nothing_else() {
        let key = |code, modifiers| KeyEvent::new(code, modifiers);
        assert!(quits(key(KeyCode::Char('q'), KeyModifiers::NONE)));
        assert!(quits(key(KeyCode::Esc, KeyModifiers::NONE)));
        assert!(quits(key(KeyCode::Char('c'), KeyModifiers::CONTROL)));
        assert!(!quits(key(KeyCode::Char('c'), KeyModifiers::NONE)));
        assert!(!quits(key(KeyCode::Enter, KeyModifiers::NONE)));
    }
}
