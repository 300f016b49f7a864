//! Messages as people write them: numbers with their nouns, the system's reasons without their numbers.

/// So many of something, in the singular where it is one: `1 read`, `2 reads`.
pub(crate) fn counted(count: u64, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// A message without the ` (os error 2)` that the standard library adds to each of the system's reasons.
pub(crate) fn plain(message: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_nothing_else_is() {
        let told = [0, 1, 2].map(|count| counted(count, "process", "processes"));
        assert_eq!(told, ["0 processes", "1 process", "2 processes"]);
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
}
