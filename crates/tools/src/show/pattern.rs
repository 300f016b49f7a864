//! The pattern of a file's reads, in a few words.
//!
//! Each read is compared with the previous read of the same file by the same thread. It continues there, or jumps by a stride, or is
//! anywhere. Strides are counted in bounded memory (Misra and Gries' frequent items).
//!
//! Data flow: [`Pattern::add`] for each pair of reads, then [`Pattern::describe`]; pure.

use foreread_words::units::bytes;

/// Strides counted at the same time.
const COUNTERS: usize = 8;
/// Share of the reads that a pattern must have to be named.
const NAMED: f64 = 0.2;

/// Counts of the steps from one read to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pattern {
    /// Reads with a previous read.
    pairs: u64,
    /// Reads that began where the previous read ended.
    sequential: u64,
    /// Reads that began before the previous read.
    backward: u64,
    /// Frequent strides, from start to start in bytes, each with a lower bound of its count.
    strides: Vec<(i64, u64)>,
}

impl Pattern {
    /// Adds a read at `offset` that followed a read with `before` (offset and length), in bytes.
    pub(crate) fn add(&mut self, before: (u64, u64), offset: u64) {
        self.pairs += 1;
        if before.0.saturating_add(before.1) == offset {
            self.sequential += 1;
            return;
        }
        let stride = offset.wrapping_sub(before.0) as i64;
        if stride < 0 {
            self.backward += 1;
        }
        self.count(stride);
    }

    fn count(&mut self, stride: i64) {
        if let Some((_, count)) = self.strides.iter_mut().find(|(known, _)| *known == stride) {
            *count += 1;
        } else if self.strides.len() < COUNTERS {
            self.strides.push((stride, 1));
        } else {
            for (_, count) in &mut self.strides {
                *count -= 1;
            }
            self.strides.retain(|(_, count)| *count > 0);
        }
    }

    /// Share of the reads that began where the previous read ended.
    pub(crate) fn sequential_share(&self) -> Option<f64> {
        (self.pairs > 0).then(|| self.sequential as f64 / self.pairs as f64)
    }

    /// Share of the reads that began before the previous read.
    pub(crate) fn backward_share(&self) -> Option<f64> {
        (self.pairs > 0).then(|| self.backward as f64 / self.pairs as f64)
    }

    /// The most frequent stride in bytes, and its share of the reads.
    pub(crate) fn stride(&self) -> Option<(i64, f64)> {
        let (stride, count) = self.strides.iter().max_by_key(|(_, count)| *count)?;
        Some((*stride, *count as f64 / self.pairs as f64))
    }

    /// The pattern in a few words.
    pub(crate) fn describe(&self) -> String {
        let Some(sequential) = self.sequential_share() else {
            return "once".to_owned();
        };
        let percent = |share: f64| (share * 100.0).round() as u64;
        if sequential >= 1.0 - NAMED {
            return format!("{} % sequential", percent(sequential));
        }
        if let Some((stride, share)) = self.stride().filter(|(_, share)| *share >= NAMED) {
            let direction = match stride {
                0 => return format!("{} % again the same", percent(share)),
                ..0 => "back",
                1.. => "forward",
            };
            let step = bytes(stride.unsigned_abs());
            return format!("{} % {direction} {step}", percent(share));
        }
        if sequential >= NAMED {
            return format!("{} % sequential", percent(sequential));
        }
        "random".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(offsets: impl IntoIterator<Item = u64>) -> String {
        let mut pattern = Pattern::default();
        let mut before = None;
        for offset in offsets {
            if let Some(before) = before {
                pattern.add(before, offset);
            }
            before = Some((offset, 4096));
        }
        pattern.describe()
    }

    #[test]
    fn patterns_are_told_apart() {
        assert_eq!(pattern([0]), "once");
        assert_eq!(pattern((0..100).map(|n| n * 4096)), "100 % sequential");
        assert_eq!(
            pattern((0..100).map(|n| n * 65_536)),
            "100 % forward 64.0 KiB"
        );
        assert_eq!(
            pattern((0..100).rev().map(|n| n * 4096)),
            "100 % back 4.00 KiB"
        );
        assert_eq!(pattern([8192; 9]), "100 % again the same");
        let scattered = std::iter::successors(Some(1u64), |n| {
            Some(n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1))
        });
        let scattered = scattered.map(|n| n >> 30).take(1000);
        assert_eq!(pattern(scattered), "random");
    }

    #[test]
    fn a_common_stride_is_found_among_noise() {
        let mut offset = 0u64;
        let offsets = (0..3000u64).map(move |n| {
            offset += if n % 3 == 0 { 100_000 + n * 77 } else { 16_384 };
            offset
        });
        let text = pattern(offsets);
        assert!(text.ends_with("forward 16.0 KiB"), "{text}");
    }
}
