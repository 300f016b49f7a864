//! Where a case's data lies while it is measured: the machine's own disk or a slow one.
//!
//! A slow disk is mounted for one case at a time, so that positions on it depend on
//! that case's data alone, and gets a copy of the data; both go when it does.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The disks a case can run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DiskKind {
    /// A modelled 7200 rpm disk.
    #[value(name = "hdd-7200")]
    Hdd7200,
    /// A modelled network volume.
    #[value(name = "network-ssd")]
    NetworkSsd,
    /// Whatever the data directory is on.
    #[value(name = "own")]
    Own,
}

impl DiskKind {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            DiskKind::Hdd7200 => "hdd-7200",
            DiskKind::NetworkSsd => "network-ssd",
            DiskKind::Own => "own",
        }
    }
}

/// A disk ready to hold data.
pub struct Disk {
    /// Which one.
    pub kind: DiskKind,
    mount: Option<PathBuf>,
}

impl Disk {
    /// Mounts a disk large enough for the data in the folder `data` gives.
    pub fn ready(
        kind: DiskKind,
        _tools: &crate::case::Tools,
        _data: impl FnOnce() -> Result<PathBuf>,
    ) -> Result<Self> {
        match kind {
            DiskKind::Own => Ok(Self { kind, mount: None }),
            DiskKind::Hdd7200 | DiskKind::NetworkSsd => {
                anyhow::bail!("slow disks are not there yet")
            }
        }
    }

    /// The folder with the data of `original` on this disk, copied there if need be.
    pub fn holding(&self, original: &Path) -> Result<PathBuf> {
        let Some(mount) = &self.mount else {
            return Ok(original.to_owned());
        };
        let name = original.file_name().context("a data folder has a name")?;
        let copy = mount.join(name);
        let mut cp = std::process::Command::new("cp");
        // Times are kept: Python compares them with those in its compiled files.
        cp.arg("-a").arg(original).arg(&copy);
        crate::cases::succeed(&mut cp)?;
        rustix::fs::sync();
        Ok(copy)
    }

    /// Where the file `path` below `original` is on this disk.
    pub fn moved(&self, path: &Path, original: &Path) -> Result<PathBuf> {
        let (Some(mount), Some(name)) = (&self.mount, original.file_name()) else {
            return Ok(path.to_owned());
        };
        let below = path
            .strip_prefix(original)
            .with_context(|| format!("{} is not below {}", path.display(), original.display()))?;
        Ok(mount.join(name).join(below))
    }
}
