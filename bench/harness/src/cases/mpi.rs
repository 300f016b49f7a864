//! Parallel programs: the benchmarks of the paper on I/O signatures, with 2 to 16 ranks, under MPICH and Open MPI.
//!
//! The program is `programs/mpi.c`. On two processors 16 ranks cannot show the processors' speed. The bench measures how long
//! ranks wait for a file system, whose modelled server process runs before any of them. MPICH's busy waiting would spoil that, so
//! ranks that are done and ranks that compute sleep.

use std::ffi::OsString;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::Result;

use super::data::fill;
use super::words::command;
use crate::case::{Case, Data, Group, Job, Purpose, Size, Start, Workload};
use crate::disk::DiskKind;
use crate::mpi::launch::{Launch, Mpi};
use crate::tools::Tools;

const MIB: u64 = 1 << 20;
/// Bytes that patterns cover, quick and full.
const SPAN: (u64, u64) = (96 * MIB, 384 * MIB);
/// Steps of BTIO, of 42 MB each; all 40 of the paper's class B.
const STEPS: (u64, u64) = (2, 40);

/// Bytes of BTIO's steps, rounded up.
const STEPS_SPAN: (u64, u64) = (96 * MIB, 1632 * MIB);
/// Strides of a pattern whose data grow with them, quick and full: as many as the data of the longest stride has room for.
const INTERLEAVED: (u64, u64) = (24, 96);

/// Bytes of a particle of HACC: seven variables of 4 bytes, one of 8, one of 2.
const PARTICLE: u64 = 38;

const TODAY: &[DiskKind] = &[DiskKind::Nfs, DiskKind::Striped];
const NFS: &[DiskKind] = &[DiskKind::Nfs];

/// Number of accesses of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Count {
    /// As many strides of this many bytes as the span has room for.
    Strides(u64),
    /// [`INTERLEAVED`] strides of this many bytes, all of which the ranks read: the data grow with the stride.
    Interleaved(u64),
    /// As many blocks of this many bytes as a rank's share of the span has room for.
    Blocks(u64),
    /// As many particles of HACC as a rank's share of the span has room for.
    Particles,
    /// BTIO's steps.
    Steps,
    /// As in the pattern's words.
    Given,
}

/// A pattern, without number of ranks and MPI library.
struct Pattern {
    name: &'static str,
    about: &'static str,
    words: &'static [&'static str],
    count: Count,
    ranks: &'static [u32],
    /// The numbers of ranks with --quick alone.
    quick: &'static [u32],
    disks: &'static [DiskKind],
    purpose: Purpose,
    start: Start,
}

/// Beginning of the names of patterns whose program writes its file.
const WRITES: &str = "flash-";

/// A pattern that is measured with every number of ranks, on every parallel file system.
const ROW: Pattern = Pattern {
    name: "",
    about: "",
    words: &[],
    count: Count::Given,
    ranks: &[2, 4, 8, 16],
    quick: &[],
    disks: &[
        DiskKind::Nfs,
        DiskKind::Nfs2008,
        DiskKind::Striped,
        DiskKind::Striped2008,
    ],
    purpose: Purpose::Gain,
    start: Start::Cold,
};
/// A pattern that foreread must leave alone.
const HARMLESS: Pattern = Pattern {
    ranks: &[4],
    disks: TODAY,
    purpose: Purpose::NoHarm,
    ..ROW
};

