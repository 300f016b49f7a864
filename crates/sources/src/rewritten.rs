//! Files that a program writes itself and reads again, such as an image program's swap file: expected to be read as in an earlier run.
//!
//! Such a file is new in each run, often under another name. It takes the part of the recorded file with its [`Role`]: of several files of
//! a role, the first one met that of the first one recorded, and so on. An access is disclosed once its file is met; those after it wait,
//! because their order is known only as a whole.

use std::collections::VecDeque;

use foreread_plan::{Access, Expected, FileId, Role, Seen};
use rustc_hash::FxHashMap;

use crate::{Nature, Outlook, Replay, Source};

/// Source `rewritten`.
#[derive(Debug)]
pub struct Rewritten<T> {
    replay: Replay<T>,
    /// The recorded files that no file of this run has taken the part of.
    recorded: FxHashMap<Role, VecDeque<FileId>>,
    /// The files of this run, by the recorded ones.
    present: FxHashMap<FileId, FileId>,
    /// Taken of the replay, and not disclosed yet, with the recorded file.
    next: Vec<Expected>,
}

impl<T: Iterator<Item = Access>> Rewritten<T> {
    /// Discloses these accesses to the recorded files of these roles, which are in the order in which they were met.
    pub fn new(files: impl IntoIterator<Item = (Role, FileId)>, accesses: T) -> Self {
        let mut recorded = FxHashMap::<_, VecDeque<_>>::default();
        for (role, file) in files {
            recorded.entry(role).or_default().push_back(file);
        }
        Self {
            replay: Replay::new(accesses),
            recorded,
            present: FxHashMap::default(),
            next: Vec::new(),
        }
    }
}

impl<T: Iterator<Item = Access> + Send> Source for Rewritten<T> {
    fn nature(&self) -> Nature {
        Nature::Told
    }

    fn see(&mut self, seen: &Seen) {
        if let Seen::Role { file, role, .. } = *seen
            && let Some(recorded) = self.recorded.get_mut(&role).and_then(VecDeque::pop_front)
        {
            self.present.insert(recorded, file);
        }
    }

    fn disclose(&mut self, room: usize, out: &mut Vec<Expected>) -> Outlook {
        for _ in 0..room {
            if self.next.is_empty() && self.replay.disclose(1, &mut self.next) == Outlook::End {
                return Outlook::End;
            }
            let file = self
                .next
                .first()
                .and_then(|one| self.present.get(&one.file));
            let Some(&file) = file else {
                return Outlook::Later;
            };
            out.extend(self.next.drain(..).map(|one| Expected { file, ..one }));
        }
        Outlook::More
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreread_plan::{Extent, Kind, PAGE, ThreadId};

    fn read(file: u32, page: u64) -> Access {
        Access {
            file: FileId(file),
            extent: Extent::new(page * PAGE, PAGE),
            thread: ThreadId(0),
            kind: Kind::Read,
            start: 0,
            took: 0,
        }
    }

    /// The source with recorded files 1 and 2 of role 7 and file 3 of role 8.
    fn source(reads: &[(u32, u64)]) -> Rewritten<std::vec::IntoIter<Access>> {
        let files = [(7, 1), (7, 2), (8, 3)];
        let files = files.map(|(role, file)| (Role(role), FileId(file)));
        let reads: Vec<_> = reads.iter().map(|&(file, page)| read(file, page)).collect();
        Rewritten::new(files, reads.into_iter())
    }

    fn meet(source: &mut impl Source, file: u32, role: u64) {
        source.see(&Seen::Role {
            file: FileId(file),
            role: Role(role),
            turn: Role::default(),
        });
    }

    fn disclosed(source: &mut impl Source, room: usize) -> (Vec<(u32, u64)>, Outlook) {
        let mut out = Vec::new();
        let outlook = source.disclose(room, &mut out);
        let pages = out.iter().map(|one| (one.file.0, one.pages.start));
        (pages.collect(), outlook)
    }

    #[test]
    fn a_new_file_takes_the_part_of_the_recorded_one_with_its_role() {
        let mut source = source(&[(3, 5), (3, 9), (1, 4)]);
        meet(&mut source, 40, 6);
        assert_eq!(disclosed(&mut source, 9), (vec![], Outlook::Later));
        meet(&mut source, 41, 8);
        assert_eq!(disclosed(&mut source, 1), (vec![(41, 5)], Outlook::More));
        assert_eq!(disclosed(&mut source, 9), (vec![(41, 9)], Outlook::Later));
        meet(&mut source, 42, 7);
        assert_eq!(disclosed(&mut source, 9), (vec![(42, 4)], Outlook::End));
    }

    #[test]
    fn files_of_one_role_are_told_apart_by_their_order() {
        let mut source = source(&[(2, 1), (1, 8)]);
        meet(&mut source, 50, 7);
        assert_eq!(disclosed(&mut source, 9), (vec![], Outlook::Later));
        meet(&mut source, 51, 7);
        meet(&mut source, 52, 7);
        let both = vec![(51, 1), (50, 8)];
        assert_eq!(disclosed(&mut source, 9), (both, Outlook::End));
    }
}
