//! `foreread`: knows what a program is about to read and has it in memory first.
//!
//! Top down: the command line is parsed ([`args`]), one command does its work, and
//! what it could not do is said in one line that names the file and the value at fault.
//!
//! Exit status: `run`, `record`, `cc` and `c++` end as the program or compiler did, with 127 or 126 when it could
//! not be found or started; everything else ends with 0, or 2 when foreread failed, and
//! `doctor` with 1 when prefetching cannot work here.

#![forbid(unsafe_code)]

mod analyze;
mod args;
mod calibrate;
mod daemon;
mod doctor;
mod forget;
mod list;
mod pages;
mod show;
mod sim;

use std::io;
use std::process::ExitCode;

use anyhow::Result;
use foreread_cc::Language;
use foreread_sys::process::End;

use args::Command;

/// Exit status for foreread's own failures.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    foreread_sys::spawn::keep_children();
    match dispatch(Command::given()) {
        Ok(code) => code,
        Err(error) if reader_left(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("foreread: {}", foreread_words::plain(&format!("{error:#}")));
            ExitCode::from(FAILED)
        }
    }
}

fn dispatch(command: Command) -> Result<ExitCode> {
    match command {
        Command::Run(run) => Ok(end_as(foreread_run::run(&run.into())?)),
        Command::Record(record) => Ok(end_as(foreread_run::run(&record.into())?)),
        Command::List(list) => list::list(&list),
        Command::Show(show) => show::show(&show),
        Command::Forget(forget) => forget::forget(&forget),
        Command::Prune(prune) => forget::prune(&prune),
        Command::Analyze(analyze) => analyze::analyze(&analyze),
        Command::Sim(sim) => sim::sim(&sim),
        Command::Daemon(daemon) => daemon::daemon(daemon),
        Command::Predict(predict) => daemon::predict(&predict),
        Command::Doctor(doctor) => doctor::doctor(&doctor),
        Command::Calibrate(calibrate) => calibrate::calibrate(&calibrate),
        Command::Cc(given) => Ok(end_as(foreread_cc::cc(Language::C, given.args))),
        Command::Cxx(given) => Ok(end_as(foreread_cc::cc(Language::Cxx, given.args))),
        Command::Slice(given) => foreread_cc::slice(&given.args),
        Command::Slowdisk(slowdisk) => Ok(foreread_slowdisk::cli::run(slowdisk)?),
        Command::Completions { shell } => pages::completions(shell),
        Command::Man { out } => pages::man(out.as_deref()),
    }
}

/// Ends as the program ended, its signal included.
fn end_as(ending: End) -> ExitCode {
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
