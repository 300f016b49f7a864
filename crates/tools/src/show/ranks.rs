//! The ranks of a parallel program together: their reads and writes through MPI as a function of the rank.
//!
//! Data flow: the shown record → records of the same command's other ranks, in the store or beside it → [`analyze::ranks`].

use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use foreread_plan::format::Reader;
use foreread_plan::{FileId, Identity, Kind, Rank};
use foreread_store::Store;
use foreread_words::counted;

use super::Digest;
use crate::analyze::{self, Analysis, Row};

/// Number of ranks whose records are read: the first ones show the pattern.
const RANKS: u32 = 1024;

/// The ranks of a run.
pub(super) struct Together {
    analysis: Analysis,
    /// Ranks with a record, and the number of ranks in the run.
    recorded: u32,
    of: u32,
}

/// The ranks of the record's run; `None` if the program is not parallel or made no requests to MPI.
pub(super) fn together(reader: &Reader, files: &[(FileId, Digest)]) -> Result<Option<Together>> {
    let Some(Rank { of, .. }) = reader.meta().identity.rank else {
        return Ok(None);
    };
    let asked = files
        .iter()
        .filter(|(_, digest)| digest.calls(Kind::MpiRead) + digest.calls(Kind::MpiWrite) > 0);
    let asked = asked.filter_map(|(id, _)| reader.files().get(id));
    let asked: HashSet<String> = asked
        .map(|meta| meta.path.to_string_lossy().into_owned())
        .collect();
    if asked.is_empty() {
        return Ok(None);
    }
    let records = records(&reader.meta().identity, of)?;
    Ok(Some(Together {
        recorded: records.len() as u32,
        analysis: analyze::ranks(&records, &asked)?,
        of,
    }))
}

/// The readable records of a command's ranks, by rank.
fn records(identity: &Identity, of: u32) -> Result<Vec<PathBuf>> {
    let store = Store::open()?;
    let ranks = (0..of.min(RANKS)).map(|rank| Identity {
        rank: Some(Rank { rank, of }),
        ..identity.clone()
    });
    let places = ranks.map(|identity| (store.place_for(&identity).path(), identity));
    let usable = places.filter(|(path, identity)| {
        Reader::open(path).is_ok_and(|reader| reader.meta().identity == *identity)
    });
    Ok(usable.map(|(path, _)| path).collect())
}

impl Together {
    pub(super) fn print(&self, out: &mut impl Write, all: bool) -> Result<()> {
        let of = counted(self.of.into(), "rank", "ranks");
        let whose = if self.recorded == self.of {
            format!("all {of}")
        } else {
            format!("{} of {of}", self.recorded)
        };
        writeln!(out, "\nThrough MPI, {whose}:")?;
        analyze::print_families(out, &self.analysis, all)
    }

    pub(super) fn rows(&self) -> Vec<Row<'_>> {
        analyze::rows(&self.analysis)
    }
}
