//! The kernel's own text files, in `/proc` and `/sys`.
//!
//! Their size is unknown beforehand: the standard library would begin to read them with 32 bytes, and the kernel generates some of them
//! anew for every call. A process can choose its name, and with it bytes of some of these files, so invalid UTF-8 is replaced.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes of most of these files, at most.
const MOST: usize = 8 << 10;

/// A whole file, as text.
///
/// # Errors
///
/// When it cannot be read.
pub fn read(path: impl AsRef<Path>) -> io::Result<String> {
    let replaced =
        |bad: std::string::FromUtf8Error| String::from_utf8_lossy(bad.as_bytes()).into_owned();
    Ok(String::from_utf8(bytes(path)?).unwrap_or_else(replaced))
}

/// The same, as the kernel writes it.
///
/// # Errors
///
/// When it cannot be read.
pub fn bytes(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(MOST);
    File::open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_any_length_is_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        for len in [0, 1, MOST - 1, MOST, MOST + 1, 5 * MOST] {
            let text = "x".repeat(len);
            std::fs::write(&path, &text).unwrap();
            assert_eq!(read(&path).unwrap(), text);
        }
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(read(&path).unwrap(), "\u{fffd}");
        assert!(read("/proc/meminfo").unwrap().contains("MemAvailable"));
    }
}
