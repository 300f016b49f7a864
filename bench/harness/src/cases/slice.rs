//! The programs AASFP was measured with (its Table 1), which `foreread cc` translates, one that looks at a mapped
//! file, which the paper left undone, and two that read scattered over much.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::case::{Case, Group, Job, Purpose, Rewritten, Size, Start, Workload};
use crate::deep::FileExtents;
use crate::disk::DiskKind;
use crate::process::Invocation;
use crate::tools::{Tools, succeed};
use crate::translated::Program;

/// One row of each kind runs with `--quick` alone, on the disk that is like the paper's.
const QUICK: &[&str] = &["vol-vis-1", "fft-256k", "video-fwd-1", "video-bwd-1"];
const ALL: &[DiskKind] = &[DiskKind::Hdd7200, DiskKind::NetworkSsd, DiskKind::Own];
/// What the programs of slicer/programs read at once, in bytes; a brick of 32 voxels is eight of it.
const UNIT: u64 = 4096;

/// The film's size in MiB, and with `--quick` when it runs backward: there each block costs a disk a turn.
const FILM_MIB: u64 = 16;
const QUICK_MIB: u64 = 4;
/// That of what is read scattered.
const SCATTERED_MIB: u64 = 512;

/// Direct rendering of a volume of 16 MiB.
struct VolVis {
    /// Voxels along a brick.
    brick: u32,
    /// Where the rays go.
    along: &'static str,
}

/// The density of a volume of 16 MiB by the distance from its centre, its voxels looked at where they are mapped.
struct Profile;

/// The Fourier transform of 2^`log2` points, in place.
struct Fft {
    log2: u32,
}

/// What is scattered over a file of 512 MiB: bricks along oblique rays, or rows in the order of an index.
struct Scattered {
    by_index: bool,
}

/// A film forward or backward.
struct Video {
    backward: bool,
    stride: u64,
}

impl Video {
    /// The film's size, in MiB.
    fn mebibytes(&self, size: Size) -> u64 {
        if self.backward && size == Size::Quick {
            QUICK_MIB
        } else {
            FILM_MIB
        }
    }
}

/// The rows of Table 1, in its order, and the mapped volume.
pub fn cases() -> Vec<Case> {
    let case = |name, about, purpose, work| Case {
        name,
        group: Group::Slice,
        about,
        disks: ALL,
        quick: if QUICK.contains(&name) {
            &[DiskKind::Hdd7200]
        } else {
            &[]
        },
        needs: &[("cc", "gcc"), ("size", "binutils")],
        purpose,
        start: Start::Cold,
        work,
    };
    let volume = |name, about, brick, along| {
        let work = Box::new(VolVis { brick, along }) as Box<dyn Workload>;
        case(name, about, Purpose::Gain, work)
    };
    let fft = |name, about, log2| case(name, about, Purpose::NoHarm, Box::new(Fft { log2 }));
    let video = |name, about, backward, stride| {
        let purpose = if backward {
            Purpose::Gain
        } else {
            Purpose::NoHarm
        };
        case(name, about, purpose, Box::new(Video { backward, stride }))
    };
    let scattered =
        |name, about, by_index| case(name, about, Purpose::Gain, Box::new(Scattered { by_index }));
    const STRAIGHT: &str = "0,0,1";
    // The paper does not tell its direction; along this one as many bricks are met of either size.
    const OBLIQUE: &str = "17,17,18";
    vec![
        volume(
            "vol-vis-1",
            "volume straight through, bricks of 4 KiB",
            16,
            STRAIGHT,
        ),
        volume(
            "vol-vis-2",
            "volume obliquely, bricks of 4 KiB",
            16,
            OBLIQUE,
        ),
        volume(
            "vol-vis-3",
            "volume straight through, bricks of 32 KiB",
            32,
            STRAIGHT,
        ),
        volume(
            "vol-vis-4",
            "volume obliquely, bricks of 32 KiB",
            32,
            OBLIQUE,
        ),
        fft(
            "fft-256k",
            "Fourier transform of 256K points in one file",
            18,
        ),
        fft(
            "fft-512k",
            "Fourier transform of 512K points in one file",
            19,
        ),
        video("video-fwd-1", "film forward, every 4 KiB", false, UNIT),
        video("video-bwd-1", "film backward, every 4 KiB", true, UNIT),
        video(
            "video-fwd-2",
            "film forward, every other 4 KiB",
            false,
            2 * UNIT,
        ),
        video(
            "video-bwd-2",
            "film backward, every other 4 KiB",
            true,
            2 * UNIT,
        ),
        case(
            "profile",
            "mapped volume, bricks of 4 KiB from its centre outward",
            Purpose::Gain,
            Box::new(Profile),
        ),
        Case {
            disks: &[DiskKind::NetworkSsd, DiskKind::Own],
            ..scattered(
                "bricks",
                "volume of 512 MB obliquely, bricks of 4 KiB",
                false,
            )
        },
        Case {
            disks: &[DiskKind::NetworkSsd, DiskKind::Own],
            ..scattered(
                "rows",
                "rows of 4 KiB of a table of 512 MB, by an index",
                true,
            )
        },
    ]
}

