//! Programs that pass on their list: strided tiles in C, random samples in Python, and a scan that can gain nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::packages::PYTHON;
use super::reads::FILE;
use super::words::command;
use crate::case::{Data, Job, Size, Workload};
use crate::deep::FileExtents;
use crate::peer::Peer;
use crate::process::Invocation;
use crate::tools::{Tools, succeed};
use crate::tree::files_below;

/// Number of tiles in each direction, quick and full; each tile is 16 KiB, and there are two files of them.
const ACROSS: (u64, u64) = (24, 48);
const TILE_BYTES: u64 = 16 << 10;

pub(super) static TILES: Data = Data {
    name: "tiles",
    make: |dir, size, tools| {
        let make = blur("make", dir, size, tools)?;
        succeed(Command::new(make.program).args(make.args))
    },
};

/// `tiles MODE IMAGE COLUMNS ROWS` of `examples/c/tiles.c`.
fn blur(mode: &str, dir: &Path, size: Size, tools: &Tools) -> Result<Invocation> {
    let mut headers = OsString::from("-I");
    headers.push(tools.checkout("crates/capi/include")?);
    let source = tools.checkout("examples/c/tiles.c")?;
    let source = std::fs::read_to_string(&source)
        .with_context(|| format!("reading {}", source.display()))?;
    let library = tools.beside("libforeread.a")?;
    let mut flags = vec![headers, library.into()];
    flags.extend(["-lgcc_s", "-lpthread", "-ldl", "-lm"].map(OsString::from));
    let side = size.pick(ACROSS.0, ACROSS.1).to_string();
    let image = dir.join("image").display().to_string();
    let program = tools.compiled_with("tiles", &source, &flags)?;
    Ok(command(program, [mode, &image, &side, &side], dir))
}

/// A blur down the columns of one file, along the rows of the other.
pub(super) fn tiles(dir: &Path, _: &Path, size: Size, tools: &Tools) -> Result<Job> {
    let files: Vec<PathBuf> = ["image", "image.columns"].map(|name| dir.join(name)).into();
    let side = size.pick(ACROSS.0, ACROSS.1);
    let whole = |path: &PathBuf| FileExtents {
        path: path.clone(),
        extents: vec![(0, side * side * TILE_BYTES)],
    };
    Ok(Job {
        command: blur("plain", dir, size, tools)?,
        aware: Some(blur("foreread", dir, size, tools)?),
        footprint: Some(files.iter().map(whole).collect()),
        files,
        peers: Peer::ALL,
        ..Job::default()
    })
}

/// The example that reads samples.
const EXAMPLE: &str = "examples/python/random_samples.py";

pub(super) static SAMPLES: Data = Data {
    name: "samples",
    make: |dir, _, tools| {
        let mut python = Command::new(PYTHON);
        succeed(python.arg(tools.checkout(EXAMPLE)?).arg("--make").arg(dir))
    },
};

/// Samples in random order, with computing. Fewer if a sample takes milliseconds.
pub(super) struct Samples {
    pub compute_us: u64,
    /// Samples read, quick and full.
    pub count: (u64, u64),
}

/// The folder with the package, installed once per wheel.
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
    // Two checkouts may share this folder, and either wheel may be the newer one.
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

impl Workload for Samples {
    fn job(&self, dir: &Path, _: &Path, size: Size, tools: &Tools) -> Result<Job> {
        let script = tools.checkout(EXAMPLE)?.display().to_string();
        let count = format!("--count={}", size.pick(self.count.0, self.count.1));
        let compute = format!("--compute={}", self.compute_us);
        let folder = dir.display().to_string();
        let read = |mode: &str| command(PYTHON, [&*script, mode, &count, &compute, &folder], dir);
        Ok(Job {
            command: read("--mode=plain"),
            aware: Some(Invocation {
                env: vec![("PYTHONPATH".into(), package(tools)?.into())],
                ..read("--mode=foreread")
            }),
            files: files_below(dir)?,
            peers: Peer::ALL,
            ..Job::default()
        })
    }
}

/// A whole file read from front to back, with a list.
pub(super) fn scan(dir: &Path, _: &Path, size: Size, _: &Tools) -> Result<Job> {
    const BLOCK: u64 = 64 << 10;
    let file = dir.join(FILE);
    let bytes: u64 = size.pick(256 << 20, 512 << 20);
    let program = std::env::current_exe().context("finding this program")?;
    let name = format!("--file={}", file.display());
    let (block, count) = (
        format!("--block={BLOCK}"),
        format!("--count={}", bytes / BLOCK),
    );
    let read = |ahead: &str| {
        let words = ["read-file", &name, "--order=forward", &block, &count, ahead];
        command(&program, words, dir)
    };
    Ok(Job {
        command: read("--ahead=none"),
        aware: Some(read("--ahead=library")),
        footprint: Some(vec![FileExtents {
            path: file.clone(),
            extents: vec![(0, bytes)],
        }]),
        files: vec![file],
        peers: Peer::ALL,
        ..Job::default()
    })
}
