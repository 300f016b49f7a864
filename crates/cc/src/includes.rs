//! A unit's text compiled from standard input as if it still stood in its file.
//!
//! The compiler searches a quoted include first beside the including file, and names the header accordingly (`__FILE__`). For text on
//! standard input that place is the working directory. So includes of headers beside the source get the source's folder as prefix, and
//! those that only the working directory would satisfy are searched elsewhere.
//!
//! The compiler lists these headers, so later changes of them are noticed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The text with its quoted includes as `source`, which is named from `directory`, would have them.
pub(super) fn as_if_in(source: &Path, directory: &Path, text: &[u8]) -> Vec<u8> {
    let beside = source.parent().unwrap_or(Path::new(""));
    if beside == Path::new("") {
        return text.to_owned();
    }
    let mut rewritten = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let Some((before, name, after)) = quoted_include(line) else {
            rewritten.extend(line);
            continue;
        };
        let named = OsStr::from_bytes(name);
        let is_there = |folder: &Path| directory.join(folder).join(named).is_file();
        let parts: [&[u8]; 5] = if is_there(beside) {
            // As the compiler itself puts the two together.
            [b"\"", beside.as_os_str().as_bytes(), b"/", name, b"\""]
        } else if is_there(Path::new("")) {
            [b"<", b"", b"", name, b">"]
        } else {
            [b"\"", b"", b"", name, b"\""]
        };
        rewritten.extend(before);
        rewritten.extend(parts.concat());
        rewritten.extend(after);
    }
    rewritten
}

/// The target's name in the list of a unit's headers.
pub(super) const TARGET: &str = "unit";

/// The files that a compiler's list names (-MD -MT [`TARGET`]), in the syntax of make.
pub(super) fn listed(list: &[u8]) -> Vec<PathBuf> {
    let list = list.strip_prefix(TARGET.as_bytes()).unwrap_or(list);
    let list = list.strip_prefix(b":").unwrap_or(list);
    let mut files = Vec::new();
    let mut file = Vec::new();
    let mut bytes = list.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, bytes.peek()) {
            (b'\\', Some(b'\n')) => {}
            (b'\\', Some(b' ' | b'#')) | (b'$', Some(b'$')) => file.extend(bytes.next()),
            (b' ' | b'\n', _) if file.is_empty() => {}
            (b' ' | b'\n', _) => files.push(OsString::from_vec(std::mem::take(&mut file)).into()),
            _ => file.push(byte),
        }
    }
    files
}

/// The parts before, in and after the quotes, if the line is a quoted include.
fn quoted_include(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let directive = line
        .trim_ascii_start()
        .strip_prefix(b"#")?
        .trim_ascii_start();
    let rest = directive
        .strip_prefix(b"include")?
        .trim_ascii_start()
        .strip_prefix(b"\"")?;
    let before = &line[..line.len() - rest.len() - 1];
    let end = rest.iter().position(|&byte| byte == b'"')?;
    let name = &rest[..end];
    (!name.starts_with(b"/")).then_some((before, name, &rest[end + 1..]))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_compilers_list_is_read_as_make_would() {
        let list = b"unit: a.h sub/b\\ c.h \\\n  \\#d.h $$e.h\n";
        let names = ["a.h", "sub/b c.h", "#d.h", "$e.h"].map(PathBuf::from);
        assert_eq!(listed(list), names);
        assert_eq!(listed(b"unit:\n"), Vec::<PathBuf>::new());
    }

    #[test]
    fn headers_beside_the_source_are_found_there_first() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("src")).unwrap();
        for file in ["src/own.h", "own.h", "here.h"] {
            fs::write(dir.path().join(file), "").unwrap();
        }
        let text = "#include \"own.h\" // own\n  #  include\t\"here.h\"\n#include \"far.h\"\n\
                    #include <own.h>\n#include \"/abs.h\"\n#define X \"own.h\"\n#include X";
        let wanted = "#include \"src/own.h\" // own\n  #  include\t<here.h>\n#include \"far.h\"\n\
                      #include <own.h>\n#include \"/abs.h\"\n#define X \"own.h\"\n#include X";
        let rewritten = |source: &str| {
            let rewritten = as_if_in(Path::new(source), dir.path(), text.as_bytes());
            String::from_utf8(rewritten).unwrap()
        };
        assert_eq!(rewritten("src/a.c"), wanted);
        assert_eq!(rewritten("a.c"), text);
    }
}
