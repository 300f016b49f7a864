//! A sample of a record's plan: enough to decide whether the plan is in memory, without reading the rest of the record.
//!
//! The sample is chosen when the record is made. The format stores it, within its limits, at the beginning of the index, together with the
//! definitions of its files and of those files that have advice for the kernel.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::definitions::{Beyond, Flaw, RowDecoder, RowEncoder, Tables, limit, put, take_files};
use super::{MAX_SAMPLE, MAX_SAMPLE_FILES, WriteError};
use crate::{Advice, Expected, FileId, FileMeta, Kind, Name, Odds, PAGE, Pattern, ThreadId};

/// A sample of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Equal parts of the plan, in order, each with some disclosures and names. A name's position among the disclosures is not kept.
    pub parts: Vec<PartSample>,
}

/// The sample of one part of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartSample {
    /// Some of its disclosures, in order.
    pub expected: Vec<Expected>,
    /// Some of its names, in order.
    pub names: Vec<Name>,
}

/// One past the last page that a file can have.
const PAGES: u64 = u64::MAX / PAGE + 1;

impl Sample {
    fn entries(&self) -> usize {
        let parts = self.parts.iter();
        let parts = parts.map(|part| 1 + part.expected.len() + part.names.len());
        parts.sum()
    }

    /// True if it is within the format's limits.
    pub(super) fn check(&self) -> Result<(), WriteError> {
        Ok(limit(
            "the number of entries of its sample",
            self.entries(),
            MAX_SAMPLE,
        )?)
    }

    /// The payload of its frame, with the definitions out of these.
    pub(super) fn encode(&self, files: &BTreeMap<FileId, FileMeta>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut wanted = Vec::new();
        // Earlier writers put streams here.
        put(&mut bytes, 0);
        put(&mut bytes, self.parts.len() as u64);
        for part in &self.parts {
            put(&mut bytes, part.expected.len() as u64);
            for one in &part.expected {
                wanted.push(one.file);
                put(&mut bytes, u64::from(one.file.0));
                put_pages(&mut bytes, &one.pages);
                put(&mut bytes, one.pattern as u64);
            }
            put(&mut bytes, part.names.len() as u64);
            for name in &part.names {
                wanted.push(name.file);
                put(&mut bytes, u64::from(name.file.0));
                put(&mut bytes, name.kind as u64);
            }
        }
        let advised = files.iter();
        let advised = advised.filter(|(_, meta)| meta.advice != Advice::Normal);
        let room = MAX_SAMPLE_FILES - MAX_SAMPLE;
        wanted.extend(advised.map(|(&id, _)| id).take(room));
        wanted.sort_unstable();
        wanted.dedup();
        let mut rows = RowEncoder::default();
        for id in wanted {
            if let Some(meta) = files.get(&id) {
                rows.file(id, meta);
            }
        }
        bytes.extend_from_slice(rows.bytes());
        bytes
    }

    /// Decodes a payload whose definitions take at most `memory` bytes.
    pub(super) fn decode(
        payload: &[u8],
        memory: u64,
    ) -> Result<(Self, Arc<BTreeMap<FileId, FileMeta>>), Flaw> {
        let mut bytes = RowDecoder::new(payload);
        let mut sample = Self::default();
        let mut room = MAX_SAMPLE;
        for _ in 0..count(&mut bytes, &mut room)? {
            file(&mut bytes)?;
            pages(&mut bytes)?;
            for _ in 0..count(&mut bytes, &mut room)? {
                pages(&mut bytes)?;
            }
        }
        for _ in 0..count(&mut bytes, &mut room)? {
            let mut part = PartSample::default();
            for _ in 0..count(&mut bytes, &mut room)? {
                part.expected.push(Expected {
                    file: file(&mut bytes)?,
                    pages: pages(&mut bytes)?,
                    thread: ThreadId(0),
                    pattern: pattern(&mut bytes)?,
                    odds: Odds::SURE,
                });
            }
            for _ in 0..count(&mut bytes, &mut room)? {
                let file = file(&mut bytes)?;
                let kind = u8::try_from(bytes.take()?).ok().and_then(Kind::from_code);
                let kind = kind.filter(|kind| kind.names());
                let kind = kind.ok_or("a name in the sample has an unknown kind")?;
                part.names.push(Name {
                    file,
                    kind,
                    before: 0,
                });
            }
            sample.parts.push(part);
        }
        let mut tables = Tables::within(memory);
        take_files(&mut bytes, &mut tables)?;
        let files = tables.files.len();
        limit("the files of its sample", files, MAX_SAMPLE_FILES).map_err(Flaw::Beyond)?;
        Ok((sample, tables.files))
    }
}

