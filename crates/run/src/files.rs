//! The files of a session: each has one number, whatever names lead to it.
//!
//! A file is identified by device, inode and creation time, because a file system reuses the inodes of deleted files. Files of the followed
//! record come first and keep the record's numbers, so observed and planned reads have the same number for a file. Other files get the
//! following numbers when they are first used.
//!
//! Invariant: [`Files::met`] has every file used in this run, in its latest known state.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::hash::BuildHasher;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::SystemTime;

use foreread_core::cold::WORTH;
use foreread_plan::format::{Ending, Outline, Reader};
use foreread_plan::{Advice, FileId, FileMeta, Identity, PathMap};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::user_space::UserSpace;

/// Limit of files: bounds the memory that another user's process can consume by opening files, real or made up.
const FILES: usize = 1 << 22;

/// Damage of a record, set when reading reaches it.
pub(super) type Trouble = Arc<OnceLock<String>>;

/// Say so if a record breaks off.
fn cut_short(reader: &Reader, trouble: &Trouble) {
    if let Ending::Truncated { at } = reader.ending() {
        trouble.get_or_init(|| {
            format!(
                "the record {} breaks off after {at} bytes: its writer was interrupted",
                reader.path().display()
            )
        });
    }
}

/// The kernel's identity of a file: device and inode.
type Inode = (u64, u64);

fn inode(meta: &FileMeta) -> Inode {
    (meta.dev, meta.ino)
}

fn hash(path: &Path) -> u64 {
    // Byte by byte, and not component by component.
    FxBuildHasher.hash_one(path.as_os_str())
}

/// The files of a record, by inode. A file with several names in the record is one file, because its pages are in memory once.
///
/// Only the files of a record's sample are known at first. The others are read at the first question for one of them, so of a
/// plan that is in memory they are never read.
#[derive(Default)]
pub(super) struct Recorded {
    sampled: Arc<BTreeMap<FileId, FileMeta>>,
    outline: Option<Box<Outline>>,
    /// The command that follows the record, if the record is of another command.
    wanted: Option<Identity>,
    /// True if files in user space are left alone.
    spares: bool,
    /// Present paths of the record's files.
    map: PathMap,
    whole: OnceLock<Whole>,
    trouble: Trouble,
}

/// All files of a record.
#[derive(Default)]
struct Whole {
    files: Arc<BTreeMap<FileId, FileMeta>>,
    /// Files that are not followed: the recorded run wrote them or dropped their pages, they belong to another command, or they are spared.
    skipped: FxHashSet<FileId>,
    /// Files in user space that are left alone.
    spared: FxHashSet<FileId>,
    first: FxHashMap<Inode, FileId>,
    /// The first name of each file that is another name of one.
    others: FxHashMap<FileId, FileId>,
    /// Files by the hashes of their paths, built at the first lookup: a program that is left alone at once has none. If two paths have the
    /// same hash, only the first is found, and the other counts as new.
    named: OnceLock<FxHashMap<u64, FileId>>,
    /// The reader that read the file definitions, until it is taken for the accesses.
    reader: Mutex<Option<Box<Reader>>>,
}

impl Whole {
    fn new(
        files: Arc<BTreeMap<FileId, FileMeta>>,
        foreign: &HashSet<FileId>,
        spared: FxHashSet<FileId>,
    ) -> Self {
        let (mut first, mut others) = (FxHashMap::default(), FxHashMap::default());
        first.reserve(files.len());
        let is_skipped = |id: &FileId, meta: &FileMeta| {
            meta.written
                || meta.advice == Advice::Dropped
                || foreign.contains(id)
                || spared.contains(id)
        };
        let skipped = files.iter().filter(|(id, meta)| is_skipped(id, meta));
        let skipped: FxHashSet<_> = skipped.map(|(&id, _)| id).collect();
        // A followed name represents its file, whatever their order.
        let read = files.iter().filter(|(id, _)| !skipped.contains(id));
        let left = skipped.iter().filter_map(|id| files.get_key_value(id));
        for (&id, meta) in read.chain(left) {
            let known = *first.entry(inode(meta)).or_insert(id);
            if known != id {
                others.insert(id, known);
            }
        }
        Self {
            files,
            skipped,
            spared,
            first,
            others,
            ..Self::default()
        }
    }

