//! Where a case's data lies while the case is measured: on the machine's own disk or on a slow one.
//!
//! A slow disk is mounted for one case at a time, so that positions on it depend on that case's data alone. It gets a copy of the
//! data, which is removed with it. A process of its own serves it (this program again, as `serve-disk`), because a server that
//! waits for its own disk would wait for ever. That process unmounts the disk when its standard input closes, so it never
//! outlives the benchmark.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use foreread_slowdisk::{Mounted, Options};

use crate::tools::Tools;
use crate::tree::files_below;

/// The disks a case can run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DiskKind {
    /// A modelled 7200 rpm disk.
    #[value(name = "hdd-7200")]
    Hdd7200,
    /// A modelled network volume.
    #[value(name = "network-ssd")]
    NetworkSsd,
    /// A modelled file server.
    #[value(name = "nfs")]
    Nfs,
    /// A modelled file server of 2008.
    #[value(name = "nfs-2008")]
    Nfs2008,
    /// A modelled parallel file system.
    #[value(name = "striped")]
    Striped,
    /// A modelled parallel file system of 2008.
    #[value(name = "striped-2008")]
    Striped2008,
    /// The disk of the data directory.
    #[value(name = "own")]
    Own,
}

impl DiskKind {
    /// Its name in reports; for a slow disk, the name of its model.
    pub fn name(self) -> &'static str {
        match self {
            DiskKind::Hdd7200 => "hdd-7200",
            DiskKind::NetworkSsd => "network-ssd",
            DiskKind::Nfs => "nfs",
            DiskKind::Nfs2008 => "nfs-2008",
            DiskKind::Striped => "striped",
            DiskKind::Striped2008 => "striped-2008",
            DiskKind::Own => "own",
        }
    }
}

/// A disk ready to hold data.
pub struct Disk {
    /// Which disk.
    pub kind: DiskKind,
    slow: Option<Slow>,
}

/// The platter's angle at the start of a run: evenly distributed over the rounds, and the same for all runs of one round.
///
/// A run ends with the platter at the run's last block, and about the same time passes between two runs. Without this wait all
/// plain runs of a case would begin at one angle and all others at another one, and their first waits would differ by up to a
/// revolution. So the rounds begin at the multiples of the golden ratio, which fill the circle evenly for any number of rounds.
struct Platter {
    /// When the platter was at angle 0.
    origin: Instant,
}

impl Platter {
    /// The time until the platter is at the angle of this round.
    fn until(&self, round: usize) -> Duration {
        let revolution = Duration::from_nanos(foreread_disk::hdd::REVOLUTION_NS).as_secs_f64();
        let angle = round as f64 * 0.618_033_988_749_894_9;
        let now = self.origin.elapsed().as_secs_f64() / revolution;
        Duration::from_secs_f64((angle - now).rem_euclid(1.0) * revolution)
    }
}

/// The part of a model's disk that is served.
#[derive(Clone, Copy)]
pub struct ServedPart {
    /// Its size in bytes.
    pub size: u64,
    /// Its first byte on the disk.
    pub begins: u64,
    /// True to serve only the image, a file without content, with no ext4 in it.
    pub image: bool,
}

/// A mounted slow disk and the process that serves it.
struct Slow {
    server: Child,
    mounted: Mounted,
    platter: Platter,
}

impl Disk {
    /// The machine's own disk.
    pub fn own() -> Self {
        Self {
            kind: DiskKind::Own,
            slow: None,
        }
    }

    /// A disk of this kind, large enough for a copy of the folder `data`.
    pub fn ready(kind: DiskKind, data: &Path, tools: &Tools) -> Result<Self> {
        Self::beginning(0, kind, data, tools)
    }

    /// As [`Self::ready`]; the disk is the part of the model's disk from byte `begins` on.
    pub fn beginning(begins: u64, kind: DiskKind, data: &Path, tools: &Tools) -> Result<Self> {
        if kind == DiskKind::Own {
            return Ok(Self::own());
        }
        let mut used = 0;
        for path in files_below(data)? {
            let metadata = path
                .metadata()
                .with_context(|| format!("looking at {}", path.display()))?;
            used += metadata.blocks() * 512;
        }
        // Room for ext4's own blocks and for outputs written beside the data.
        let size = (used + used / 8 + (256 << 20)).next_multiple_of(1 << 20);
        let image = false;
        let place = ServedPart {
            size,
            begins,
            image,
        };
        Self::start(kind, place, tools)
    }

    /// All of the model's disk as one file without content; returns that file as well.
    pub fn whole(kind: DiskKind, tools: &Tools) -> Result<(Self, PathBuf)> {
        let place = ServedPart {
            size: foreread_disk::hdd::CAPACITY / IMAGE_UNIT * IMAGE_UNIT,
            begins: 0,
            image: true,
        };
        let disk = Self::start(kind, place, tools)?;
        let slow = disk
            .slow
            .as_ref()
            .context("the disk is the machine's own")?;
        let file = slow.mounted.image();
        Ok((disk, file))
    }

