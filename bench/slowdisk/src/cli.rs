//! `foreread slowdisk`: the command, which another program embeds.
//!
//! A disk is served by a process of its own: this executable, started again with the hidden `--serve`. It prints one line of JSON when the
//! disk is ready, which the starting process reads. Then it leaves the terminal and serves until a signal or until the disk is unmounted.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use clap::{Args, Subcommand};
use foreread_disk::Model;
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::error::At;
use crate::selftest::{self, Row};
use crate::{Error, Mounted, Options, SlowDisk, mount, parse_size, place, unmount};

/// The default width of a terminal.
const WIDTH: usize = 80;

/// A file system as slow as a rotating disk, a cloud volume, an NFS server or a parallel file system.
#[derive(Args, Clone, Debug)]
pub struct SlowdiskArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Clone, Debug, Subcommand)]
enum Action {
    /// Create a slow disk and mount it (needs root)
    Mount(MountArgs),
    /// Unmount a slow disk, even if its server was killed
    Umount {
        /// Mount point
        dir: PathBuf,
    },
    /// Show the requests and bytes that a mounted slow disk has served
    Stats {
        /// Mount point
        dir: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Empty a mounted slow disk's own cache, as a power cycle would
    Forget {
        /// Mount point
        dir: PathBuf,
    },
    /// Compare mounted models with their specifications (about 12 seconds each)
    Selftest {
        /// Only this model: hdd-7200, network-ssd, nfs, nfs-2008, striped or striped-2008
        model: Option<Model>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the models and the sources of their figures
    Models,
}

#[derive(Args, Clone, Debug)]
struct MountArgs {
    /// hdd-7200, network-ssd, nfs, nfs-2008, striped or striped-2008
    model: Model,
    /// Mount point: an empty or a new directory
    dir: PathBuf,
    /// Size of the disk; only written data takes memory
    #[arg(long, default_value = "8G", value_parser = parse_size)]
    size: u64,
    /// Spread the image over the disk's full stroke: seeks are as long as on a full 500 GB disk
    #[arg(long)]
    stretch: bool,
    /// Start of the image on a rotating disk: inner tracks hold less and are slower
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with = "stretch")]
    begins: Option<u64>,
    /// Apply the model's time to writes, too
    #[arg(long)]
    slow_writes: bool,
    /// Serve only the image file, without a block device and ext4
    #[arg(long)]
    file_only: bool,
    /// Serve in the foreground until interrupted
    #[arg(long)]
    foreground: bool,
    /// Serve in the background (how `mount` starts its server)
    #[arg(long, hide = true, conflicts_with = "foreground")]
    serve: bool,
}

impl MountArgs {
    fn options(&self) -> Options {
        Options {
            model: self.model,
            dir: self.dir.clone(),
            size: self.size,
            stretch: self.stretch,
            begins: self.begins.unwrap_or(0),
            slow_writes: self.slow_writes,
            file_only: self.file_only,
        }
    }
}

/// Runs the command. The exit status is 1 if a self-test fails, and the server's own status if the server has reported why it
/// could not start.
pub fn run(args: SlowdiskArgs) -> Result<ExitCode, Error> {
    let outcome = act(args.action);
    if let Err(Error::Server { status }) = &outcome
        && let Some(code) = status.code()
    {
        return Ok(ExitCode::from(code as u8));
    }
    outcome
}

