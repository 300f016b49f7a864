//! This program's own file, and the files that belong to it.
//!
//! Data flow: name of a file → its place beside the program in a build tree, or in an installation.

use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::{env, io};

use rustix::fs::{Mode, OFlags};

/// Requests all loaded parts of this program's own file at once. A cold start would read it in pieces of 128 KiB and wait for each. A
/// failure costs only the speed-up.
pub fn fetch() {
    fetch_part(Path::new("/proc/self/exe"), loaded());
}

/// The loaded part of this program's file, in bytes from its beginning; `None` if it is unknown.
fn loaded() -> Option<NonZeroU64> {
    // SAFETY: the kernel's own word, which is none if there is none.
    let (table, count) = unsafe {
        (
            libc::getauxval(libc::AT_PHDR),
            libc::getauxval(libc::AT_PHNUM),
        )
    };
    let table = table as *const libc::Elf64_Phdr;
    if table.is_null() {
        return None;
    }
    // SAFETY: the program's headers, as many as the kernel says, which stay loaded and are never written.
    let headers = unsafe { std::slice::from_raw_parts(table, count as usize) };
    let loaded = headers.iter().filter(|one| one.p_type == libc::PT_LOAD);
    let end = loaded
        .map(|one| one.p_offset.saturating_add(one.p_filesz))
        .max();
    end.and_then(NonZeroU64::new)
}

/// Asks for a library of foreread's that a program is about to load. The program's loader would read three places of the library one
/// after the other. A failure costs nothing but the speed-up.
pub fn announce(library: &Path) {
    fetch_part(library, None);
}

/// Requests a file up to `end`, or all of it.
fn fetch_part(file: &Path, end: Option<NonZeroU64>) {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let Ok(file) = rustix::fs::open(file, flags, Mode::empty()) else {
        return;
    };
    let _ = rustix::fs::fadvise(file, 0, end, rustix::fs::Advice::WillNeed);
}

/// Drops the working directory, standard input and standard output, which the program has, too. A reader that waits for the end of the
/// program's output then waits for the program only, and a file system that the program leaves can be unmounted. Standard error stays. A
/// failure changes nothing.
pub fn let_go() {
    let _ = rustix::process::chdir("/");
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let Ok(nothing) = rustix::fs::open("/dev/null", flags, Mode::empty()) else {
        return;
    };
    for fd in [libc::STDIN_FILENO, libc::STDOUT_FILENO] {
        // SAFETY: this process's standard descriptors, which nobody in it owns. One that is closed stays so.
        unsafe {
            if libc::fcntl(fd, libc::F_GETFD) >= 0 {
                libc::dup2(nothing.as_raw_fd(), fd);
            }
        }
    }
}

/// The place of foreread's file `name`: beside the program that this process runs, or in the folder `installed`, relative to the program's.
///
/// # Errors
///
/// When the file is at neither place, with both of them.
pub fn part(name: &str, installed: &str) -> io::Result<PathBuf> {
    let program = env::current_exe()
        .map_err(|why| io::Error::new(why.kind(), format!("/proc/self/exe: {why}")))?;
    beside(&program, name, installed)
}

fn beside(program: &Path, name: &str, installed: &str) -> io::Result<PathBuf> {
    let folder = program.parent().unwrap_or(Path::new("/"));
    let places = [folder.join(name), folder.join(installed).join(name)];
    let found = places.iter().find(|path| path.is_file());
    found
        .and_then(|path| path.canonicalize().ok())
        .ok_or_else(|| {
            let tried = places.each_ref().map(|path| path.display().to_string());
            let why = format!("{name} is at none of {}", tried.join(", "));
            io::Error::new(io::ErrorKind::NotFound, why)
        })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_part_is_found_beside_the_program_and_where_it_is_installed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let program = root.join("bin/foreread");
        let look = || beside(&program, "part", "../libexec");
        for name in ["bin", "libexec", "bin/part"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let why = look().unwrap_err().to_string();
        assert!(why.contains("/bin/part, "), "{why}");
        assert!(why.ends_with("/bin/../libexec/part"), "{why}");
        fs::write(root.join("libexec/part"), "").unwrap();
        assert_eq!(look().unwrap(), root.join("libexec/part"));
        fs::remove_dir(root.join("bin/part")).unwrap();
        fs::write(root.join("bin/part"), "").unwrap();
        assert_eq!(look().unwrap(), root.join("bin/part"));
    }
}