/// Has slicer/programs' own generator make a file.
fn generate(kind: &str, size: u64, file: &Path, tools: &Tools) -> Result<()> {
    let source = include_str!("../../../../slicer/programs/generate.c");
    let program = tools.compiled_with("generate", source, &["-lm".into()])?;
    succeed(
        Command::new(program)
            .arg(kind)
            .arg(size.to_string())
            .arg(file),
    )
}

/// A program of slicer/programs with these arguments, as it is and translated.
fn job(
    program: &str,
    arguments: &[&str],
    file: &Path,
    scratch: &Path,
    tools: &Tools,
) -> Result<Job> {
    let compiled = Program::compile(program, tools)?;
    let words = ["-k", "1"].iter().chain(arguments);
    let mut args: Vec<_> = words.map(|word| (*word).into()).collect();
    args.push(file.into());
    let command = Invocation {
        program: compiled.plain.clone(),
        args,
        cwd: scratch.to_owned(),
        env: Vec::new(),
    };
    Ok(Job {
        translated: Some(compiled.instead(&command, scratch, tools)?),
        command,
        files: vec![file.to_owned()],
        ..Job::default()
    })
}

impl Workload for VolVis {
    fn data_name(&self) -> &'static str {
        match self.brick {
            16 => "volume-16",
            _ => "volume-32",
        }
    }

    fn generate(&self, dir: &Path, _: Size, tools: &Tools) -> Result<()> {
        generate("volume", self.brick.into(), &dir.join("volume"), tools)
    }

    fn job(&self, dir: &Path, scratch: &Path, _: Size, tools: &Tools) -> Result<Job> {
        let brick = self.brick.to_string();
        job(
            "raycast",
            &["-b", &brick, "-v", self.along],
            &dir.join("volume"),
            scratch,
            tools,
        )
    }
}

impl Workload for Scattered {
    fn data_name(&self) -> &'static str {
        "scattered"
    }

    fn generate(&self, dir: &Path, _: Size, tools: &Tools) -> Result<()> {
        generate("film", SCATTERED_MIB, &dir.join("table"), tools)?;
        generate("index", SCATTERED_MIB, &dir.join("index"), tools)
    }

    fn job(&self, dir: &Path, scratch: &Path, _: Size, tools: &Tools) -> Result<Job> {
        let (table, index) = (dir.join("table"), dir.join("index"));
        if !self.by_index {
            return job("bricks", &[], &table, scratch, tools);
        }
        let index_name = index.to_string_lossy();
        let mut job = job("rows", &[&index_name], &table, scratch, tools)?;
        job.files.push(index);
        Ok(job)
    }
}

impl Workload for Profile {
    fn data_name(&self) -> &'static str {
        "volume-16"
    }

    fn generate(&self, dir: &Path, _: Size, tools: &Tools) -> Result<()> {
        generate("volume", 16, &dir.join("volume"), tools)
    }

    fn job(&self, dir: &Path, scratch: &Path, _: Size, tools: &Tools) -> Result<Job> {
        job("profile", &[], &dir.join("volume"), scratch, tools)
    }
}

impl Workload for Fft {
    fn data_name(&self) -> &'static str {
        match self.log2 {
            18 => "points-18",
            _ => "points-19",
        }
    }

    fn generate(&self, dir: &Path, _: Size, tools: &Tools) -> Result<()> {
        let pristine = dir.join("pristine");
        generate("points", self.log2.into(), &pristine, tools)?;
        let file = dir.join("points");
        Rewritten { file, pristine }.restore()
    }

    fn job(&self, dir: &Path, scratch: &Path, _: Size, tools: &Tools) -> Result<Job> {
        let (file, pristine) = (dir.join("points"), dir.join("pristine"));
        // Half of the file: what it writes behind that is in memory when it is read.
        let pages = (0..8 << self.log2)
            .step_by(UNIT as usize)
            .map(|at| at / UNIT);
        Ok(Job {
            footprint: Some(vec![FileExtents::of_pages(file.clone(), pages.collect())]),
            outputs: vec![file.clone()],
            rewritten: Some(Rewritten {
                file: file.clone(),
                pristine,
            }),
            ..job("fft", &[&self.log2.to_string()], &file, scratch, tools)?
        })
    }
}

impl Workload for Video {
    fn data_name(&self) -> &'static str {
        if self.backward {
            "film-backward"
        } else {
            "film"
        }
    }

    fn generate(&self, dir: &Path, size: Size, tools: &Tools) -> Result<()> {
        generate("film", self.mebibytes(size), &dir.join("film"), tools)
    }

    fn job(&self, dir: &Path, scratch: &Path, size: Size, tools: &Tools) -> Result<Job> {
        let file = dir.join("film");
        let blocks = (0..self.mebibytes(size) << 20).step_by(self.stride as usize);
        let footprint = FileExtents::of_pages(file.clone(), blocks.map(|at| at / UNIT).collect());
        let stride = self.stride.to_string();
        let mut arguments = vec!["-s", &stride];
        if self.backward {
            arguments.push("-b");
        }
        Ok(Job {
            footprint: Some(vec![footprint]),
            ..job("video", &arguments, &file, scratch, tools)?
        })
    }
}