    fn of(mut reader: Box<Reader>, wanted: Option<&Identity>, spares: bool, map: &PathMap) -> Self {
        let foreign = wanted.map(|wanted| foreread_store::foreign(wanted, &mut reader));
        let foreign = foreign.unwrap_or_default();
        let mut user_space = UserSpace::default();
        let files = reader.files().iter().filter(|_| spares);
        let spared = files.filter(|(_, meta)| user_space.has(meta.dev));
        let spared = spared.map(|(&id, _)| id).collect();
        let whole = Self::new(map.files(reader.shared_files()), &foreign, spared);
        Self {
            reader: Mutex::new(Some(reader)),
            ..whole
        }
    }
}

impl Recorded {
    /// The files of a record, which may be another command's than the `wanted` one. Damage of the record is entered in `trouble`.
    pub(super) fn of(outline: Outline, wanted: Option<Identity>, trouble: &Trouble) -> Self {
        Self {
            sampled: outline.files(),
            outline: Some(Box::new(outline)),
            wanted,
            trouble: Arc::clone(trouble),
            ..Self::default()
        }
    }

    /// The same, with or without its files in user space.
    pub(super) fn sparing(self, spares: bool) -> Self {
        Self { spares, ..self }
    }

    /// The same, its files where they lie by this map.
    pub(super) fn mapped(self, map: &PathMap) -> Self {
        Self {
            sampled: map.files(Arc::clone(&self.sampled)),
            map: map.clone(),
            ..self
        }
    }

    /// Number of its files left alone because they are in user space, as far as is known.
    pub(super) fn spared(&self) -> usize {
        self.whole.get().map_or(0, |whole| whole.spared.len())
    }

    /// The files of a record that is being made.
    pub(super) fn made(reader: Reader) -> Self {
        Self {
            whole: Whole::of(Box::new(reader), None, false, &PathMap::default()).into(),
            ..Self::default()
        }
    }

    /// The plan's outline; `None` if the record is another command's, which has other files.
    pub(super) fn outline(&self) -> Option<&Outline> {
        self.outline.as_deref().filter(|_| self.wanted.is_none())
    }

    /// The record's reader, for its accesses; given once.
    pub(super) fn reader(&self) -> Option<Box<Reader>> {
        let mut reader = self.whole().reader.lock();
        reader.as_mut().ok()?.take()
    }

    /// Another reader of the record of this very command.
    pub(super) fn reader_anew(&self) -> Option<Box<Reader>> {
        self.outline()?.open().ok().map(Box::new)
    }

    fn whole(&self) -> &Whole {
        self.whole.get_or_init(|| {
            let opened = self.outline.as_ref().map(|outline| outline.open());
            match opened {
                Some(Ok(reader)) => {
                    cut_short(&reader, &self.trouble);
                    let wanted = self.wanted.as_ref();
                    Whole::of(Box::new(reader), wanted, self.spares, &self.map)
                }
                Some(Err(why)) => {
                    self.trouble.get_or_init(|| why.to_string());
                    Whole::default()
                }
                None => Whole::default(),
            }
        })
    }

    /// The files that are known without taking in more.
    pub(super) fn at_hand(&self) -> impl Iterator<Item = &FileMeta> {
        let whole = self.whole.get();
        whole.map_or(&self.sampled, |whole| &whole.files).values()
    }

    /// A file as the record has it.
    pub(super) fn get(&self, file: FileId) -> Option<&FileMeta> {
        match self.whole.get() {
            Some(whole) => whole.files.get(&file),
            None => match self.sampled.get(&file) {
                None => self.whole().files.get(&file),
                known => known,
            },
        }
    }

    /// True if the file is not followed.
    pub(super) fn skips(&self, file: FileId) -> bool {
        self.whole().skipped.contains(&file)
    }

    /// True if the recorded run wrote the file itself, so that the next run may write and read one like it.
    pub(super) fn is_rewritten(&self, file: FileId) -> bool {
        self.skips(file) && !self.is_left_alone(file)
    }

    /// The files that the recorded run wrote itself, in the order in which it met them.
    pub(super) fn rewritten(&self) -> impl Iterator<Item = (FileId, &FileMeta)> {
        let files = self.whole().files.iter().map(|(&id, meta)| (id, meta));
        files.filter(|(id, _)| self.is_rewritten(*id))
    }

    /// True if this command waited, when recorded, for what it had written itself, so long that prefetching it pays.
    pub(super) fn rereads(&self) -> bool {
        let summary = self.outline().and_then(Outline::summary);
        summary.is_some_and(|summary| summary.rewritten_ns >= WORTH)
    }

