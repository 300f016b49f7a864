//! The part of the command line that is about the page cache.

use std::path::PathBuf;

use clap::Subcommand;
use foreread_words::units;

/// Save which pages of files are in memory, and bring them back
///
/// Before a restart or a fail-over, and after it. The saved cache names pages and holds no contents. See docs/cache.md.
#[derive(Debug, Subcommand)]
pub(crate) enum Cache {
    Save(Save),
    Restore(Restore),
}

/// Save which pages of files are in memory
///
/// Folders are walked, with the file systems that are mounted in them. No symbolic link is followed and nothing is mounted; network
/// file systems, FUSE, proc and their like are left out. The kernel tells the residency of a file to its owner, to those who may
/// write it, and to root.
#[derive(Debug, clap::Args)]
pub(crate) struct Save {
    /// The saved cache; replaced if it is there
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Files and folders; those named first are restored first where memory is short
    #[arg(value_name = "PATH", required_unless_present_any = ["all", "cgroup"])]
    pub(crate) paths: Vec<PathBuf>,
    /// Save all local file systems
    #[arg(long, conflicts_with = "paths")]
    pub(crate) all: bool,
    /// Save the files that the programs of a control group have open or mapped, such as /system.slice/nginx.service
    #[arg(long, value_name = "PATH", conflicts_with_all = ["paths", "all"])]
    pub(crate) cgroup: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Bring saved pages back into memory
///
/// Files whose size or time of modification has changed are left out. Pages are read in the order in which they lie on the device, as
/// many at once as it takes. FILE may also be the record of a command. Returns when the pages are in memory.
///
/// Exit status: 0 if pages were restored or nothing was missing, 1 if no file is as it was, or FILE is damaged.
#[derive(Debug, clap::Args)]
pub(crate) struct Restore {
    /// The saved cache
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Fill at most SIZE of memory, such as 4G, and never more than is free [default: three quarters of what is free]
    #[arg(long, value_name = "SIZE", value_parser = some_memory)]
    pub(crate) memory: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A size of at least a page.
fn some_memory(text: &str) -> Result<u64, String> {
    let size = units::parse_size(text)?;
    if size < foreread_plan::PAGE {
        return Err("not even one page: nothing would be restored".to_owned());
    }
    Ok(size)
}
