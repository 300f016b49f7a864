//! Programs that hand over their list: strided tiles in C, random samples in Python, and a
//! scan that has nothing to gain.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::packages::PYTHON;
use super::random::RandomFile;
use crate::case::{Case, Group, Job, Purpose, Size, Start, Workload};
use crate::deep::FileExtents;
use crate::disk::DiskKind;
use crate::peer::Peer;
use crate::process::Invocation;
use crate::tools::{Tools, succeed};
use crate::tree::files_below;

/// Tiles across and down; each is 16 KiB, and there are two files of them.
const TILES: (u64, u64) = (24, 48);
const TILE_BYTES: u64 = 16 << 10;

/// The blur of `examples/c/tiles.c`: down the columns of one file, along the rows of the other.
struct Tiles;
/// `examples/python/random_samples.py`: samples in random order, with computing. Fewer where one
/// takes milliseconds.
struct Samples {
    compute_us: u64,
    /// Samples read, quick and full.
    count: (u64, u64),
}
/// A whole file from front to back, announced.
struct Scan;

/// All of them.
pub fn cases() -> Vec<Case> {
    const ALL: &[DiskKind] = &[DiskKind::Hdd7200, DiskKind::NetworkSsd, DiskKind::Own];
    const OWN: &[DiskKind] = &[DiskKind::Own];
    const HDD: &[DiskKind] = &[DiskKind::Hdd7200];
    const SLOW: &[DiskKind] = &[DiskKind::Hdd7200, DiskKind::NetworkSsd];
    // The whole dataset: of fewer, an interpreter's start is most of the time that is left.
    const WHOLE: (u64, u64) = (20_000, 100_000);
    const MANY: (u64, u64) = (10_000, 20_000);
    const FEW: (u64, u64) = (1_000, 3_000);
    const NEEDS_CC: &[(&str, &str)] = &[("cc", "gcc")];
    const NEEDS_PYTHON: &[(&str, &str)] = &[(PYTHON, "python3")];
    let case = |name, about, purpose, needs, disks, quick, work| Case {
        name,
        group: Group::Api,
        about,
        disks,
        quick,
        needs,
        purpose,
        start: Start::Cold,
        work,
    };
    let samples = |name, about, compute_us, count, disks, quick| {
        let work: Box<dyn Workload> = Box::new(Samples { compute_us, count });
        case(name, about, Purpose::Gain, NEEDS_PYTHON, disks, quick, work)
    };
    vec![
        case(
            "tiles",
            "C: a blur down columns and along rows of tiles",
            Purpose::Gain,
            NEEDS_CC,
            ALL,
            HDD,
            Box::new(Tiles),
        ),
        samples(
            "samples-0",
            "Python: 100,000 random samples",
            0,
            WHOLE,
            OWN,
            OWN,
        ),
        samples(
            "samples-0",
            "Python: 3,000 random samples",
            0,
            FEW,
            SLOW,
            &[],
        ),
        samples(
            "samples-50",
            "20,000, computing 50 us on each",
            50,
            MANY,
            OWN,
            &[],
        ),
        samples(
            "samples-50",
            "3,000, computing 50 us on each",
            50,
            FEW,
            SLOW,
            &[],
        ),
        samples(
            "samples-200",
            "20,000, computing 200 us on each",
            200,
            MANY,
            OWN,
            OWN,
        ),
        samples(
            "samples-200",
            "3,000, computing 200 us on each",
            200,
            FEW,
            SLOW,
            &[],
        ),
        samples(
            "samples-1ms",
            "3,000, computing 1 ms on each",
            1000,
            FEW,
            ALL,
            &[],
        ),
        case(
            "api-scan",
            "a whole file front to back, announced",
            Purpose::NoHarm,
            &[],
            ALL,
            OWN,
            Box::new(Scan),
        ),
    ]
}

impl Tiles {
    /// `tiles MODE IMAGE COLUMNS ROWS`.
    fn command(mode: &str, dir: &Path, size: Size, tools: &Tools) -> Result<Invocation> {
        let mut headers = OsString::from("-I");
        headers.push(tools.checkout("crates/capi/include")?);
        let source = tools.checkout("examples/c/tiles.c")?;
        let source = std::fs::read_to_string(&source)
            .with_context(|| format!("reading {}", source.display()))?;
        let library = tools.beside("libforeread.a")?;
        let mut flags = vec![headers, library.into()];
        flags.extend(["-lgcc_s", "-lpthread", "-ldl", "-lm"].map(OsString::from));
        let side = size.pick(TILES.0, TILES.1).to_string();
        Ok(Invocation {
            program: tools.compiled_with("tiles", &source, &flags)?,
            args: vec![
                mode.into(),
                dir.join("image").into(),
                side.clone().into(),
                side.into(),
            ],
            cwd: dir.to_owned(),
            env: Vec::new(),
        })
    }
}

