//! The bytes of a trace: decompression, a look at the beginning, splitting into lines.
//!
//! Invariant: memory is bounded whatever the input: a decompressor may take [`MEMORY`], a line [`MAX_LINE`] bytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};

use crate::problem::{Fault, Then, TraceError, quoted};

/// Bytes of the content by which its format is recognised.
pub(crate) const HEAD: usize = 64 << 10;
/// The longest line, in bytes. strace cuts strings at 32 characters by default, and a read's line has a few hundred bytes; with `-s 65536
/// -x` a string of 64 KiB has 256 KiB.
const MAX_LINE: usize = 1 << 20;
/// Memory that decompression may take, in bytes: `xz -9` takes 65 MiB, `zstd --long=27` 128 MiB.
const MEMORY: u64 = 256 << 20;
/// The same for zstd, as the logarithm of its window.
const WINDOW_LOG: u32 = 27;

/// The content of a trace, decompressed.
pub(crate) type Content = Box<dyn BufRead>;

/// Opens a trace: its content, and how that begins.
pub(crate) fn open(path: &Path) -> Result<(Content, Vec<u8>), TraceError> {
    let io_error = |source| TraceError::Io {
        path: path.to_path_buf(),
        source,
    };
    let file = File::open(path).map_err(io_error)?;
    if file.metadata().map_err(io_error)?.is_dir() {
        return Err(io_error(io::ErrorKind::IsADirectory.into()));
    }
    decompressed(Box::new(BufReader::new(file))).map_err(io_error)
}

/// The content of a stream that may be compressed, and how the content begins.
pub(crate) fn decompressed(stream: Content) -> io::Result<(Content, Vec<u8>)> {
    let (stream, magic) = peeked(stream, 6)?;
    let content: Content = match magic.as_slice() {
        [0xfd, b'7', b'z', b'X', b'Z', 0] => {
            let decoder = Stream::new_stream_decoder(MEMORY, CONCATENATED)?;
            Box::new(BufReader::new(XzDecoder::new_stream(stream, decoder)))
        }
        [0x1f, 0x8b, ..] => Box::new(BufReader::new(MultiGzDecoder::new(stream))),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(stream)?;
            decoder.window_log_max(WINDOW_LOG)?;
            Box::new(BufReader::new(decoder))
        }
        _ => stream,
    };
    peeked(content, HEAD)
}

/// The first `most` bytes, or all of a shorter stream, and a stream that begins with them. An error after the first byte is left to later
/// reads.
fn peeked(mut stream: Content, most: usize) -> io::Result<(Content, Vec<u8>)> {
    let mut head = vec![0; most];
    let mut len = 0;
    let mut failed = None;
    while len < most {
        match stream.read(&mut head[len..]) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if len == 0 => return Err(error),
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    head.truncate(len);
    let rest: Content = match failed {
        Some(error) => Box::new(BufReader::new(Failing(Some(error)))),
        None => stream,
    };
    Ok((Box::new(Cursor::new(head.clone()).chain(rest)), head))
}

/// A stream that has failed: it says so once, and then ends.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Lines, each with its number.
pub(crate) struct LineReader {
    content: Content,
    line: Vec<u8>,
    /// The number of the line last read, from 1.
    pub(crate) number: u64,
}

impl LineReader {
    pub(crate) fn new(content: Content) -> Self {
        Self {
            content,
            line: Vec::new(),
            number: 0,
        }
    }

    /// The next line without its end, and its length with it; `None` after the last.
    ///
    /// A line without an end may have been cut anywhere, even in a number: it is a fault, and so is a line that is too long.
    pub(crate) fn next(&mut self) -> Result<Option<(String, u32)>, Fault> {
        self.line.clear();
        self.number += 1;
        let mut limited = (&mut self.content).take(MAX_LINE as u64);
        limited
            .read_until(b'\n', &mut self.line)
            .map_err(unreadable)?;
        match self.line.last() {
            None => Ok(None),
            Some(b'\n') => {
                let raw = self.line.len() as u32;
                let text = self.line.strip_suffix(b"\n").unwrap_or_default();
                let text = text.strip_suffix(b"\r").unwrap_or(text);
                Ok(Some((String::from_utf8_lossy(text).into_owned(), raw)))
            }
            Some(_) if self.line.len() < MAX_LINE => {
                let text = String::from_utf8_lossy(&self.line);
                Err(Fault::end(format!(
                    "the trace ends in the middle of the line {}, which is left out",
                    quoted(&text)
                )))
            }
            Some(_) => {
                self.skip_line()?;
                Err(Fault::new(
                    0,
                    format!("the line is longer than {MAX_LINE} bytes"),
                ))
            }
        }
    }

    fn skip_line(&mut self) -> Result<(), Fault> {
        loop {
            let buffer = self.content.fill_buf().map_err(unreadable)?;
            if buffer.is_empty() {
                return Ok(());
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let len = end.map_or(buffer.len(), |end| end + 1);
            self.content.consume(len);
            if end.is_some() {
                return Ok(());
            }
        }
    }
}

/// The content cannot be read on.
pub(crate) fn unreadable(error: io::Error) -> Fault {
    let what = if error.kind() == io::ErrorKind::UnexpectedEof {
        format!("the trace ends in the middle of its compressed data ({error})")
    } else {
        format!("the trace cannot be read on: {error}")
    };
    Fault {
        then: Then::End,
        ..Fault::new(0, what)
    }
}
