//! Why the file of measured devices is not used.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Errors of loading and storing profiles.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no folder for the user's data.
    #[error("no place for profiles: neither XDG_DATA_HOME nor HOME is set")]
    NoPlace,
    /// The file does not contain a profile.
    #[error("{}: cannot be used", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The fault.
        source: Unsound,
    },
    /// The file cannot be written.
    #[error("{}: cannot be written", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Faults of a file of measured devices.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unsound {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is not JSON of the right structure.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It is too long.
    #[error("larger than {0} bytes")]
    TooLong(u64),
    /// It is another kind of file.
    #[error("not a file of measured devices")]
    Foreign,
    /// It has another version.
    #[error("version {found}, and this is version {known}")]
    Version {
        /// The file's.
        found: u32,
        /// The one that can be read.
        known: u32,
    },
    /// A constant is out of bounds.
    #[error("{device}")]
    Device {
        /// The device's name.
        device: String,
        /// The constant.
        source: OutOfBounds,
    },
}

/// A constant of a profile that no device has.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {value} is not within {bounds}")]
pub struct OutOfBounds {
    name: &'static str,
    value: String,
    bounds: String,
}

/// Checks that a constant is within its bounds.
pub(crate) fn within<T: PartialOrd + fmt::Display>(
    name: &'static str,
    value: T,
    bounds: std::ops::RangeInclusive<T>,
) -> Result<(), OutOfBounds> {
    if bounds.contains(&value) {
        return Ok(());
    }
    Err(OutOfBounds {
        name,
        value: value.to_string(),
        bounds: format!("{} to {}", bounds.start(), bounds.end()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn a_reason_is_printed_once() {
        let constant = within("depth", 0, 1..=256).expect_err("out of bounds");
        let error = Error::Unusable {
            path: "devices.json".into(),
            source: Unsound::Device {
                device: "sda".into(),
                source: constant,
            },
        };
        let chain = std::iter::successors(error.source(), |&one| one.source());
        let said: Vec<String> = std::iter::once(error.to_string())
            .chain(chain.map(ToString::to_string))
            .collect();
        assert_eq!(
            said.join(": ").matches("is not within").count(),
            1,
            "{said:?}"
        );
        assert!(said.join(": ").contains("sda: depth: 0"), "{said:?}");
    }
}
