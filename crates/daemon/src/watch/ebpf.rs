//! The observer in the kernel, of the whole machine.

use std::os::fd::BorrowedFd;

use foreread_ebpf::system::{self, System};

use super::{Happened, Watch};

/// An observation by eBPF.
pub struct Ebpf(System);

impl Ebpf {
    /// Begin.
    ///
    /// # Errors
    /// In one sentence, why this host does not allow it.
    pub fn begin() -> Result<Self, String> {
        system::observe().map(Self)
    }
}

impl Watch for Ebpf {
    fn name(&self) -> &'static str {
        "ebpf"
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.wait_fd())
    }

    fn alarm_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.alarm_fd())
    }

    fn poll(&mut self, out: &mut dyn FnMut(Happened)) -> bool {
        self.0.poll(out)
    }

    fn lost(&self) -> Vec<(&'static str, u64)> {
        self.0.lost()
    }
}