/// Number of entries that follow, at most `room`.
fn count(bytes: &mut RowDecoder<'_>, room: &mut usize) -> Result<u64, Flaw> {
    let count = bytes.take()?;
    *room = usize::try_from(count)
        .ok()
        .and_then(|count| room.checked_sub(count))
        .ok_or(Beyond {
            what: "the number of entries of its sample",
            value: count,
            limit: *room as u64,
        })?;
    Ok(count)
}

fn file(bytes: &mut RowDecoder<'_>) -> Result<FileId, Flaw> {
    Ok(FileId(bytes.take_id()?))
}

fn put_pages(bytes: &mut Vec<u8>, pages: &Range<u64>) {
    put(bytes, pages.start);
    put(bytes, pages.end.saturating_sub(pages.start));
}

fn pages(bytes: &mut RowDecoder<'_>) -> Result<Range<u64>, Flaw> {
    let (start, count) = (bytes.take()?, bytes.take()?);
    let end = start.checked_add(count).filter(|&end| end <= PAGES);
    Ok(start..end.ok_or("the sample has pages that no file has")?)
}

fn pattern(bytes: &mut RowDecoder<'_>) -> Result<Pattern, Flaw> {
    let all = [Pattern::Scattered, Pattern::Sequential, Pattern::Loose];
    let code = bytes.take()?;
    let known = all.into_iter().find(|one| *one as u64 == code);
    Ok(known.ok_or("a disclosure in the sample has an unknown pattern")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::noise::mutate;

    #[test]
    fn mutated_samples_stay_within_the_limits_and_never_panic() {
        let meta = FileMeta::regular("/data/file", (1, 2), 3, 4);
        let files: BTreeMap<_, _> = (0..9).map(|id| (FileId(id), meta.clone())).collect();
        let expected = |file, pages| Expected {
            file: FileId(file),
            pages,
            thread: ThreadId(0),
            pattern: Pattern::Loose,
            odds: Odds::SURE,
        };
        let sample = Sample {
            parts: vec![PartSample {
                expected: vec![expected(2, 5..9), expected(3, PAGES - 1..PAGES)],
                names: vec![Name {
                    file: FileId(4),
                    kind: Kind::Stat,
                    before: 0,
                }],
            }],
        };
        let bytes = sample.encode(&files);
        assert_eq!(Sample::decode(&bytes, u64::MAX).unwrap().0, sample);
        // A stream of 64 pages with two gaps.
        let mut told = vec![1, 1, 0, 64, 2, 3, 1, 9, 11];
        told.extend_from_slice(&bytes[1..]);
        assert_eq!(Sample::decode(&told, u64::MAX).unwrap().0, sample);
        let mut noise = fastrand::Rng::with_seed(5);
        let (mut good, mut bad) = (0, 0);
        for _ in 0..60_000 {
            match Sample::decode(&mutate(&bytes, &mut noise), 10_000) {
                Ok((sample, files)) => {
                    good += 1;
                    // The two counts are no entries.
                    assert!(sample.entries() <= MAX_SAMPLE && files.len() <= 10_000 / 224);
                    assert!(
                        sample
                            .parts
                            .iter()
                            .flat_map(|part| &part.names)
                            .all(|name| name.kind.names())
                    );
                }
                Err(_) => bad += 1,
            }
        }
        assert!(good > 1_000 && bad > 1_000, "{good} and {bad}");
    }
}
