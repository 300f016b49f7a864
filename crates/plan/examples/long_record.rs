//! Writes and reads one long record, and prints the memory used.
//!
//!     cargo run --release -p foreread-plan --example long_record [ACCESSES]

use std::error::Error;
use std::time::Instant;

use foreread_plan::format::{Reader, RecordFile};
use foreread_plan::{
    Access, Extent, FileId, FileMeta, Identity, Kind, Meta, PAGE, Summary, ThreadId,
};

fn main() -> Result<(), Box<dyn Error>> {
    let count: u64 = match std::env::args().nth(1) {
        Some(count) => count.parse()?,
        None => 10_000_000,
    };
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("long");
    let meta = Meta {
        identity: Identity {
            exe: "/usr/bin/example".into(),
            argv: vec!["example".into()],
            cwd: "/".into(),
            rank: None,
        },
        recorded_at: 0,
        writer: "example".into(),
    };

    let began = Instant::now();
    let mut record = RecordFile::create(&path, &meta, u64::MAX)?;
    for n in 0..1_000 {
        let file = FileMeta::regular(format!("/data/part-{n}"), (1, n), 1 << 30, 0);
        record.file(FileId(n as u32), file)?;
    }
    for n in 0..count {
        record.access(&access(n))?;
    }
    record.commit(Summary::default())?;
    report("written", count, began);

    let began = Instant::now();
    let mut reader = Reader::open(&path)?;
    let mut read = 0;
    while let Some(got) = reader.next_access() {
        if got? != access(read) {
            return Err(format!("access {read} is not what was written").into());
        }
        read += 1;
    }
    report("read", read, began);
    let size = reader.size_bytes();
    println!("{size} bytes, {:.3} an access", size as f64 / count as f64);
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM"));
    println!("peak memory: {}", peak.unwrap_or("unknown"));
    Ok(())
}

/// The `n`th access: runs of pages in one of a thousand files, with noisy times.
fn access(n: u64) -> Access {
    let noise = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    Access {
        file: FileId((n / 64 % 1_000) as u32),
        extent: Extent::new((n / 64_000 * 64 + n % 64) * PAGE, PAGE),
        thread: ThreadId(0),
        kind: Kind::Pread,
        start: n * 110_000,
        took: (60 + noise % 41) * 1_000,
    }
}

fn report(what: &str, count: u64, began: Instant) {
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{what}: {count} accesses in {seconds:.2} s, {:.1} million/s",
        count as f64 / seconds / 1e6
    );
}
