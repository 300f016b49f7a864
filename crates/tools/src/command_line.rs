//! A record's command line as text.

use foreread_plan::Identity;
use foreread_words::quoted;

/// Characters of a short command line, at most.
const SHORT: usize = 240;

/// A command line, quoted for a shell.
pub(crate) fn command_line(identity: &Identity) -> String {
    identity
        .argv
        .iter()
        .map(|word| quoted(word))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A command line for display: a very long one is cut, and its number of words is added.
pub(crate) fn short_command_line(identity: &Identity) -> String {
    let whole = command_line(identity);
    match whole.char_indices().nth(SHORT) {
        None => whole,
        Some((end, _)) => format!("{}… ({} words)", &whole[..end], identity.argv.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_very_long_command_line_is_cut_and_its_words_counted() {
        let identity = |words: usize| Identity {
            exe: String::new(),
            argv: vec!["words".to_owned(); words],
            cwd: String::new(),
            rank: None,
        };
        assert_eq!(short_command_line(&identity(3)), "words words words");
        let short = short_command_line(&identity(1000));
        assert!(short.ends_with("… (1000 words)"), "{short}");
        assert!(short.chars().count() < SHORT + 20, "{short}");
    }
}
