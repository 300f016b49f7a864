//! Programs whose reads follow a pattern, on their first run: nothing is known of them, or only what another input taught.
//!
//! `patterns.c` reads by each of the patterns, AASFP's film runs backward. The rows `other-…` learn from a run
//! on one file and are measured on another, of another size, from another start. `signature_programs`
//! has other people's programs.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::data::fill;
use crate::case::{Case, Group, Job, Purpose, Size, Start, Workload};
use crate::disk::DiskKind;
use crate::process::Invocation;
use crate::tools::{Tools, succeed};

pub(super) const ALL: &[DiskKind] = &[DiskKind::Hdd7200, DiskKind::NetworkSsd, DiskKind::Own];
const OWN: &[DiskKind] = &[DiskKind::Own];
/// Rows that run with `--quick` alone, on the machine's own disk.
const QUICK: &[&str] = &[
    "sig-bwd-1",
    "sig-64k",
    "sig-nested",
    "other-64k",
    "sig-random",
];
/// Rows that learn from another input begin so.
pub const OTHER_INPUT: &str = "other-";

const MIB: u64 = 1 << 20;

/// The files a pattern is read from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Files {
    /// `a`, of 128 MiB.
    One,
    /// `a`, of 512 MiB: for strides of megabytes.
    Wide,
    /// `a`, of 64 MiB, and `b`, of 96.
    Two,
    /// None: the program makes its own.
    Own,
}

/// A pattern of `patterns.c`.
#[derive(Clone)]
struct Pattern {
    files: Files,
    /// The pattern's name and its options.
    words: &'static str,
    /// How often, quick and full; 0 is as often as the file has room for.
    count: (u64, u64),
    /// What it is run with on `a` before, to learn, where it is measured on `b`.
    learn: Option<&'static str>,
    /// The memory it may use, in bytes.
    memory: Option<u64>,
}

/// A pattern on its first run, nothing known.
const fn pattern(files: Files, words: &'static str, count: (u64, u64)) -> Pattern {
    Pattern {
        files,
        words,
        count,
        learn: None,
        memory: None,
    }
}

/// A pattern on `b`, after a run on `a` with the words `learn`.
const fn other(learn: &'static str, words: &'static str, count: (u64, u64)) -> Pattern {
    Pattern {
        learn: Some(learn),
        ..pattern(Files::Two, words, count)
    }
}

/// With so many MiB of memory.
const fn within(memory: u64, pattern: Pattern) -> Pattern {
    Pattern {
        memory: Some(memory * MIB),
        ..pattern
    }
}

/// The film of AASFP's Backward 1 and 2, by the program of slicer/programs: lseek and read.
struct Film {
    stride: u64,
}

