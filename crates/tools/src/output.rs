//! Standard output of `foreread-tools`, and the exit status of its commands.
//!
//! Invariant: all output of commands goes through [`output`], so a failed write ends the command with an error that names standard output.
//! `println!` panics in that case; it is denied in `main.rs`.

use std::fmt;
use std::io::{self, StdoutLock, Write, stdout};

use foreread::REFUSED;
use foreread_plan::format::WriteError;
use foreread_words::units::{WIDTH, cut};
use rustix::termios::tcgetwinsize;

/// Exit status of a command that failed at its work.
pub(crate) const FAILED: u8 = 1;

/// The least width for wrapped lines.
const NARROW: usize = 20;

/// Standard output.
pub(crate) struct Output(StdoutLock<'static>);

/// Standard output for one command.
pub(crate) fn output() -> Output {
    Output(stdout().lock())
}

/// Columns of the terminal on standard output; `None` without a terminal: output for programs is not cut.
pub(crate) fn width() -> Option<usize> {
    let size = tcgetwinsize(stdout()).ok()?;
    let columns = usize::from(size.ws_col);
    Some(if columns == 0 { WIDTH } else { columns })
}

/// Columns for text, [`WIDTH`] at most: longer lines are hard to read.
pub(crate) fn columns() -> usize {
    width().map_or(WIDTH, |columns| columns.clamp(NARROW, WIDTH))
}

/// Cuts a text to this many columns on a terminal. The text stays whole for programs, and on terminals so narrow that tables wrap anyway.
pub(crate) fn fitted(text: &str, columns: usize, keep_end: bool) -> String {
    match width() {
        Some(WIDTH..) => cut(text, columns, keep_end),
        _ => text.to_owned(),
    }
}

/// A notice above tables of [`WIDTH`] columns, on a terminal with fewer.
pub(crate) fn narrow() -> Option<String> {
    let width = width().filter(|width| *width < WIDTH)?;
    Some(format!(
        "The tables below take {WIDTH} columns, and this terminal has {width}: it breaks their lines."
    ))
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(named)
    }
}

/// The error, with the name of the output.
pub(crate) fn named(why: io::Error) -> io::Error {
    io::Error::new(why.kind(), Unable(format!("standard output: {why}")))
}

/// Failure of a command at its work, with sound arguments and files.
#[derive(Debug)]
pub(crate) struct Unable(pub(crate) String);

impl fmt::Display for Unable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Unable {}

/// Marks a failure as one at the command's work.
pub(crate) fn unable(error: anyhow::Error) -> anyhow::Error {
    // A closed pipe is no failure: the reader had enough.
    match error.is::<io::Error>() {
        true => error,
        false => Unable(format!("{error:#}")).into(),
    }
}

/// The exit status of a failed command: 1 if it failed at its work, 2 if its arguments or files cannot be used.
pub(crate) fn status(error: &anyhow::Error) -> u8 {
    let is_unable = |cause: &(dyn std::error::Error + 'static)| {
        let io: Option<&io::Error> = cause.downcast_ref();
        let inner = io.and_then(io::Error::get_ref);
        cause.is::<Unable>()
            || cause.is::<WriteError>()
            || inner.is_some_and(|inner| inner.is::<Unable>())
    };
    match error.is::<Unable>() || error.chain().any(is_unable) {
        true => FAILED,
        false => REFUSED,
    }
}