#[rustfmt::skip]
const PATTERNS: &[Pattern] = &[
    Pattern { name: "simple-512k", about: "PIO-Bench, simple strided, 512 KiB", words: &["simple"], count: Count::Strides(MIB / 2), ..ROW },
    Pattern { name: "simple-1m", about: "PIO-Bench, simple strided, 1 MiB", words: &["simple"], count: Count::Strides(MIB), quick: &[4], ..ROW },
    Pattern { name: "simple-2m", about: "PIO-Bench, simple strided, 2 MiB", words: &["simple"], count: Count::Strides(2 * MIB), ..ROW },
    Pattern { name: "simple-4m", about: "PIO-Bench, simple strided, 4 MiB", words: &["simple"], count: Count::Strides(4 * MIB), ..ROW },
    Pattern { name: "nested-512k", about: "PIO-Bench, nested strided, 512 KiB", words: &["nested"], count: Count::Strides(MIB / 2), ..ROW },
    Pattern { name: "nested-1m", about: "PIO-Bench, nested strided, 1 MiB", words: &["nested"], count: Count::Strides(MIB), quick: &[4], ..ROW },
    Pattern { name: "nested-2m", about: "PIO-Bench, nested strided, 2 MiB", words: &["nested"], count: Count::Strides(2 * MIB), ..ROW },
    Pattern { name: "nested-4m", about: "PIO-Bench, nested strided, 4 MiB", words: &["nested"], count: Count::Strides(4 * MIB), ..ROW },
    Pattern { name: "whole-512k", about: "simple strided, 512 KiB, all of it read", words: &["simple"], count: Count::Interleaved(MIB / 2), ..ROW },
    Pattern { name: "whole-1m", about: "simple strided, 1 MiB, all of it read", words: &["simple"], count: Count::Interleaved(MIB), ..ROW },
    Pattern { name: "whole-2m", about: "simple strided, 2 MiB, all of it read", words: &["simple"], count: Count::Interleaved(2 * MIB), ..ROW },
    Pattern { name: "whole-4m", about: "simple strided, 4 MiB, all of it read", words: &["simple"], count: Count::Interleaved(4 * MIB), ..ROW },
    Pattern { name: "segmented", about: "PIO-Bench, segmented, 4 KiB one after the other", words: &["segmented"], count: Count::Blocks(4096), ..ROW },
    Pattern { name: "ior", about: "IOR, 32 KiB one after the other", words: &["ior", "-b", "32768"], count: Count::Blocks(32768), quick: &[4], ..ROW },
    Pattern { name: "hacc", about: "HACC-IO's restart, 256 KiB: nine variables, a slice of each a rank", words: &["hacc", "-b", "262144"],
        count: Count::Particles, ranks: &[2, 4], quick: &[2, 4], disks: TODAY, ..ROW },
    Pattern { name: "btio", about: "BTIO class B, collective steps", words: &["btio"], count: Count::Steps, ranks: &[4, 9, 16], quick: &[4], ..ROW },
    Pattern { name: "compute-1m", about: "simple strided, 2 ms of computing a read", words: &["simple", "-c", "2000"], count: Count::Strides(MIB), ranks: &[2, 4], quick: &[2], ..ROW },
    Pattern { name: "tile", about: "mpi-tile-io, one collective read a rank", words: &["tile"], quick: &[4], ..HARMLESS },
    Pattern { name: "single", about: "one read of 4 MiB a rank", words: &["single", "-b", "65536", "-n", "64"], quick: &[4], ..HARMLESS },
    Pattern { name: "flash-checkpoint", about: "FLASH's checkpoint: writes alone", words: &["flash-checkpoint", "-r", "8"], quick: &[4], ..HARMLESS },
    Pattern { name: "flash-centred", about: "FLASH's centred plot file: writes alone", words: &["flash-centred", "-r", "40"], ..HARMLESS },
    Pattern { name: "flash-corners", about: "FLASH's corner plot file: writes alone", words: &["flash-corners", "-r", "40"], ..HARMLESS },
    Pattern { name: "tracing", about: "128 KiB after 128 KiB in memory, recorded", words: &["segmented", "-b", "131072", "-r", "40"], count: Count::Blocks(131_072),
        ranks: &[2], quick: &[2], disks: NFS, start: Start::Hot, ..HARMLESS },
];

/// A pattern's command with a number of ranks.
struct Ranks {
    pattern: &'static Pattern,
    ranks: u32,
    mpi: Mpi,
}

static NAMED: LazyLock<Vec<(String, Ranks)>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for pattern in PATTERNS {
        for &ranks in pattern.ranks {
            for mpi in Mpi::ALL {
                let name = format!("{}-{ranks}-{}", pattern.name, mpi.name());
                all.push((
                    name,
                    Ranks {
                        pattern,
                        ranks,
                        mpi,
                    },
                ));
            }
        }
    }
    all
});

static FIELD: Data = Data {
    name: "mpi",
    make: |dir, size, _| fill(&dir.join("field"), size.pick(SPAN.0, SPAN.1), 30),
};

/// The field that BTIO reads.
static STEPS_FIELD: Data = Data {
    name: "mpi-steps",
    make: |dir, size, _| {
        fill(
            &dir.join("field"),
            size.pick(STEPS_SPAN.0, STEPS_SPAN.1),
            30,
        )
    },
};

