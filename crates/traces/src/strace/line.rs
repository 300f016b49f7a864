//! A parsed line of strace: process, time, call, arguments, result, duration.
//!
//! ```text
//! [pid  3177] 1795680996.252712 read(3</etc/passwd>, "root:x:0:0"..., 4096) = 2996 <0.000003>
//! 3177  1795680996.252712 read(3,  <unfinished ...>
//! 3177  1795680996.252730 <... read resumed>"root:x:0:0"..., 4096) = 2996
//! ```
//!
//! Without `-f` there is no process, without `-t` no time; `-T` adds the duration, `-y` the files of descriptors.

use std::borrow::Cow;

use crate::fields::{Wrong, seconds, unsigned};
use crate::problem::{Fault, quoted};

/// Seconds, for `-t` and `-tt`, which print the time of day.
const HOUR: u64 = 3600;
const MINUTE: u64 = 60;

/// The beginning of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The thread; `None` where the line names none.
    pub(crate) thread: Option<u64>,
    /// ns; `None` where the line has no time.
    pub(crate) time: Option<u64>,
    /// Start of the rest, in bytes of the line.
    pub(crate) rest: usize,
}

/// The process and the time that begin a line.
pub(crate) fn head(line: &str) -> Result<Head, Fault> {
    let mut rest = line.trim_ascii_start();
    let at = |rest: &str| line.len() - rest.len();
    let mut thread = None;
    if let Some(inside) = rest.strip_prefix("[pid ") {
        let column = at(inside) + 1;
        let (number, after) = inside
            .split_once(']')
            .ok_or_else(|| Fault::new(column, "[pid has no ]"))?;
        thread = Some(number_of(number.trim_ascii(), "process", column)?);
        rest = after.trim_ascii_start();
    } else if let Some((word, after)) = rest.split_once(' ')
        && !word.is_empty()
        && word.bytes().all(|byte| byte.is_ascii_digit())
    {
        thread = Some(number_of(word, "process", at(rest) + 1)?);
        rest = after.trim_ascii_start();
    }
    let mut time = None;
    if let Some((word, after)) = rest.split_once(' ')
        && word.starts_with(|first: char| first.is_ascii_digit())
        && word.contains(['.', ':'])
        && word
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b':')
    {
        let column = at(rest) + 1;
        time = Some(clock(word).map_err(|why| wrong("time", word, column, why))?);
        rest = after.trim_ascii_start();
    }
    Ok(Head {
        thread,
        time,
        rest: at(rest),
    })
}

/// A time since the epoch, or of the day, in ns.
fn clock(word: &str) -> Result<u64, Wrong> {
    let mut parts = word.rsplit(':');
    let mut ns = seconds(parts.next().unwrap_or_default())?;
    for (part, unit) in parts.zip([MINUTE, HOUR]) {
        let part = unsigned(part)?
            .checked_mul(unit * 1_000_000_000)
            .and_then(|part| ns.checked_add(part));
        ns = part.ok_or(Wrong::Overflow)?;
    }
    Ok(ns)
}

fn number_of(text: &str, what: &str, column: usize) -> Result<u64, Fault> {
    unsigned(text).map_err(|why| wrong(what, text, column, why))
}

fn wrong(what: &str, text: &str, column: usize, why: Wrong) -> Fault {
    let why = match why {
        Wrong::Overflow => "is too large",
        Wrong::Negative => "is negative",
        Wrong::NoNumber => "is not a number",
    };
    Fault::new(column, format!("{what} {} {why}", quoted(text)))
}

/// The name of the call that a text begins with: `read` of `read(3, …`.
pub(crate) fn name(text: &str) -> Option<&str> {
    let (name, _) = text.split_once('(')?;
    let good = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    good.then_some(name)
}

/// A call that has returned.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) name: &'a str,
    arguments: Vec<&'a str>,
    text: &'a str,
    column: usize,
    /// The text after `=`: `3</etc/passwd>`, `-1 ENOENT (No such file or directory)`, `?`.
    result: &'a str,
    /// Duration in ns.
    pub(crate) took: Option<u64>,
}

