//! Processor time that processes have used.

use std::mem::MaybeUninit;
use std::time::Duration;

/// User and system time of this process's children that have ended and been waited for, and of theirs, to the microsecond.
pub fn of_children() -> Duration {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the buffer is a rusage, for which all-zero is valid; the call writes nothing else.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let time = |time: libc::timeval| {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let micros = u64::try_from(time.tv_usec).unwrap_or(0);
        Duration::from_secs(seconds) + Duration::from_micros(micros)
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_childs_time_and_its_own_childs_count_once_they_have_ended() {
        let before = of_children();
        let busy = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done";
        let mut child = std::process::Command::new("sh");
        child.args(["-c", &format!("sh -c '{busy}'; true")]);
        assert!(child.status().expect("a shell").success());
        assert!(of_children() > before);
    }
}
