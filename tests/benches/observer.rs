//! The cost of the preload observer: ns added to a hot 4 KiB pread, and µs added to starting a process, for each mode compared with the
//! plain program.
//!
//! `cargo bench -p foreread-tests --bench observer`

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use foreread_ring::{Clock, ENV, Mode, Ring};

const PAIRS: usize = 7;
const STARTS: u32 = 100;

fn main() {
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let data = scratch.path().join("data");
    std::fs::write(&data, [0; 4 * 4096]).expect("the data file");
    let program = scratch.path().join("hot");
    let source = root().join("tests/observe/hot.c");
    let compiled = Command::new("cc")
        .args(["-O2", "-o"])
        .arg(&program)
        .arg(source)
        .status();
    assert!(compiled.is_ok_and(|status| status.success()), "cc failed");
    println!(
        "{:<10} {:>16} {:>20}",
        "mode", "ns per pread", "us per start"
    );
    let cases = [
        None,
        Some(Mode::Mute),
        Some(Mode::Progress),
        Some(Mode::Record),
    ];
    let mut reads = vec![Vec::new(); cases.len()];
    let mut starts = vec![Vec::new(); cases.len()];
    for _ in 0..PAIRS {
        for (case, mode) in cases.iter().enumerate() {
            reads[case].push(under(*mode, |command| {
                let output = command(&program).arg(&data).output().expect("the program");
                let text = String::from_utf8_lossy(&output.stdout);
                text.trim().parse::<f64>().expect("a time")
            }));
            starts[case].push(under(*mode, |command| {
                let began = Instant::now();
                for _ in 0..STARTS {
                    let status = command("/bin/true".as_ref()).status();
                    assert!(status.is_ok_and(|status| status.success()));
                }
                began.elapsed().as_secs_f64() * 1e6 / f64::from(STARTS)
            }));
        }
    }
    for (case, mode) in cases.iter().enumerate() {
        let name = mode.map_or("plain".to_owned(), |mode| {
            format!("{mode:?}").to_lowercase()
        });
        let added = |times: &[Vec<f64>]| {
            let (own, plain) = (median(&times[case]), median(&times[0]));
            format!("{own:.1} ({:+.1})", own - plain)
        };
        println!("{name:<10} {:>16} {:>20}", added(&reads), added(&starts));
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a workspace member")
        .to_path_buf()
}

fn library() -> PathBuf {
    let path = root().join("target/release/libforeread_preload.so");
    assert!(
        path.exists(),
        "{} is missing: run make build first",
        path.display()
    );
    path
}

/// Runs `work` with a function that makes commands in a mode, while another thread reads their reports.
fn under<T>(mode: Option<Mode>, work: impl FnOnce(&dyn Fn(&Path) -> Command) -> T) -> T {
    let mut ring = Ring::create(Clock::detect()).expect("a ring");
    let name = ring.env_value();
    ring.set_mode(mode.unwrap_or(Mode::Mute));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while mode.is_some() && !done.load(Ordering::Relaxed) {
                ring.poll(&mut |_| true);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let result = work(&|program| {
            let mut command = Command::new(program);
            command.stdin(Stdio::null());
            if mode.is_some() {
                command.env("LD_PRELOAD", library()).env(ENV, &name);
            }
            command
        });
        done.store(true, Ordering::Relaxed);
        result
    })
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
