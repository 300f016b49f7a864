//! The figure that a case is to reach.

/// Which figure, and its bound.
#[derive(Clone, Copy, Debug)]
pub enum Want {
    /// Improvement of at least so many percent.
    Improved(f64),
    /// At least so many percent of the avoidable time gone.
    Masked(f64),
    /// At least so many times faster.
    Faster(f64),
    /// At least so many percent of what the program waits for gone, which is its time less the processor's.
    WaitsGone(f64),
    /// At most so many bytes from the disks for each byte of a plain run.
    DeviceBytes(f64),
    /// A first run gains at least so many percent of what one with its own record gains; where that gains nothing, it is
    /// as fast as plain.
    Gain(f64),
    /// The median of paired ratios within 1 % of plain.
    AsFast,
    /// The median of paired differences within the larger of 2 ms and 1 % of plain.
    Unnoticed,
    /// Counting its reads costs a translated program's own side at most so many percent.
    Synchronized(f64),
    /// A prefetch thread takes at most so many percent of the program's own processor time.
    ThreadCpu(f64),
}
