//! Processor time that the machine loses to its devices: the kernel's pressure stall information (PSI).
//!
//! A processor loses time while some task waits for a device and no task runs on it. Using such time takes it from nobody. The kernel
//! averages over busy processors, so at most as much is lost as time passes.

/// Processor time lost to devices since the system started, in ns, from the text of `/proc/pressure/io`; 0 if the kernel does not report
/// it.
pub fn lost_in(text: &str) -> u64 {
    let total = || {
        let line = text.lines().find(|line| line.starts_with("full"))?;
        let (_, total) = line.rsplit_once("total=")?;
        total.parse::<u64>().ok()
    };
    // The kernel counts in µs.
    total().unwrap_or(0).saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_tasks_wait_for_is_told_from_what_some_wait_for() {
        let text = "some avg10=41.50 avg60=0.09 avg300=0.10 total=28916441\n\
                    full avg10=0.25 avg60=0.00 avg300=0.00 total=10376998\n";
        assert_eq!(lost_in(text), 10_376_998_000);
        assert_eq!(lost_in(""), 0);
        assert_eq!(lost_in("full total=many"), 0);
    }
}
