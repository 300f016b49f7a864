//! The observer in the kernel, of the whole machine.

use std::os::fd::BorrowedFd;

use foreread_ebpf::system::{self, Event, System};

use super::{File, Happened, Watch};

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

    fn poll(&mut self, out: &mut dyn FnMut(Happened)) -> bool {
        self.0.poll(&mut |event| out(happened(event)))
    }

    fn lost(&self) -> Vec<(&'static str, u64)> {
        self.0.lost()
    }
}

fn happened(event: Event) -> Happened {
    match event {
        Event::Forked { pid, parent, at } => Happened::Forked { pid, parent, at },
        Event::Started {
            pid,
            parent,
            uid,
            program,
            at,
        } => Happened::Started {
            pid,
            parent,
            uid,
            program: file(&program),
            at,
        },
        Event::Opened {
            pid,
            uid,
            file: opened,
            writes,
            at,
        } => Happened::Opened {
            pid,
            uid,
            file: file(&opened),
            writes,
            at,
        },
        Event::Fetched {
            pid,
            device,
            inode,
            offset,
            len,
            at,
        } => Happened::Fetched {
            pid,
            device,
            inode,
            offset,
            len,
            at,
        },
        Event::Ended { pid, at } => Happened::Ended { pid, at },
    }
}

fn file(file: &system::File) -> File {
    File {
        path: file.path.to_path_buf(),
        device: file.device,
        inode: file.inode,
        generation: file.generation,
        size: file.size,
    }
}
