//! The declarations of `foreread cache`.

use std::path::PathBuf;

use clap::Subcommand;
use foreread_words::units;

/// Save which pages of files are in memory, and bring them back
///
/// Use save before a restart or a fail-over, and restore after it. The saved cache names pages and holds no contents. See docs/cache.md.
#[derive(Debug, Subcommand)]
pub(crate) enum Cache {
    Save(Save),
    Restore(Restore),
}

/// Save which pages of files are in memory
///
/// Folders are searched with all file systems mounted below them. Symbolic links are not followed and nothing is mounted. Network file
/// systems, FUSE, proc and similar file systems are left out. The kernel reports the residency of a file only to its owner, to users who
/// may write to it, and to root.
#[derive(Debug, clap::Args)]
pub(crate) struct Save {
    /// The saved cache; an existing file is replaced
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Files and folders, the most important first: they are restored in this order if memory is short
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
/// Files whose size or modification time has changed are left out. Pages are read in their order on the device, with as many requests at
/// once as the device accepts. FILE may also be the record of a command. The command returns when the pages are in memory.
///
/// Exit status: 0 if pages were restored or none was missing, 1 if every file has changed or FILE is damaged.
#[derive(Debug, clap::Args)]
pub(crate) struct Restore {
    /// The saved cache
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Fill at most SIZE of memory, such as 4G, and never more than is free [default: three quarters of the free memory]
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
