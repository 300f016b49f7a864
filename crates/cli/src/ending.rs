//! How foreread's programs end.

use std::io;
use std::process::ExitCode;

use anyhow::Result;
use foreread_sys::process::End;

/// Exit status of a command line, or a file named on it, that nothing can be done with. And of `run` and `record` for foreread's own
/// failures: 1 may be the program's.
pub const REFUSED: u8 = 2;

/// The exit status of `run` and `record`, whose failure is told in one line.
pub fn ended(outcome: Result<ExitCode>) -> ExitCode {
    ended_by(outcome, |_| REFUSED)
}

/// The exit status of a command, whose failure is told in one line, and has the status that `status` gives it.
pub fn ended_by(outcome: Result<ExitCode>, status: impl FnOnce(&anyhow::Error) -> u8) -> ExitCode {
    match outcome {
        Ok(code) => code,
        Err(error) if reader_left(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("foreread: {}", foreread_words::plain(&format!("{error:#}")));
            ExitCode::from(status(&error))
        }
    }
}

/// Ends as the program ended, its signal included.
pub fn end_as(ending: End) -> ExitCode {
    match ending {
        // The kernel keeps no more of an exit status than its low eight bits.
        End::Exited(code) => ExitCode::from(code as u8),
        End::Killed(signal) => foreread_sys::signals::die_by(signal),
    }
}

/// Whether a report was cut short by its reader, as `foreread list | head` does.
fn reader_left(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
