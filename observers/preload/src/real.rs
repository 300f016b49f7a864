//! The C library's own functions, found behind ours.
//!
//! Invariant: all are looked up at once, when the library is initialised, or before that by the first hook that is called:
//! another library's constructor may run before ours. No hook looks anything up later: that takes the loader's lock,
//! which another thread may hold for as long as it loads a library, and a thread that it waits for may be in a hook.

use core::ffi::{CStr, c_int, c_long, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

/// The address of one function; 0 before all are looked up.
pub struct Real {
    name: &'static CStr,
    address: AtomicUsize,
}

impl Real {
    const fn new(name: &'static str) -> Self {
        let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) else {
            panic!("a name ends with its only zero");
        };
        Self {
            name,
            address: AtomicUsize::new(0),
        }
    }

    /// Its address, once it has been looked up.
    #[inline(always)]
    pub fn known(&self) -> Option<usize> {
        Some(self.address.load(Ordering::Relaxed)).filter(|&address| address != 0)
    }

    /// The address of the function's next definition after ours.
    #[inline(always)]
    pub fn address(&self) -> usize {
        self.known().unwrap_or_else(|| self.look_up())
    }

    #[cold]
    fn look_up(&self) -> usize {
        look_up_all();
        self.address.load(Ordering::Relaxed)
    }

    fn find(&self) {
        let found = next(self.name) as usize;
        let address = if found == 0 {
            missing as *const () as usize
        } else {
            found
        };
        self.address.store(address, Ordering::Relaxed);
    }
}

/// The next definition of a symbol after this library; null if there is none.
pub fn next(name: &CStr) -> *mut c_void {
    // SAFETY: a terminated name; RTLD_NEXT searches the objects after this library.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// Looks all functions up.
pub fn look_up_all() {
    for real in ALL {
        real.find();
    }
    // What it has to say of a function that this C library does not have is not for the program.
    // SAFETY: clears this thread's message.
    unsafe { libc::dlerror() };
}

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

/// Defines a [`Real`] for each name, and the list of all.
macro_rules! reals {
    ($($name:ident)*) => {
        /// Each function by its name.
        #[allow(non_upper_case_globals)]
        pub mod of {
            $(pub static $name: super::Real = super::Real::new(concat!(stringify!($name), "\0"));)*
        }
        static ALL: &[&Real] = &[$(&of::$name),*];
    };
}

reals! {
    open open64 openat openat64 __open_2 __open64_2 __openat_2 __openat64_2 creat creat64
    fopen fopen64 freopen freopen64
    read __read_chk pread pread64 __pread_chk __pread64_chk readv preadv preadv64 preadv2 preadv64v2
    sendfile sendfile64 copy_file_range splice aio_return aio_return64 lseek lseek64
    close close_range closefrom dup dup2 dup3 fcntl fcntl64 fdopendir closedir chdir fchdir
    pthread_cancel prctl
    chroot setns unshare mount umount umount2
    setuid seteuid setreuid setresuid setgid setegid setregid setresgid setgroups initgroups capset
    execv execve execvp execvpe fexecve execl execle execlp posix_spawn posix_spawnp
    system popen wordexp vfork clone syscall _exit _Exit
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
