//! Lists of whole files: vmtouch, SOCI, eStargz.
//!
//! vmtouch splits its list at newlines (or, by `-0`, at zero bytes: such lists are read as well). The others are JSON, read by programs in
//! Go, whose strings are UTF-8; SOCI takes space off both ends of a path. Paths of eStargz begin at the image's root, without a slash.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Format;
use crate::escape::path;

/// An entry of a record file of `ctr-remote image optimize`. In which layer of which image the file lies, only that knows.
#[derive(Serialize, Deserialize)]
struct ImageEntry {
    path: String,
}

/// What a list of this format has of a path, without what stands between entries.
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
    let entry: ImageEntry = serde_json::from_slice(line).map_err(|why| why.to_string())?;
    Ok(Path::new("/").join(path(entry.path.into_bytes())?))
}

/// The path of an entry of SOCI.
pub(crate) fn of_soci(entry: String) -> Result<PathBuf, String> {
    path(entry.trim().as_bytes().to_vec())
}