/// All of the group, patterns first.
pub fn cases() -> Vec<Case> {
    let row = |name, about, purpose, disks, start, work| Case {
        name,
        group: Group::Signature,
        about,
        disks,
        quick: if QUICK.contains(&name) { OWN } else { &[] },
        needs: &[("cc", "gcc")],
        purpose,
        start,
        work,
    };
    let gain = |name, about, pattern: Pattern| {
        let work = Box::new(pattern) as Box<dyn Workload>;
        row(name, about, Purpose::Gain, ALL, Start::Cold, work)
    };
    let film = |name, about, stride| {
        let work = Box::new(Film { stride });
        row(name, about, Purpose::Gain, ALL, Start::Cold, work)
    };
    let no_harm = |name, about, disks, start, pattern: Pattern| {
        row(
            name,
            about,
            Purpose::NoHarm,
            disks,
            start,
            Box::new(pattern),
        )
    };
    use Files::{One, Own, Wide};
    vec![
        film("sig-bwd-1", "film backward, every 4 KiB", 4096),
        film("sig-bwd-2", "film backward, every other 4 KiB", 8192),
        gain(
            "sig-8k",
            "4 KiB reads 8 KiB apart",
            pattern(One, "strided -s 8192", (512, 2048)),
        ),
        gain(
            "sig-64k",
            "4 KiB reads 64 KiB apart",
            pattern(One, "strided -s 65536", (512, 2048)),
        ),
        gain(
            "sig-2m",
            "4 KiB reads 2 MiB apart",
            pattern(Wide, "strided -s 2097152", (256, 256)),
        ),
        gain(
            "sig-nested",
            "4 KiB, 4 KiB, then 12 KiB apart",
            pattern(One, "nested -s 12288", (256, 1024)),
        ),
        gain(
            "sig-lu",
            "out-of-core LU in three quarters of its memory",
            within(24, pattern(One, "lu", (64, 64))),
        ),
        gain(
            "sig-column",
            "2 columns of a matrix, 8 bytes a row",
            pattern(One, "columns -b 8 -s 65536 -c 2", (512, 1024)),
        ),
        gain(
            "sig-tile",
            "a tile of a 3-D volume, by rows of 8 KiB",
            pattern(One, "tile -b 8192 -s 65536 -p 4194304", (16, 28)),
        ),
        gain(
            "sig-cur2",
            "2 cursors in turn, 16 KiB apart",
            pattern(One, "cyclic -c 2 -s 16384", (256, 1024)),
        ),
        gain(
            "sig-cur8",
            "8 cursors in turn, 16 KiB apart",
            pattern(One, "cyclic -c 8 -s 16384", (64, 256)),
        ),
        gain(
            "sig-mix2",
            "2 cursors by chance, 16 KiB apart",
            pattern(One, "mixed -c 2 -s 16384", (256, 1024)),
        ),
        gain(
            "sig-mix8",
            "8 cursors by chance, 16 KiB apart",
            pattern(One, "mixed -c 8 -s 16384", (64, 256)),
        ),
        gain(
            "sig-rungap",
            "runs of 2 MiB, 1 MiB skipped",
            pattern(One, "run-gap -b 65536 -c 32 -s 1048576", (16, 40)),
        ),
        gain(
            "sig-solver",
            "64 MiB written, read backward in 32 MiB",
            within(32, pattern(Own, "solver -b 65536", (1024, 1024))),
        ),
        gain(
            "other-bwd",
            "backward: another file, size and start",
            other(
                "strided -s -4096 -o 8388608 -n 512",
                "strided -s -4096",
                (512, 1536),
            ),
        ),
        gain(
            "other-64k",
            "64 KiB apart: another file, size and start",
            other(
                "strided -s 65536 -n 512",
                "strided -s 65536 -o 12288",
                (512, 1280),
            ),
        ),
        gain(
            "other-48k",
            "48 KiB apart, learnt with 64 KiB apart",
            other(
                "strided -s 65536 -n 512",
                "strided -s 49152 -o 12288",
                (512, 1280),
            ),
        ),
        gain(
            "other-nest",
            "nested: another file, size and start",
            other(
                "nested -s 12288 -n 256",
                "nested -s 12288 -o 4194304",
                (256, 1024),
            ),
        ),
        gain(
            "other-lu",
            "LU in three quarters of its memory, learnt with half the steps",
            within(24, other("lu -n 32", "lu", (64, 64))),
        ),
        gain(
            "other-tile",
            "a 3-D tile: another file, place and size",
            other(
                "tile -b 8192 -s 65536 -p 4194304 -n 12",
                "tile -b 8192 -s 65536 -p 4194304 -o 98304",
                (16, 22),
            ),
        ),
        gain(
            "other-cur4",
            "4 cursors: another file, size and start",
            other(
                "cyclic -c 4 -s 16384 -n 128",
                "cyclic -c 4 -s 16384 -o 8192",
                (128, 512),
            ),
        ),
        no_harm(
            "sig-random",
            "4 KiB reads by chance",
            ALL,
            Start::Cold,
            pattern(One, "random", (300, 1000)),
        ),
        no_harm(
            "sig-seq",
            "128 MiB from front to back, 4 KiB reads",
            ALL,
            Start::Cold,
            pattern(One, "strided", (0, 0)),
        ),
        no_harm(
            "sig-hot",
            "1,000,000 reads by chance, in memory",
            OWN,
            Start::Hot,
            pattern(One, "random", (1_000_000, 1_000_000)),
        ),
        no_harm(
            "sig-hotmix",
            "1,000,000 reads of 8 cursors, in memory",
            OWN,
            Start::Hot,
            pattern(One, "mixed -b 64 -c 8 -s 128", (125_000, 125_000)),
        ),
    ]
}

/// `patterns.c` with these words, over `file`.
fn command(words: &str, count: u64, file: &Path, tools: &Tools) -> Result<Invocation> {
    let source = include_str!("../../../programs/patterns.c");
    let program = tools.compiled("patterns", source)?;
    let mut args: Vec<OsString> = words.split(' ').map(Into::into).collect();
    if count > 0 {
        args.extend(["-n".into(), count.to_string().into()]);
    }
    args.push(file.into());
    Ok(Invocation {
        program,
        args,
        cwd: file.parent().unwrap_or(Path::new("/")).to_owned(),
        env: Vec::new(),
    })
}

