//! Standard output of `foreread-tools`.
//!
//! Invariant: whatever a command prints goes through [`output`], so that output that cannot be written ends the command
//! with an error that names standard output. `println!`, which panics then, is denied in `tools.rs`.

use std::io::{self, StdoutLock, Write, stdout};

use foreread_words::units::WIDTH;
use rustix::termios::tcgetwinsize;

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
    io::Error::new(why.kind(), format!("standard output: {why}"))
}
