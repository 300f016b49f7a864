//! What foreread must leave alone: sequential scans, hot caches, files read only at
//! their beginning.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::data::{Random, fill, text};
use crate::case::{Case, Group, Job, Purpose, Size, Start, Workload};
use crate::deep::FileExtents;
use crate::disk::DiskKind;
use crate::process::Invocation;
use crate::tools::Tools;
use crate::tree::files_below;

const SCAN_BYTES: u64 = 512 << 20;
const HEAD_FILES: u64 = 400;

/// A whole file, from front to back, 4 KiB at a time.
struct Scan;
/// The random reads of a file that is in memory.
struct HotReads;
/// The first page of many files.
struct Heads;

/// Each against its plain run.
pub fn cases() -> Vec<Case> {
    let case = |name, about, disks, quick, needs, start, work| Case {
        name,
        group: Group::Main,
        about,
        disks,
        quick,
        needs,
        purpose: Purpose::NoHarm,
        start,
        work,
    };
    const ALL: &[DiskKind] = &[DiskKind::Hdd7200, DiskKind::NetworkSsd, DiskKind::Own];
    const OWN: &[DiskKind] = &[DiskKind::Own];
    vec![
        case(
            "sequential",
            "dd of a whole file, 4 KiB reads",
            ALL,
            OWN,
            &[],
            Start::Cold,
            Box::new(Scan),
        ),
        case(
            "hot",
            "1,000,000 random reads of a file in memory",
            OWN,
            OWN,
            &[("cc", "gcc")],
            Start::Hot,
            Box::new(HotReads),
        ),
        case(
            "first-page",
            "head -c 4096 of 400 files",
            ALL,
            OWN,
            &[],
            Start::Cold,
            Box::new(Heads),
        ),
    ]
}

impl Workload for Scan {
    fn data_name(&self) -> &'static str {
        "scan"
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        fill(&dir.join("bytes"), SCAN_BYTES, 4)
    }

    fn job(&self, dir: &Path, _: &Path, _: Size, _: &Tools) -> Result<Job> {
        let file = dir.join("bytes");
        let input = format!("if={}", file.display());
        Ok(Job {
            command: Invocation {
                program: "dd".into(),
                args: vec![
                    input.into(),
                    "of=/dev/null".into(),
                    "bs=4k".into(),
                    "status=none".into(),
                ],
                cwd: dir.to_owned(),
                env: Vec::new(),
            },
            footprint: Some(vec![FileExtents {
                path: file.clone(),
                extents: vec![(0, SCAN_BYTES)],
            }]),
            files: vec![file],
            ..Job::default()
        })
    }
}

impl Workload for HotReads {
    fn data_name(&self) -> &'static str {
        "hot"
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        fill(&dir.join("pages"), 64 << 20, 5)
    }

    fn job(&self, dir: &Path, _: &Path, _: Size, tools: &Tools) -> Result<Job> {
        let file = dir.join("pages");
        let program = tools.compiled("randread", include_str!("../../../programs/randread.c"))?;
        Ok(Job {
            command: Invocation {
                program,
                args: vec![
                    file.clone().into(),
                    "1000000".into(),
                    "9".into(),
                    "0".into(),
                ],
                cwd: dir.to_owned(),
                env: Vec::new(),
            },
            files: vec![file],
            ..Job::default()
        })
    }
}

impl Workload for Heads {
    fn data_name(&self) -> &'static str {
        "heads"
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        let mut random = Random(6);
        for index in 0..HEAD_FILES {
            let path = dir.join(format!("file-{index:04}.txt"));
            fs::write(&path, text(&mut random, 256 << 10))
                .with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(())
    }

    fn job(&self, dir: &Path, _: &Path, _: Size, _: &Tools) -> Result<Job> {
        let files = files_below(dir)?;
        let mut args = vec!["-q".into(), "-c".into(), "4096".into()];
        args.extend(files.iter().map(|file| file.clone().into()));
        Ok(Job {
            command: Invocation {
                program: "head".into(),
                args,
                cwd: dir.to_owned(),
                env: Vec::new(),
            },
            files,
            ..Job::default()
        })
    }
}
