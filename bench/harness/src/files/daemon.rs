//! The variants and their daemons. A daemon is started for its variant's runs, asked whether it is ready, and stopped.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use crate::signals;
use crate::tools::in_path;

/// Debian's preload, a daemon that predicts whole applications.
const PRELOAD: &str = "/usr/sbin/preload";
/// Its configuration: Debian's, except that it scans every second and not every 20, and includes programs on all disks. With
/// Debian's cycle it would miss runs that are shorter than the cycle.
const PRELOAD_CONF: &str = "\
[model]
cycle = 1
usecorrelation = true
minsize = 100000
memtotal = -10
memfree = 50
memcached = 0
[system]
doscan = true
dopredict = true
autosave = 3600
mapprefix = /
exeprefix = /
processes = 30
sortstrategy = 3
";
/// The longest time that a daemon may need to become ready, or to end.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two checks.
const LOOK: Duration = Duration::from_millis(50);

/// The daemon that runs beside the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// No daemon.
    Plain,
    /// foreread's daemon with the model last successor.
    Last,
    /// foreread's daemon with PCM.
    Pcm,
    /// foreread's daemon with EPCM.
    Epcm,
    /// PCM with partitions of 16 nodes and order 4: a point of the paper's sweeps, and the paper's label for it.
    #[value(name = "p16/4")]
    #[serde(rename = "p16/4")]
    P16,
    /// PCM with partitions of 32 nodes and order 4.
    #[value(name = "p32/4")]
    #[serde(rename = "p32/4")]
    P32,
    /// PCM with partitions of 64 nodes and order 4.
    #[value(name = "p64/4")]
    #[serde(rename = "p64/4")]
    P64,
    /// EPCM as published, with partitions of 16 nodes and order 12.
    #[value(name = "e16/12")]
    #[serde(rename = "e16/12")]
    E16,
    /// EPCM as published, with partitions of 32 nodes and order 25.
    #[value(name = "e32/25")]
    #[serde(rename = "e32/25")]
    E32,
    /// EPCM as published, with partitions of 64 nodes and order 45.
    #[value(name = "e64/45")]
    #[serde(rename = "e64/45")]
    E64,
    /// EPCM as published, with partitions of 128 nodes and order 102.
    #[value(name = "e128/102")]
    #[serde(rename = "e128/102")]
    E128,
    /// Debian's preload.
    Preload,
    /// No daemon, with all files in memory: the shortest possible time.
    Hot,
}

impl Variant {
    /// The variants measured by default, in the order of the tables.
    pub const USUAL: [Variant; 6] = [
        Variant::Plain,
        Variant::Last,
        Variant::Pcm,
        Variant::Epcm,
        Variant::Preload,
        Variant::Hot,
    ];

    /// The paper's sweep of partition size and order, together with the daemon's own models.
    pub const SWEEP: [Variant; 11] = [
        Variant::Plain,
        Variant::Last,
        Variant::P16,
        Variant::P32,
        Variant::P64,
        Variant::Pcm,
        Variant::E16,
        Variant::E32,
        Variant::E64,
        Variant::E128,
        Variant::Epcm,
    ];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Plain => "plain",
            Variant::Last => "last",
            Variant::Pcm => "pcm",
            Variant::Epcm => "epcm",
            Variant::P16 => "p16/4",
            Variant::P32 => "p32/4",
            Variant::P64 => "p64/4",
            Variant::E16 => "e16/12",
            Variant::E32 => "e32/25",
            Variant::E64 => "e64/45",
            Variant::E128 => "e128/102",
            Variant::Preload => "preload",
            Variant::Hot => "hot",
        }
    }

    /// The name of its state folder.
    fn folder(self) -> String {
        self.name().replace('/', "-")
    }

    /// The options that make foreread's daemon use this variant's model; `None` if the variant has no model.
    fn model(self) -> Option<&'static [&'static str]> {
        Some(match self {
            Variant::Plain | Variant::Preload | Variant::Hot => return None,
            Variant::Last => &["--model", "last"],
            Variant::Pcm => &["--model", "pcm"],
            Variant::Epcm => &["--model", "epcm"],
            Variant::P16 => &["--model", "pcm", "--partitions", "16/4"],
            Variant::P32 => &["--model", "pcm", "--partitions", "32/4"],
            Variant::P64 => &["--model", "pcm", "--partitions", "64/4"],
            Variant::E16 => &["--model", "published-epcm", "--partitions", "16/12"],
            Variant::E32 => &["--model", "published-epcm", "--partitions", "32/25"],
            Variant::E64 => &["--model", "published-epcm", "--partitions", "64/45"],
            Variant::E128 => &["--model", "published-epcm", "--partitions", "128/102"],
        })
    }
}

