//! The files that the programs of a control group have open or mapped.
//!
//! Paths are interpreted in this process's mount namespace: files of a container are found if they have the same paths here. Deleted files
//! have no path and are left out.
//!
//! Data flow: the group's folder → processes of the group and its subgroups → `/proc/PID/maps` and `/proc/PID/fd` → paths.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use foreread_sys::procfs;
use walkdir::WalkDir;

use super::LeftOut;

/// Mount points of control groups: version 2, version 2 beside version 1, and systemd's own hierarchy of version 1.
const TREES: [&str; 3] = [
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/unified",
    "/sys/fs/cgroup/systemd",
];
/// Name of the file that lists a group's processes.
const PROCESSES: &str = "cgroup.procs";
/// The kernel's suffix for the name of a deleted file.
const DELETED: &[u8] = b" (deleted)";

/// The files of a group's programs.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Each file once, in the order in which it was found.
    pub(super) files: Vec<PathBuf>,
    pub(super) processes: u64,
    /// Number of processes that this user may not inspect.
    pub(super) hidden: LeftOut,
}

impl Group {
    /// Finds the group with this path: a path below one of the mount points, as in `/proc/PID/cgroup`, or the folder itself.
    ///
    /// # Errors
    /// If there is no such group, or no process in it that this user may inspect.
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

/// The processes of a group and its subgroups.
fn processes(folder: &Path) -> Result<Vec<u32>> {
    let mut all = Vec::new();
    for entry in WalkDir::new(folder).sort_by_file_name() {
        // A group may be removed while it is read.
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

/// The files that a process has mapped, then those that it has open.
fn files(pid: u32) -> io::Result<Vec<PathBuf>> {
    let maps = procfs::maps(pid)?;
    let mut files: Vec<_> = procfs::mapped(&maps).filter_map(still_there).collect();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        // Closed after the folder was listed.
        let Ok(file) = std::fs::read_link(entry?.path()) else {
            continue;
        };
        files.extend(still_there(&file));
    }
    Ok(files)
}

/// The path of a file that still has one; `None` for pipes, sockets and deleted files.
fn still_there(file: &Path) -> Option<PathBuf> {
    let is_deleted = file.as_os_str().as_encoded_bytes().ends_with(DELETED);
    (file.is_absolute() && !is_deleted).then(|| file.to_owned())
}

fn has_ended(why: &io::Error) -> bool {
    // ESRCH: the process is exiting.
    why.kind() == io::ErrorKind::NotFound || why.raw_os_error() == Some(3)
}
