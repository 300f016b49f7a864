//! Numbers as people write them: sizes, times, ages.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use textwrap::{Options, WordSplitter};

/// Columns of a terminal nobody has widened.
pub const WIDTH: usize = 80;

const SIZES: [(&str, u64); 4] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
];
/// Suffixes of ages, in seconds.
const AGES: [(&str, u64); 5] = [
    ("w", 7 * 86_400),
    ("d", 86_400),
    ("h", 3600),
    ("m", 60),
    ("s", 1),
];

/// A size in bytes, to three digits: `12.3 MiB`.
pub fn bytes(size: u64) -> String {
    match SIZES.iter().find(|(_, unit)| size >= *unit) {
        Some((name, unit)) => format!("{} {name}", three_digits(size as f64 / *unit as f64)),
        None => format!("{size} B"),
    }
}

/// A length of time given in ns, to three digits: `1.20 s`.
pub fn duration(ns: u64) -> String {
    let ns = ns as f64;
    match ns {
        ..999.5 => format!("{ns} ns"),
        ..999.5e3 => format!("{} µs", three_digits(ns / 1e3)),
        ..999.5e6 => format!("{} ms", three_digits(ns / 1e6)),
        ..99.5e9 => format!("{} s", three_digits(ns / 1e9)),
        _ => {
            let seconds = (ns / 1e9).round() as u64;
            if seconds < 3600 {
                format!("{} min {} s", seconds / 60, seconds % 60)
            } else {
                format!("{} h {} min", seconds / 3600, seconds % 3600 / 60)
            }
        }
    }
}

/// How long ago something was: `3 min ago`.
pub fn ago(then: SystemTime, now: SystemTime) -> String {
    let seconds = now.duration_since(then).map_or(0, |age| age.as_secs());
    match seconds {
        0..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

fn three_digits(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// Text cut to `width` characters, its start or its end left out.
pub fn cut(text: &str, width: usize, keep_end: bool) -> String {
    let length = text.chars().count();
    if length <= width {
        text.to_owned()
    } else if keep_end {
        let tail: String = text.chars().skip(length + 1 - width).collect();
        format!("…{tail}")
    } else {
        let head: String = text.chars().take(width - 1).collect();
        format!("{head}…")
    }
}

/// Text broken between words into lines of at most `width` characters; a longer word has a
/// line to itself.
pub fn wrapped(text: &str, width: usize) -> Vec<Cow<'_, str>> {
    let options = Options::new(width)
        .break_words(false)
        .word_splitter(WordSplitter::NoHyphenation);
    textwrap::wrap(text, options)
}

/// As [`wrapped`], but that a longer word, such as a path, is broken.
pub fn folded(text: &str, width: usize) -> Vec<Cow<'_, str>> {
    textwrap::wrap(
        text,
        Options::new(width).word_splitter(WordSplitter::NoHyphenation),
    )
}

/// Reads a size such as `4096`, `500M` or `1GiB`; all units are powers of 1024.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        suffix => SIZES.iter().find_map(|(name, unit)| {
            let name = name.to_ascii_lowercase();
            (suffix == name || suffix == &name[..1]).then_some(*unit)
        }),
    };
    digits
        .trim_end()
        .parse::<u64>()
        .ok()
        .zip(unit)
        .and_then(|(count, unit)| count.checked_mul(unit))
        .ok_or_else(|| format!("not a size: {text:?} (such as 500M or 1G)"))
}

/// Reads an age such as `30d`, `12h` or `90m`.
pub fn parse_age(text: &str) -> Result<Duration, String> {
    AGES.iter()
        .find_map(|(suffix, unit)| {
            let count: u64 = text.strip_suffix(suffix)?.trim_end().parse().ok()?;
            count.checked_mul(*unit).map(Duration::from_secs)
        })
        .ok_or_else(|| format!("not an age: {text:?} (such as 30d or 12h)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.50 KiB");
        assert_eq!(bytes(12_900_000), "12.3 MiB");
        assert_eq!(bytes(5 << 40), "5.00 TiB");
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        assert_eq!(duration(12), "12 ns");
        assert_eq!(duration(45_600), "45.6 µs");
        assert_eq!(duration(999_999), "1.00 ms");
        assert_eq!(duration(1_200_000_000), "1.20 s");
        assert_eq!(duration(192_000_000_000), "3 min 12 s");
        assert_eq!(duration(7_260_000_000_000), "2 h 1 min");
    }

    #[test]
    fn ages_of_the_future_are_now() {
        let now = SystemTime::now();
        assert_eq!(ago(now + Duration::from_secs(90), now), "just now");
        assert_eq!(ago(now - Duration::from_secs(90), now), "1 min ago");
        assert_eq!(
            ago(now - Duration::from_secs(90 * 86_400), now),
            "90 days ago"
        );
    }

    #[test]
    fn sizes_and_ages_are_read_back() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("500M"), Ok(500 << 20));
        assert_eq!(parse_size("1gib"), Ok(1 << 30));
        assert_eq!(parse_age("30d"), Ok(Duration::from_secs(30 * 86_400)));
        for wrong in ["", "G", "-1", "1X", "99999999T", "1.5G"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
        assert!(parse_age("30").is_err());
    }

    #[test]
    fn wrapped_lines_keep_to_the_width_where_words_allow() {
        assert_eq!(wrapped("ab cd efghij k", 5), ["ab cd", "efghij", "k"]);
        assert_eq!(folded("ab cd efghij k", 5), ["ab cd", "efghi", "j k"]);
    }

    #[test]
    fn cut_text_has_the_width_asked_for() {
        assert_eq!(cut("abcdef", 6, true), "abcdef");
        assert_eq!(cut("abcdefg", 6, true), "…cdefg");
        assert_eq!(cut("äöüäöüä", 6, false), "äöüäö…");
    }
}