pub fn cases() -> impl Iterator<Item = Case> {
    NAMED.iter().map(|(name, work)| Case {
        name,
        group: Group::Mpi,
        about: work.pattern.about,
        data: match work.pattern.count {
            Count::Steps => &STEPS_FIELD,
            _ => &FIELD,
        },
        work,
        disks: work.pattern.disks,
        quick: match work.pattern.quick.contains(&work.ranks) {
            true if work.pattern.purpose == Purpose::Gain => TODAY,
            true => NFS,
            false => &[],
        },
        needs: match work.mpi {
            Mpi::Mpich => &[("mpirun.mpich", "mpich"), ("mpicc.mpich", "libmpich-dev")],
            Mpi::OpenMpi => &[
                ("mpirun.openmpi", "openmpi-bin"),
                ("mpicc.openmpi", "libopenmpi-dev"),
            ],
        },
        purpose: work.pattern.purpose,
        start: work.pattern.start,
        floors: &[],
    })
}

impl Ranks {
    /// The words after the program's name and before the file.
    fn words(&self, size: Size) -> Vec<String> {
        let span = size.pick(SPAN.0, SPAN.1);
        let mut words: Vec<String> = self
            .pattern
            .words
            .iter()
            .map(|word| (*word).to_owned())
            .collect();
        let count = match self.pattern.count {
            Count::Strides(stride) => {
                words.extend(["-s".into(), stride.to_string()]);
                span / stride
            }
            Count::Interleaved(stride) => {
                let block = stride / u64::from(self.ranks);
                words.extend(
                    ["-s", &stride.to_string(), "-b", &block.to_string()].map(str::to_owned),
                );
                size.pick(INTERLEAVED.0, INTERLEAVED.1)
            }
            Count::Blocks(block) => span / block / u64::from(self.ranks),
            Count::Particles => span / PARTICLE / u64::from(self.ranks),
            Count::Steps => size.pick(STEPS.0, STEPS.1),
            Count::Given => return words,
        };
        words.extend(["-n".into(), count.to_string()]);
        words
    }
}