impl Workload for Tiles {
    fn data_name(&self) -> &'static str {
        "tiles"
    }

    fn generate(&self, dir: &Path, size: Size, tools: &Tools) -> Result<()> {
        let make = Self::command("make", dir, size, tools)?;
        succeed(Command::new(make.program).args(make.args))
    }

    fn job(&self, dir: &Path, _: &Path, size: Size, tools: &Tools) -> Result<Job> {
        let files: Vec<PathBuf> = ["image", "image.columns"].map(|name| dir.join(name)).into();
        let side = size.pick(TILES.0, TILES.1);
        let whole = |path: &PathBuf| FileExtents {
            path: path.clone(),
            extents: vec![(0, side * side * TILE_BYTES)],
        };
        Ok(Job {
            command: Self::command("plain", dir, size, tools)?,
            aware: Some(Self::command("foreread", dir, size, tools)?),
            footprint: Some(files.iter().map(whole).collect()),
            files,
            peers: Peer::ALL,
            ..Job::default()
        })
    }
}

impl Samples {
    /// The example, with the package `foreread` where it can be imported.
    fn script(tools: &Tools) -> Result<PathBuf> {
        tools.checkout("examples/python/random_samples.py")
    }

    /// The folder with the package, installed from its wheel once for each wheel.
    fn package(tools: &Tools) -> Result<PathBuf> {
        let wheels = tools.checkout("python/wheels")?;
        let wheel = files_below(&wheels)?
            .into_iter()
            .find(|path| path.extension().is_some_and(|end| end == "whl"))
            .context("python/wheels is empty: build one with `make -C python wheel`")?;
        let built = std::fs::metadata(&wheel)
            .and_then(|metadata| metadata.modified())
            .with_context(|| format!("looking at {}", wheel.display()))?;
        let target = tools.root.join("python");
        // Two checkouts may share this folder, and neither wheel need be the newer one.
        let wanted = format!("{} {built:?}", wheel.display());
        let mark = target.join("wheel");
        if std::fs::read_to_string(&mark).ok().as_deref() != Some(&wanted) {
            if target.exists() {
                std::fs::remove_dir_all(&target)
                    .with_context(|| format!("removing {}", target.display()))?;
            }
            let mut pip = Command::new(PYTHON);
            pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--no-deps"]);
            succeed(pip.arg("--target").arg(&target).arg(&wheel))?;
            std::fs::write(&mark, wanted).with_context(|| format!("writing {}", mark.display()))?;
        }
        Ok(target)
    }
}

impl Workload for Samples {
    fn data_name(&self) -> &'static str {
        "samples"
    }

    fn generate(&self, dir: &Path, _: Size, tools: &Tools) -> Result<()> {
        let mut python = Command::new(PYTHON);
        python.arg(Self::script(tools)?).arg("--make").arg(dir);
        succeed(&mut python)
    }

    fn job(&self, dir: &Path, _: &Path, size: Size, tools: &Tools) -> Result<Job> {
        let script = Self::script(tools)?;
        let count = size.pick(self.count.0, self.count.1);
        let read = |mode: &str, package: Option<PathBuf>| Invocation {
            program: PYTHON.into(),
            args: vec![
                script.clone().into(),
                format!("--mode={mode}").into(),
                format!("--count={count}").into(),
                format!("--compute={}", self.compute_us).into(),
                dir.into(),
            ],
            cwd: dir.to_owned(),
            env: package
                .map(|package| ("PYTHONPATH".into(), package.into()))
                .into_iter()
                .collect(),
        };
        Ok(Job {
            command: read("plain", None),
            aware: Some(read("foreread", Some(Self::package(tools)?))),
            files: files_below(dir)?,
            peers: Peer::ALL,
            ..Job::default()
        })
    }
}

impl Workload for Scan {
    fn data_name(&self) -> &'static str {
        RandomFile.data_name()
    }

    fn generate(&self, dir: &Path, size: Size, tools: &Tools) -> Result<()> {
        RandomFile.generate(dir, size, tools)
    }

    fn job(&self, dir: &Path, _: &Path, size: Size, _: &Tools) -> Result<Job> {
        const BLOCK: u64 = 64 << 10;
        let file = RandomFile::path(dir);
        let bytes: u64 = size.pick(256 << 20, 512 << 20);
        let program = std::env::current_exe().context("finding this program")?;
        let read = |ahead: &str| Invocation {
            program: program.clone(),
            args: vec![
                "read-file".into(),
                "--file".into(),
                file.clone().into(),
                "--order=forward".into(),
                format!("--block={BLOCK}").into(),
                format!("--count={}", bytes / BLOCK).into(),
                format!("--ahead={ahead}").into(),
            ],
            cwd: dir.to_owned(),
            env: Vec::new(),
        };
        Ok(Job {
            command: read("none"),
            aware: Some(read("library")),
            footprint: Some(vec![FileExtents {
                path: file.clone(),
                extents: vec![(0, bytes)],
            }]),
            files: vec![file],
            peers: Peer::ALL,
            ..Job::default()
        })
    }
}