impl<'a> Call<'a> {
    /// Parses a call that begins at `column` of its line.
    pub(crate) fn parse(text: &'a str, column: usize) -> Result<Self, Fault> {
        let name = name(text).ok_or_else(|| Fault::new(column, "no system call begins here"))?;
        let (arguments, rest) = split(text, name.len() + 1).ok_or_else(|| {
            Fault::new(
                column + name.len(),
                format!("{name} has no ) that ends its arguments"),
            )
        })?;
        let after = &text[rest..];
        let place = column + rest;
        let result = after
            .trim_ascii_start()
            .strip_prefix('=')
            .ok_or_else(|| Fault::new(place, format!("{name} has no result")))?
            .trim_ascii();
        let mut took = None;
        let mut result = result;
        if let Some((before, duration)) = result.strip_suffix('>').and_then(|r| r.rsplit_once(" <"))
            && duration.starts_with(|first: char| first.is_ascii_digit())
            && duration.contains('.')
        {
            let column = place + after.rfind('<').unwrap_or(0) + 1;
            took = Some(seconds(duration).map_err(|why| wrong("duration", duration, column, why))?);
            result = before.trim_ascii_end();
        }
        Ok(Self {
            name,
            arguments,
            text,
            column,
            result,
            took,
        })
    }

    /// The call's result, if it succeeded.
    pub(crate) fn returned(&self) -> Result<Option<u64>, Fault> {
        if self.result.starts_with(['-', '?']) {
            return Ok(None);
        }
        self.number(bare(self.result), "result").map(Some)
    }

    /// The file of a returned descriptor, as shown by `-y`.
    pub(crate) fn returned_file(&self) -> Option<Cow<'a, str>> {
        annotation(self.result)
    }

    pub(crate) fn has(&self, index: usize) -> bool {
        self.arguments.len() > index
    }

    /// An argument as text; empty if it does not exist.
    pub(crate) fn argument(&self, index: usize) -> &'a str {
        self.arguments.get(index).copied().unwrap_or_default()
    }

    /// A numeric argument, called `what`.
    pub(crate) fn unsigned(&self, index: usize, what: &str) -> Result<u64, Fault> {
        self.number(bare(self.argument(index)), what)
    }

    /// A descriptor among the arguments.
    pub(crate) fn descriptor(&self, index: usize) -> Result<u64, Fault> {
        self.unsigned(index, "descriptor")
    }

    /// The file of a descriptor among the arguments, as shown by `-y`.
    pub(crate) fn file(&self, index: usize) -> Option<Cow<'a, str>> {
        annotation(self.argument(index))
    }

    /// A path among the arguments; `None` if the trace does not have it.
    pub(crate) fn path(&self, index: usize) -> Option<Cow<'a, str>> {
        let text = self.argument(index).strip_prefix('"')?;
        let end = string_end(text)?;
        Some(unescaped(&text[..end]))
    }

    /// True if an argument contains a flag: `O_CLOEXEC` in `O_RDONLY|O_CLOEXEC`, `{flags=O_CLOEXEC, …}`.
    pub(crate) fn flag(&self, index: usize, flag: &str) -> bool {
        self.argument(index)
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .any(|word| word == flag)
    }

    fn number(&self, text: &'a str, what: &str) -> Result<u64, Fault> {
        // A pointer into the line, so that the message has the column of the value itself.
        let at = (text.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let column = self.column + if at <= self.text.len() { at } else { 0 };
        if text.is_empty() {
            return Err(Fault::new(
                self.column,
                format!("{} has no {what}", self.name),
            ));
        }
        unsigned(text).map_err(|why| wrong(what, text, column, why))
    }
}

/// A number without the additions of `-y` or of an error's name.
fn bare(text: &str) -> &str {
    let end = text.find(['<', ' ']).unwrap_or(text.len());
    &text[..end]
}

/// The file in `3</etc/passwd>`.
fn annotation(text: &str) -> Option<Cow<'_, str>> {
    let open = text.find('<')?;
    if open == 0 {
        return None;
    }
    let inside = &text[open + 1..];
    let end = annotation_end(inside)?;
    // With -yy a device has its numbers inside, too: 0</dev/pts/0<char 136:0>>.
    let name = inside[..end].split('<').next().unwrap_or_default();
    Some(unescaped(name))
}

