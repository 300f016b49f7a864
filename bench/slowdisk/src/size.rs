//! Sizes in the form that users write: `8G`, `512M`, `1048576`.

use crate::Error;

/// The smallest disk: ext4 with a journal, and some room.
const LEAST: u64 = 16 << 20;
/// The size of the modelled disk.
const MOST: u64 = 500_000_000_000;

/// Bytes from a number with an optional unit K, M, G or T (powers of 1024).
pub fn parse_size(text: &str) -> Result<u64, Error> {
    let error = |why| Error::Size {
        value: text.to_owned(),
        why,
    };
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" | "k" | "KiB" => 10,
        "M" | "m" | "MiB" => 20,
        "G" | "g" | "GiB" => 30,
        "T" | "t" | "TiB" => 40,
        _ => return Err(error("the unit is one of K, M, G, T")),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| error("not a whole number with an optional unit, like 8G"))?;
    let size = number
        .checked_mul(1 << shift)
        .ok_or_else(|| error("too large"))?;
    match size {
        LEAST..=MOST if size.is_multiple_of(4096) => Ok(size),
        LEAST..=MOST => Err(error("not a multiple of 4096")),
        _ => Err(error("a slow disk has between 16M and 465G")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024() {
        assert_eq!(parse_size("8G").unwrap(), 8 << 30);
        assert_eq!(parse_size("64m").unwrap(), 64 << 20);
        assert_eq!(parse_size("16777216").unwrap(), 16 << 20);
    }

    #[test]
    fn nonsense_is_refused_with_the_value_named() {
        for bad in [
            "",
            "G",
            "8X",
            "-8G",
            "8 G",
            "1G1",
            "8M",
            "16777217",
            "99999999T",
            "9T",
            "8GB",
        ] {
            let message = parse_size(bad).expect_err(bad).to_string();
            assert!(message.contains(&format!("{bad:?}")), "{message}");
        }
    }
}
