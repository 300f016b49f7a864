//! A memory limit for the measured command: a control group of its own.
//!
//! The page cache that a command fills is charged to its group, so a group smaller than the data acts like a machine with too
//! little memory. Groups of version 1 and version 2 are both used.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use foreread_sys::procfs::{self, Group};
use rustix::process::{Pid, Signal, kill_process};

use crate::process::Invocation;

/// Where control groups are mounted.
const ROOT: &str = "/sys/fs/cgroup";

/// Longest time that members of a group may take to end after the signal.
const PATIENCE: Duration = Duration::from_secs(5);

/// A control group with a memory limit, removed on drop.
#[derive(Debug)]
pub struct MemoryGroup {
    dir: PathBuf,
}

impl MemoryGroup {
    /// A fresh group called `name` that may use `bytes` of memory and no swap.
    pub fn new(name: &str, bytes: u64) -> Result<Self> {
        let root = Path::new(ROOT);
        let name = format!("foreread-bench-{}-{name}", std::process::id());
        let first = root.join("memory");
        if first.join("memory.limit_in_bytes").is_file() {
            let group = Self::made(first.join(name))?;
            group.set("memory.limit_in_bytes", bytes)?;
            return Ok(group);
        }
        let controllers = root.join("cgroup.controllers");
        let offered = fs::read_to_string(&controllers).unwrap_or_default();
        if !offered.split_ascii_whitespace().any(|one| one == "memory") {
            bail!("no memory control groups in {ROOT}: the memory limit cannot be set");
        }
        let subtree = root.join("cgroup.subtree_control");
        fs::write(&subtree, "+memory").with_context(|| format!("writing {}", subtree.display()))?;
        let group = Self::made(root.join(name))?;
        group.set("memory.max", bytes)?;
        // Without swap accounting there is no such file, and nothing to forbid.
        if group.dir.join("memory.swap.max").is_file() {
            group.set("memory.swap.max", 0)?;
        }
        Ok(group)
    }

    fn made(dir: PathBuf) -> Result<Self> {
        fs::create_dir(&dir).with_context(|| format!("creating {}", dir.display()))?;
        Ok(Self { dir })
    }

    fn set(&self, file: &str, value: u64) -> Result<()> {
        let path = self.dir.join(file);
        fs::write(&path, value.to_string())
            .with_context(|| format!("writing {value} to {}", path.display()))
    }

    /// Puts this process into the group until the returned guard is dropped. Processes that it starts meanwhile are inside from
    /// their first instruction on. For commands of milliseconds, because moving a process into a group takes the kernel up to 20
    /// ms.
    pub fn enter(&self) -> Result<Inside> {
        let procs = self.dir.join("cgroup.procs");
        let inside = Inside { back: own_group()? };
        move_to(&procs)?;
        Ok(inside)
    }

    /// `command`, to be run inside this group from its first instruction on.
    pub fn inside(&self, command: &Invocation) -> Invocation {
        let procs = self.dir.join("cgroup.procs");
        let script = "echo $$ > \"$0\" && exec \"$@\"";
        command.under(
            Path::new("/bin/sh"),
            vec!["-c".into(), script.into(), procs.into()],
        )
    }
}

/// Guard: this process is in a memory group.
#[must_use]
pub struct Inside {
    /// The group that it was in before.
    back: PathBuf,
}

impl Drop for Inside {
    fn drop(&mut self) {
        if let Err(error) = move_to(&self.back) {
            eprintln!("{error:#}");
        }
    }
}

fn move_to(procs: &Path) -> Result<()> {
    fs::write(procs, std::process::id().to_string())
        .with_context(|| format!("writing to {}", procs.display()))
}

/// The member list of the memory group that this process is in, or of the topmost group if its own is not visible here.
fn own_group() -> Result<PathBuf> {
    let groups = procfs::own_groups().context("reading /proc/self/cgroup")?;
    let first = Path::new(ROOT).join("memory");
    let root = if first.is_dir() { first } else { ROOT.into() };
    let own = Group::all_in(&groups).find_map(|group| {
        let below = group.path.strip_prefix("/").unwrap_or(group.path);
        let procs = root.join(below).join("cgroup.procs");
        let has_memory = group.has("memory") || group.is_unified;
        (has_memory && procs.is_file()).then_some(procs)
    });
    Ok(own.unwrap_or_else(|| root.join("cgroup.procs")))
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // After an interrupt, a command's children may outlive it, and a group with members cannot be removed.
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = fs::remove_dir(&self.dir) {
            if Instant::now() > deadline {
                eprintln!("could not remove {}: {error}", self.dir.display());
                return;
            }
            let members = fs::read_to_string(self.dir.join("cgroup.procs")).unwrap_or_default();
            for pid in members.lines().filter_map(|line| line.parse().ok()) {
                if let Some(pid) = Pid::from_raw(pid) {
                    // It may have ended in between.
                    kill_process(pid, Signal::KILL).ok();
                }
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group, where there can be one.
    fn group(name: &str, bytes: u64) -> Option<MemoryGroup> {
        MemoryGroup::new(name, bytes)
            .inspect_err(|error| eprintln!("skipped: {error:#}"))
            .ok()
    }

    #[test]
    fn a_group_goes_even_if_somebody_is_still_in_it() {
        let Some(group) = group("left", 8 << 20) else {
            return;
        };
        let dir = group.dir.clone();
        let scratch = tempfile::tempdir().unwrap();
        let command = Invocation {
            program: "sh".into(),
            args: vec!["-c".into(), "sleep 60 > /dev/null 2>&1 &".into()],
            cwd: scratch.path().to_owned(),
            env: Vec::new(),
        };
        crate::process::run(&group.inside(&command), scratch.path(), &[]).unwrap();
        let members = fs::read_to_string(dir.join("cgroup.procs")).unwrap();
        assert_eq!(members.lines().count(), 1);
        drop(group);
        assert!(!dir.exists());
    }

    #[test]
    fn what_a_limited_command_reads_does_not_all_stay_in_memory() {
        let Some(group) = group("test", 8 << 20) else {
            return;
        };
        let file = tempfile::NamedTempFile::new_in(crate::cache::build_dir()).unwrap();
        fs::write(file.path(), vec![1; 32 << 20]).unwrap();
        let files = [file.path().to_owned()];
        crate::cache::evict(&files).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let command = Invocation {
            program: "cksum".into(),
            args: vec![file.path().into()],
            cwd: scratch.path().to_owned(),
            env: Vec::new(),
        };
        let run = crate::process::run(&group.inside(&command), scratch.path(), &[]).unwrap();
        assert_eq!(run.outcome.status, 0, "{}", run.stderr);
        let resident: u64 = crate::cache::resident_extents(&files)
            .unwrap()
            .iter()
            .map(crate::deep::FileExtents::bytes)
            .sum();
        assert!(resident <= 8 << 20, "{resident} bytes stayed");
    }

    #[test]
    fn what_is_started_meanwhile_is_inside_and_what_comes_after_is_not() {
        let Some(group) = group("entered", 4 << 30) else {
            return;
        };
        let name = group.dir.file_name().unwrap().to_str().unwrap().to_owned();
        let is_inside = || {
            let cat = std::process::Command::new("cat")
                .arg("/proc/self/cgroup")
                .output()
                .unwrap();
            String::from_utf8(cat.stdout).unwrap().contains(&name)
        };
        let inside = group.enter().unwrap();
        assert!(is_inside());
        drop(inside);
        assert!(!is_inside());
    }
}
