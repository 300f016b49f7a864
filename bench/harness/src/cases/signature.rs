//! First runs of programs whose reads follow a pattern: nothing is known of them, or only a run with another input.
//!
//! `patterns.c` reads with each of the patterns, AASFP's film runs backward; real programs read hyperslabs, a column of a raster,
//! a region of an array in chunks, and blur an image in swapped tiles. The rows `other-…` learn from a run on one file and are
//! measured on another, with another size and another start.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;

use super::data::{fill, write};
use crate::case::{Data, Job, Size, Workload};
use crate::process::Invocation;
use crate::tools::{Tools, shell};
use crate::tree::files_below;

/// Beginning of the names of rows that learn from another input.
pub const OTHER_INPUT: &str = "other-";

const MIB: u64 = 1 << 20;

pub(super) static PATTERNS: Data = Data {
    name: "patterns",
    make: |dir, _, _| fill(&dir.join("a"), 128 * MIB, 21),
};
/// For strides of several megabytes.
pub(super) static WIDE: Data = Data {
    name: "patterns-wide",
    make: |dir, _, _| fill(&dir.join("a"), 512 * MIB, 22),
};
pub(super) static TWO: Data = Data {
    name: "patterns-two",
    make: |dir, _, _| {
        fill(&dir.join("a"), 64 * MIB, 23)?;
        fill(&dir.join("b"), 96 * MIB, 24)
    },
};
/// No data: the program makes its own.
pub(super) static OWN: Data = Data {
    name: "patterns-own",
    make: |_, _, _| Ok(()),
};
pub(super) static FILM: Data = Data {
    name: "film-signature",
    make: |dir, size, tools| {
        super::slice::generate("film", size.pick(4, 16), &dir.join("film"), tools)
    },
};

/// A pattern of `patterns.c`.
pub(super) struct Pattern {
    /// The pattern's name and its options.
    pub words: &'static str,
    /// Number of reads, quick and full; 0 means as many as the file has room for.
    pub count: (u64, u64),
    /// Arguments of the run on `a` from which it learns; then it is measured on `b`.
    pub learn: &'static str,
    /// The memory that it may use, in MiB; 0 is unlimited.
    pub memory: u64,
}

/// Nothing known, and unlimited memory.
pub(super) const FIRST: Pattern = Pattern {
    words: "",
    count: (0, 0),
    learn: "",
    memory: 0,
};

/// `patterns.c` with these words, over `file`.
fn command(words: &str, count: u64, file: &Path, tools: &Tools) -> Result<Invocation> {
    let source = include_str!("../../../programs/patterns.c");
    let program = tools.compiled("patterns", source)?;
    let mut args: Vec<OsString> = words.split(' ').map(Into::into).collect();
    if count > 0 {
        args.extend(["-n".into(), count.to_string().into()]);
    }
    args.push(file.into());
    Ok(super::words::command(
        program,
        args,
        file.parent().unwrap_or(file),
    ))
}

impl Workload for Pattern {
    fn job(&self, dir: &Path, _: &Path, size: Size, tools: &Tools) -> Result<Job> {
        let (a, b, made) = (dir.join("a"), dir.join("b"), dir.join("made"));
        let makes = !a.exists();
        let read = match self.learn {
            _ if makes => made.join("own"),
            "" => a.clone(),
            _ => b,
        };
        let learn = (!self.learn.is_empty()).then(|| command(self.learn, 0, &a, tools));
        let mut files = files_below(dir)?;
        files.retain(|file| !file.starts_with(&made));
        Ok(Job {
            command: command(
                self.words,
                size.pick(self.count.0, self.count.1),
                &read,
                tools,
            )?,
            learn: learn.transpose()?,
            files,
            fresh_dir: makes.then_some(made),
            memory_limit: (self.memory > 0).then_some(self.memory * MIB),
            ..Job::default()
        })
    }
}

/// The film of AASFP's Backward 1 and 2, by the program of slicer/programs: lseek and read.
pub(super) struct Backward {
    pub stride: &'static str,
}

impl Workload for Backward {
    fn job(&self, dir: &Path, _: &Path, _: Size, tools: &Tools) -> Result<Job> {
        let film = dir.join("film");
        let source = include_str!("../../../../slicer/programs/video.c");
        let program = tools.compiled("film", source)?;
        let words = ["-b", "-s", self.stride, &film.to_string_lossy()];
        Ok(Job {
            command: super::words::command(program, words, dir),
            files: vec![film],
            ..Job::default()
        })
    }
}

/// 4096 by 131,072 pixels of a byte, in tiles of 128 by 128: a column is in 1,024 tiles of 16 KiB, 512 KiB apart.
pub(super) static RASTER: Data = Data {
    name: "raster",
    make: |dir, _, _| {
        fill(&dir.join("pixels"), 4096 * 131_072, 25)?;
        let header = "ENVI\nsamples = 4096\nlines = 131072\nbands = 1\nheader offset = 0\ndata type = 1\n\
                      interleave = bsq\nbyte order = 0\n";
        write(dir, "pixels.hdr", header)?;
        shell(
            dir,
            "gdal_translate -q -of GTiff -co TILED=YES -co BLOCKXSIZE=128 -co BLOCKYSIZE=128 pixels raster.tif; rm pixels*",
        )
    },
};

/// 512 x 512 x 128 floats in chunks of 16 x 16 x 16, 16 KiB each, in h5import's format.
const ARRAY: &str = "\
PATH /v
INPUT-CLASS FP
INPUT-SIZE 32
INPUT-BYTE-ORDER LE
RANK 3
DIMENSION-SIZES 512 512 128
OUTPUT-CLASS FP
OUTPUT-SIZE 32
OUTPUT-BYTE-ORDER LE
CHUNKED-DIMENSION-SIZES 16 16 16
";

pub(super) static CHUNKS: Data = Data {
    name: "chunks",
    make: |dir, _, _| {
        fill(&dir.join("values"), 512 * 512 * 128 * 4, 26)?;
        write(dir, "layout", ARRAY)?;
        shell(
            dir,
            "h5import values -c layout -o array.h5; rm values layout",
        )
    },
};

/// 3072 by 3072 pixels; in memory, a pixel takes 16 bytes.
pub(super) static IMAGE: Data = Data {
    name: "blur",
    make: |dir, _, _| {
        fill(&dir.join("pixels"), 3072 * 3072 * 3, 27)?;
        shell(
            dir,
            "printf 'P6\\n3072 3072\\n255\\n' > image.ppm; cat pixels >> image.ppm; rm pixels",
        )
    },
};

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// The output of `patterns` for a file with these bytes and these reads.
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
