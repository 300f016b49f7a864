//! A modelled disk or file system in a lab.

use std::path::PathBuf;
use std::process::Command;

use crate::{Lab, foreread};

/// A disk mounted on `mnt` of a lab until it is dropped. Needs root and FUSE.
pub struct Slow(PathBuf);

impl Slow {
    /// Mounts `model` with room for 64 MB. `striped` is a file system of eight servers that keeps no pages in memory for its readers.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub fn mount(lab: &Lab, model: &str) -> Self {
        let folder = lab.path("mnt");
        std::fs::create_dir(&folder).expect("a folder");
        let mut command = Command::new(foreread());
        let output = command.args(["slowdisk", "mount", "--size", "64M", model]);
        let output = output.arg(&folder).output().expect("foreread");
        assert!(output.status.success(), "{output:?}");
        Self(folder)
    }

    /// Number of reads that its block device has completed.
    ///
    /// # Panics
    ///
    /// If it has no block device.
    pub fn reads(&self) -> u64 {
        let mounts = std::fs::read_to_string("/proc/mounts").expect("mounts");
        let mounted = format!(" {} ", self.0.display());
        let line = mounts.lines().find(|line| line.contains(&mounted));
        let device = line
            .and_then(|line| line.split(' ').next())
            .expect("a mount");
        let name = device.strip_prefix("/dev/").expect("a block device");
        let counts = std::fs::read_to_string(format!("/sys/block/{name}/stat")).expect("counts");
        let first = counts.split_whitespace().next();
        first
            .and_then(|count| count.parse().ok())
            .expect("a number")
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        let mut command = Command::new(foreread());
        let output = command.args(["slowdisk", "umount"]).arg(&self.0).output();
        assert!(output.is_ok_and(|output| output.status.success()));
    }
}
