//! Two ways of removing a file from memory have the same effect, as rebooting and flushing did in AASFP's Table 3: the eviction
//! of that file, which the benchmarks use, and the kernel's dropping of all caches.
//!
//! Without root, FUSE or loop devices the test prints the reason and is skipped.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use foreread_slowdisk::Mounted;

const BLOCK: usize = 4096;
/// Blocks read backward; each one costs the modelled disk a turn.
const BLOCKS: u64 = 64;
/// Runs each way, in alternation.
const RUNS: usize = 5;
/// The largest difference of the two ways, in percent.
const APART: f64 = 5.0;

/// A slow disk, served by the benchmark program as in a benchmark.
struct Disk {
    server: Child,
    dir: PathBuf,
}

impl Disk {
    fn mount(dir: &Path) -> Self {
        let mut server = Command::new(env!("CARGO_BIN_EXE_foreread-bench"))
            .args(["serve-disk", "--model", "hdd-7200", "--size", "67108864"])
            .arg("--dir")
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let output = server.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut said).unwrap();
        assert_eq!(said.trim(), "ready");
        Self {
            server,
            dir: dir.to_owned(),
        }
    }

    /// Empties the disk's own cache.
    fn forget(&self) {
        Mounted::find(&self.dir).unwrap().forget().unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        self.server.wait().unwrap();
    }
}

/// The reason why slow disks cannot be mounted here, if there is one.
fn missing() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return Some("not root");
    }
    let needed = ["/dev/fuse", "/dev/loop-control", "/proc/sys/vm/drop_caches"];
    needed
        .into_iter()
        .find(|path| File::options().write(true).open(path).is_err())
}

/// Seconds to read the file backward from its end.
fn backward(path: &Path) -> f64 {
    let file = File::open(path).unwrap();
    let mut block = [0; BLOCK];
    let began = Instant::now();
    for number in (0..BLOCKS).rev() {
        file.read_exact_at(&mut block, number * BLOCK as u64)
            .unwrap();
    }
    began.elapsed().as_secs_f64()
}

/// The shortest time, which other processes on the machine disturbed least.
fn shortest(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

#[test]
fn a_file_evicted_alone_is_as_cold_as_after_all_caches_are_dropped() {
    if let Some(missing) = missing() {
        eprintln!("skipped: {missing}");
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let disk = Disk::mount(&scratch.path().join("disk"));
    let path = disk.dir.join("film");
    std::fs::write(&path, vec![7; BLOCK * BLOCKS as usize]).unwrap();
    let (mut evicted, mut dropped) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        foreread_sys::cache::evict_path(&path).unwrap();
        disk.forget();
        evicted.push(backward(&path));
        rustix::fs::sync();
        std::fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
        disk.forget();
        dropped.push(backward(&path));
    }
    println!("evicted {evicted:.4?} s, dropped {dropped:.4?} s");
    let (evicted, dropped) = (shortest(&evicted), shortest(&dropped));
    let apart = (evicted / dropped - 1.0) * 100.0;
    assert!(
        apart.abs() < APART,
        "evicted {evicted:.4} s, dropped {dropped:.4} s: {apart:+.1} %"
    );
}
