//! Lists of whole files: vmtouch, SOCI, eStargz.
//!
//! vmtouch splits its list at newlines (or, by `-0`, at zero bytes: such lists are read as well). The others are JSON, read by programs in
//! Go, whose strings are UTF-8; SOCI takes space off both ends of a path. Paths of eStargz begin at the image's root, without a slash.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Format;
use crate::escape::path;
use crate::fault::Fault;

/// An entry of a record file of `ctr-remote image optimize`. In which layer of which image the file lies, only that knows.
#[derive(Serialize, Deserialize)]
struct ImageEntry {
    path: String,
}

/// The entry of a path in a list of this format, without separators.
///
/// # Errors
/// Why it cannot hold the path.
pub(crate) fn entry(format: Format, path: &Path) -> Result<Vec<u8>, &'static str> {
    let bytes = path.as_os_str().as_bytes();
    if format == Format::Vmtouch {
        return match bytes.contains(&b'\n') {
            true => Err("vmtouch's lists end a name at a newline"),
            false => Ok(bytes.to_vec()),
        };
    }
    let text = path
        .to_str()
        .ok_or("a list in JSON holds no name that is not UTF-8")?;
    let within = text.trim_start_matches('/');
    if within.is_empty() {
        return Err("the root itself is no file");
    }
    let json = match format {
        Format::Soci if text.trim() != text => {
            return Err("SOCI takes the space off both ends of a name");
        }
        Format::Soci => serde_json::to_vec(text),
        _ => {
            let path = within.to_owned();
            serde_json::to_vec(&ImageEntry { path })
        }
    };
    json.map_err(|_| "the name is no JSON")
}

/// The path of a line of `vmtouch`.
pub(crate) fn of_vmtouch(line: &[u8]) -> Result<PathBuf, String> {
    path(line.to_vec())
}

/// The path of a line of eStargz, from the root.
pub(crate) fn of_estargz(line: &[u8]) -> Result<PathBuf, String> {
    let entry: ImageEntry = serde_json::from_slice(line).map_err(|why| in_line(&why))?;
    Ok(Path::new("/").join(path(entry.path.into_bytes())?))
}

/// The paths in an array of SOCI, up to the place where it is no longer JSON.
pub(crate) fn of_soci(text: &[u8]) -> Vec<Result<PathBuf, Fault>> {
    let mut paths = Vec::new();
    let mut json = serde_json::Deserializer::from_slice(text);
    let read = json.deserialize_seq(Entries(&mut paths));
    if let Err(why) = read.and_then(|()| json.end()) {
        let why = format!("not a JSON array of paths: {why}");
        paths.push(Err(Fault::end(0, why)));
    }
    paths
}

/// Receives the entries of an array.
struct Entries<'a>(&'a mut Vec<Result<PathBuf, Fault>>);

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some(entry) = entries.next_element::<Value>()? {
            let read = match entry {
                Value::String(name) => path(name.trim().as_bytes().to_vec()),
                _ => Err("it is no string".to_owned()),
            };
            let number = self.0.len() + 1;
            let read = read.map_err(|what| Fault::line(0, format!("entry {number}: {what}")));
            self.0.push(read);
        }
        Ok(())
    }
}

/// The fault of a line of JSON, without the line number, which would be relative to the line.
pub(crate) fn in_line(why: &serde_json::Error) -> String {
    why.to_string()
        .replacen(" at line 1 column ", " at column ", 1)
}
