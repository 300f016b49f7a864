//! AASFP's Forward and Backward: a 16 MB file in 4 KiB reads, 4 or 8 KiB apart.

use std::path::Path;

use anyhow::Result;

use super::data::fill;
use crate::case::{Case, Group, Job, Purpose, Size, Start, Workload};
use crate::deep::FileExtents;
use crate::disk::DiskKind;
use crate::process::Invocation;
use crate::tools::Tools;

const FILE_BYTES: u64 = 16 << 20;
const BLOCK: u64 = 4096;

struct Stride {
    direction: &'static str,
    stride: u64,
}

/// Forward 1 and 2, Backward 1 and 2.
pub fn cases() -> Vec<Case> {
    let case = |name, about, direction, stride, purpose| Case {
        name,
        group: Group::Main,
        about,
        disks: &[DiskKind::Hdd7200, DiskKind::NetworkSsd, DiskKind::Own],
        quick: &[DiskKind::Hdd7200],
        needs: &[("cc", "gcc")],
        purpose,
        start: Start::Cold,
        work: Box::new(Stride { direction, stride }),
    };
    vec![
        case(
            "forward-1",
            "16 MB forward, every 4 KiB",
            "forward",
            4096,
            Purpose::NoHarm,
        ),
        case(
            "forward-2",
            "16 MB forward, every other 4 KiB",
            "forward",
            8192,
            Purpose::NoHarm,
        ),
        case(
            "backward-1",
            "16 MB backward, every 4 KiB",
            "backward",
            4096,
            Purpose::Gain,
        ),
        case(
            "backward-2",
            "16 MB backward, every other 4 KiB",
            "backward",
            8192,
            Purpose::Gain,
        ),
    ]
}

impl Workload for Stride {
    fn data_name(&self) -> &'static str {
        "stride"
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        fill(&dir.join("blocks"), FILE_BYTES, 1)
    }

    fn job(&self, dir: &Path, _: &Path, _: Size, tools: &Tools) -> Result<Job> {
        let file = dir.join("blocks");
        let program = tools.compiled("stride", include_str!("../../../programs/stride.c"))?;
        let pages = (0..FILE_BYTES / self.stride)
            .map(|i| i * self.stride / BLOCK)
            .collect();
        Ok(Job {
            command: Invocation {
                program,
                args: vec![
                    file.clone().into(),
                    self.direction.into(),
                    self.stride.to_string().into(),
                    BLOCK.to_string().into(),
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