    /// True if reads of a recorded file do not count: the program drops its pages itself, or the file is spared.
    pub(super) fn is_left_alone(&self, file: FileId) -> bool {
        let Whole { files, spared, .. } = self.whole();
        let meta = files.get(&file);
        spared.contains(&file) || meta.is_some_and(|meta| meta.advice == Advice::Dropped)
    }

    /// True if the file is followed.
    pub(super) fn follows(&self, file: FileId) -> bool {
        let whole = self.whole();
        whole.files.contains_key(&file) && !whole.skipped.contains(&file)
    }

    /// The number that stands for all names of a file.
    pub(super) fn first_name(&self, file: FileId) -> FileId {
        self.whole().others.get(&file).copied().unwrap_or(file)
    }

    /// The record's number of a file: that of its name, or of the same inode under another name.
    fn find(&self, meta: &FileMeta) -> Option<FileId> {
        let Whole { files, first, .. } = self.whole();
        let named = self.named().get(&hash(&meta.path)).copied();
        let named = named.map(|file| (file, &files[&file]));
        let named = named.filter(|(_, known)| known.path.as_os_str() == meta.path.as_os_str());
        if named.is_some_and(|(_, known)| inode(known) != inode(meta)) {
            // Another file has the name, and takes the part of the recorded one.
            return named.map(|(file, _)| file);
        }
        let same = first.get(&inode(meta)).copied();
        let same = same.filter(|file| named.is_some() || meta.same_state(&files[file]));
        same.or(named.map(|(file, _)| file))
    }

    fn named(&self) -> &FxHashMap<u64, FileId> {
        let Whole { files, named, .. } = self.whole();
        named.get_or_init(|| {
            let mut named = FxHashMap::default();
            named.reserve(files.len());
            for (&id, meta) in &**files {
                named.entry(hash(&meta.path)).or_insert(id);
            }
            named
        })
    }

    /// The first number that no recorded file has.
    fn next(&self) -> Option<u32> {
        self.whole()
            .files
            .last_key_value()
            .map_or(Some(0), |(last, _)| last.0.checked_add(1))
    }
}

impl fmt::Debug for Recorded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.whole.get().map(|whole| whole.files.len());
        out.debug_struct("Recorded")
            .field("files", &files)
            .finish_non_exhaustive()
    }
}

impl foreread_backend::Recorded for Recorded {
    fn file(&self, file: FileId) -> Option<&FileMeta> {
        self.get(file)
    }
}

/// All files of a session.
#[derive(Debug)]
pub(super) struct Files {
    recorded: Arc<Recorded>,
    /// As they were found last.
    met: FxHashMap<FileId, FileMeta>,
    /// The files met, and when each was made, if the run made it.
    inodes: FxHashMap<Inode, (FileId, Option<SystemTime>)>,
    /// The number of the next file that the record does not have, once there was one.
    next: Option<Option<u32>>,
}

impl Files {
    /// The files of a session that follows this record, which may be empty.
    pub(super) fn new(recorded: Arc<Recorded>) -> Self {
        Self {
            recorded,
            next: None,
            met: FxHashMap::default(),
            inodes: FxHashMap::default(),
        }
    }

    /// The number of a file, and true if this is its first use. `made` is the time of its creation by this run, if the run created it.
    /// `None` beyond the limit of files.
    pub(super) fn meet(
        &mut self,
        meta: FileMeta,
        made: Option<SystemTime>,
    ) -> Option<(FileId, bool)> {
        let known = self.inodes.get(&inode(&meta)).copied();
        if let Some((id, _)) = known.filter(|(_, then)| *then == made) {
            return Some((id, false));
        }
        if self.met.len() >= FILES {
            return None;
        }
        // A recorded file keeps the state in which it was met.
        let recorded = self.recorded.find(&meta);
        let recorded = recorded.filter(|id| !self.met.contains_key(id));
        let id = match recorded {
            Some(id) => id,
            None => {
                let number = self.next.unwrap_or_else(|| self.recorded.next())?;
                self.next = Some(number.checked_add(1));
                FileId(number)
            }
        };
        self.inodes.insert(inode(&meta), (id, made));
        self.met.insert(id, meta);
        Some((id, true))
    }

    /// True if the file was used before. `made` as in [`Self::meet`].
    pub(super) fn knows(&self, meta: &FileMeta, made: Option<SystemTime>) -> bool {
        let known = self.inodes.get(&inode(meta));
        known.is_some_and(|(_, then)| *then == made)
    }

