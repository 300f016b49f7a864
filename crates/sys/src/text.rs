//! The kernel's own text files, in `/proc` and `/sys`.
//!
//! Their size stands nowhere: left to itself, the standard library begins to read them with 32 bytes, and the kernel
//! makes some of them anew for every call.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes of most of these files, at most.
const MOST: usize = 8 << 10;

/// A whole file, as text.
///
/// # Errors
///
/// When it cannot be read, or is no UTF-8.
pub(crate) fn read(path: impl AsRef<Path>) -> io::Result<String> {
    let mut text = String::with_capacity(MOST);
    File::open(path)?.read_to_string(&mut text)?;
    Ok(text)
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
        assert_eq!(read(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert!(read("/proc/meminfo").unwrap().contains("MemAvailable"));
    }
}
