//! What the preload observer costs a program: ns added to a hot 4 KiB pread, and µs added
//! to starting a process, in each mode against the plain program.
//!
//! `cargo bench -p foreread-tests --bench observer`

#[path = "../tests/observer/harness.rs"]
#[expect(dead_code, reason = "the tests use the rest of it")]
mod harness;

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use foreread_ring::{Clock, ENV, Mode, Ring};

const PAIRS: usize = 7;
const STARTS: u32 = 100;

fn main() {
    let stage = harness::Stage::new();
    let program = stage.cc("hot", &["-O2"]);
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
                let output = command(&program)
                    .arg(stage.data())
                    .output()
                    .expect("the program");
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

/// Does some work with commands that run in a mode, while somebody reads what they report.
fn under<T>(mode: Option<Mode>, work: impl FnOnce(&dyn Fn(&std::path::Path) -> Command) -> T) -> T {
    let mut ring = Ring::create(Clock::detect()).expect("a ring");
    let name = ring.env_value();
    ring.set_mode(mode.unwrap_or(Mode::Mute));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while mode.is_some() && !done.load(Ordering::Relaxed) {
                ring.poll(&mut |_| {});
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let result = work(&|program| {
            let mut command = Command::new(program);
            command.stdin(Stdio::null());
            if mode.is_some() {
                command
                    .env("LD_PRELOAD", harness::library())
                    .env(ENV, &name);
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