impl Workload for Pattern {
    fn data_name(&self) -> &'static str {
        match self.files {
            Files::One => "patterns",
            Files::Wide => "patterns-wide",
            Files::Two => "patterns-two",
            Files::Own => "patterns-own",
        }
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        match self.files {
            Files::One => fill(&dir.join("a"), 128 * MIB, 21),
            Files::Wide => fill(&dir.join("a"), 512 * MIB, 22),
            Files::Two => {
                fill(&dir.join("a"), 64 * MIB, 23)?;
                fill(&dir.join("b"), 96 * MIB, 24)
            }
            Files::Own => Ok(()),
        }
    }

    fn job(&self, dir: &Path, _: &Path, size: Size, tools: &Tools) -> Result<Job> {
        let (a, b, made) = (dir.join("a"), dir.join("b"), dir.join("made"));
        let (read, files) = match self.files {
            Files::One | Files::Wide => (a.clone(), vec![a.clone()]),
            Files::Two => (b.clone(), vec![a.clone(), b]),
            Files::Own => (made.join("own"), Vec::new()),
        };
        let learn = self.learn.map(|words| command(words, 0, &a, tools));
        Ok(Job {
            command: command(
                self.words,
                size.pick(self.count.0, self.count.1),
                &read,
                tools,
            )?,
            learn: learn.transpose()?,
            files,
            fresh_dir: (self.files == Files::Own).then_some(made),
            memory_limit: self.memory,
            ..Job::default()
        })
    }
}

impl Workload for Film {
    fn data_name(&self) -> &'static str {
        "film-signature"
    }

    fn generate(&self, dir: &Path, size: Size, tools: &Tools) -> Result<()> {
        let source = include_str!("../../../../slicer/programs/generate.c");
        let program = tools.compiled_with("generate", source, &["-lm".into()])?;
        let mebibytes = size.pick(4, 16).to_string();
        succeed(
            Command::new(program)
                .args(["film", &mebibytes])
                .arg(dir.join("film")),
        )
    }

    fn job(&self, dir: &Path, _: &Path, _: Size, tools: &Tools) -> Result<Job> {
        let film = dir.join("film");
        let source = include_str!("../../../../slicer/programs/video.c");
        Ok(Job {
            command: Invocation {
                program: tools.compiled("film", source)?,
                args: vec![
                    "-b".into(),
                    "-s".into(),
                    self.stride.to_string().into(),
                    film.clone().into(),
                ],
                cwd: dir.to_owned(),
                env: Vec::new(),
            },
            files: vec![film],
            ..Job::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `patterns` prints of a file of these bytes that is read so.
    fn expected(bytes: &[u8], reads: &[(u64, u64)]) -> String {
        let mut sum = 0_u64;
        for &(offset, len) in reads {
            let part = &bytes[offset as usize..(offset + len) as usize];
            for word in part.chunks_exact(8) {
                let word = u64::from_ne_bytes(word.try_into().unwrap());
                sum = sum.wrapping_mul(31).wrapping_add(word);
            }
        }
        format!("{} reads, checksum {sum:016x}\n", reads.len())
    }

    #[test]
    fn each_pattern_reads_what_its_name_says() {
        if !crate::tools::in_path("cc") {
            eprintln!("skipped: there is no C compiler");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fill(&file, 4 * MIB, 1).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        let tools = Tools {
            root: root.path().to_owned(),
            checkout: root.path().to_owned(),
        };
        // Table 1 of the signature paper, four steps of it.
        let lu = [
            (1_049_088, 524_544),
            (524_544, 518_272),
            (0, 522_368),
            (1_573_632, 524_544),
            (524_544, 518_272),
            (1_049_088, 514_176),
            (0, 522_368),
            (2_098_176, 524_544),
            (524_544, 518_272),
            (1_049_088, 514_176),
            (1_573_632, 510_080),
            (0, 522_368),
            (2_622_720, 524_544),
            (524_544, 518_272),
            (1_049_088, 514_176),
            (1_573_632, 510_080),
            (2_098_176, 505_984),
            (0, 522_368),
        ];
        let blocks = |offsets: &[u64]| offsets.iter().map(|&at| (at, 4096)).collect::<Vec<_>>();
        let patterns = [
            (
                "strided -s 65536 -o 4096",
                3,
                blocks(&[4096, 69_632, 135_168]),
            ),
            ("strided -s -8192 -l", 2, blocks(&[4_186_112, 4_177_920])),
            ("nested -s 12288", 2, blocks(&[0, 4096, 16_384, 20_480])),
            (
                "columns -b 8 -s 65536 -c 2",
                2,
                vec![(0, 8), (65_536, 8), (32_768, 8), (98_304, 8)],
            ),
            (
                "tile -b 4096 -s 65536 -p 1048576",
                2,
                blocks(&[0, 65_536, 1_048_576, 1_114_112]),
            ),
            (
                "cyclic -c 2 -s 16384",
                2,
                blocks(&[0, 2_097_152, 16_384, 2_113_536]),
            ),
            (
                "run-gap -c 2 -s 8192",
                2,
                blocks(&[0, 4096, 16_384, 20_480]),
            ),
            ("lu", 4, lu.to_vec()),
        ];
        for (words, count, reads) in patterns {
            let command = command(words, count, &file, &tools).unwrap();
            let output = Command::new(&command.program)
                .args(&command.args)
                .output()
                .unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            assert_eq!(printed, expected(&bytes, &reads), "{words}");
        }
    }
}
