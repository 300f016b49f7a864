//! Predictions of saved models, for use without a daemon.

use std::path::Path;

use anyhow::Result;
use foreread_sources::files::SymbolKind;

use crate::state::StateFolder;
use crate::{Model, Predicted};

/// The predicted successors of a file, by the models saved in the folder `state`.
///
/// # Errors
/// If they cannot be read.
pub fn predict_saved(
    state: &Path,
    model: Model,
    threshold: f64,
    file: &Path,
) -> Result<Vec<Predicted>> {
    let state = StateFolder::open_whole(state)?;
    let symbols = state.symbols();
    let find = |kind| symbols.find(kind, file);
    let Some(symbol) = find(SymbolKind::File).or_else(|| find(SymbolKind::Start)) else {
        return Ok(Vec::new());
    };
    let mut list = Vec::new();
    state
        .model(model, None)
        .predict_after(symbol, threshold, &mut list);
    let told = list.iter().filter_map(|one| {
        Some(Predicted {
            path: symbols.path(one.symbol)?.to_path_buf(),
            likelihood: one.likelihood,
            ahead: one.ahead,
        })
    });
    Ok(told.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_was_saved_nothing_is_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let none = folder.path().join("none");
        let asked = |state| predict_saved(state, Model::Epcm, 0.55, Path::new("/bin/sh"));
        assert!(asked(&none).is_ok_and(|files| files.is_empty()) || asked(&none).is_err());
        assert!(!none.exists());
        assert_eq!(asked(folder.path()).expect("no models yet"), []);
    }
}
