//! The models by name, and the figures each is held against.

use std::fmt;
use std::str::FromStr;

/// A kind of disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Model {
    /// `hdd-7200`: a 7200 rpm desktop disk. See [`crate::hdd`].
    Hdd7200,
    /// `network-ssd`: a cloud volume. See [`crate::network`].
    NetworkSsd,
    /// `nfs`: a file server on the local network. See [`crate::nfs`].
    Nfs,
    /// `nfs-2008`: one on a disk and Fast Ethernet. See [`crate::striped`].
    Nfs2008,
    /// `striped`: a parallel file system of today. See [`crate::striped`].
    Striped,
    /// `striped-2008`: one on disks and Fast Ethernet. See [`crate::striped`].
    Striped2008,
}

/// The published figures of a model, for single 4 KiB reads spread at random over the whole device, for many at once, and for sequential
/// reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spec {
    /// The model.
    pub model: Model,
    /// Description in one line.
    pub summary: &'static str,
    /// Source of the figures.
    pub source: &'static str,
    /// Its parameters: (property, value with unit).
    pub facts: &'static [(&'static str, &'static str)],
    /// Mean time of one random 4 KiB read with nothing else under way, µs.
    pub random_us: f64,
    /// Random 4 KiB reads per second with 32 in flight. No maker publishes this for the disk: it follows from taking the nearest of 32 by
    /// the figures above, a little over twice the rate of one at a time.
    pub deep_iops: f64,
    /// Sequential reading, MB/s (10^6 bytes), by as many readers as
    /// [`Spec::streams`] says.
    pub sequential_mb_s: f64,
    /// Sequential readers that together reach the full rate, each with one request of 128 KiB to 1 MiB in flight.
    pub streams: u64,
    /// True if it seeks: position matters, and the kernel must be told.
    pub rotational: bool,
    /// True for a file system without a page cache at the client, in place of a block device.
    pub file_system: bool,
}

/// The name is not that of a model.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no disk model called {0:?}: it is one of hdd-7200, network-ssd, nfs, nfs-2008, striped, striped-2008"
)]
pub struct UnknownModel(pub String);

impl Model {
    /// Every model.
    pub const ALL: [Model; 6] = [
        Model::Hdd7200,
        Model::NetworkSsd,
        Model::Nfs,
        Model::Nfs2008,
        Model::Striped,
        Model::Striped2008,
    ];

