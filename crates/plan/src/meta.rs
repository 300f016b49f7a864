//! The run that a record was made from.

use serde::{Deserialize, Serialize};

/// A thread's number within one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(pub u32);

/// A thread of the recorded run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadMeta {
    /// Process id at the time of the run.
    pub pid: u32,
    /// Thread id at the time of the run; equals `pid` for a process's first thread.
    pub tid: u32,
    /// Process id of the parent.
    pub ppid: u32,
    /// The executable's absolute path, lossily decoded.
    pub exe: String,
}

/// The identity of a program's runs: executable and arguments.
///
/// The working directory belongs to it because relative arguments name other files elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The executable's absolute path, symbolic links resolved.
    pub exe: String,
    /// The command line, `argv[0]` included. A byte that is no UTF-8 is U+FFFD and two hexadecimal digits.
    pub argv: Vec<String>,
    /// The working directory.
    pub cwd: String,
    /// The rank, if it was started as a process of a parallel program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<Rank>,
}

/// A process of a parallel program: they are numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rank {
    /// Its number.
    pub rank: u32,
    /// Number of ranks.
    pub of: u32,
}

/// The head of a record: written when recording starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The program.
    pub identity: Identity,
    /// When the run began, in seconds since the epoch.
    pub recorded_at: u64,
    /// The version of foreread that wrote the record.
    pub writer: String,
}

/// The foot of a record: written when the run ends; absent from a truncated record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Accesses in the record, opens and maps included.
    pub accesses: u64,
    /// Bytes read by the program, re-reads included.
    pub bytes: u64,
    /// Files in the record.
    pub files: u64,
    /// Threads in the record.
    pub threads: u64,
    /// Wall-clock time of the run, in ns.
    pub wall_ns: u64,
    /// Time the program spent inside recorded calls, in ns, summed over threads.
    pub read_ns: u64,
    /// Processor time of the program and of the children that it waited for, in ns; `None` if unknown. The rest of a run's time is waiting,
    /// including waits for mapped pages, which are not observed.
    #[serde(default)]
    pub cpu_ns: Option<u64>,
    /// Processor time of everybody else meanwhile, in ns; `None` if that is not known.
    #[serde(default)]
    pub others_ns: Option<u64>,
    /// Among small reads that waited for a device and did not continue their file's previous read, nine in ten took at most this, in ns;
    /// `None` if there were too few. It distinguishes a disk with a moving head from one that wrongly claims to have one.
    #[serde(default)]
    pub wait_ns: Option<u64>,
    /// The same for reads that did continue, which need no movement of a head.
    #[serde(default)]
    pub onward_wait_ns: Option<u64>,
    /// Among uses of names that waited for a device, half took at most this, in ns; `None` if there were too few.
    #[serde(default)]
    pub name_wait_ns: Option<u64>,
    /// Time the program waited in files that it had written itself, in ns, summed over threads. No later run finds these in memory.
    #[serde(default)]
    pub rewritten_ns: u64,
    /// Bytes read from devices during the run, if the kernel counts them.
    pub device_bytes: Option<u64>,
    /// Accesses that could not be recorded, because a ring was full or a limit reached.
    pub lost: u64,
    /// Wall-clock time, in ns, of the last run known to have started cold and gone unhelped.
    pub cold_wall_ns: Option<u64>,
    /// True if foreread prefetched for the run: then its times are not those of the program alone.
    #[serde(default)]
    pub helped: bool,
    /// The program's exit status: its code, or 128 + the signal that ended it.
    pub exit_status: Option<i32>,
    /// Bytes from devices by unobserved reads; `None` if there are few, or the number is unknown.
    #[serde(default)]
    pub unseen_bytes: Option<u64>,
    /// Bytes that the program read with `O_DIRECT`, past the page cache. They are in neither of the other counts of bytes.
    #[serde(default)]
    pub direct_bytes: u64,
    /// Parts of the program that were not observed, in sentences.
    #[serde(default)]
    pub unobserved: Vec<String>,
    /// True if the program needs the kernel (eBPF) as observer, because the preload library sees too little of it.
    #[serde(default)]
    pub by_kernel: bool,
    /// True if the run differed from the command's record before. The next run may differ again.
    #[serde(default)]
    pub left_plan: bool,
    /// True if the record intentionally has only a part of the command's reads: it was cut to a size, or made from a list. Reads missing
    /// from it are then no sign that the command does something else.
    #[serde(default)]
    pub partial: bool,
    /// The origin of a record that was not recorded from a run, such as "a vmtouch list": its times belong to no run.
    #[serde(default)]
    pub imported: Option<String>,
}

impl Summary {
    /// True if most of the reads' waiting was not caused by another process's computing, as far as the record shows: others computed for
    /// less than half of it.
    pub fn waited_for_idle_servers(&self) -> bool {
        let others = self.others_ns.filter(|_| !self.helped);
        others.is_some_and(|others| others < self.read_ns / 2)
    }

    /// True if the choice of the next run's observer needs no file of the record.
    pub fn tells_who_observes(&self) -> bool {
        self.unseen_bytes.is_some() || self.by_kernel
    }

    /// True if at least half of the bytes from devices were read unobserved, though the kernel could observe more.
    pub fn is_half_unseen(&self) -> bool {
        let unseen = self.unseen_bytes.unwrap_or(0);
        let is_half = self.device_bytes.is_some_and(|all| unseen >= all / 2);
        unseen > 0 && is_half && !self.by_kernel
    }
}
