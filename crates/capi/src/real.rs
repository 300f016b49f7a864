//! The C library's functions behind the interposers, and system calls that replace them.
//!
//! Invariant: only [`resolve`] looks functions up, in the library's constructor. It takes the dynamic linker's lock, and at
//! any later time a thread that waits for the reading thread may hold this lock. A call before the constructor makes the system call
//! itself, and so does a program without a dynamic C library, where nothing can be looked up. Both follow the C
//! library's convention: the result -1, and the error in errno.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// One function of the C library.
pub struct Real {
    name: &'static CStr,
    /// 0 until it is looked up, and if there is no such function.
    address: AtomicUsize,
}

impl Real {
    /// The function of this name.
    pub const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            address: AtomicUsize::new(0),
        }
    }

    /// The address of the next definition behind the interposer's; `None` if none is known.
    #[inline(always)]
    pub fn address(&self) -> Option<usize> {
        match self.address.load(Ordering::Relaxed) {
            0 => None,
            address => Some(address),
        }
    }

    /// Looks the function up.
    fn look_up(&self) {
        // SAFETY: a terminated name; RTLD_NEXT searches the objects behind this one.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) } as usize;
        self.address.store(found, Ordering::Relaxed);
    }
}

/// The functions behind the interposers, and [`resolve`], which looks all of them up.
macro_rules! functions {
    ($($constant:ident = $name:literal),* $(,)?) => {
        $(pub static $constant: Real = Real::new($name);)*

        /// Looks up all functions.
        pub fn resolve() {
            $($constant.look_up();)*
        }
    };
}

functions! {
    READ = c"read",
    PREAD = c"pread",
    PREAD64 = c"pread64",
    READV = c"readv",
    PREADV = c"preadv",
    PREADV64 = c"preadv64",
    PREADV2 = c"preadv2",
    PREADV64V2 = c"preadv64v2",
    READ_CHK = c"__read_chk",
    PREAD_CHK = c"__pread_chk",
    PREAD64_CHK = c"__pread64_chk",
    CLOSE = c"close",
    DUP2 = c"dup2",
    DUP3 = c"dup3",
    POSIX_FADVISE = c"posix_fadvise",
    POSIX_FADVISE64 = c"posix_fadvise64",
}

/// Calls the C library's function, or, where there is none, evaluates the fallback.
macro_rules! real {
    ($name:ident as $type:ty, ($($argument:expr),*), else $fallback:expr) => {
        match $crate::real::$name.address() {
            // SAFETY: the address is that of the C library's function of this name, which has the
            // type given; the arguments are the program's.
            Some(address) => unsafe {
                ::std::mem::transmute::<usize, $type>(address)($($argument),*)
            },
            None => $fallback,
        }
    };
}
pub(crate) use real;

/// This thread's errno.
pub fn errno() -> c_int {
    // SAFETY: the C library's errno of this thread.
    unsafe { *libc::__errno_location() }
}

/// Sets this thread's errno.
pub fn set_errno(errno: c_int) {
    // SAFETY: the C library's errno of this thread.
    unsafe { *libc::__errno_location() = errno };
}

/// Facts about the file of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorFacts {
    /// Device and inode.
    pub file: (u64, u64),
    /// Size in bytes.
    pub size: u64,
    /// True if it is a regular file.
    pub regular: bool,
}

/// The facts about a descriptor's file.
///
/// # Errors
/// The negative errno of `fstat`.
pub fn facts(fd: c_int) -> Result<DescriptorFacts, c_int> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: fstat writes a whole stat or fails.
    if unsafe { libc::fstat(fd, stat.as_mut_ptr()) } != 0 {
        return Err(-errno());
    }
    // SAFETY: fstat succeeded.
    let stat = unsafe { stat.assume_init() };
    Ok(DescriptorFacts {
        file: (stat.st_dev, stat.st_ino),
        size: u64::try_from(stat.st_size).unwrap_or(0),
        regular: stat.st_mode & libc::S_IFMT == libc::S_IFREG,
    })
}

/// True if a descriptor is open for reading.
pub fn readable(fd: c_int) -> bool {
    // SAFETY: only reads flags.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    flags >= 0 && flags & libc::O_ACCMODE != libc::O_WRONLY && flags & libc::O_PATH == 0
}

/// Advises the kernel on a descriptor's read-ahead, not through the interposer. errno stays unchanged.
pub fn advise(fd: c_int, advice: c_int) {
    let errno = errno();
    // SAFETY: a hint about a whole file. A refusal costs nothing.
    unsafe { libc::syscall(libc::SYS_fadvise64, fd, 0i64, 0i64, advice) };
    set_errno(errno);
}

/// The position of a descriptor's cursor, in bytes.
pub fn cursor(fd: c_int) -> Option<u64> {
    // SAFETY: does not move the cursor.
    u64::try_from(unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) }).ok()
}

/// The length of a read into a vector of buffers, in bytes; `None` if the kernel would refuse the vector.
///
/// The program may give any address, even one where nothing is mapped. So the kernel copies the vector, as for the
/// read itself.
pub fn wanted(vector: *const libc::iovec, count: c_int) -> Option<u64> {
    const AT_ONCE: usize = 64;
    let mut left = usize::try_from(count).ok().filter(|&n| n <= 1024)?;
    let mut from = vector;
    let mut total = 0u64;
    while left > 0 {
        let mut part = [libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        }; AT_ONCE];
        let now = left.min(AT_ONCE);
        let bytes = now * size_of::<libc::iovec>();
        let ours = libc::iovec {
            iov_base: part.as_mut_ptr().cast::<c_void>(),
            iov_len: bytes,
        };
        let theirs = libc::iovec {
            iov_base: from.cast_mut().cast::<c_void>(),
            iov_len: bytes,
        };
        // SAFETY: copies at most `bytes` into `part`, and fails if the program's memory is not readable.
        let copied = unsafe { libc::process_vm_readv(libc::getpid(), &ours, 1, &theirs, 1, 0) };
        if usize::try_from(copied) != Ok(bytes) {
            return None;
        }
        for buffer in &part[..now] {
            total = total.saturating_add(buffer.iov_len as u64);
        }
        from = from.wrapping_add(now);
        left -= now;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_there_once_it_is_looked_up_and_not_before() {
        static READ: Real = Real::new(c"read");
        static NONE: Real = Real::new(c"no_such_function_anywhere");
        assert_eq!(READ.address(), None, "asking looks nothing up");
        READ.look_up();
        NONE.look_up();
        assert!(READ.address().is_some());
        assert_eq!(NONE.address(), None);
    }

    #[test]
    fn a_vector_is_summed_and_one_that_is_nowhere_is_refused() {
        let many = vec![
            libc::iovec {
                iov_base: std::ptr::null_mut(),
                iov_len: 3,
            };
            200
        ];
        assert_eq!(wanted(many.as_ptr(), 200), Some(600));
        assert_eq!(wanted(many.as_ptr(), 0), Some(0));
        assert_eq!(wanted(std::ptr::dangling(), 2), None);
        assert_eq!(wanted(many.as_ptr(), -1), None);
        assert_eq!(wanted(many.as_ptr(), 1025), None);
    }

    #[test]
    fn a_closed_descriptor_has_no_facts() {
        assert_eq!(facts(-1), Err(-libc::EBADF));
        assert_eq!(cursor(-1), None);
    }
}
