//! Errors for C: negative errno values.
//!
//! Invariant: every value that a call returns has a sentence in [`sentence`].

use std::ffi::{CStr, c_int};

use foreread_client::Error;

/// The code of a client's error.
pub fn code(error: &Error) -> c_int {
    -match error {
        Error::Forked => libc::ECHILD,
        Error::File { why, .. } => why.raw_os_error().unwrap_or(libc::ENODEV),
        Error::UnknownFile(_) => libc::EBADF,
        Error::UnknownRegion(_) => libc::ENOENT,
        Error::NoEntry { .. } => libc::ERANGE,
        Error::Threads(_) => libc::EAGAIN,
        _ => libc::EINVAL,
    }
}

/// The meaning of a code in this library's terms.
pub fn sentence(code: c_int) -> &'static CStr {
    match code.checked_neg().unwrap_or(0) {
        0 => c"success",
        libc::EINVAL => c"not a client, flags without meaning, or an empty region",
        libc::EFAULT => c"a required pointer is null",
        libc::EBADF => c"the descriptor is closed, not readable, or in no region of the client",
        libc::ENODEV => c"not a regular file",
        libc::ERANGE => c"past the end: a region outside its file, or an entry outside the list",
        libc::ENOENT => c"no such file, no such region, or no /proc to open files by",
        libc::EACCES | libc::EPERM => c"the file may not be read",
        libc::ECHILD => c"the client belongs to the parent: a forked child must register its own",
        libc::EDEADLK => c"called from a signal handler that interrupted the library",
        libc::EAGAIN => c"the prefetching threads cannot be started",
        libc::E2BIG => c"the options have members that this version does not know",
        libc::EMFILE => c"the descriptor's number is too high, or too many files are open",
        libc::ENOMEM => c"there is no memory for the list",
        libc::ENOTRECOVERABLE => c"prefetching has failed; the program continues without it",
        _ => c"the operating system refused the file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_sentence_and_no_number_is_too_odd() {
        for code in [0, -libc::EINVAL, -libc::EIO, 7, c_int::MIN, c_int::MAX] {
            assert!(!sentence(code).is_empty(), "{code}");
        }
        assert_ne!(sentence(-libc::ECHILD), sentence(-libc::EBADF));
    }

    #[test]
    fn a_clients_errors_become_codes() {
        assert_eq!(code(&Error::Forked), -libc::ECHILD);
        let end = Error::NoEntry { number: 9, end: 3 };
        assert_eq!(code(&end), -libc::ERANGE);
        let missing = Error::File {
            path: "gone".into(),
            why: std::io::Error::from_raw_os_error(libc::ENOENT),
        };
        assert_eq!(code(&missing), -libc::ENOENT);
    }
}
