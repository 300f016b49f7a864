//! The effect of each system call on descriptors and positions, and the accesses that it makes.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use foreread_plan::{Extent, FileId};

use super::Task;
use super::descriptors::Open;
use super::line::Call;
use crate::fields::extent;
use crate::problem::Fault;
use crate::{Access, Names, Operation};

/// Folders in which nothing has bytes at offsets.
const NO_FILES: [&str; 3] = ["/dev/", "/proc/", "/sys/"];
/// Among them, one that has.
const SHARED_MEMORY: &str = "/dev/shm/";

/// A call that has returned, and all that it acts on.
pub(super) struct Doing<'a, 'b> {
    pub(super) task: &'a mut Task,
    pub(super) call: &'a Call<'b>,
    pub(super) names: &'a mut Names,
    pub(super) out: &'a mut VecDeque<Access>,
    pub(super) unplaced: &'a mut u64,
    /// An access of this call, but for the file, the operation and the extent.
    pub(super) access: Access,
}

/// The place of an access.
#[derive(Clone, Copy)]
enum At {
    Position,
    Offset(u64),
}

impl Doing<'_, '_> {
    pub(super) fn act(mut self) -> Result<(), Fault> {
        let call = self.call;
        let Some(result) = call.returned()? else {
            return Ok(());
        };
        use Operation::{Read, Write};
        match call.name {
            "open" | "creat" => self.open(0, None, result),
            "openat" | "openat2" => self.open(1, Some(0), result),
            "read" | "readv" => self.moved(0, Read, At::Position, result),
            "write" | "writev" => self.moved(0, Write, At::Position, result),
            "pread" | "pread64" | "preadv" | "preadv2" => self.placed(Read, result),
            "pwrite" | "pwrite64" | "pwritev" | "pwritev2" => self.placed(Write, result),
            "sendfile" | "sendfile64" => {
                self.moved(1, Read, self.pointed(2)?, result)?;
                self.moved(0, Write, At::Position, result)
            }
            "copy_file_range" | "splice" => {
                self.moved(0, Read, self.pointed(1)?, result)?;
                self.moved(2, Write, self.pointed(3)?, result)
            }
            "mmap" | "mmap2" => self.mapped(),
            "lseek" => {
                if let Some(open) = self.descriptor(0)? {
                    open.position.set(Some(result));
                }
                Ok(())
            }
            "dup" => self.copied(result, false),
            "dup2" | "dup3" => {
                // Duplicating a descriptor onto itself changes nothing.
                if call.descriptor(0)? == result {
                    return Ok(());
                }
                self.copied(result, call.flag(2, "O_CLOEXEC"))
            }
            "fcntl" | "fcntl64" => {
                if call.flag(1, "F_DUPFD") {
                    return self.copied(result, false);
                } else if call.flag(1, "F_DUPFD_CLOEXEC") {
                    return self.copied(result, true);
                } else if call.flag(1, "F_SETFD") {
                    let close = call.flag(2, "FD_CLOEXEC");
                    self.task.table.close_on_exec(call.descriptor(0)?, close);
                }
                Ok(())
            }
            "close" => {
                let number = call.descriptor(0)?;
                self.task.table.close(number, number, false);
                Ok(())
            }
            "close_range" => {
                let first = call.descriptor(0)?;
                let last = call.descriptor(1)?;
                let only_on_exec = call.flag(2, "CLOSE_RANGE_CLOEXEC");
                self.task.table.close(first, last, only_on_exec);
                Ok(())
            }
            "pipe" | "pipe2" => self.pair(0, call.flag(1, "O_CLOEXEC")),
            "socketpair" => self.pair(3, call.flag(1, "SOCK_CLOEXEC")),
            "socket" | "accept" | "accept4" | "eventfd" | "eventfd2" | "timerfd_create"
            | "signalfd" | "signalfd4" | "inotify_init" | "inotify_init1" | "epoll_create"
            | "epoll_create1" | "memfd_create" | "pidfd_open" => self.no_file(result, false),
            "execve" => self.started(0, None),
            "execveat" => self.started(1, Some(0)),
            "unshare" if call.flag(0, "CLONE_FILES") => {
                self.task.table = self.task.table.copy()?;
                Ok(())
            }
            "chdir" => {
                let to = call.path(0).map(|path| self.absolute(&path, None));
                self.task.folder.replace(to);
                Ok(())
            }
            "fchdir" => {
                let to = self.descriptor(0)?.and_then(|open| open.file);
                let to = to.map(|file| self.names.file(file).to_owned());
                self.task.folder.replace(to);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, path: usize, folder: Option<usize>, number: u64) -> Result<(), Fault> {
        let call = self.call;
        // -y shows the opened file, whatever links led to it.
        let name = match call.returned_file() {
            Some(name) => name,
            None => match call.path(path) {
                Some(path) => Cow::Owned(self.absolute(&path, folder)),
                None => return self.no_file(number, false),
            },
        };
        let file = self.file_named(&name)?;
        let flags = path + 1;
        let open = Open {
            file,
            position: Cell::new(Some(0)),
            append: call.flag(flags, "O_APPEND"),
        };
        let close_on_exec = call.flag(flags, "O_CLOEXEC");
        self.task.table.set(number, Rc::new(open), close_on_exec)?;
        if let Some(file) = file {
            self.give(file, Operation::Open, Extent::default());
        }
        Ok(())
    }

    /// The process has become another program.
    fn started(&mut self, path: usize, folder: Option<usize>) -> Result<(), Fault> {
        let name = self.call.path(path);
        let name = name.map(|name| self.absolute(&name, folder));
        self.task.table = self.task.table.after_exec()?;
        if let Some(name) = name {
            let file = self.names.meet_file(&name)?;
            self.give(file, Operation::Start, Extent::default());
        }
        Ok(())
    }

    /// The path made absolute, if its base is known.
    fn absolute(&self, path: &str, folder: Option<usize>) -> String {
        if path.starts_with('/') {
            return path.to_owned();
        }
        let given = folder.filter(|at| !self.call.argument(*at).starts_with("AT_FDCWD"));
        let named = folder.and_then(|at| self.call.file(at));
        let base = match (named, given) {
            (Some(named), _) => Some(named.into_owned()),
            (None, Some(at)) => {
                let number = self.call.descriptor(at).ok();
                let open = number.and_then(|number| self.task.table.get(number));
                let file = open.and_then(|open| open.file);
                file.map(|file| self.names.file(file).to_owned())
            }
            (None, None) => self.task.folder.borrow().clone(),
        };
        match base {
            Some(base) => format!("{}/{path}", base.trim_end_matches('/')),
            None => path.to_owned(),
        }
    }

    /// The file with this name; `None` for objects without bytes at offsets.
    fn file_named(&mut self, name: &str) -> Result<Option<FileId>, Fault> {
        // -y has other things than paths for pipes, sockets and the like.
        let other = self.call.returned_file().is_some() && !name.starts_with('/');
        let device = NO_FILES.iter().any(|folder| name.starts_with(folder));
        if other || (device && !name.starts_with(SHARED_MEMORY)) {
            return Ok(None);
        }
        Ok(Some(self.names.meet_file(name)?))
    }

    /// The file of a descriptor among the arguments.
    fn descriptor(&mut self, index: usize) -> Result<Option<Rc<Open>>, Fault> {
        let number = self.call.descriptor(index)?;
        if let Some(open) = self.task.table.get(number) {
            return Ok(Some(open));
        }
        let Some(name) = self.call.file(index) else {
            return Ok(None);
        };
        let file = match name.strip_prefix('/') {
            Some(_) => self.file_named(&name)?,
            None => None,
        };
        let open = Rc::new(Open {
            file,
            position: Cell::new(None),
            append: false,
        });
        self.task.table.set(number, open.clone(), false)?;
        Ok(Some(open))
    }

    /// `len` bytes that the call has moved from or to the descriptor at `index`.
    fn moved(&mut self, index: usize, operation: Operation, at: At, len: u64) -> Result<(), Fault> {
        let Some(open) = self.descriptor(index)? else {
            *self.unplaced += 1;
            return Ok(());
        };
        let Some(file) = open.file else {
            return Ok(());
        };
        let offset = match at {
            At::Offset(offset) => Some(offset),
            At::Position if open.append && operation == Operation::Write => {
                open.position.set(None);
                None
            }
            At::Position => {
                let here = open.position.get();
                let then = here.and_then(|here| here.checked_add(len));
                open.position.set(then);
                here
            }
        };
        let Some(offset) = offset else {
            *self.unplaced += 1;
            return Ok(());
        };
        self.give(file, operation, extent(offset, len, 0)?);
        Ok(())
    }

    /// An access of a call that has its offset as its fourth argument; -1 stands for the position.
    fn placed(&mut self, operation: Operation, len: u64) -> Result<(), Fault> {
        let at = if self.call.argument(3) == "-1" {
            At::Position
        } else {
            At::Offset(self.call.unsigned(3, "offset")?)
        };
        self.moved(0, operation, at, len)
    }

    /// The offset before the call at which a pointer points: `NULL`, `[100]`, `[100] => [150]`.
    fn pointed(&self, index: usize) -> Result<At, Fault> {
        let argument = self.call.argument(index);
        let Some(inside) = argument.strip_prefix('[') else {
            return Ok(At::Position);
        };
        let number = inside.split([']', ' ', '=']).next().unwrap_or_default();
        let offset = crate::fields::unsigned(number)
            .map_err(|_| Fault::new(0, format!("offset {number:?} is not a number")))?;
        Ok(At::Offset(offset))
    }

    fn mapped(&mut self) -> Result<(), Fault> {
        if !self.call.has(5) || self.call.argument(4).starts_with('-') {
            return Ok(());
        }
        let (len, offset) = (self.call.unsigned(1, "length")?, self.call.argument(5));
        let offset = match offset {
            "0" => 0,
            _ => self.call.unsigned(5, "offset")?,
        };
        if let Some(file) = self.descriptor(4)?.and_then(|open| open.file) {
            self.give(file, Operation::Map, extent(offset, len, 0)?);
        }
        Ok(())
    }

    /// The first argument's descriptor has a copy, `number`.
    fn copied(&mut self, number: u64, close_on_exec: bool) -> Result<(), Fault> {
        match self.descriptor(0)? {
            Some(open) => self.task.table.set(number, open, close_on_exec)?,
            None => self.task.table.close(number, number, false),
        }
        Ok(())
    }

    /// Two descriptors of no file: `[3, 4]`, `[3<pipe:[7]>, 4<pipe:[7]>]`.
    fn pair(&mut self, index: usize, close_on_exec: bool) -> Result<(), Fault> {
        let numbers: Vec<u64> = self
            .call
            .argument(index)
            .trim_start_matches('[')
            .split(", ")
            .filter_map(|text| {
                let digits = text.bytes().take_while(u8::is_ascii_digit).count();
                text[..digits].parse().ok()
            })
            .collect();
        for number in numbers {
            self.no_file(number, close_on_exec)?;
        }
        Ok(())
    }

    fn no_file(&mut self, number: u64, close_on_exec: bool) -> Result<(), Fault> {
        let open = Open {
            file: None,
            position: Cell::new(None),
            append: false,
        };
        self.task.table.set(number, Rc::new(open), close_on_exec)?;
        Ok(())
    }

    /// Gives an access; the bytes of the lines count for the first of a call.
    fn give(&mut self, file: FileId, operation: Operation, extent: Extent) {
        self.out.push_back(Access {
            file,
            operation,
            extent,
            ..self.access
        });
        self.access.raw = 0;
    }
}
