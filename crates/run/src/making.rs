//! Records that no run has written: made of the list of another tool, of several records, or of a part of one.
//!
//! They have all that a run's record has, the sample and the patterns included, so that they are followed like one. Advice to the kernel
//! on their files comes from the maker: a part of the reads does not show in which order all are.
//!
//! Data flow: files, threads and accesses, in order → [`Writing`] → [`Made`], which takes its place as a whole.

use std::path::Path;

use anyhow::Result;
use foreread_plan::format::{Ended, Place, RecordFile};
use foreread_plan::{
    Access, FileId, FileMeta, Identity, Meta, Sequence, Summary, ThreadId, ThreadMeta,
};
use foreread_sources::signature::Roles;
use rustc_hash::FxHashMap;

use crate::record::writer::{Item, Writing};

/// A record being made. Dropped, it leaves nothing behind.
pub struct Making {
    writing: Writing,
    meta: Meta,
    /// The record's numbers of the files: in the order they are met, without gaps.
    numbers: FxHashMap<FileId, FileId>,
}

impl Making {
    /// Begins a record of this command that will be at `place`.
    ///
    /// # Errors
    /// When no file can be made there.
    pub fn new(place: &Place, meta: Meta) -> Result<Self> {
        let file = RecordFile::create_at(place, &meta, foreread_store::RECORD_LIMIT)?;
        Ok(Self {
            writing: Writing::new(file).with_given_advice(),
            meta,
            numbers: FxHashMap::default(),
        })
    }

    /// Defines a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn file(&mut self, id: FileId, meta: &FileMeta) -> Result<()> {
        let next = FileId(self.numbers.len() as u32);
        let number = *self.numbers.entry(id).or_insert(next);
        self.write(Item::File(number, Box::new(meta.clone())))
    }

    /// True if the file is defined.
    pub fn has(&self, id: FileId) -> bool {
        self.numbers.contains_key(&id)
    }

    /// Defines a thread.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn thread(&mut self, id: ThreadId, meta: &ThreadMeta) -> Result<()> {
        self.write(Item::Thread(id, Box::new(meta.clone())))
    }

    /// Appends an access; one to a file that is not defined is left out.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn access(&mut self, access: &Access) -> Result<()> {
        let Some(&file) = self.numbers.get(&access.file) else {
            return Ok(());
        };
        self.write(Item::Accesses(Sequence::from(Access { file, ..*access })))
    }

    fn write(&mut self, item: Item) -> Result<()> {
        Ok(self.writing.write(&[item])?)
    }

    /// Ends the record with this foot.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end(self, summary: Summary) -> Result<Made> {
        let Identity { argv, cwd, .. } = &self.meta.identity;
        let roles = Roles::new(argv.iter().map(String::as_str), Path::new(cwd));
        let (file, _) = self.writing.end(roles)?;
        Ok(Made(file.end(summary)?))
    }
}

/// A record that was made, and is not yet in its place. Dropped, it leaves nothing behind.
pub struct Made(Ended);

impl Made {
    /// Bytes that it takes.
    ///
    /// # Errors
    /// The system's.
    pub fn size(&self) -> Result<u64> {
        Ok(self.0.size()?)
    }

    /// Lets it take its place.
    ///
    /// # Errors
    /// When it cannot; the earlier file is unchanged then.
    pub fn take_place(self) -> Result<()> {
        Ok(self.0.take_place()?)
    }
}
