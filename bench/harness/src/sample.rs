//! The figures of one timed run.

use serde::Serialize;

use crate::foreread::Account;
use crate::translated::PrefetchThread;

/// One timed run.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Wall-clock time, in seconds.
    pub seconds: f64,
    /// Bytes read from the device meanwhile, by any process; `None` where they are not counted.
    pub device_bytes: Option<u64>,
    /// Processor time of the command and of all processes that it waited for, in seconds.
    pub cpu_seconds: Option<f64>,
    /// foreread's account, if it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
    /// The report of the program's prefetch thread, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetch_thread: Option<PrefetchThread>,
}

/// The times of these runs, in seconds.
pub fn seconds(samples: &[Sample]) -> Vec<f64> {
    samples.iter().map(|sample| sample.seconds).collect()
}
