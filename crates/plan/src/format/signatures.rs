//! The patterns found in a record, as text.
//!
//! The text is interpreted by the code that finds and follows patterns. The format stores it, within its limits, at the end of a complete
//! record.

use serde::{Deserialize, Serialize};

use super::definitions::{Beyond, Flaw, limit};
use super::{MAX_SIGNATURES, MAX_SIGNATURES_BYTES, WriteError};

/// A pattern that files of one role are read in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The files: the constant part of their names.
    pub role: String,
    /// The pattern.
    pub notation: String,
}

/// The signatures of a record, as stored and as JSON.
#[derive(Debug, Default)]
pub(super) struct Signatures {
    pub(super) all: Vec<Signature>,
    pub(super) json: Vec<u8>,
}

impl Signatures {
    /// Signatures to be written.
    pub(super) fn new(all: Vec<Signature>) -> Result<Self, WriteError> {
        let json = serde_json::to_vec(&all).map_err(std::io::Error::from)?;
        bounds(all.len(), json.len())?;
        Ok(Self { all, json })
    }

    /// Signatures that were written by someone.
    pub(super) fn decode(json: &[u8]) -> Result<Self, Flaw> {
        bounds(0, json.len()).map_err(Flaw::Beyond)?;
        let all: Vec<Signature> =
            serde_json::from_slice(json).map_err(|_| "the signatures are not understood")?;
        bounds(all.len(), json.len()).map_err(Flaw::Beyond)?;
        let json = json.to_vec();
        Ok(Self { all, json })
    }
}

fn bounds(count: usize, bytes: usize) -> Result<(), Beyond> {
    limit("the number of its signatures", count, MAX_SIGNATURES)?;
    limit(
        "the length of its signatures in bytes",
        bytes,
        MAX_SIGNATURES_BYTES,
    )
}
