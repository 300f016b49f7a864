//! The target of a case.

/// A figure and its bound.
#[derive(Clone, Copy, Debug)]
pub enum Want {
    /// Improvement of at least this percentage.
    Improved(f64),
    /// At least this percentage of the avoidable time is gone.
    Masked(f64),
    /// At least this many times faster.
    Faster(f64),
    /// At least this percentage of the program's waiting (its time minus processor time) is gone.
    WaitsGone(f64),
    /// At most this many bytes from the disks per byte of a plain run.
    DeviceBytes(f64),
    /// A first run gains at least this percentage of the gain of a run with its own record; where that run gains nothing, the
    /// first run is as fast as plain.
    Gain(f64),
    /// The median of the paired ratios is within 1 % of plain.
    AsFast,
    /// The median of the paired differences is within the larger of 2 ms and 1 % of plain.
    Unnoticed,
    /// Counting its reads costs the translated program itself at most this percentage.
    Synchronized(f64),
    /// A prefetch thread uses at most this percentage of the program's own processor time.
    ThreadCpu(f64),
}
