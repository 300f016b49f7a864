//! The C library's functions and variables that the library needs, by name.

/// A function or variable, by its number.
#[derive(Clone, Copy)]
pub struct Real(pub usize);

/// Defines a number for each name.
macro_rules! reals {
    ($($name:ident)*) => {
        #[allow(non_camel_case_types)]
        enum Number {
            $($name),*
        }
        /// The functions and variables by their names.
        #[allow(non_upper_case_globals)]
        pub mod of {
            $(pub const $name: super::Real = super::Real(super::Number::$name as usize);)*
        }
        /// The names, each terminated by a zero.
        pub const NAMES: &[u8] = concat!($(stringify!($name), "\0"),*).as_bytes();
        /// Number of the names.
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
    setrlimit setrlimit64 prlimit prlimit64
    execv execve execvp execvpe fexecve execl execle execlp posix_spawn posix_spawnp
    system popen wordexp vfork clone syscall _exit _Exit
    gnu_get_libc_version _dl_find_object
    _IO_file_jumps _IO_wfile_jumps _IO_file_read _IO_file_seek _IO_file_close
    __rseq_offset __rseq_size __libc_single_threaded
}