    /// The name users type.
    pub fn name(self) -> &'static str {
        match self {
            Model::Hdd7200 => "hdd-7200",
            Model::NetworkSsd => "network-ssd",
            Model::Nfs => "nfs",
            Model::Nfs2008 => "nfs-2008",
            Model::Striped => "striped",
            Model::Striped2008 => "striped-2008",
        }
    }

    /// The figures the model is held against.
    pub fn spec(self) -> &'static Spec {
        match self {
            Model::Hdd7200 => &HDD_7200,
            Model::NetworkSsd => &NETWORK_SSD,
            Model::Nfs => &NFS,
            Model::Nfs2008 => &NFS_2008,
            Model::Striped => &STRIPED,
            Model::Striped2008 => &STRIPED_2008,
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Model {
    type Err = UnknownModel;

    fn from_str(name: &str) -> Result<Model, UnknownModel> {
        Model::ALL
            .into_iter()
            .find(|model| model.name() == name)
            .ok_or_else(|| UnknownModel(name.to_owned()))
    }
}

const HDD_7200: Spec = Spec {
    model: Model::Hdd7200,
    summary: "7200 rpm desktop disk, 500 GB",
    source: "Seagate Barracuda 7200.11 product manual (average seek 8.5 ms, 105 MB/s sustained, \
             32 MB cache, 32-deep queue); seek curve after Ruemmler and Wilkes, \
             An Introduction to Disk Drive Modeling (IEEE Computer, 1994); zones are an assumption: the \
             radii of a 3.5-inch platter",
    facts: &[
        ("average seek", "8.5 ms over the whole stroke"),
        ("track to track", "0.8 ms"),
        ("full stroke", "18 ms"),
        ("rotation", "8.33 ms (7200 rpm)"),
        (
            "transfer",
            "105 MB/s sustained on the outermost tracks, head switches included; half of that on the innermost, in 16 zones",
        ),
        (
            "queue",
            "32 requests, least positioning time first, none waits long over 0.5 s",
        ),
        ("cache", "16 segments of 2 MiB, reading ahead while idle"),
        (
            "writes",
            "1 ms longer to seek, straight to the platter (no write cache)",
        ),
    ],
    random_us: 8_500.0 + 8_333.0 / 2.0 + 50.0 + 36.0,
    deep_iops: 188.0,
    sequential_mb_s: 105.0,
    streams: 4,
    rotational: true,
    file_system: false,
};

const NETWORK_SSD: Spec = Spec {
    model: Model::NetworkSsd,
    summary: "network volume of a cloud",
    source: "Amazon EBS user guide, General Purpose SSD (gp3) baseline: 3000 IOPS of up to \
             256 KiB, 125 MB/s; latency below 1 ms, taken as 0.7 ms",
    facts: &[
        ("latency", "0.7 ms a request, any number at once"),
        (
            "operations",
            "3000 a second of up to 256 KiB, 32 at once after a rest",
        ),
        ("transfer", "125 MB/s, 1 MiB at once after a rest"),
    ],
    random_us: 700.0,
    deep_iops: 3000.0,
    sequential_mb_s: 125.0,
    streams: 4,
    rotational: false,
    file_system: false,
};

const NFS: Spec = Spec {
    model: Model::Nfs,
    summary: "NFS server on gigabit Ethernet",
    source: "gigabit Ethernet less its headers; the Linux server's eight threads and the \
             client's 64 slots; round trip and service time are assumptions for a small office",
    facts: &[
        ("round trip", "0.5 ms"),
        ("server", "8 threads, 0.7 ms a request"),
        ("wire", "110 MB/s each way"),
        ("client", "64 requests at once"),
    ],
    random_us: 500.0 + 700.0 + 37.0,
    deep_iops: 11_430.0,
    sequential_mb_s: 110.0,
    streams: 4,
    rotational: false,
    file_system: false,
};

const NFS_2008: Spec = Spec {
    model: Model::Nfs2008,
    summary: "NFS server of 2008 on Fast Ethernet",
    source: "Byna et al., Parallel I/O Prefetching Using MPI File Caching and I/O Signatures (SC 2008), \
             section VI: NFS on 10/100 Ethernet; the server is one of striped-2008's",
    facts: &[
        ("round trip", "0.3 ms"),
        (
            "service",
            "0.2 ms a request, one after the other, and the time of an hdd-7200",
        ),
        ("wire", "11.8 MB/s each way (100 Mbit/s)"),
    ],
    random_us: 300.0 + 200.0 + 8_500.0 + 8_333.0 / 2.0 + 50.0 + 36.0 + 347.0,
    deep_iops: 188.0,
    sequential_mb_s: 11.8,
    streams: 4,
    rotational: false,
    file_system: false,
};

const STRIPED: Spec = Spec {
    model: Model::Striped,
    summary: "parallel file system on eight servers",
    source: "stripes as PVFS2 and Lustre have them by default or are set to; round trip, service \
             time and rate are assumptions for a system with flash that others use, too",
    facts: &[
        (
            "servers",
            "8, stripes of 64 KiB, each server with a queue of its own",
        ),
        ("round trip", "0.2 ms"),
        ("service", "0.4 ms a request, one after the other"),
        ("wire", "110 MB/s each way for each server"),
        ("client", "no page cache: every read goes to the servers"),
    ],
    random_us: 200.0 + 400.0 + 37.0,
    deep_iops: 17_500.0,
    sequential_mb_s: 880.0,
    streams: 16,
    rotational: false,
    file_system: true,
};

const STRIPED_2008: Spec = Spec {
    model: Model::Striped2008,
    summary: "parallel file system of 2008 on eight servers",
    source: "Byna et al., Parallel I/O Prefetching Using MPI File Caching and I/O Signatures (SC 2008), \
             section VI: PVFS2 on eight hosts with a 7200 rpm disk each and Fast Ethernet; the disks \
             are those of hdd-7200; round trip and service time are assumptions",
    facts: &[
        (
            "servers",
            "8, stripes of 64 KiB, each server with a queue and a disk of its own",
        ),
        ("round trip", "0.3 ms"),
        (
            "service",
            "0.2 ms a request, one after the other, and the disk's time",
        ),
        ("wire", "11.8 MB/s each way for each server (100 Mbit/s)"),
        ("client", "no page cache: every read goes to the servers"),
    ],
    random_us: 300.0 + 200.0 + 8_500.0 + 8_333.0 / 2.0 + 50.0 + 36.0 + 347.0,
    deep_iops: 815.0,
    sequential_mb_s: 94.0,
    streams: 16,
    rotational: true,
    file_system: true,
};
