//! Reproducible damage, for the tests of the decoders.

use fastrand::Rng;

/// `original` with one to three places changed, removed, repeated or cut off.
pub(super) fn mutate(original: &[u8], noise: &mut Rng) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..=noise.usize(..3) {
        if bytes.is_empty() {
            break;
        }
        let at = noise.usize(..bytes.len());
        match noise.usize(..8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, noise.u8(..)),
            3 => bytes[at] = [0, 0x7f, 0x80, 0xff][noise.usize(..4)],
            4 => bytes[at] ^= 1 << noise.usize(..8),
            // The first bytes are counts and widths: worth more than their share.
            5 => bytes[at.min(9)] = noise.u8(..16),
            _ => bytes[at] = noise.u8(..),
        }
    }
    bytes
}
