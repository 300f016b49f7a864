//! Reads of one file in a known order, by the programs of bench/programs: AASFP's Forward and Backward, random pages, and cases
//! that foreread must leave alone: a scan, a hot cache, files of which only the beginning is read.

use std::path::Path;

use anyhow::Result;

use super::data::{Random, fill, text, write};
use super::words::command;
use crate::case::{Data, Job, Size, Workload};
use crate::deep::FileExtents;
use crate::tools::Tools;

const STRIDE_BYTES: u64 = 16 << 20;
const RANDOM_BYTES: u64 = 1 << 30;
const SCAN_BYTES: u64 = 512 << 20;
const BLOCK: u64 = 4096;
const SEED: u64 = 7;
/// The file in each of these folders.
pub const FILE: &str = "pages";

pub(super) static STRIDED: Data = Data {
    name: "strided",
    make: |dir, _, _| fill(&dir.join(FILE), STRIDE_BYTES, 1),
};
pub static RANDOM: Data = Data {
    name: "random",
    make: |dir, _, _| fill(&dir.join(FILE), RANDOM_BYTES, 2),
};
pub(super) static SCANNED: Data = Data {
    name: "scanned",
    make: |dir, _, _| fill(&dir.join(FILE), SCAN_BYTES, 4),
};
pub(super) static HOT: Data = Data {
    name: "hot",
    make: |dir, _, _| fill(&dir.join(FILE), 64 << 20, 5),
};
/// 400 files of 256 KiB.
pub(super) static HEADS: Data = Data {
    name: "heads",
    make: |dir, _, _| {
        let mut random = Random(6);
        (0..400).try_for_each(|index| {
            let name = format!("file-{index:04}.txt");
            write(dir, &name, text(&mut random, 256 << 10))
        })
    },
};

/// Reads at a stride through a file, `forward` or `backward`.
pub(super) struct Stride {
    pub direction: &'static str,
    pub stride: u64,
}

impl Workload for Stride {
    fn job(&self, dir: &Path, _: &Path, _: Size, tools: &Tools) -> Result<Job> {
        let file = dir.join(FILE);
        let program = tools.compiled("stride", include_str!("../../../programs/stride.c"))?;
        let pages = (0..STRIDE_BYTES / self.stride).map(|i| i * self.stride / BLOCK);
        let (stride, block) = (self.stride.to_string(), BLOCK.to_string());
        let args = [&*file.to_string_lossy(), self.direction, &stride, &block].map(String::from);
        Ok(Job {
            command: command(program, args, dir),
            footprint: Some(vec![FileExtents::of_pages(file.clone(), pages.collect())]),
            files: vec![file],
            ..Job::default()
        })
    }
}

/// Random pages of a file, with computing after each.
pub(super) struct RandomReads {
    pub compute_us: u64,
    /// Reads, quick and full.
    pub reads: (u64, u64),
}

/// `randread` with its arguments after the file's path.
fn randread(file: &Path, args: [u64; 3], tools: &Tools) -> Result<crate::process::Invocation> {
    let program = tools.compiled("randread", include_str!("../../../programs/randread.c"))?;
    let args = args.map(|arg| arg.to_string().into());
    let args = std::iter::once(file.into()).chain(args);
    let args: Vec<std::ffi::OsString> = args.collect();
    Ok(command(program, args, file.parent().unwrap_or(file)))
}

impl Workload for RandomReads {
    fn job(&self, dir: &Path, _: &Path, size: Size, tools: &Tools) -> Result<Job> {
        let file = dir.join(FILE);
        let reads = size.pick(self.reads.0, self.reads.1);
        let mut random = Random(SEED);
        let pages = (0..reads).map(|_| random.below(RANDOM_BYTES / BLOCK));
        Ok(Job {
            footprint: Some(vec![FileExtents::of_pages(file.clone(), pages.collect())]),
            command: randread(&file, [reads, SEED, self.compute_us], tools)?,
            files: vec![file],
            ..Job::default()
        })
    }
}

/// A million random reads of a file that is in memory.
pub(super) fn hot_reads(dir: &Path, _: &Path, _: Size, tools: &Tools) -> Result<Job> {
    let file = dir.join(FILE);
    Ok(Job {
        command: randread(&file, [1_000_000, 9, 0], tools)?,
        files: vec![file],
        ..Job::default()
    })
}

/// A whole file, from front to back, 4 KiB at a time.
pub(super) fn scan(dir: &Path, _: &Path, _: Size, _: &Tools) -> Result<Job> {
    let file = dir.join(FILE);
    let input = format!("if={}", file.display());
    Ok(Job {
        command: command("dd", [&*input, "of=/dev/null", "bs=4k", "status=none"], dir),
        footprint: Some(vec![FileExtents {
            path: file.clone(),
            extents: vec![(0, SCAN_BYTES)],
        }]),
        files: vec![file],
        ..Job::default()
    })
}