/// The paths that daemons are started with.
pub(super) struct Means<'a> {
    pub(super) foreread: Option<&'a Path>,
    /// The folder in which the daemons of a case keep their state.
    pub(super) state: &'a Path,
    pub(super) scratch: &'a Path,
}

impl Means<'_> {
    /// The reason why this machine cannot run a variant, if there is one.
    pub(super) fn missing(&self, variant: Variant) -> Option<String> {
        match variant {
            Variant::Plain | Variant::Hot => None,
            Variant::Preload => (!in_path(PRELOAD))
                .then(|| format!("{PRELOAD} is missing: install the package preload")),
            _ => {
                let Some(foreread) = self.foreread else {
                    return Some("foreread is left out (--no-foreread)".into());
                };
                let known = Command::new(foreread)
                    .args(["daemon", "run", "--help"])
                    .output()
                    .is_ok_and(|output| output.status.success());
                (!known).then(|| format!("{} has no daemon", foreread.display()))
            }
        }
    }

    /// Removes the state that all daemons have learnt.
    pub(super) fn forget(&self) -> Result<()> {
        if self.state.exists() {
            fs::remove_dir_all(self.state)
                .with_context(|| format!("removing {}", self.state.display()))?;
        }
        fs::create_dir_all(self.state).with_context(|| format!("creating {}", self.state.display()))
    }

    /// Starts a variant's daemon, if it has one, and waits until it is ready.
    pub(super) fn start(&self, variant: Variant) -> Result<Option<Daemon>> {
        let state = self.state.join(variant.folder());
        fs::create_dir_all(&state).with_context(|| format!("creating {}", state.display()))?;
        let log = self.scratch.join(format!("{}.log", variant.folder()));
        // A socket's path must be short, and the scratch folder is in /dev/shm.
        let socket = self.scratch.join("daemon.sock");
        let command = match (variant.model(), self.foreread) {
            (None, _) if variant != Variant::Preload => return Ok(None),
            (None, _) => {
                let conf = self.scratch.join("preload.conf");
                fs::write(&conf, PRELOAD_CONF)
                    .with_context(|| format!("writing {}", conf.display()))?;
                let mut command = Command::new(PRELOAD);
                command.args(["--foreground", "--logfile", "", "--conffile"]);
                command
                    .arg(conf)
                    .arg("--statefile")
                    .arg(state.join("state"));
                command
            }
            (Some(model), Some(foreread)) => {
                let mut command = Command::new(foreread);
                command.args(["daemon", "run"]).args(model).arg("--state");
                command.arg(&state).arg("--socket").arg(&socket);
                command
            }
            (Some(_), None) => bail!("foreread is left out"),
        };
        let ask = match variant {
            Variant::Preload => None,
            _ => self.foreread.map(|foreread| (foreread.to_owned(), socket)),
        };
        Daemon::start(command, ask, log).map(Some)
    }
}

/// A running daemon.
pub(super) struct Daemon {
    child: Child,
    /// The binary that asks for the daemon's status, and the daemon's socket.
    ask: Option<(PathBuf, PathBuf)>,
    log: PathBuf,
}

