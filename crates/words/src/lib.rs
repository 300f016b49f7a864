//! Messages as people write them: numbers with their nouns, the system's reasons without their numbers, names that a
//! terminal does not act on.

#![forbid(unsafe_code)]

pub mod units;

use std::borrow::Cow;

/// So many of something, in the singular where it is one: `1 read`, `2 reads`.
pub fn counted(count: u64, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// Text for a line on a terminal: a newline or another control character, which a file's or program's name may well
/// hold, is shown as `?`, not acted on. So are the characters that change the direction of text, and those without width.
pub fn shown(text: &str) -> Cow<'_, str> {
    if text.contains(steers) {
        text.replace(steers, "?").into()
    } else {
        text.into()
    }
}

/// Whether a character has a terminal do something else than show it: a control character, or one of Unicode's for
/// the direction of text, and those without width.
fn steers(c: char) -> bool {
    let turns = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    c.is_control() || turns
}

/// A message as [`shown`], without the ` (os error 2)` that the standard library adds to each of the system's reasons.
pub fn plain(message: &str) -> String {
    let message = shown(message);
    let mut parts = message.split(" (os error ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.parse::<i32>().is_ok() => text.push_str(rest),
            _ => text.extend([" (os error ", part]),
        }
    }
    text
}

/// A word as it could be typed again.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%^".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", shown(word).replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_nothing_else_is() {
        let told = [0, 1, 2].map(|count| counted(count, "process", "processes"));
        assert_eq!(told, ["0 processes", "1 process", "2 processes"]);
    }

    #[test]
    fn names_stay_on_one_line_and_steer_no_terminal() {
        assert_eq!(shown("d\na\tt\x1b[2Ja\u{9b}"), "d?a?t?[2Ja?");
        assert_eq!(shown("ü…"), "ü…");
        assert_eq!(shown("\u{202e}gpj.exe a\u{200b}b"), "?gpj.exe a?b");
        assert_eq!(plain("d\na: gone (os error 2)"), "d?a: gone");
    }

    #[test]
    fn the_systems_reasons_have_no_numbers() {
        let missing = std::io::Error::from_raw_os_error(2);
        assert_eq!(
            plain(&format!("a: {missing}; b: {missing}, twice")),
            "a: No such file or directory; b: No such file or directory, twice"
        );
        assert_eq!(
            plain("a (os error x) (os error"),
            "a (os error x) (os error"
        );
    }

    #[test]
    fn words_with_spaces_and_quotes_are_quoted() {
        assert_eq!(quoted("a/b.c"), "a/b.c");
        assert_eq!(quoted("select *"), "'select *'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("\x1b[2J"), "'?[2J'");
    }
}
