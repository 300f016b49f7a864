//! The files that the programs of a control group have open or mapped.
//!
//! A path counts as this process sees it: a container's files are found where they have the same paths here. A file that was deleted
//! since has none.
//!
//! Data flow: the group's folder → its processes, and those of the groups in it → `/proc/PID/maps` and `/proc/PID/fd` → paths.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use foreread_sys::procfs;
use walkdir::WalkDir;

use super::LeftOut;

/// Where the trees of control groups are: that of version 2, the same beside those of version 1, and systemd's own of version 1.
const TREES: [&str; 3] = [
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/unified",
    "/sys/fs/cgroup/systemd",
];
/// The list of a group's processes.
const PROCESSES: &str = "cgroup.procs";
/// What the kernel appends to the name of a deleted file.
const DELETED: &[u8] = b" (deleted)";

/// What the programs of a group have.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Each file once, in the order in which they were met.
    pub(super) files: Vec<PathBuf>,
    pub(super) processes: u64,
    /// Processes that this user may not look at.
    pub(super) hidden: LeftOut,
}

impl Group {
    /// The group at this path: below one of the trees, as in `/proc/PID/cgroup`, or the folder itself.
    ///
    /// # Errors
    /// If there is no such group, no process in it, or none that this user may look at.
    pub(super) fn at(path: &Path) -> Result<Self> {
        let folder = folder(path)?;
        let mut group = Self::default();
        let mut known = HashSet::new();
        for pid in processes(&folder)? {
            match files(pid) {
                Ok(files) => {
                    group.processes += 1;
                    let new = files.into_iter().filter(|file| known.insert(file.clone()));
                    group.files.extend(new);
                }
                Err(why) if has_ended(&why) => {}
                Err(why) => group
                    .hidden
                    .add(&PathBuf::from(format!("/proc/{pid}")), &why),
            }
        }
        if let (0, Some(first)) = (group.processes, &group.hidden.first) {
            bail!("{}: {first}", folder.display());
        }
        ensure!(
            group.processes > 0,
            "{}: no process in this control group",
            folder.display()
        );
        Ok(group)
    }
}

fn folder(path: &Path) -> Result<PathBuf> {
    let below = path.strip_prefix("/").unwrap_or(path);
    let trees = TREES.iter().map(|tree| Path::new(tree).join(below));
    let mut all = std::iter::once(path.to_owned()).chain(trees);
    let found = all.find(|folder| folder.join(PROCESSES).is_file());
    found.with_context(|| format!("{}: no control group", path.display()))
}

/// The processes of a group, and of the groups in it.
fn processes(folder: &Path) -> Result<Vec<u32>> {
    let mut all = Vec::new();
    for entry in WalkDir::new(folder).sort_by_file_name() {
        // Groups come and go.
        let Ok(entry) = entry else { continue };
        if !entry.file_type().is_dir() {
            continue;
        }
        let list = entry.path().join(PROCESSES);
        match std::fs::read_to_string(&list) {
            Ok(listed) => all.extend(listed.lines().filter_map(|pid| pid.parse::<u32>().ok())),
            Err(why) if why.kind() == io::ErrorKind::NotFound => {}
            Err(why) => return Err(why).with_context(|| list.display().to_string()),
        }
    }
    Ok(all)
}

/// The files that a process has mapped, and those that it has open.
fn files(pid: u32) -> io::Result<Vec<PathBuf>> {
    let maps = procfs::maps(pid)?;
    let mut files: Vec<_> = procfs::mapped(&maps).filter_map(still_there).collect();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        // Closed since it was listed.
        let Ok(file) = std::fs::read_link(entry?.path()) else {
            continue;
        };
        files.extend(still_there(&file));
    }
    Ok(files)
}

/// The path of a file, unless it is a pipe, a socket or the like, or was deleted.
fn still_there(file: &Path) -> Option<PathBuf> {
    let is_deleted = file.as_os_str().as_encoded_bytes().ends_with(DELETED);
    (file.is_absolute() && !is_deleted).then(|| file.to_owned())
}

fn has_ended(why: &io::Error) -> bool {
    // ESRCH while it is ending.
    why.kind() == io::ErrorKind::NotFound || why.raw_os_error() == Some(3)
}
