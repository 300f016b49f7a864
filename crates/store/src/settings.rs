//! Settings of the store from the environment: its place, and its limit of size.

use std::path::PathBuf;

use anyhow::{Result, anyhow};

use crate::{LIMIT_VARIABLE, STORE_LIMIT};

/// The folder for a user's data, by the XDG base directory specification.
pub(super) fn data_home() -> Result<PathBuf> {
    foreread_profiles::data_home()
        .ok_or_else(|| anyhow!("no place for records: neither XDG_DATA_HOME nor HOME is set"))
}

/// The limit of all records in bytes, from the value of [`LIMIT_VARIABLE`].
pub(super) fn limit_from(variable: Option<&str>) -> Result<u64> {
    match variable {
        None | Some("") => Ok(STORE_LIMIT),
        Some(text) => foreread_words::units::parse_size(text)
            .map_err(|why| anyhow!("{LIMIT_VARIABLE}: {why}")),
    }
}
