//! Memory limits for whole-program tests.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A memory cgroup with a limit, of either cgroup version; removed on drop.
#[derive(Debug)]
pub struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// A group with this limit, in bytes.
    pub fn new(limit: u64) -> Self {
        Self::make(limit).expect("tests that need a group are run where one can be made")
    }

    /// A group, or the reason why there is none.
    pub(crate) fn make(limit: u64) -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "foreread-tests.{}.{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let mut why = String::from("no cgroup file system");
        for (mount, file) in [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ] {
            let folder = Path::new(mount).join(&name);
            let made = fs::create_dir(&folder).and_then(|()| {
                let group = Self(folder.clone());
                // The file is not created: in a plain directory it would limit nothing.
                let mut file = fs::OpenOptions::new().write(true).open(folder.join(file))?;
                file.write_all(limit.to_string().as_bytes()).map(|()| group)
            });
            match made {
                Ok(group) => return Ok(group),
                Err(error) => why = format!("no memory cgroup: {}: {error}", folder.display()),
            }
        }
        Err(why)
    }

    /// The file into which a process writes its number to join.
    pub fn members(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // A process killed a moment ago may still be in the group.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
