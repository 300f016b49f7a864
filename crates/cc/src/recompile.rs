//! Compiling a unit again, from the text that the slicer changed.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};

use super::compiler::{aside, first_errors};
use super::includes;
use super::record::Record;
use super::slice::Changed;

/// Makes a compiler accept uses of private members.
const NO_ACCESS_CONTROL: &str = "-fno-access-control";

/// Compiles a unit again by the compiler of its record, from its changed text, into `object`.
///
/// The text keeps the names and the time of its source, and finds the same, unchanged headers ([`includes`]).
///
/// # Errors
/// When it does not compile; the message has the compiler's first errors. When a header has changed since the unit was compiled. When it
/// uses private members, and the program depends on which members are private.
pub(super) fn recompile(
    record: &Record,
    changed: &Changed,
    headers: &Path,
    object: &Path,
) -> Result<()> {
    let text = &changed.text;
    let text = fs::read(text).with_context(|| text.display().to_string())?;
    ensure!(
        !changed.names_private || access_is_unseen(record, object)?,
        "its prefetch functions name what is private, and the program asks what is"
    );
    let mut bytes = format!("#line 1 {}\n", quoted(&record.source)).into_bytes();
    bytes.extend(includes::as_if_in(&record.source, &record.directory, &text));
    let input = object.with_extension("c");
    fs::write(&input, &bytes)?;
    // For __TIMESTAMP__.
    let written = fs::metadata(record.source_path())?.modified()?;
    let input = fs::File::options().write(true).read(true).open(&input)?;
    input.set_modified(written)?;
    let mut args: Vec<OsString> = Vec::new();
    // For includes that are made by macros.
    if let Some(beside) = record.source.parent().filter(|path| *path != Path::new("")) {
        args.extend(["-iquote".into(), beside.into()]);
    }
    // Added code must not cause warnings for the program's author.
    let kept = record
        .arguments
        .iter()
        .filter(|word| *word != "-pedantic-errors");
    args.extend(kept.map(OsString::from));
    args.extend(["-w".into(), "-idirafter".into(), headers.into()]);
    if changed.names_private {
        args.push(NO_ACCESS_CONTROL.into());
    }
    args.push(format!("-D__BASE_FILE__={}", quoted(&record.source)).into());
    let read = object.with_extension("d");
    args.extend(["-MD", "-MT", includes::TARGET, "-MF"].map(OsString::from));
    args.push((&read).into());
    let language = record.language.name();
    args.extend(["-x", language, "-c", "-", "-o"].map(OsString::from));
    args.push(object.into());
    let output = aside(&record.compiler, &args)
        .stdin(input)
        .current_dir(&record.directory)
        .output()?;
    ensure!(
        output.status.success(),
        "does not compile when sliced: {}",
        first_errors(&output.stderr)
    );
    let read = includes::listed(&fs::read(&read)?);
    let read = read.iter().chain(&changed.headers);
    let read = read.map(|header| record.directory.join(header));
    for header in read.filter(|header| !header.starts_with(headers)) {
        let unchanged = record.is_younger_than(&header);
        ensure!(
            unchanged,
            "{} has changed since it was compiled",
            header.display()
        );
    }
    Ok(())
}

/// True if the unit becomes the same code without access checks: nothing in it depends on private members, unlike a template that asks
/// whether an object can be copied. `object` is a path for the compiler's output.
fn access_is_unseen(record: &Record, object: &Path) -> Result<bool> {
    let code = |checks: &[&str]| {
        let mut args: Vec<OsString> = record.arguments.iter().map(OsString::from).collect();
        args.extend(["-w", "-g0"].iter().chain(checks).map(OsString::from));
        args.extend(["-x", record.language.name(), "-c", "-o"].map(OsString::from));
        args.extend([object.into(), (&record.source).into()]);
        let output = aside(&record.compiler, &args)
            .stdin(Stdio::null())
            .current_dir(&record.directory)
            .output()?;
        ensure!(
            output.status.success(),
            "does not compile as it is: {}",
            first_errors(&output.stderr)
        );
        fs::read(object).context("the object")
    };
    Ok(code(&[])? == code(&[NO_ACCESS_CONTROL])?)
}

/// A path as a C string literal.
pub(super) fn quoted(path: &Path) -> String {
    let path = path
        .to_string_lossy()
        .replace('\\', "\\\\")
        .replace('"', "\\\"");
    format!("\"{path}\"")
}
