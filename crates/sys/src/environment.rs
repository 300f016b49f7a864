//! The environment, as far as the process may believe it.
//!
//! Invariant: a process with more rights than its caller (a set-user-ID program, one with file capabilities) sees no variable here: the
//! caller chooses its environment, and must not choose which files it opens.

use std::ffi::OsString;

/// True if the process has more privileges than its caller (`AT_SECURE`, see getauxval(3)).
pub fn is_secure() -> bool {
    // SAFETY: looks up a number that the kernel gave the process at its start.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The value of a variable. `None` if it is unset, empty, or cannot be trusted.
pub fn var(name: &str) -> Option<OsString> {
    if is_secure() {
        return None;
    }
    std::env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_process_sees_its_environment() {
        assert!(!is_secure());
        assert_eq!(var("PATH"), std::env::var_os("PATH"));
        assert_eq!(var("FOREREAD_NO_SUCH_VARIABLE"), None);
    }
}
