//! A file system that keeps no pages in memory for its readers: a parallel one of eight servers, by a model.

use std::path::PathBuf;
use std::process::Command;

use crate::{Lab, foreread};

/// Such a file system under `mnt` of a lab, as long as this lives. It takes root and FUSE.
pub struct Striped(PathBuf);

impl Striped {
    /// Mounts it.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub fn mount(lab: &Lab) -> Self {
        let folder = lab.path("mnt");
        std::fs::create_dir(&folder).expect("a folder");
        let mut command = Command::new(foreread());
        let output = command.args(["slowdisk", "mount", "--size", "64M", "striped"]);
        let output = output.arg(&folder).output().expect("foreread");
        assert!(output.status.success(), "{output:?}");
        Self(folder)
    }
}

impl Drop for Striped {
    fn drop(&mut self) {
        let mut command = Command::new(foreread());
        let output = command.args(["slowdisk", "umount"]).arg(&self.0).output();
        assert!(output.is_ok_and(|output| output.status.success()));
    }
}
