//! The kernel's own text files, in `/proc` and `/sys`.
//!
//! Their size stands nowhere: the standard library begins to read them with 32 bytes, and the kernel makes some of them
//! anew for every call.

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
    let mut bytes = vec![0; MOST];
    let mut file = File::open(path)?;
    let mut len = 0;
    loop {
        match file.read(&mut bytes[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
        if len == bytes.len() {
            bytes.resize(2 * len, 0);
        }
    }
    bytes.truncate(len);
    String::from_utf8(bytes).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
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