impl Workload for Ranks {
    fn job(&self, dir: &Path, scratch: &Path, size: Size, tools: &Tools) -> Result<Job> {
        let compiler = format!("mpicc.{}", self.mpi.name());
        let source = include_str!("../../../programs/mpi.c");
        let name = format!("mpi-{}", self.mpi.name());
        let program = tools.compiled_by(&compiler, &name, source, &[])?;
        let made = dir.join(format!("made-{}", std::process::id()));
        let writes = self.pattern.name.starts_with(WRITES);
        let (file, outputs, fresh_dir) = match writes {
            true => (made.join("out"), vec![made.join("out")], Some(made)),
            false => (dir.join("field"), Vec::new(), None),
        };
        let figures = scratch.join("figures");
        let mut args: Vec<OsString> = self.words(size).into_iter().map(Into::into).collect();
        args.extend(["-o".into(), figures.clone().into(), file.clone().into()]);
        Ok(Job {
            command: command(program, args, dir),
            files: if writes { Vec::new() } else { vec![file] },
            outputs,
            fresh_dir,
            launch: Some(Launch {
                mpi: self.mpi,
                ranks: self.ranks,
                figures,
            }),
            ..Job::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::tools::in_path;

    /// The reads of a rank: (offset, length).
    type Pieces = Vec<(usize, usize)>;

    /// The output of `mpi` for a file with these bytes, of which each rank reads these pieces.
    fn expected(name: &str, bytes: &[u8], ranks: &[Pieces]) -> String {
        let (mut moved, mut all) = (0, 0_u64);
        for (rank, pieces) in (0_u64..).zip(ranks) {
            let mut sum = 0_u64;
            for &(at, len) in pieces {
                moved += len;
                for word in bytes[at..at + len].chunks_exact(8) {
                    let word = u64::from_ne_bytes(word.try_into().unwrap());
                    sum = sum.wrapping_mul(31).wrapping_add(word);
                }
            }
            all = all.wrapping_add(sum.wrapping_mul(2 * rank + 1));
        }
        format!(
            "{name}, {} ranks: {moved} bytes, checksum {all:016x}\n",
            ranks.len()
        )
    }

    /// Bytes of a cell of 5 numbers.
    const CELL: usize = 40;

    /// The pieces of a field of 6^3 cells, of which rank `rank` of 4 has a block of 3^3 in each of two layers.
    fn diagonal(rank: usize) -> Pieces {
        let mut pieces = Vec::new();
        for layer in 0..2 {
            let (y0, x0) = ((rank / 2 + layer) % 2 * 3, (rank % 2 + layer) % 2 * 3);
            for z in layer * 3..layer * 3 + 3 {
                for y in y0..y0 + 3 {
                    pieces.push((((z * 6 + y) * 6 + x0) * CELL, 3 * CELL));
                }
            }
        }
        pieces
    }

    #[test]
    fn each_pattern_reads_what_the_paper_describes() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fill(&file, 4 * MIB, 1).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        let each = |pieces: &dyn Fn(usize) -> Pieces| (0..2).map(pieces).collect::<Vec<_>>();
        let patterns: [(&str, Vec<Pieces>); 7] = [
            (
                "simple -s 65536 -b 32768 -n 2",
                each(&|rank| vec![(rank * 32768, 32768), (65536 + rank * 32768, 32768)]),
            ),
            (
                "nested -s 65536 -n 2",
                each(&|rank| {
                    let at = |i: usize, part: usize| (i * 65536 + (rank * 4 + part) * 4096, 4096);
                    vec![at(0, 0), at(0, 2), at(1, 0), at(1, 2)]
                }),
            ),
            (
                "segmented -n 2",
                each(&|rank| vec![(rank * 8192, 4096), (rank * 8192 + 4096, 4096)]),
            ),
            (
                "ior -b 4096 -n 2",
                each(&|rank| vec![(rank * 8192, 4096), (rank * 8192 + 4096, 4096)]),
            ),
            (
                "hacc -b 8192 -n 4096",
                each(&|rank| {
                    // Before each variable, those of both ranks' earlier ones.
                    let sizes = [4, 4, 4, 4, 4, 4, 4, 8, 2];
                    let slice = |v: usize| {
                        let before: usize = sizes[..v].iter().sum();
                        2 * before * 4096 + rank * sizes[v] * 4096
                    };
                    let pieces = |v: usize| (0..sizes[v] * 4096 / 8192).map(move |n| n * 8192);
                    let all = (0..9).flat_map(|v| pieces(v).map(move |at| (slice(v) + at, 8192)));
                    all.collect()
                }),
            ),
            (
                "single -b 4096 -n 2",
                each(&|rank| vec![(rank * 8192, 8192)]),
            ),
            ("btio -g 6 -n 1", (0..4).map(diagonal).collect()),
        ];
        for mpi in Mpi::ALL {
            let compiler = format!("mpicc.{}", mpi.name());
            let launcher = format!("mpirun.{}", mpi.name());
            if !in_path(&compiler) || !in_path(&launcher) {
                eprintln!("skipped: there is no {compiler}");
                continue;
            }
            let tools = Tools {
                root: root.path().to_owned(),
                checkout: root.path().to_owned(),
            };
            let source = include_str!("../../../programs/mpi.c");
            let program = tools
                .compiled_by(&compiler, mpi.name(), source, &[])
                .unwrap();
            for (words, ranks) in &patterns {
                let mut command = Command::new(&launcher);
                if mpi == Mpi::OpenMpi {
                    command.args(["--allow-run-as-root", "--oversubscribe"]);
                }
                command.args(["-n", &ranks.len().to_string()]).arg(&program);
                let output = command.args(words.split(' ')).arg(&file).output().unwrap();
                let name = words.split(' ').next().unwrap();
                let printed = String::from_utf8_lossy(&output.stdout);
                assert_eq!(
                    printed,
                    expected(name, &bytes, ranks),
                    "{words}: {output:?}"
                );
            }
        }
    }

    #[test]
    fn every_pattern_stays_within_the_file() {
        for (name, work) in NAMED.iter() {
            for size in [Size::Quick, Size::Full] {
                let file = match work.pattern.count {
                    Count::Steps => size.pick(STEPS_SPAN.0, STEPS_SPAN.1),
                    _ => size.pick(SPAN.0, SPAN.1),
                };
                let needed = match (work.pattern.count, work.pattern.words[0]) {
                    (Count::Strides(_) | Count::Blocks(_) | Count::Particles, _) => {
                        size.pick(SPAN.0, SPAN.1)
                    }
                    (Count::Interleaved(stride), _) => {
                        size.pick(INTERLEAVED.0, INTERLEAVED.1) * stride
                    }
                    (Count::Steps, _) => size.pick(STEPS.0, STEPS.1) * 102 * 102 * 102 * 40,
                    (Count::Given, "tile") => u64::from(work.ranks) * 100 * 100 * 1024,
                    (Count::Given, "single") => u64::from(work.ranks) * 65536 * 64,
                    (Count::Given, _) => 0,
                };
                assert!(needed <= file, "{name}: {needed} of {file}");
            }
        }
    }
}
