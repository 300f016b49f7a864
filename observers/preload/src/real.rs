//! The C library's own functions, found behind ours, and what else it says of itself.
//!
//! Invariant: all are looked up at once, when the library is initialised, or before that by the first hook that is called:
//! another library's constructor may run before ours. No hook looks anything up later: that takes the loader's lock,
//! which another thread may hold for as long as it loads a library, and a thread that it waits for may be in a hook.

use core::ffi::{c_int, c_long};
use core::sync::atomic::Ordering;

use crate::memory::MEMORY;
use crate::symbols::{self, Wanted};

/// One function or variable, by its number.
#[derive(Clone, Copy)]
pub struct Real(usize);

impl Real {
    /// Its address, once it has been looked up.
    #[inline(always)]
    pub fn known(self) -> Option<usize> {
        Some(MEMORY.addresses[self.0].load(Ordering::Relaxed)).filter(|&address| address != 0)
    }

    /// The address of its next definition after ours.
    #[inline(always)]
    pub fn address(self) -> usize {
        self.known().unwrap_or_else(|| self.look_up())
    }

    /// Its address, if somebody defines it.
    pub fn found(self) -> Option<usize> {
        Some(self.address()).filter(|&address| address != missing as *const () as usize)
    }

    #[cold]
    fn look_up(self) -> usize {
        look_up_all();
        MEMORY.addresses[self.0].load(Ordering::Relaxed)
    }
}

/// Looks all functions up.
pub fn look_up_all() {
    // A page that is read before it is written to costs two page faults.
    MEMORY.addresses[0].store(0, Ordering::Relaxed);
    symbols::find_all(&WANTED, &MEMORY.addresses);
    for address in &MEMORY.addresses {
        if address.load(Ordering::Relaxed) == 0 {
            address.store(missing as *const () as usize, Ordering::Relaxed);
        }
    }
}

/// The names and their hashes, by number.
static WANTED: Wanted<COUNT> = Wanted::new(NAMES);

/// Stands in for a function that this C library does not have.
extern "C" fn missing() -> c_long {
    set_errno(libc::ENOSYS);
    -1
}

pub fn errno() -> c_int {
    // SAFETY: the C library's errno of this thread.
    unsafe { *libc::__errno_location() }
}

pub fn set_errno(errno: c_int) {
    // SAFETY: the C library's errno of this thread.
    unsafe { *libc::__errno_location() = errno };
}

/// Numbers the names.
macro_rules! reals {
    ($($name:ident)*) => {
        #[allow(non_camel_case_types)]
        enum Number {
            $($name),*
        }
        /// Each by its name.
        #[allow(non_upper_case_globals)]
        pub mod of {
            $(pub const $name: super::Real = super::Real(super::Number::$name as usize);)*
        }
        const NAMES: &[u8] = concat!($(stringify!($name), "\0"),*).as_bytes();
        /// How many there are.
        pub const COUNT: usize = [$(stringify!($name)),*].len();
    };
}

reals! {
    open open64 openat openat64 __open_2 __open64_2 __openat_2 __openat64_2 creat creat64
    fopen fopen64 freopen freopen64
    read __read_chk pread pread64 __pread_chk __pread64_chk readv preadv preadv64 preadv2 preadv64v2
    sendfile sendfile64 copy_file_range splice aio_return aio_return64 lseek lseek64
    close close_range closefrom dup dup2 dup3 fcntl fcntl64 posix_fadvise posix_fadvise64 fdopendir closedir chdir fchdir
    stat stat64 lstat lstat64 fstatat fstatat64 statx
    __xstat __xstat64 __lxstat __lxstat64 __fxstatat __fxstatat64
    access faccessat eaccess euidaccess readlink readlinkat __readlink_chk __readlinkat_chk
    opendir scandir scandir64 scandirat scandirat64 getdents64
    pthread_cancel pthread_key_create pthread_getspecific pthread_setspecific prctl
    chroot setns unshare mount umount umount2
    setuid seteuid setreuid setresuid setgid setegid setregid setresgid setgroups initgroups capset
    execv execve execvp execvpe fexecve execl execle execlp posix_spawn posix_spawnp
    system popen wordexp vfork clone syscall _exit _Exit
    gnu_get_libc_version _dl_find_object
    _IO_file_jumps _IO_wfile_jumps _IO_file_read _IO_file_seek _IO_file_close
    __rseq_offset __rseq_size __libc_single_threaded
}

/// The real function of a name, as a callable of the given type.
macro_rules! real {
    ($name:ident as $type:ty) => {
        // SAFETY: the address is that of the C library's function of this name, whose
        // type is the one given.
        unsafe { ::core::mem::transmute::<usize, $type>($crate::real::of::$name.address()) }
    };
}
pub(crate) use real;
