//! What saved models say, where no daemon runs.

use std::path::Path;

use anyhow::{Result, bail};

use crate::mind::Mind;
use crate::state::{Loaded, State};
use crate::{Model, Predicted};

/// What follows a file by the models saved in the folder `state`, which is this user's.
///
/// # Errors
/// If there are none, or they cannot be read.
pub fn predict_saved(
    state: &Path,
    model: Model,
    threshold: f64,
    file: &Path,
) -> Result<Vec<Predicted>> {
    // To load what is not there would make it.
    if let Err(why) = std::fs::read_dir(state) {
        bail!("{}: {why}", state.display());
    }
    let Loaded {
        state,
        symbols,
        files,
        problems,
    } = State::load(state)?;
    if let Some(problem) = problems.first() {
        bail!("{problem}");
    }
    let mut mind = Mind::new(state.model(model), symbols, files, threshold);
    // Whoever can read the models may know all that is in them.
    Ok(mind.after(file, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_was_saved_nothing_is_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let none = folder.path().join("none");
        let asked = |state| predict_saved(state, Model::Epcm, 0.55, Path::new("/bin/sh"));
        assert!(asked(&none).is_err() && !none.exists());
        assert_eq!(asked(folder.path()).expect("no models yet"), []);
    }
}
