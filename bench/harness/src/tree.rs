//! The files of a folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Every regular file below `dir`, sorted by path.
pub fn files_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("listing {}", folder.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("listing {}", folder.display()))?;
            let kind = entry
                .file_type()
                .with_context(|| format!("looking at {}", entry.path().display()))?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}
