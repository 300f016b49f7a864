//! Response files: `@FILE` on a compiler's command line stands for the words in the file.
//!
//! Words are separated by white space. Single and double quotes group, and a backslash quotes the next character, inside quotes as well
//! (GCC's manual, "Overall Options"). Words of the form `@FILE` in a response file are expanded likewise.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// As deep as response files may name one another; one that names itself ends here.
const DEPTH: usize = 32;

/// The command line with its response files expanded, and true if there was one. A word that names no readable file stays unchanged, as in
/// the compiler.
pub(super) fn expand(args: &[OsString]) -> (Vec<OsString>, bool) {
    let mut expanded = Vec::with_capacity(args.len());
    let mut any = false;
    for arg in args {
        any |= expand_one(arg, DEPTH, &mut expanded);
    }
    (expanded, any)
}

fn expand_one(arg: &OsStr, depth: usize, out: &mut Vec<OsString>) -> bool {
    let content = arg
        .as_bytes()
        .strip_prefix(b"@")
        .filter(|_| depth > 0)
        .and_then(|path| fs::read(OsStr::from_bytes(path)).ok());
    let Some(content) = content else {
        out.push(arg.to_owned());
        return false;
    };
    for word in split(&content) {
        expand_one(&word, depth - 1, out);
    }
    true
}

fn split(content: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = content.iter().copied();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'\\', _) => word.get_or_insert_default().extend(bytes.next()),
            (_, Some(open)) if byte == open => quote = None,
            (b'\'' | b'"', None) => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (_, None) if byte.is_ascii_whitespace() || byte == 0x0b => words.extend(word.take()),
            _ => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    words.into_iter().map(OsString::from_vec).collect()
}

/// The words as the text of a response file.
pub(super) fn write(words: &[OsString]) -> Vec<u8> {
    let mut text = Vec::new();
    for word in words {
        if word.is_empty() {
            text.extend(b"''");
        }
        for &byte in word.as_bytes() {
            if byte.is_ascii_whitespace() || matches!(byte, 0x0b | b'\'' | b'"' | b'\\') {
                text.push(b'\\');
            }
            text.push(byte);
        }
        text.push(b'\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        split(text.as_bytes())
    }

    #[test]
    fn words_are_split_as_the_compiler_splits_them() {
        assert_eq!(words(" -c\ta.c\n -o a.o "), ["-c", "a.c", "-o", "a.o"]);
        assert_eq!(words(r#"'a b'"c d" x"y"z '' "#), ["a bc d", "xyz", ""]);
        assert_eq!(
            words(r#"a\ b \"q\" 'c\'d' C:\\x"#),
            ["a b", "\"q\"", "c'd", r"C:\x"]
        );
        assert_eq!(words(r#""it's" 'say "x"'"#), ["it's", "say \"x\""]);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let wanted = ["-DA=\"x y\"", "", "a\\b", "it's", "tab\there", "plain"].map(OsString::from);
        assert_eq!(split(&write(&wanted)), wanted);
    }

    #[test]
    fn files_name_files_and_a_missing_one_is_a_word() {
        let dir = tempfile::tempdir().unwrap();
        let (inner, outer) = (dir.path().join("inner"), dir.path().join("outer"));
        fs::write(&inner, "-O2 a.c").unwrap();
        fs::write(&outer, format!("-c @{} @/nowhere", inner.display())).unwrap();
        let arg = OsString::from(format!("@{}", outer.display()));
        let (read, any) = expand(&["-g".into(), arg]);
        assert!(any);
        assert_eq!(read, ["-g", "-c", "-O2", "a.c", "@/nowhere"]);
    }

    #[test]
    fn a_file_that_names_itself_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("loop");
        let arg = OsString::from(format!("@{}", path.display()));
        fs::write(&path, arg.as_bytes()).unwrap();
        assert_eq!(expand(std::slice::from_ref(&arg)).0, [arg]);
    }
}
