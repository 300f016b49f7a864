//! Standard output of `foreread-tools`, and the exit status of its commands.
//!
//! Invariant: whatever a command prints goes through [`output`], so that output that cannot be written ends the command
//! with an error that names standard output. `println!`, which panics then, is denied in `tools.rs`.

use std::fmt;
use std::io::{self, StdoutLock, Write, stdout};

use foreread::REFUSED;
use foreread_plan::format::WriteError;
use foreread_words::units::{WIDTH, cut};
use rustix::termios::tcgetwinsize;

/// Exit status of a command that could not do its work.
pub(crate) const FAILED: u8 = 1;

/// The narrowest that lines are broken to.
const NARROW: usize = 20;

/// Standard output.
pub(crate) struct Output(StdoutLock<'static>);

/// Standard output, for one command.
pub(crate) fn output() -> Output {
    Output(stdout().lock())
}

/// Columns of the terminal that standard output is; `None` if it is none: what a program reads is not cut.
pub(crate) fn width() -> Option<usize> {
    let size = tcgetwinsize(stdout()).ok()?;
    let columns = usize::from(size.ws_col);
    Some(if columns == 0 { WIDTH } else { columns })
}

/// Columns to keep to, [`WIDTH`] at most: longer lines are hard to read.
pub(crate) fn columns() -> usize {
    width().map_or(WIDTH, |columns| columns.clamp(NARROW, WIDTH))
}

/// Text cut to so many columns where standard output is a terminal, and whole where a program reads it or the terminal breaks the lines of
/// tables anyway.
pub(crate) fn fitted(text: &str, columns: usize, keep_end: bool) -> String {
    match width() {
        Some(WIDTH..) => cut(text, columns, keep_end),
        _ => text.to_owned(),
    }
}

/// A sentence to be printed above tables that take [`WIDTH`] columns, where the terminal has fewer.
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

/// The error, with the name of what could not be written to.
pub(crate) fn named(why: io::Error) -> io::Error {
    io::Error::new(why.kind(), Unable(format!("standard output: {why}")))
}

/// Why a command could not do its work, though its words and files are all right.
#[derive(Debug)]
pub(crate) struct Unable(pub(crate) String);

impl fmt::Display for Unable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Unable {}

/// The same failure as one to do the command's work.
pub(crate) fn unable(error: anyhow::Error) -> anyhow::Error {
    // Whoever has read enough of the output is no failure.
    match error.is::<io::Error>() {
        true => error,
        false => Unable(format!("{error:#}")).into(),
    }
}

/// The exit status of a command that has failed: 1 if it could not do its work, 2 if nothing can be done with its words or files.
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
