//! `foreread cc` and `foreread c++`: a compiler's driver that gives programs a prefetch thread of their own.
//!
//! Invariant: the system's compiler runs first and verbatim. It runs every command line unchanged, with the streams of this process, and
//! its output, messages and exit status are the caller's. All other work follows, and if it fails the compiler's output stays.
//!
//! Data flow: a compilation leaves an object, which gets a record of how it was compiled
//! ([`record`]). A link leaves a program; the records of all that is in it go to the slicer
//! ([`slice`]), the units that it changed are compiled again ([`recompile`]), and the program is linked
//! once more with those in place of the originals ([`link`]).

#![forbid(unsafe_code)]

mod archive;
mod command_line;
mod compiler;
mod explain;
mod includes;
mod language;
mod link;
mod object_file;
mod options;
mod recompile;
mod record;
mod response;
mod slice;
mod units;

use std::ffi::OsString;

use foreread_sys::process::End;

use command_line::{CommandLine, Task};
use compiler::{Compiler, NoTranslator};
use explain::{Explanation, Report};
use record::Record;

pub use language::Language;
pub use slice::slice;

/// The driver's own option; every other word is the compiler's.
const EXPLAIN: &str = "--explain";

/// Does the work of the language's compiler with these arguments, and then adds a prefetch thread to the program.
pub fn cc(language: Language, args: Vec<OsString>) -> End {
    let (own, args): (Vec<_>, Vec<_>) = args.into_iter().partition(|arg| arg == EXPLAIN);
    let explanation = Explanation::wanted(!own.is_empty());
    let compiler = Compiler::find(language);
    let (expanded, from_file) = response::expand(&args);
    let line = CommandLine::read(expanded, from_file, language);
    let task = line.task();
    if task == Task::Other {
        return compiler.become_it(&args);
    }
    let ending = compiler.run(&args);
    if ending != End::Exited(0) {
        return ending;
    }
    match task {
        Task::Other => {}
        Task::Compile(objects) => {
            for (word, object) in objects {
                let attached = Record::new(&line, &line.words[word], &compiler)
                    .and_then(|record| record.attach(&object));
                if let Err(why) = attached {
                    explanation.give(&Report::plain(&object, &why));
                }
            }
        }
        Task::Link(output) => {
            let report = link::link(&compiler, &line, &output);
            let report = report.unwrap_or_else(|why| {
                let report = Report::plain(&output, &why);
                if why.is::<NoTranslator>() && !line.is_quiet() {
                    explanation.warn(&report);
                }
                report
            });
            explanation.give(&report);
        }
    }
    ending
}
