//! Reads through Rust's standard library.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

fn main() -> std::io::Result<()> {
    let path = std::env::args().next_back().unwrap();
    let mut file = File::open(&path)?;
    let mut block = [0; 4096];
    file.read_exact(&mut block[..100])?;
    file.seek(SeekFrom::Start(8192))?;
    file.read_exact(&mut block)?;
    file.read_exact_at(&mut block[..10], 12288)?;
    let mut lines = BufReader::with_capacity(4096, File::open(&path)?);
    let mut line = String::new();
    lines.read_line(&mut line)?;
    Ok(())
}
