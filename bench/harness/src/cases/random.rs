//! Random 4 KiB reads over a 1 GiB file, with computing between them.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::data::{Random, fill};
use crate::case::{Case, Group, Job, Purpose, Size, Start, Workload};
use crate::deep::FileExtents;
use crate::disk::DiskKind;
use crate::process::Invocation;
use crate::tools::Tools;

const FILE_BYTES: u64 = 1 << 30;
const SEED: u64 = 7;

/// The file alone, for others that read it.
pub struct RandomFile;

impl RandomFile {
    /// Where it is in its folder.
    pub fn path(dir: &Path) -> PathBuf {
        dir.join("pages")
    }
}

impl Workload for RandomFile {
    fn data_name(&self) -> &'static str {
        "random"
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        fill(&Self::path(dir), FILE_BYTES, 2)
    }

    fn job(&self, dir: &Path, _: &Path, _: Size, _: &Tools) -> Result<Job> {
        Ok(Job {
            files: vec![Self::path(dir)],
            ..Job::default()
        })
    }
}

struct RandomReads {
    compute_us: u64,
    /// Reads, quick and full.
    reads: (u64, u64),
}

/// With 0, 10 and 50 µs of computing; fewer reads where each takes milliseconds.
pub fn cases() -> Vec<Case> {
    let case = |name, about, compute_us, reads, disks, quick| Case {
        name,
        group: Group::Main,
        about,
        disks,
        quick,
        needs: &[("cc", "gcc")],
        purpose: Purpose::Gain,
        start: Start::Cold,
        work: Box::new(RandomReads { compute_us, reads }),
    };
    const OWN: &[DiskKind] = &[DiskKind::Own];
    const SLOW: &[DiskKind] = &[DiskKind::Hdd7200, DiskKind::NetworkSsd];
    const MANY: (u64, u64) = (20_000, 20_000);
    vec![
        case(
            "random-0us",
            "20,000 random 4 KiB reads of 1 GiB",
            0,
            MANY,
            OWN,
            OWN,
        ),
        case(
            "random-10us",
            "the same, computing 10 us after each",
            10,
            MANY,
            OWN,
            OWN,
        ),
        case(
            "random-50us",
            "the same, computing 50 us after each",
            50,
            MANY,
            OWN,
            OWN,
        ),
        case(
            "random-slow",
            "3,000 random 4 KiB reads of 1 GiB",
            0,
            (1_000, 3_000),
            SLOW,
            &[],
        ),
    ]
}

impl Workload for RandomReads {
    fn data_name(&self) -> &'static str {
        RandomFile.data_name()
    }

    fn generate(&self, dir: &Path, size: Size, tools: &Tools) -> Result<()> {
        RandomFile.generate(dir, size, tools)
    }

    fn job(&self, dir: &Path, _: &Path, size: Size, tools: &Tools) -> Result<Job> {
        let file = RandomFile::path(dir);
        let program = tools.compiled("randread", include_str!("../../../programs/randread.c"))?;
        let reads = size.pick(self.reads.0, self.reads.1);
        let mut random = Random(SEED);
        let pages = (0..reads)
            .map(|_| random.below(FILE_BYTES / 4096))
            .collect();
        Ok(Job {
            command: Invocation {
                program,
                args: vec![
                    file.clone().into(),
                    reads.to_string().into(),
                    SEED.to_string().into(),
                    self.compute_us.to_string().into(),
                ],
                cwd: dir.to_owned(),
                env: Vec::new(),
            },
            footprint: Some(vec![FileExtents::of_pages(file.clone(), pages)]),
            files: vec![file],
            ..Job::default()
        })
    }
}
