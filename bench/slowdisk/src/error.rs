//! Errors, with their subject and a remedy.
//!
//! The system's error is in the source, not in the text, so that printing the chain does not repeat it.

use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};

use foreread_disk::{Model, UnknownModel};

/// The reason why a slow disk could not be created, used or unmounted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such model.
    #[error(transparent)]
    Model(#[from] UnknownModel),
    /// A size that cannot be parsed or is out of bounds.
    #[error("size {value:?}: {why}")]
    Size {
        /// The size as given.
        value: String,
        /// The fault.
        why: &'static str,
    },
    /// Mounting needs root.
    #[error("mounting a slow disk needs root: run this with sudo")]
    NotRoot,
    /// `file_only` for a model that is a file system.
    #[error("{model} is a file system: there is no image file to have alone")]
    NoImage {
        /// The model.
        model: Model,
    },
    /// This kernel or container has no FUSE.
    #[error("{path}: cannot open the device of FUSE, which a slow disk needs")]
    Fuse {
        /// The device.
        path: PathBuf,
        /// The error of opening it.
        source: io::Error,
    },
    /// A tool is not installed.
    #[error("{tool} is not installed: it comes with the package {package}")]
    MissingTool {
        /// The command.
        tool: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// A tool failed.
    #[error("{command}: {status}: {stderr}")]
    Tool {
        /// The command with its arguments.
        command: String,
        /// Its exit status.
        status: std::process::ExitStatus,
        /// Its output.
        stderr: String,
    },
    /// The mount point has a slow disk already.
    #[error("{dir} already holds a slow disk ({model}, served by process {pid}): unmount it first")]
    Taken {
        /// The mount point.
        dir: PathBuf,
        /// Its model.
        model: Model,
        /// The process that serves it.
        pid: u32,
    },
    /// Mounting would hide files.
    #[error("{dir} is not empty: mounting there would hide what it holds")]
    NotEmpty {
        /// The mount point.
        dir: PathBuf,
    },
    /// The mount point has no slow disk.
    #[error("{dir} holds no slow disk")]
    NotMounted {
        /// The mount point.
        dir: PathBuf,
    },
    /// Programs still use the disk.
    #[error(
        "{dir} is still in use: leave it and close its files (`fuser -vm {dir}` names the programs)"
    )]
    InUse {
        /// The mount point.
        dir: PathBuf,
    },
    /// The background server ended before the disk was ready; it has reported the reason.
    #[error("the slow disk's server ended before the disk was ready ({status})")]
    Server {
        /// Its exit status.
        status: std::process::ExitStatus,
    },
    /// An action on a file failed.
    #[error("{path}: cannot {action}")]
    Io {
        /// The failed action.
        action: &'static str,
        /// Its object.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

impl Error {
    /// Includes the system's error, for callers that print no chain.
    pub fn in_full(&self) -> String {
        match self.source() {
            Some(source) => format!("{self}: {source}"),
            None => self.to_string(),
        }
    }
}

/// Adds an action and a path to an I/O error.
pub(crate) trait At<T> {
    fn at(self, action: &'static str, path: impl AsRef<Path>) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, action: &'static str, path: impl AsRef<Path>) -> Result<T, Error> {
        self.map_err(|source| Error::Io {
            action,
            path: path.as_ref().to_owned(),
            source: source.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_said_is_said_once() {
        let said = || io::Error::from_raw_os_error(17);
        let path = PathBuf::from("/dir");
        let cannot = Err::<(), _>(said()).at("make", &path).unwrap_err();
        for (error, text) in [
            (cannot, "/dir: cannot make"),
            (
                Error::Fuse {
                    path: path.clone(),
                    source: said(),
                },
                "/dir: cannot open the device of FUSE, which a slow disk needs",
            ),
        ] {
            assert_eq!(error.to_string(), text);
            assert_eq!(error.in_full(), format!("{text}: {}", said()));
        }
        let alone = Error::NotMounted { dir: path };
        assert_eq!(alone.in_full(), alone.to_string());
    }
}
