//! Paths of any bytes as text on one line.
//!
//! A backslash and control characters are written as in C (`\\`, `\n`, `\t`, `\r`), others of them and bytes that are no UTF-8 as `\x` and
//! two hexadecimal digits.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A path as text.
pub(crate) fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                '\r' => text.push_str("\\r"),
                other if other.is_control() => {
                    let mut bytes = [0; 4];
                    for byte in other.encode_utf8(&mut bytes).bytes() {
                        let _ = write!(text, "\\x{byte:02x}");
                    }
                }
                other => text.push(other),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// The path that a text stands for.
pub(crate) fn unescaped(text: &[u8]) -> Result<PathBuf, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, more)) = rest.split_first() {
        rest = more;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let (meant, taken) = match rest {
            [b'\\', ..] => (Some(b'\\'), 1),
            [b'n', ..] => (Some(b'\n'), 1),
            [b't', ..] => (Some(b'\t'), 1),
            [b'r', ..] => (Some(b'\r'), 1),
            [b'x', high, low, ..] => {
                let digit = |digit: u8| char::from(digit).to_digit(16);
                let value = digit(*high).zip(digit(*low));
                (value.map(|(high, low)| (high * 16 + low) as u8), 3)
            }
            _ => (None, 0),
        };
        let Some(meant) = meant else {
            let text = String::from_utf8_lossy(text);
            return Err(format!(
                "the path {text:?} has a backslash that is followed by none of \\, n, t, r and x with two digits"
            ));
        };
        bytes.push(meant);
        rest = &rest[taken..];
    }
    path(bytes)
}

/// A path that Linux can have.
pub(crate) fn path(bytes: Vec<u8>) -> Result<PathBuf, String> {
    if bytes.is_empty() {
        return Err("the path is empty".to_owned());
    }
    if bytes.contains(&0) {
        let text = String::from_utf8_lossy(&bytes);
        return Err(format!("the path {text:?} has a zero byte"));
    }
    if bytes.len() > foreread_plan::format::MAX_PATH {
        let (len, most) = (bytes.len(), foreread_plan::format::MAX_PATH);
        return Err(format!("the path has {len} bytes, more than {most}"));
    }
    Ok(OsString::from_vec(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_text_on_one_line_and_comes_back() {
        let path = |bytes: &[u8]| PathBuf::from(OsString::from_vec(bytes.into()));
        for (bytes, text) in [
            (&b"/a b/\xc3\xbc"[..], "/a b/ü"),
            (b"/a\nb\\n", "/a\\nb\\\\n"),
            (b"/\xff\x01\x7f", "/\\xff\\x01\\x7f"),
            (b"/\xc2\x85", "/\\xc2\\x85"),
        ] {
            assert_eq!(escaped(&path(bytes)), text);
            assert_eq!(unescaped(text.as_bytes()), Ok(path(bytes)));
        }
        for wrong in ["", "/a\\", "/a\\q", "/a\\x4", "/a\\xg0", "/a\\x00"] {
            assert!(unescaped(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
