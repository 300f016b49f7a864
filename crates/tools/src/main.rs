//! `foreread-tools`: all commands of `foreread`. `foreread` runs plain command lines of `run` and `record` itself, and replaces itself by
//! this program for all others.
//!
//! Top down: the command line is parsed ([`args`]), and one command runs. An error is printed as one line that names the file and the value
//! at fault.
//!
//! Exit status: `run`, `record`, `cc` and `c++` end as the program or compiler did; with 127 or 126 if it was not found or could not be
//! started; with 2 if foreread failed. All others end with 0, with 1 if they failed at their work, or with 2 if their arguments or files
//! cannot be used ([`output::status`]).

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::print_stdout))]

mod analyze;
mod args;
mod cache;
mod calibrate;
mod chosen;
mod command_line;
mod daemon;
mod doctor;
mod font;
mod forget;
mod help;
mod list;
mod output;
mod pages;
mod report;
mod run;
mod service;
mod show;
mod sim;
mod top;
mod travel;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::FromArgMatches;
use foreread::{end_as, ended_by};
use foreread_cc::Language;

use args::{Args, Command};
use output::{named, output, status, unable};

fn main() -> ExitCode {
    foreread_sys::spawn::keep_children();
    let parsed = help::command().try_get_matches();
    ended_by(
        match parsed.and_then(|given| Args::from_arg_matches(&given)) {
            Ok(args) => dispatch(args.command).and_then(flushed),
            Err(answer) => answered(&answer),
        },
        status,
    )
}

/// The parser's message in place of a command: help, version, or an error in the command line.
fn answered(answer: &clap::Error) -> Result<ExitCode> {
    let printed = answer.print();
    let code = ExitCode::from(answer.exit_code() as u8);
    if answer.use_stderr() {
        return Ok(code);
    }
    printed.map_err(named)?;
    flushed(code)
}

/// The status of a command, after all its output was written.
fn flushed(code: ExitCode) -> Result<ExitCode> {
    output().flush()?;
    Ok(code)
}

fn dispatch(command: Command) -> Result<ExitCode> {
    match command {
        Command::Run(run) => Ok(end_as(foreread_run::run(&run.into())?)),
        Command::Record(record) => Ok(end_as(foreread_run::run(&record.into())?)),
        Command::List(list) => list::list(&list),
        Command::Show(show) => show::show(&show),
        Command::Explain(explain) => report::text::explain(&explain),
        Command::Report(report) => report::report(&report),
        Command::Export(export) => travel::export::export(&export),
        Command::Import(import) => travel::import::import(&import),
        Command::Merge(merge) => travel::merge::merge(&merge),
        Command::Forget(forget) => forget::forget(&forget),
        Command::Prune(prune) => forget::prune(&prune),
        Command::Analyze(analyze) => analyze::analyze(&analyze),
        Command::Sim(sim) => sim::sim(&sim),
        Command::Cache(cache) => cache::cache(&cache),
        Command::Daemon(daemon) => daemon::daemon(daemon),
        Command::Predict(predict) => daemon::predict(&predict),
        Command::Service(service) => service::service(&service),
        Command::Top(top) => top::top(&top),
        Command::Doctor(doctor) => doctor::doctor(&doctor),
        Command::Calibrate(calibrate) => calibrate::calibrate(&calibrate),
        Command::Cc(given) => Ok(end_as(foreread_cc::cc(Language::C, given.args))),
        Command::Cxx(given) => Ok(end_as(foreread_cc::cc(Language::Cxx, given.args))),
        Command::Slice(given) => foreread_cc::slice(&given.args),
        Command::Slowdisk(slowdisk) => {
            foreread_slowdisk::cli::run(slowdisk).map_err(|why| unable(why.into()))
        }
        Command::Completions { shell } => pages::completions(shell),
        Command::Man { output } => pages::man(output.as_deref()),
    }
}