impl Daemon {
    fn start(mut command: Command, ask: Option<(PathBuf, PathBuf)>, log: PathBuf) -> Result<Self> {
        let file = || File::create(&log).with_context(|| format!("creating {}", log.display()));
        let shown = format!("{command:?}");
        let child = command
            .stdin(Stdio::null())
            .stdout(file()?)
            .stderr(file()?)
            .spawn()
            .with_context(|| format!("starting {shown}"))?;
        let mut daemon = Self { child, ask, log };
        let began = Instant::now();
        while !daemon.is_ready(began) {
            signals::check()?;
            daemon.check()?;
            if began.elapsed() > PATIENCE {
                bail!("{shown} was not ready in {PATIENCE:?}: {}", daemon.said());
            }
            std::thread::sleep(LOOK);
        }
        Ok(daemon)
    }

    /// True if the daemon answers; a daemon that cannot be asked counts as ready after it has had time for a scan.
    fn is_ready(&self, began: Instant) -> bool {
        match &self.ask {
            None => began.elapsed() > Duration::from_secs(2),
            Some((foreread, socket)) => Command::new(foreread)
                .args(["daemon", "status", "--socket"])
                .arg(socket)
                .output()
                .is_ok_and(|output| output.status.success()),
        }
    }

    /// Fails if the daemon has ended.
    pub(super) fn check(&mut self) -> Result<()> {
        let ended = self.child.try_wait().context("waiting for the daemon")?;
        match ended {
            Some(status) => bail!("the daemon has ended ({status}): {}", self.said()),
            None => Ok(()),
        }
    }

    /// The daemon's status, as it reports it.
    pub(super) fn status(&mut self) -> Option<serde_json::Value> {
        let (foreread, socket) = self.ask.as_ref()?;
        let output = Command::new(foreread)
            .args(["daemon", "status", "--json", "--socket"])
            .arg(socket)
            .output()
            .ok()?;
        serde_json::from_slice(&output.stdout).ok()
    }

    /// The last lines of the daemon's log.
    fn said(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().last().unwrap_or("it said nothing").to_owned()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            // It may have ended already.
            kill_process(pid, Signal::TERM).ok();
        }
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        eprintln!("a daemon did not end in {PATIENCE:?}, and is killed");
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            eprintln!("and cannot be: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(folder: &Path, script: &str) -> Result<Daemon> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        // Any program that succeeds serves as the one that asks.
        let ask = Some((PathBuf::from("/bin/true"), folder.join("socket")));
        Daemon::start(command, ask, folder.join("log"))
    }

    #[test]
    fn a_daemon_is_stopped_with_its_guard_and_one_that_ended_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut daemon = started(folder.path(), "exec sleep 1000").unwrap();
        daemon.check().unwrap();
        let process = PathBuf::from(format!("/proc/{}", daemon.child.id()));
        assert!(process.exists());
        drop(daemon);
        assert!(!process.exists());
        let mut ended = started(folder.path(), "echo no room >&2; exit 3").unwrap();
        let began = Instant::now();
        let said = loop {
            match ended.check() {
                Err(error) => break error.to_string(),
                Ok(()) => assert!(began.elapsed() < PATIENCE),
            }
        };
        assert!(said.contains("no room"), "{said}");
    }

    #[test]
    fn what_is_missing_is_said_for_each_variant() {
        let folder = tempfile::tempdir().unwrap();
        let means = Means {
            foreread: Some(Path::new("/bin/false")),
            state: folder.path(),
            scratch: folder.path(),
        };
        assert_eq!(means.missing(Variant::Plain), None);
        assert_eq!(means.missing(Variant::Hot), None);
        let said = means.missing(Variant::Epcm).unwrap();
        assert!(said.contains("/bin/false has no daemon"), "{said}");
        assert!(means.start(Variant::Plain).unwrap().is_none());
    }
}
