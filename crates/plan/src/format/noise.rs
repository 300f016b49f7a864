//! Reproducible damage, for the tests of the decoders.

/// A small generator (splitmix64): the same numbers at every run.
pub(super) struct Noise(pub(super) u64);

impl Noise {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

/// `original` with one to three places changed, removed, repeated or cut off.
pub(super) fn mutate(original: &[u8], noise: &mut Noise) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..=noise.below(3) {
        if bytes.is_empty() {
            break;
        }
        let at = noise.below(bytes.len());
        match noise.below(8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, noise.below(256) as u8),
            3 => bytes[at] = [0, 0x7f, 0x80, 0xff][noise.below(4)],
            4 => bytes[at] ^= 1 << noise.below(8),
            // The first bytes are counts and widths: worth more than their share.
            5 => bytes[at.min(9)] = noise.below(16) as u8,
            _ => bytes[at] = noise.below(256) as u8,
        }
    }
    bytes
}
