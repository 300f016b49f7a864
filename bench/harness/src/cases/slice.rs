//! The programs of AASFP's measurements (its Table 1), translated by `foreread cc`; one that accesses a mapped file, which the
//! paper left undone; and two whose reads are scattered over much data.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::words::command;
use crate::case::{Data, Job, Rewritten, Size, Workload};
use crate::deep::FileExtents;
use crate::tools::{Tools, succeed};
use crate::translated::Program;

/// Bytes that the programs of slicer/programs read at once; a brick of 32 voxels is eight times that.
pub(super) const UNIT: u64 = 4096;
/// The film's size in MiB; the smaller one with `--quick` if it runs backward: there each block costs a disk a revolution.
const FILM_MIB: u64 = 16;
const QUICK_MIB: u64 = 4;
/// Size of the data of scattered reads.
const SCATTERED_MIB: u64 = 512;

/// Volumes of 16 MiB in bricks with this many voxels along a side.
pub(super) static VOLUME_16: Data = Data {
    name: "volume-16",
    make: |dir, _, tools| generate("volume", 16, &dir.join("volume"), tools),
};
pub(super) static VOLUME_32: Data = Data {
    name: "volume-32",
    make: |dir, _, tools| generate("volume", 32, &dir.join("volume"), tools),
};
/// Points, as a power of two.
pub(super) static POINTS_18: Data = Data {
    name: "points-18",
    make: |dir, _, tools| points(18, dir, tools),
};
pub(super) static POINTS_19: Data = Data {
    name: "points-19",
    make: |dir, _, tools| points(19, dir, tools),
};
pub(super) static FILM: Data = Data {
    name: "film",
    make: |dir, _, tools| generate("film", FILM_MIB, &dir.join("film"), tools),
};
pub(super) static FILM_BACKWARD: Data = Data {
    name: "film-backward",
    make: |dir, size, tools| {
        generate(
            "film",
            size.pick(QUICK_MIB, FILM_MIB),
            &dir.join("film"),
            tools,
        )
    },
};
pub(super) static SCATTERED: Data = Data {
    name: "scattered",
    make: |dir, _, tools| {
        generate("film", SCATTERED_MIB, &dir.join("table"), tools)?;
        generate("index", SCATTERED_MIB, &dir.join("index"), tools)
    },
};

fn points(log2: u64, dir: &Path, tools: &Tools) -> Result<()> {
    let (file, pristine) = (dir.join("points"), dir.join("pristine"));
    generate("points", log2, &pristine, tools)?;
    Rewritten { file, pristine }.restore()
}

/// Makes a file with the generator of slicer/programs.
pub(super) fn generate(kind: &str, size: u64, file: &Path, tools: &Tools) -> Result<()> {
    let source = include_str!("../../../../slicer/programs/generate.c");
    let program = tools.compiled_with("generate", source, &["-lm".into()])?;
    succeed(
        Command::new(program)
            .arg(kind)
            .arg(size.to_string())
            .arg(file),
    )
}

/// A program of slicer/programs with these arguments, original and translated.
fn job(
    program: &str,
    arguments: &[&str],
    file: &Path,
    scratch: &Path,
    tools: &Tools,
) -> Result<Job> {
    let compiled = Program::compile(program, tools)?;
    let words = ["-k", "1"].iter().chain(arguments).map(OsString::from);
    let words: Vec<_> = words.chain([file.into()]).collect();
    let command = command(&compiled.plain, words, scratch);
    Ok(Job {
        translated: Some(compiled.instead(&command, scratch, tools)?),
        command,
        files: vec![file.to_owned()],
        ..Job::default()
    })
}

/// A program and its arguments before and after a file, in the data's folder.
pub(super) struct Sliced {
    pub program: &'static str,
    pub words: &'static [&'static str],
    pub file: &'static str,
}

impl Workload for Sliced {
    fn job(&self, dir: &Path, scratch: &Path, _: Size, tools: &Tools) -> Result<Job> {
        job(
            self.program,
            self.words,
            &dir.join(self.file),
            scratch,
            tools,
        )
    }
}

/// Rows in the order of an index.
pub(super) fn rows(dir: &Path, scratch: &Path, _: Size, tools: &Tools) -> Result<Job> {
    let index = dir.join("index");
    let mut job = job(
        "rows",
        &[&index.to_string_lossy()],
        &dir.join("table"),
        scratch,
        tools,
    )?;
    job.files.push(index);
    Ok(job)
}

/// The Fourier transform of 2^`log2` points, in place.
pub(super) struct Fft {
    pub log2: u32,
}

impl Workload for Fft {
    fn job(&self, dir: &Path, scratch: &Path, _: Size, tools: &Tools) -> Result<Job> {
        let (file, pristine) = (dir.join("points"), dir.join("pristine"));
        // Half of the file: the other half is in memory when it is read, because the program has written it.
        let pages = (0..8 << self.log2 >> 12).collect();
        Ok(Job {
            footprint: Some(vec![FileExtents::of_pages(file.clone(), pages)]),
            outputs: vec![file.clone()],
            rewritten: Some(Rewritten {
                file: file.clone(),
                pristine,
            }),
            ..job("fft", &[&self.log2.to_string()], &file, scratch, tools)?
        })
    }
}

/// A film forward or backward.
pub(super) struct Video {
    pub backward: bool,
    pub stride: u64,
}

impl Workload for Video {
    fn job(&self, dir: &Path, scratch: &Path, size: Size, tools: &Tools) -> Result<Job> {
        let file = dir.join("film");
        let mebibytes = if self.backward {
            size.pick(QUICK_MIB, FILM_MIB)
        } else {
            FILM_MIB
        };
        let blocks = (0..mebibytes << 20).step_by(self.stride as usize);
        let footprint = FileExtents::of_pages(file.clone(), blocks.map(|at| at / UNIT).collect());
        let stride = self.stride.to_string();
        let words = ["-s", &stride, "-b"];
        let words = if self.backward {
            &words[..]
        } else {
            &words[..2]
        };
        Ok(Job {
            footprint: Some(vec![footprint]),
            ..job("video", words, &file, scratch, tools)?
        })
    }
}
