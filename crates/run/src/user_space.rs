//! File systems in user space (FUSE), by the device numbers of their files.
//!
//! The process that serves one may compute each block that is read, as of a compressed image, and keeps few: requested out of order and
//! side by side, a block is computed again and again. So nothing of them is fetched ahead unless a record shows that reads waited while
//! nobody computed, as for a network.

use foreread_sys::mounts::Mount;
use rustc_hash::FxHashMap;

/// Devices, and whether they are in user space.
#[derive(Debug, Default)]
pub(super) struct UserSpace {
    known: FxHashMap<u64, bool>,
}

impl UserSpace {
    /// True if a process serves the files of this device (FUSE). The table of mounts is read once per device.
    pub(super) fn has(&mut self, dev: u64) -> bool {
        // Also block devices: the process that serves such a file system reads it from one (fuseblk).
        *self.known.entry(dev).or_insert_with(|| {
            let mounts = Mount::all().unwrap_or_default();
            let mut served = mounts.iter().filter(|mount| mount.is_in_user_space());
            served.any(|mount| mount.dev == dev)
        })
    }
}
