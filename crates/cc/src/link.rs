//! Giving a program that is linked already a prefetch thread.
//!
//! Invariant: the program's file changes in one step, from the compiler's output to the program with a prefetch thread, and only when
//! everything before succeeded.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::command_line::CommandLine;
use super::compiler::{Compiler, Tools, first_errors, linker_said};
use super::explain::{Bytes, Report, Seconds};
use super::recompile::{quoted, recompile};
use super::slice::{Changed, Slice};
use super::units::{ObjectPlace, Unit, Units};
use super::{object_file, response};

/// Number of attempts of the slicer without the units that did not compile.
const ROUNDS: usize = 3;

/// Gives the program that this command line linked a prefetch thread.
///
/// # Errors
/// The reason why no attempt was possible. Failed attempts are in the report.
pub(super) fn link(compiler: &Compiler, line: &CommandLine, output: &Path) -> Result<Report> {
    if let Some(flag) = line.linked_whole().or_else(|| line.compiled_whole()) {
        bail!("linked with {flag}");
    }
    let program = output
        .canonicalize()
        .with_context(|| output.display().to_string())?;
    ensure!(program.is_file(), "not a file");
    ensure!(
        object_file::may_read(&program),
        "it reads no files through the C library"
    );
    if let Some(name) = object_file::redefined(&program) {
        bail!("it has a {name}() of its own, which the runtime would call");
    }
    let tools = Tools::find()?;
    let scratch = tempfile::Builder::new().prefix("foreread-cc-").tempdir()?;
    let mut units = Units::find(compiler, line, scratch.path())?;
    let mut job = Job {
        compiler,
        line,
        tools: &tools,
        scratch: scratch.path(),
        seconds: Seconds::default(),
        slice: None,
    };
    let made = job.make(&mut units);
    let mut report = Report::of(output, units.reports);
    if let Some(slice) = job.slice {
        report.sliced_into(slice);
    }
    let put = made.and_then(|sliced| put_in_place(&sliced, &program));
    Ok(match put {
        Ok(bytes) => report.done(job.seconds, bytes),
        Err(why) => report.undone(&why),
    })
}

/// The making of one program.
struct Job<'a> {
    compiler: &'a Compiler,
    line: &'a CommandLine,
    tools: &'a Tools,
    scratch: &'a Path,
    seconds: Seconds,
    /// The slicer's last output.
    slice: Option<Slice>,
}

