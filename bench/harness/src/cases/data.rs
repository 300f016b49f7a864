//! Deterministic data: a small generator, and files filled from it.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};

/// SplitMix64: deterministic, and random enough to defeat compression and guesses.
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Writes `bytes` pseudo-random bytes to a new file at `path`; `bytes` is a multiple of 8.
pub fn fill(path: &Path, bytes: u64, seed: u64) -> Result<()> {
    let file = File::create(path).with_context(|| format!("creating {}", path.display()))?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let mut random = Random(seed);
    for _ in 0..bytes / 8 {
        out.write_all(&random.next().to_le_bytes())
            .with_context(|| format!("writing {}", path.display()))?;
    }
    out.flush()
        .with_context(|| format!("writing {}", path.display()))
}

/// Writes a file below `dir`; creates its folder if necessary.
pub fn write(dir: &Path, name: &str, content: impl AsRef<[u8]>) -> Result<()> {
    let path = dir.join(name);
    let folder = path.parent().unwrap_or(dir);
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    fs::write(&path, content).with_context(|| format!("writing {}", path.display()))
}

/// Words of made-up text, with line breaks, at least `bytes` long.
pub fn text(random: &mut Random, bytes: usize) -> String {
    const SYLLABLES: [&str; 16] = [
        "ba", "con", "di", "fer", "gu", "hal", "in", "ko", "lem", "mi", "nor", "pa", "ri", "su",
        "tar", "ve",
    ];
    let mut text = String::with_capacity(bytes + 16);
    let mut words = 0;
    while text.len() < bytes {
        for _ in 0..=random.below(3) {
            text.push_str(SYLLABLES[random.below(16) as usize]);
        }
        words += 1;
        text.push(if words % 12 == 0 { '\n' } else { ' ' });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_file() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str, seed| {
            fill(&dir.path().join(name), 4096, seed).unwrap();
            std::fs::read(dir.path().join(name)).unwrap()
        };
        assert_eq!(make("a", 1), make("b", 1));
        assert_ne!(make("a", 1), make("c", 2));
    }

    #[test]
    fn the_generator_is_the_c_programs_so_that_footprints_agree() {
        // The first outputs of SplitMix64 from seed 0, as published.
        let mut random = Random(0);
        assert_eq!(random.next(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.next(), 0x6e78_9e6a_a1b9_65f4);
    }
}