    /// The file that the record has at this path.
    pub(super) fn recorded_at(&self, path: &Path) -> Option<(FileId, &FileMeta)> {
        let file = *self.recorded.named().get(&hash(path))?;
        let meta = self.recorded.get(file)?;
        (meta.path.as_os_str() == path.as_os_str()).then_some((file, meta))
    }

    /// A file that was met.
    pub(super) fn met(&self, file: FileId) -> &FileMeta {
        &self.met[&file]
    }

    /// A file, if it was met.
    pub(super) fn known(&self, file: FileId) -> Option<&FileMeta> {
        self.met.get(&file)
    }

    /// All files used in this run, in their latest known states.
    pub(super) fn all_met(&self) -> impl Iterator<Item = (FileId, &FileMeta)> {
        self.met.iter().map(|(&id, meta)| (id, meta))
    }

    /// A file that was met, to be changed.
    pub(super) fn met_mut(&mut self, file: FileId) -> &mut FileMeta {
        self.met.get_mut(&file).expect("the file was met")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn meta(path: &str, ino: u64) -> FileMeta {
        FileMeta::regular(path, (1, ino), 10, 0)
    }

    fn recorded(files: &[(u32, FileMeta)], foreign: &[u32]) -> Arc<Recorded> {
        let files = files.iter().map(|(id, meta)| (FileId(*id), meta.clone()));
        let foreign = foreign.iter().copied().map(FileId).collect();
        Arc::new(Recorded {
            whole: Whole::new(Arc::new(files.collect()), &foreign, FxHashSet::default()).into(),
            ..Recorded::default()
        })
    }

    fn at(seconds: u64) -> Option<SystemTime> {
        Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
    }

    #[test]
    fn a_file_has_one_number_under_all_its_names() {
        let mut files = Files::new(Arc::default());
        assert_eq!(files.meet(meta("/a", 1), at(1)), Some((FileId(0), true)));
        assert_eq!(files.meet(meta("/b", 2), at(1)), Some((FileId(1), true)));
        assert_eq!(files.meet(meta("/c", 1), at(1)), Some((FileId(0), false)));
    }

    #[test]
    fn the_inode_of_a_deleted_file_says_nothing_of_the_next_file_that_has_it() {
        let mut files = Files::new(Arc::default());
        assert_eq!(files.meet(meta("/a", 1), at(1)), Some((FileId(0), true)));
        assert_eq!(files.meet(meta("/b", 1), at(2)), Some((FileId(1), true)));
        assert_eq!(files.met(FileId(0)).path.as_os_str(), "/a");
        // The same for a recorded file that this run deletes.
        let record = recorded(&[(0, meta("/a", 1))], &[]);
        let mut files = Files::new(record);
        assert_eq!(files.meet(meta("/a", 1), at(1)), Some((FileId(0), true)));
        assert_eq!(files.meet(meta("/a", 1), at(2)), Some((FileId(1), true)));
    }

    #[test]
    fn recorded_files_keep_their_numbers_and_others_come_after_them() {
        let record = recorded(
            &[(0, meta("/a", 1)), (7, meta("/b", 2)), (9, meta("/c", 1))],
            &[],
        );
        assert_eq!(record.first_name(FileId(9)), FileId(0));
        let mut files = Files::new(record);
        assert_eq!(files.meet(meta("/n", 3), at(1)), Some((FileId(10), true)));
        assert_eq!(files.meet(meta("/c", 1), at(1)), Some((FileId(0), true)));
        // Another file under a recorded name, and a recorded one under another name.
        assert_eq!(files.meet(meta("/b", 5), at(1)), Some((FileId(7), true)));
        let mut changed = meta("/x", 2);
        changed.size = 11;
        assert_eq!(files.meet(changed, at(1)), Some((FileId(11), true)));
    }

    #[test]
    fn the_name_that_is_followed_stands_for_a_file() {
        let record = recorded(&[(0, meta("/theirs", 1)), (1, meta("/ours", 1))], &[0]);
        assert_eq!(record.first_name(FileId(0)), FileId(1));
        assert!(record.follows(FileId(1)) && !record.follows(FileId(0)));
        let mut files = Files::new(record);
        assert_eq!(files.meet(meta("/ours", 1), None), Some((FileId(1), true)));
    }

    #[test]
    fn numbers_end_where_a_record_has_taken_the_last() {
        let record = recorded(&[(u32::MAX, meta("/a", 1))], &[]);
        let mut files = Files::new(record);
        assert_eq!(files.meet(meta("/n", 3), None), None);
        let last = FileId(u32::MAX);
        assert_eq!(files.meet(meta("/a", 1), None), Some((last, true)));
    }
}
