//! Folders for the outputs of measured commands.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::tools::Tools;

/// A folder for outputs, in memory if there is a /dev/shm, removed on drop.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// A new folder for `name`.
    pub fn new(name: &str, tools: &Tools) -> Result<Self> {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory } else { &tools.root };
        let path = parent.join(format!("foreread-bench-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("could not remove {}: {error}", self.0.display());
        }
    }
}
