//! `foreread export`: writes a record as a list for another tool.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use foreread_lists::{FileState, Format, Line, Writer};
use foreread_plan::PathMap;
use foreread_plan::format::{Ending, Reader};
use foreread_sys::replace;
use foreread_words::{counted, shown};

use super::say_left_out;
use crate::output::{Unable, output};
use crate::{args, chosen};

/// The result of an export.
struct Exported {
    lines: u64,
    /// Files that the format cannot hold, each with the reason.
    refused: Vec<String>,
}

/// Exports the chosen record.
pub(crate) fn export(args: &args::travel::Export) -> Result<ExitCode> {
    let mut reader = chosen::record(args.record.as_deref(), args.last, &args.command)?;
    let map = args.mapped.all();
    let path = args
        .output
        .as_deref()
        .filter(|path| *path != Path::new("-"));
    let exported = match path {
        None => list(&mut reader, &map, args.to, output())?,
        Some(path) => {
            let listed = replace::with(path, |file| list(&mut reader, &map, args.to, file));
            listed.map_err(|why| match why.downcast::<std::io::Error>() {
                Ok(why) => Unable(format!("{}: {why}", path.display())).into(),
                Err(why) => why.context(path.display().to_string()),
            })?
        }
    };
    say_left_out(&exported.refused, ("file", "files"));
    if let Ending::Truncated { at } = reader.ending() {
        eprintln!(
            "foreread: {}: the record breaks off after {at} bytes; what comes before is listed",
            reader.path().display()
        );
    }
    if let Some(path) = path {
        let lines = match args.to.is_of_files() {
            true => counted(exported.lines, "file", "files"),
            false => counted(exported.lines, "access", "accesses"),
        };
        writeln!(output(), "{}: {lines}", shown(&path.to_string_lossy()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a record as a list.
fn list(reader: &mut Reader, map: &PathMap, to: Format, out: impl Write) -> Result<Exported> {
    let files = map.files(reader.shared_files());
    let threads = reader.threads().clone();
    let mut writer = Writer::new(to, BufWriter::new(out))?;
    for access in reader.accesses() {
        let access = access?;
        // A file without a path cannot be read by another tool.
        let Some(meta) = files.get(&access.file) else {
            continue;
        };
        let thread = threads.get(&access.thread);
        writer.line(&Line {
            path: meta.path.clone(),
            extent: Some(access.extent),
            kind: access.kind,
            start_ns: access.start,
            took_ns: access.took,
            pid: thread.map_or(0, |thread| thread.pid),
            tid: thread.map_or(0, |thread| thread.tid),
            state: FileState {
                size: Some(meta.size),
                mtime_ns: Some(meta.mtime_ns),
            },
            advice: meta.advice,
            written: meta.written,
        })?;
    }
    let lines = writer.written();
    let (refused, _) = writer.finish()?;
    let refused: Vec<_> = refused
        .iter()
        .map(|one| {
            format!(
                "{}: {}; left out",
                shown(&one.path.to_string_lossy()),
                one.why
            )
        })
        .collect();
    if lines == 0 {
        say_left_out(&refused, ("file", "files"));
        bail!(
            "{}: nothing in it can be listed for {to}",
            reader.path().display()
        );
    }
    Ok(Exported { lines, refused })
}