fn act(action: Action) -> Result<ExitCode, Error> {
    match action {
        Action::Mount(args) if args.serve => serve(&args.options())?,
        Action::Mount(args) if args.foreground => foreground(&args.options())?,
        Action::Mount(args) => {
            let mounted = start("mount", &args.options())?;
            say(&format!(
                "{}foreread slowdisk umount {} takes it down\n",
                describe(&mounted),
                mounted.dir.display()
            ))?;
        }
        Action::Umount { dir } => unmount(&dir)?,
        Action::Stats { dir, json } => stats(&dir, json)?,
        Action::Forget { dir } => Mounted::find(&dir)?.forget()?,
        Action::Selftest { model, json } => return self_test(model, json),
        Action::Models => say(&models())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts a server process and waits until its disk is ready. `action` is the word of the command line that follows the words for
/// this command.
fn start(action: &str, options: &Options) -> Result<Mounted, Error> {
    let program = std::env::current_exe().at("find", "this program")?;
    let way: Vec<OsString> = std::env::args_os()
        .skip(1)
        .take_while(|word| word != action)
        .collect();
    let mut command = Command::new(&program);
    command
        .args(way)
        .args(["mount", "--serve", "--size"])
        .arg(options.size.to_string());
    if options.begins > 0 {
        command.args(["--begins", &options.begins.to_string()]);
    }
    for (flag, set) in [
        ("--stretch", options.stretch),
        ("--slow-writes", options.slow_writes),
        ("--file-only", options.file_only),
    ] {
        if set {
            command.arg(flag);
        }
    }
    command
        .arg("--")
        .arg(options.model.name())
        .arg(&options.dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut server = command.spawn().at("run", &program)?;
    let mut ready = Vec::new();
    if let Some(mut output) = server.stdout.take() {
        output.read_to_end(&mut ready).at("hear from", &program)?;
    }
    if ready.is_empty() {
        let status = server.wait().at("wait for", &program)?;
        return Err(Error::Server { status });
    }
    serde_json::from_slice(&ready).at("understand", &program)
}

/// The server process: reports that the disk is ready, leaves the terminal, and serves.
fn serve(options: &Options) -> Result<(), Error> {
    let signals = signals()?;
    // Ctrl-C is meant for the command that started this process.
    let _ = rustix::process::setsid();
    let disk = mount(options)?;
    let null = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .at("open", "/dev/null")?;
    let text = serde_json::to_vec(disk.mounted()).at("describe", &options.dir)?;
    let mut output = std::io::stdout();
    output.write_all(&text).at("tell of", &options.dir)?;
    output.flush().at("tell of", &options.dir)?;
    rustix::stdio::dup2_stdout(&null).at("leave", "the terminal")?;
    rustix::stdio::dup2_stderr(&null).at("leave", "the terminal")?;
    // A working directory on another file system would keep that from being unmounted.
    std::env::set_current_dir("/").at("enter", "/")?;
    wait(&disk, signals);
    Ok(())
}

fn foreground(options: &Options) -> Result<(), Error> {
    let signals = signals()?;
    let disk = mount(options)?;
    say(&format!(
        "{}Ctrl-C takes it down\n",
        describe(disk.mounted())
    ))?;
    wait(&disk, signals);
    Ok(())
}

fn signals() -> Result<signal_hook::iterator::Signals, Error> {
    signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]).at("handle", "signals")
}

/// Waits until a signal arrives or another process unmounts the disk.
fn wait(disk: &SlowDisk, mut signals: signal_hook::iterator::Signals) {
    while signals.pending().next().is_none() && disk.is_served() {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Writes to standard output; a reader that has left is no error (`foreread slowdisk models | head -1`).
fn say(text: &str) -> Result<(), Error> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.at("write", "standard output"),
    }
}

fn describe(mounted: &Mounted) -> String {
    let mut text = format!(
        "{}: {} ({}), {} MiB",
        mounted.dir.display(),
        mounted.model,
        mounted.model.spec().summary,
        mounted.size >> 20,
    );
    match &mounted.loop_device {
        Some(device) => text += &format!(", ext4 on {}\n", device.display()),
        None if mounted.model.spec().file_system => text += ", no page cache\n",
        None => text += &format!(", the image is {}\n", mounted.image().display()),
    }
    text += &format!(
        "answers are sent {} µs early: so long is the way to the disk and back\n",
        mounted.path_ns / 1000
    );
    for note in &mounted.notes {
        text += &format!("note: {note}\n");
    }
    text
}

fn stats(dir: &Path, json: bool) -> Result<(), Error> {
    let mounted = Mounted::find(dir)?;
    let counters = mounted.counters()?;
    if json {
        let text = serde_json::json!({"disk": mounted, "served": counters});
        say(&format!("{text:#}\n"))
    } else {
        say(&format!(
            "{}reads served: {} ({:.1} MiB), writes: {} ({:.1} MiB)\n",
            describe(&mounted),
            counters.reads,
            counters.read_bytes as f64 / f64::from(1 << 20),
            counters.writes,
            counters.written_bytes as f64 / f64::from(1 << 20),
        ))
    }
}

fn self_test(model: Option<Model>, json: bool) -> Result<ExitCode, Error> {
    let models = match &model {
        Some(model) => std::slice::from_ref(model),
        None => &Model::ALL,
    };
    let mut rows = Vec::new();
    if !json {
        say(&format!(
            "{:<12} {:<24} {:>9} {:>9} {:>7} {:>7}\n",
            "model", "figure", "specified", "realised", "off", "allowed"
        ))?;
    }
    let bar = progress(models.len());
    for model in models {
        bar.set_message(model.name());
        let scratch = tempfile::tempdir().at("make a directory in", std::env::temp_dir())?;
        let options = selftest::options(*model, scratch.path().join("disk"));
        let mut signals = signals()?;
        let interrupted = signals.handle();
        let mounted = start("selftest", &options)?;
        let left = mounted.clone();
        let watch = std::thread::spawn(move || {
            if signals.forever().next().is_some() {
                // The reads in flight fail; their processes wait for this one.
                let _ = place::release(&left, true);
                std::process::exit(130);
            }
        });
        let measured = selftest::measure(&mounted, || bar.inc(1));
        interrupted.close();
        if watch.join().is_err() {
            eprintln!("foreread slowdisk: the thread waiting for Ctrl-C panicked");
        }
        unmount(&mounted.dir)?;
        for row in measured? {
            if !json {
                bar.suspend(|| say(&format!("{}\n", line(&row))))?;
            }
            rows.push(row);
        }
    }
    bar.finish_and_clear();
    if json {
        say(&format!("{:#}\n", serde_json::json!(rows)))?;
    }
    let holds = rows.iter().all(|row| row.holds);
    if !holds {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        eprintln!(
            "Other programs' use of the processors shows in these figures: the load was {}.",
            load.split(' ').next().unwrap_or("unknown")
        );
    }
    Ok(if holds {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// A progress bar, shown only on a terminal.
fn progress(models: usize) -> ProgressBar {
    let bar = ProgressBar::new((models * selftest::FIGURES) as u64);
    if let Ok(style) = ProgressStyle::with_template("{msg:<12} {bar:40} {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn line(row: &Row) -> String {
    format!(
        "{:<12} {:<24} {:>9.1} {:>9.1} {:>+6.1}% {:>6}% {}{}",
        row.model,
        row.figure,
        row.specified,
        row.realised,
        row.off_percent,
        format!("±{}", row.tolerance_percent),
        row.unit,
        if row.holds {
            ""
        } else {
            "\n  <-- does not hold"
        },
    )
    .trim_end()
    .to_owned()
}

fn models() -> String {
    let mut text = String::new();
    for spec in Model::ALL.map(Model::spec) {
        text += &format!("{}: {}\n", spec.model, spec.summary);
        for (property, value) in spec.facts {
            text += &fact(property, value);
        }
        let together = format!(
            "{:.2} ms for a random 4 KiB read alone, {:.0} a second of 32 at once, {} MB/s in order \
             by {} readers",
            spec.random_us / 1e3,
            spec.deep_iops,
            spec.sequential_mb_s,
            spec.streams,
        );
        text += &fact("together", &together);
        text += &fact("source", spec.source);
    }
    text
}

/// A property and its value, in lines no wider than a terminal.
fn fact(property: &str, value: &str) -> String {
    let head = format!("  {property:<16} ");
    let indent = " ".repeat(head.len());
    let options = textwrap::Options::new(WIDTH)
        .initial_indent(&head)
        .subsequent_indent(&indent);
    textwrap::fill(value, options) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_fit_a_terminal_and_nothing_of_them_is_left_out() {
        let text = models();
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        let words: Vec<_> = text.split_whitespace().collect();
        for spec in Model::ALL.map(Model::spec) {
            for value in spec
                .facts
                .iter()
                .map(|(_, value)| *value)
                .chain([spec.source])
            {
                let value: Vec<_> = value.split_whitespace().collect();
                assert!(
                    words.windows(value.len()).any(|these| these == value),
                    "{value:?}"
                );
            }
        }
    }
}