/// The end of an annotation that began before `inside`: its `>`.
fn annotation_end(inside: &str) -> Option<usize> {
    let bytes = inside.as_bytes();
    let mut depth = 1;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'<' => depth += 1,
            // The arrow between the ends of a connection.
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The end of a string that began before `text`: its quotation mark.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

/// The arguments from `start` on, and the start of the text after their parenthesis.
fn split(text: &str, start: usize) -> Option<(Vec<&str>, usize)> {
    let bytes = text.as_bytes();
    let mut arguments = Vec::new();
    let (mut at, mut begin, mut depth) = (start, start, 0usize);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at += 1 + string_end(&text[at + 1..])?,
            b'<' if at > start
                && (bytes[at - 1].is_ascii_digit() || text[..at].ends_with("CWD")) =>
            {
                at += 1 + annotation_end(&text[at + 1..])?;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                let last = text[begin..at].trim_ascii();
                if !last.is_empty() {
                    arguments.push(last);
                }
                return Some((arguments, at + 1));
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                arguments.push(text[begin..at].trim_ascii());
                begin = at + 1;
            }
            // A comment of some versions: /* 35 vars */.
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at += 3 + text[at + 2..].find("*/")?;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// A string of strace as the program had it.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let Some((&code, after)) = rest.split_first() else {
            break;
        };
        rest = after;
        let (radix, most, digits) = match code {
            b'0'..=b'7' => (8, 2, u32::from(code - b'0')),
            b'x' => (16, 2, 0),
            b'n' => (0, 0, u32::from(b'\n')),
            b't' => (0, 0, u32::from(b'\t')),
            b'r' => (0, 0, u32::from(b'\r')),
            b'v' => (0, 0, 0x0b),
            b'f' => (0, 0, 0x0c),
            other => (0, 0, u32::from(other)),
        };
        let mut value = digits;
        for _ in 0..most {
            match rest.first().and_then(|b| char::from(*b).to_digit(radix)) {
                Some(digit) => value = value * radix + digit,
                None => break,
            }
            rest = &rest[1..];
        }
        bytes.push(value as u8);
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_all_kinds_are_read() {
        let cases = [
            ("read(3) = 0", None, None),
            ("30723 read(3) = 0", Some(30723), None),
            ("2191  1.5 read(3) = 0", Some(2191), Some(1_500_000_000)),
            (
                "[pid  3177] 1.000001 read(3) = 0",
                Some(3177),
                Some(1_000_001_000),
            ),
            ("01:02:03.5 read(3) = 0", None, Some(3_723_500_000_000)),
            ("[pid 7] 00:00:01 read(3) = 0", Some(7), Some(1_000_000_000)),
        ];
        for (line, thread, time) in cases {
            let head = head(line).expect(line);
            assert_eq!((head.thread, head.time), (thread, time), "{line}");
            assert_eq!(&line[head.rest..], "read(3) = 0");
        }
        let fault = head("99999999999999999999 read(3) = 0").expect_err("too large");
        assert_eq!((fault.column, fault.what.contains("9999")), (1, true));
    }

    #[test]
    fn calls_are_taken_apart_at_their_own_commas() {
        let text = r#"preadv(3</a,\74b>, [{iov_base="),\"", iov_len=10}, {iov_base="", iov_len=20}], 2, 3000) = 30 <0.000002>"#;
        let call = Call::parse(text, 1).expect("a call");
        assert_eq!(call.name, "preadv");
        assert_eq!(call.descriptor(0), Ok(3));
        assert_eq!(call.file(0).as_deref(), Some("/a,<b"));
        assert_eq!(call.unsigned(3, "offset"), Ok(3000));
        assert_eq!(call.returned(), Ok(Some(30)));
        assert_eq!(call.took, Some(2000));
        let call = Call::parse(
            "openat(AT_FDCWD</t>, \"a\\\"\\n\\351\\x41\", O_RDWR|O_CLOEXEC) = -1 ENOENT (No)",
            1,
        );
        let call = call.expect("a call");
        assert_eq!(call.path(1).as_deref(), Some("a\"\n\u{fffd}A"));
        assert!(call.flag(2, "O_CLOEXEC") && !call.flag(2, "O_RD"));
        assert_eq!(call.returned(), Ok(None));
        let call =
            Call::parse("read(0<TCP:[1.2.3.4:5->6.7.8.9:0]>, \"\", 1) = 0", 1).expect("a call");
        assert_eq!(call.file(0).as_deref(), Some("TCP:[1.2.3.4:5->6.7.8.9:0]"));
        let call = Call::parse("read(0</dev/pts/0<char 136:0>>, \"\", 1) = 0", 1).expect("a call");
        assert_eq!(call.file(0).as_deref(), Some("/dev/pts/0"));
    }

    #[test]
    fn faults_have_the_column_of_the_value() {
        let call =
            Call::parse("pread64(3, \"\", 10, 99999999999999999999) = 10", 20).expect("a call");
        let fault = call.unsigned(3, "offset").expect_err("too large");
        assert_eq!(fault.column, 20 + 19);
        assert!(
            fault.what.contains("99999999999999999999"),
            "{}",
            fault.what
        );
        for cut in ["read(3, \"a", "read(3, [", "read(3", "read(3)", "read(3) 5"] {
            assert!(Call::parse(cut, 1).is_err(), "{cut}");
        }
    }
}