impl Job<'_> {
    /// Slices, compiles and links; the program is in the scratch folder then.
    fn make(&mut self, units: &mut Units) -> Result<PathBuf> {
        for round in 0..ROUNDS {
            ensure!(!units.known.is_empty(), "none of its units can be sliced");
            let folder = self.scratch.join(format!("round-{round}"));
            fs::create_dir(&folder)?;
            let begun = Instant::now();
            let records = units.known.iter().map(|unit| &unit.record);
            let others = units.reports.len() > units.known.len();
            let slice = Slice::of(&self.tools.slicer, records, others, &folder)?;
            let changed: Vec<_> = slice.changed().collect();
            for (index, why) in slice.left_whole() {
                let report = &mut units.reports[units.known[index].report];
                report.state = "left whole";
                report.why = Some(why.to_owned());
            }
            self.slice = Some(slice);
            self.seconds.slicing += begun.elapsed().as_secs_f64();
            ensure!(!changed.is_empty(), "{}", nothing_changed(round));
            let begun = Instant::now();
            let compiled = self.compile(&units.known, &changed, &folder);
            self.seconds.compiling += begun.elapsed().as_secs_f64();
            let (objects, failed): (Vec<_>, Vec<_>) = compiled
                .into_iter()
                .partition(|(_, compiled)| compiled.is_ok());
            if failed.is_empty() {
                let objects = objects.into_iter().filter_map(|(index, object)| {
                    let unit = &units.known[index];
                    units.reports[unit.report].state = "changed";
                    Some((unit.place, object.ok()?))
                });
                let objects = objects.collect();
                return self.link(units, &objects);
            }
            for (index, failure) in failed.into_iter().rev() {
                let unit = units.known.remove(index);
                let report = &mut units.reports[unit.report];
                report.state = "left whole";
                report.why = failure.err().map(|why| format!("{why:#}"));
            }
        }
        bail!("its units do not compile when sliced");
    }

    /// Compiles the changed units, several at a time; in the order of the units, an object or why not.
    fn compile(
        &self,
        units: &[Unit],
        changed: &[(usize, Changed)],
        folder: &Path,
    ) -> Vec<(usize, Result<PathBuf>)> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            while let Some((index, text)) = changed.get(next.fetch_add(1, Ordering::Relaxed)) {
                let object = folder.join(format!("unit-{index}.o"));
                let record = &units[*index].record;
                let compiled = recompile(record, text, &self.tools.headers, &object);
                done.push((*index, compiled.map(|()| object)));
            }
            done
        };
        let workers = std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(changed.len());
        let mut compiled: Vec<_> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let ended = workers.into_iter().filter_map(|worker| worker.join().ok());
            ended.flatten().collect()
        });
        compiled.sort_by_key(|(index, _)| *index);
        compiled
    }

    /// Links the program with these objects and the runtime.
    fn link(&mut self, units: &Units, objects: &HashMap<ObjectPlace, PathBuf>) -> Result<PathBuf> {
        let begun = Instant::now();
        let program = self.scratch.join("program");
        let mut words = units.words(self.line, objects, self.scratch)?;
        words.push("-w".into());
        // The language of the last source is not the runtime's.
        words.extend(["-x", "none"].map(OsString::from));
        if let Some(library) = &self.tools.library {
            words.push(self.library_path(library)?.into());
        }
        words.push((&self.tools.runtime).into());
        words.extend(["-lpthread", "-ldl", "-o"].map(OsString::from));
        words.push((&program).into());
        if self.line.from_file {
            let list = self.scratch.join("words");
            fs::write(&list, response::write(&words))?;
            let mut word = OsString::from("@");
            word.push(&list);
            words = vec![word];
        }
        let output = self.compiler.aside(&words).stdin(Stdio::null()).output()?;
        self.seconds.linking += begun.elapsed().as_secs_f64();
        ensure!(
            output.status.success(),
            "it does not link when sliced:{}",
            linker_said(&output.stderr)
        );
        Ok(program)
    }

    /// An object with the path of the runtime's library. It is compiled separately, with only those of the program's flags that affect
    /// code.
    fn library_path(&self, library: &Path) -> Result<PathBuf> {
        let source = self.scratch.join("library.c");
        let path = quoted(library);
        fs::write(
            &source,
            format!("const char *foreread_library_path = {path};\n"),
        )?;
        let object = source.with_extension("o");
        let flags = self.line.compiling().into_iter();
        let code = |flag: &OsString| {
            [b"-m", b"-f"]
                .iter()
                .any(|start| flag.as_bytes().starts_with(*start))
        };
        let mut args: Vec<_> = flags.filter(code).collect();
        args.extend(["-w", "-x", "c", "-c", "-o"].map(OsString::from));
        args.extend([&object, &source].map(OsString::from));
        let output = self.compiler.aside(&args).stdin(Stdio::null()).output()?;
        ensure!(output.status.success(), "{}", first_errors(&output.stderr));
        Ok(object)
    }
}

/// Why no unit was changed in a round.
fn nothing_changed(round: usize) -> &'static str {
    match round {
        0 => "nothing in it can be sliced",
        _ => "without the units that do not compile nothing in it can be sliced",
    }
}

/// Puts the sliced program where the plain one is.
fn put_in_place(sliced: &Path, program: &Path) -> Result<Bytes> {
    let plain = fs::metadata(program)?;
    let beside = program.parent().unwrap_or(Path::new("/"));
    let copy = tempfile::Builder::new()
        .prefix(".foreread-")
        .tempfile_in(beside)?
        .into_temp_path();
    let bytes = fs::copy(sliced, &copy)?;
    fs::set_permissions(&copy, plain.permissions())?;
    copy.persist(program)?;
    Ok(Bytes {
        plain: plain.len(),
        sliced: bytes,
    })
}