    /// Starts a process that serves a part of a model's disk.
    fn start(kind: DiskKind, place: ServedPart, tools: &Tools) -> Result<Self> {
        let dir = tools.root.join(format!("mnt-{}", kind.name()));
        let mut server = Command::new(std::env::current_exe().context("finding this program")?)
            .args([
                "serve-disk",
                "--model",
                kind.name(),
                "--size",
                &place.size.to_string(),
                "--begins",
                &place.begins.to_string(),
                "--dir",
            ])
            .arg(&dir)
            .args(place.image.then_some("--image"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C goes to the benchmark alone, which then unmounts the disk in order.
            .process_group(0)
            .spawn()
            .context("starting the slow disk's server")?;
        let said = server.stdout.take().context("the server has no output")?;
        let mut line = String::new();
        BufReader::new(said)
            .read_line(&mut line)
            .context("waiting for the slow disk")?;
        if line.trim() != READY {
            let status = server
                .wait()
                .context("waiting for the slow disk's server")?;
            bail!("the slow disk did not come up ({status})");
        }
        let mounted = Mounted::find(&dir)
            .with_context(|| format!("finding the disk in {}", dir.display()))?;
        let platter = Platter {
            origin: Instant::now(),
        };
        Ok(Self {
            kind,
            slow: Some(Slow {
                server,
                mounted,
                platter,
            }),
        })
    }

    /// The folder with the data of `original` on this disk; copies the data there if it is not there yet.
    pub fn holding(&self, original: &Path) -> Result<PathBuf> {
        let Some(slow) = &self.slow else {
            return Ok(original.to_owned());
        };
        let copy = slow.mounted.dir.join(name(original)?);
        let mut cp = Command::new("cp");
        // Modification times are kept: Python compares them with those in its compiled files.
        cp.arg("-a").arg(original).arg(&copy);
        crate::tools::succeed(&mut cp)?;
        rustix::fs::sync();
        Ok(copy)
    }

    /// The path of `path` on this disk if it is below `original`, or else `path` itself.
    pub fn moved(&self, path: &Path, original: &Path) -> Result<PathBuf> {
        let Some(slow) = &self.slow else {
            return Ok(path.to_owned());
        };
        let Ok(below) = path.strip_prefix(original) else {
            return Ok(path.to_owned());
        };
        Ok(slow.mounted.dir.join(name(original)?).join(below))
    }

    /// Empties the disk's own cache, which emptying the kernel's cache leaves alone.
    pub fn forget(&self) -> Result<()> {
        match &self.slow {
            Some(slow) => slow
                .mounted
                .forget()
                .context("emptying the slow disk's own cache"),
            None => Ok(()),
        }
    }

    /// On a rotating disk, waits for the angle at which the runs of this round begin.
    pub fn turn(&self, round: usize) {
        if let (DiskKind::Hdd7200, Some(slow)) = (self.kind, &self.slow) {
            std::thread::sleep(slow.platter.until(round));
        }
    }

    /// Anything unusual about the disk, as text.
    pub fn notes(&self) -> Vec<String> {
        self.slow
            .as_ref()
            .map(|slow| slow.mounted.notes.clone())
            .unwrap_or_default()
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        // The server unmounts the disk at the end of its input.
        drop(self.server.stdin.take());
        if let Err(error) = self.server.wait() {
            eprintln!("could not wait for the slow disk's server: {error}");
        }
    }
}

/// The server prints this line once the disk is mounted.
const READY: &str = "ready";

/// Sizes of disks are multiples of this many bytes.
const IMAGE_UNIT: u64 = 4096;

/// Serves a slow disk in `dir` until standard input closes.
pub fn serve(model: &str, dir: &Path, place: ServedPart) -> Result<()> {
    let model = model
        .parse()
        .with_context(|| format!("`{model}` names no disk model"))?;
    if Mounted::find(dir).is_ok() {
        // A mount that a killed server left behind.
        foreread_slowdisk::unmount(dir).with_context(|| format!("clearing {}", dir.display()))?;
    }
    let options = Options {
        size: place.size,
        begins: place.begins,
        file_only: place.image,
        ..Options::new(model, dir)
    };
    let disk = foreread_slowdisk::mount(&options)
        .with_context(|| format!("mounting {}", dir.display()))?;
    println!("{READY}");
    std::io::stdin()
        .read_to_end(&mut Vec::new())
        .context("waiting for the benchmark")?;
    drop(disk);
    Ok(())
}

/// The name of a data folder.
fn name(folder: &Path) -> Result<&std::ffi::OsStr> {
    folder
        .file_name()
        .with_context(|| format!("{} has no name", folder.display()))
}
