//! `network-ssd`: a cloud volume. Every request takes the same time, any number of them at once, up to the volume's two caps.
//!
//! The figures are those of the general-purpose volume clouds sell by default
//! (Amazon EBS gp3: a baseline of 3000 operations/s and 125 MB/s, an operation
//! being up to 256 KiB; latency below one millisecond). Each cap is a token
//! bucket, kept as the time at which it will be full again (the "generic cell
//! rate algorithm"); requests start in order of arrival, when both buckets have
//! what they need.

use crate::agenda::Agenda;
use crate::{Device, Request};

/// From start to completion, ns.
pub const LATENCY_NS: u64 = 700_000;
/// Operations a second.
pub const IOPS: u64 = 3000;
/// Bytes a second.
pub const BYTES_PER_S: u64 = 125_000_000;
/// A request counts as one operation for each part of this many bytes.
pub const OPERATION_BYTES: u64 = 256 << 10;
/// Operations that may start at once after idle time.
pub const BURST_OPERATIONS: u64 = 32;
/// Bytes that may start at once after idle time.
pub const BURST_BYTES: u64 = 1 << 20;

const SECOND: u64 = 1_000_000_000;

/// A rate, and the burst that is allowed.
struct Bucket {
    /// ns that the whole burst is worth.
    depth: u64,
    /// When the bucket will be full, ns.
    full_at: u64,
}

impl Bucket {
    fn new(burst: u64, per_second: u64) -> Bucket {
        Bucket {
            depth: burst * SECOND / per_second,
            full_at: 0,
        }
    }

    /// The earliest time from `now` on at which `cost` (ns) is available; a cost above the burst waits for a full bucket.
    fn ready(&self, now: u64, cost: u64) -> u64 {
        let slack = self.depth.saturating_sub(cost);
        now.max(self.full_at.saturating_sub(slack))
    }

    fn take(&mut self, now: u64, cost: u64) {
        self.full_at = self.full_at.max(now) + cost;
    }
}

pub(crate) struct NetworkSsd {
    operations: Bucket,
    bytes: Bucket,
}

impl NetworkSsd {
    pub(crate) fn new() -> NetworkSsd {
        NetworkSsd {
            operations: Bucket::new(BURST_OPERATIONS, IOPS),
            bytes: Bucket::new(BURST_BYTES, BYTES_PER_S),
        }
    }
}

impl Device for NetworkSsd {
    fn accept(&mut self, now: u64, request: Request, agenda: &mut Agenda) {
        let len = u64::from(request.len);
        let operations = len.div_ceil(OPERATION_BYTES).max(1) * SECOND / IOPS;
        let bytes = len * SECOND / BYTES_PER_S;
        let start = self
            .operations
            .ready(now, operations)
            .max(self.bytes.ready(now, bytes));
        self.operations.take(start, operations);
        self.bytes.take(start, bytes);
        agenda.put(start + LATENCY_NS, request.id);
    }

    fn completed(&mut self, _now: u64, _agenda: &mut Agenda) {}
}
