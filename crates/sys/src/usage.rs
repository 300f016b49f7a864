//! Processor time that processes have used.

use std::fs;
use std::io;
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

/// Processor time that everybody on this machine has used since it was started, to a hundredth of a second.
///
/// # Errors
/// If the kernel does not report it.
pub fn of_all() -> io::Result<Duration> {
    const TABLE: &str = "/proc/stat";
    let table = fs::read(TABLE).map_err(|why| crate::refused(TABLE, &why))?;
    let line = table.split(|byte| *byte == b'\n').next().unwrap_or(&[]);
    let ticks = String::from_utf8_lossy(line);
    let ticks = ticks.split_ascii_whitespace().skip(1);
    let ticks = ticks.map(|number| number.parse::<u64>().unwrap_or(0));
    // All but the fourth and fifth, which are idle, and from the eighth on, which are others' or counted before.
    let busy = ticks.take(7).enumerate();
    let busy: u64 = busy
        .filter_map(|(place, ticks)| (!matches!(place, 3 | 4)).then_some(ticks))
        .sum();
    let each = rustix::param::clock_ticks_per_second().max(1);
    Ok(Duration::from_nanos(busy * (1_000_000_000 / each)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_childs_time_and_its_own_childs_count_once_they_have_ended() {
        let (before, all) = (of_children(), of_all().expect("a table"));
        let busy = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done";
        let mut child = std::process::Command::new("sh");
        child.args(["-c", &format!("sh -c '{busy}'; true")]);
        assert!(child.status().expect("a shell").success());
        assert!(of_children() > before);
        assert!(of_all().expect("a table") > all);
    }
}
