//! Process trees: whose events follow one another.
//!
//! A process goes on with the sequence of the process that made it, as long as that has no other child that runs: a shell that
//! starts one program after the other, a compiler driver and the compiler. A second child that runs beside the first, as the
//! jobs of a parallel build and the parts of a pipe do, begins a sequence of its own. The sequence ends with the last process
//! that is in it.
//!
//! Invariants: as many processes and sequences are kept as the limits say, whatever is forked; a tree of processes that
//! makes more costs others nothing but their sequences' beginnings.

use std::sync::Arc;

use foreread_sources::files::{Context, Symbol};
use rustc_hash::FxHashMap;

use crate::programs::Key;

/// Name of programs that were started before the daemon observed them.
const UNKNOWN: &str = "?";
/// Number of processes that are followed at the same time.
const PROCESSES: usize = 1 << 15;
/// Number of sequences that are followed at the same time, as many as by the models.
pub(crate) const SEQUENCES: usize = 1 << 11;
/// Files that are predicted for a sequence and not judged: four times as many as are predicted at once.
pub(crate) const PENDING: usize = 1024;
/// Events of its sequence after which a predicted file is not expected any more: likewise.
pub(crate) const EXPIRES: u64 = 1024;

#[derive(Clone, Copy, Debug)]
struct Process {
    context: Context,
    parent: u32,
    /// Children that run.
    children: u32,
}

/// A file that is predicted.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    /// The program that is to open it.
    pub(crate) key: Key,
    /// When, in ns.
    pub(crate) at: u64,
    /// After which event of the sequence it was predicted last.
    pub(crate) event: u64,
    /// In which epoch ([`Files::epoch`](crate::files::Files::epoch)).
    pub(crate) epoch: u64,
    /// Likelihood of the first prediction.
    pub(crate) likelihood: f64,
}

/// A sequence of events.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// User of the last event.
    pub(crate) uid: u32,
    /// Processes in it.
    live: u32,
    /// The last event.
    pub(crate) last: Option<Symbol>,
    pub(crate) events: u64,
    pub(crate) pending: FxHashMap<Symbol, Pending>,
    /// After which event files were predicted last.
    pub(crate) predicted: u64,
    /// Number of events that the last prediction reaches ahead, and number of these that have come as predicted since.
    pub(crate) reach: u32,
    pub(crate) come: u32,
    /// When there was an event last.
    used: u64,
}

/// All processes and sequences.
#[derive(Debug, Default)]
pub(crate) struct Trees {
    processes: FxHashMap<u32, Process>,
    /// The programs of processes: the parent's until a process starts one itself. Processes whose start was not observed are missing.
    programs: FxHashMap<u32, Key>,
    sequences: FxHashMap<Context, Tree>,
    next: u64,
    clock: u64,
    /// Sequences that have ended and were not handed out yet.
    ended: Vec<(Context, Tree)>,
}

impl Trees {
    pub(crate) fn forked(&mut self, pid: u32, parent: u32) {
        let known = self.process(parent);
        let (context, alone) = (known.context, known.children == 0);
        if let Some(known) = self.processes.get_mut(&parent) {
            known.children += 1;
        }
        let context = if alone { context } else { self.begin() };
        self.enter(pid, parent, context);
        if let Some(program) = self.programs.get(&parent).cloned() {
            self.programs.insert(pid, program);
        }
    }

    /// A process has started a program.
    pub(crate) fn started(&mut self, pid: u32, program: Key) {
        self.process(pid);
        self.programs.insert(pid, program);
    }

    /// The program that a process runs, which is this user's if nobody saw it start.
    pub(crate) fn program(&self, pid: u32, uid: u32) -> Key {
        let known = self.programs.get(&pid).cloned();
        known.unwrap_or_else(|| (Arc::from(UNKNOWN), uid))
    }

    /// A process has ended.
    pub(crate) fn ended(&mut self, pid: u32) {
        self.programs.remove(&pid);
        let Some(process) = self.processes.remove(&pid) else {
            return;
        };
        if let Some(parent) = self.processes.get_mut(&process.parent) {
            parent.children = parent.children.saturating_sub(1);
        }
        self.leave(process.context);
    }

    /// The sequence that a process's events belong to.
    pub(crate) fn context(&mut self, pid: u32) -> Context {
        self.process(pid).context
    }

    /// A sequence, as one that is used now.
    pub(crate) fn tree(&mut self, context: Context) -> &mut Tree {
        self.clock += 1;
        if !self.sequences.contains_key(&context) {
            // It was dropped for others, and its processes go on.
            self.make_room();
        }
        let tree = self.sequences.entry(context).or_default();
        tree.used = self.clock;
        tree
    }

    pub(crate) fn get(&self, context: Context) -> Option<&Tree> {
        self.sequences.get(&context)
    }

    /// The sequences that have ended since the last call.
    pub(crate) fn take_ended(&mut self) -> Vec<(Context, Tree)> {
        std::mem::take(&mut self.ended)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.sequences.len()
    }

    fn process(&mut self, pid: u32) -> Process {
        if let Some(known) = self.processes.get(&pid) {
            return *known;
        }
        let context = self.begin();
        self.enter(pid, 0, context)
    }

    fn enter(&mut self, pid: u32, parent: u32, context: Context) -> Process {
        if self.processes.len() >= PROCESSES {
            // Their ends were lost, or somebody forks without end.
            self.processes.clear();
            self.programs.clear();
            self.ended.extend(self.sequences.drain());
        }
        // A number given again, whose former process was not seen to end.
        self.ended(pid);
        self.tree(context).live += 1;
        let process = Process {
            context,
            parent,
            children: 0,
        };
        self.processes.insert(pid, process);
        process
    }

    fn begin(&mut self) -> Context {
        self.next += 1;
        Context(self.next)
    }

    fn leave(&mut self, context: Context) {
        let Some(tree) = self.sequences.get_mut(&context) else {
            return;
        };
        tree.live = tree.live.saturating_sub(1);
        if tree.live == 0
            && let Some(tree) = self.sequences.remove(&context)
        {
            self.ended.push((context, tree));
        }
    }

    /// Drops the quarter of the sequences that was longest unused, where there are too many.
    fn make_room(&mut self) {
        if self.sequences.len() < SEQUENCES {
            return;
        }
        let mut used: Vec<(u64, Context)> = self
            .sequences
            .iter()
            .map(|(context, tree)| (tree.used, *context))
            .collect();
        used.sort_unstable();
        for (_, context) in used.drain(..SEQUENCES / 4) {
            if let Some(tree) = self.sequences.remove(&context) {
                self.ended.push((context, tree));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_child_after_the_other_goes_on_with_the_sequence() {
        let mut trees = Trees::default();
        let make = trees.context(1);
        for child in [10, 11] {
            trees.forked(child, 1);
            assert_eq!(trees.context(child), make);
            trees.forked(child + 100, child);
            assert_eq!(trees.context(child + 100), make);
            trees.ended(child + 100);
            trees.ended(child);
        }
        assert!(trees.take_ended().is_empty());
        trees.ended(1);
        assert_eq!(trees.take_ended().len(), 1);
    }

    #[test]
    fn children_side_by_side_have_sequences_of_their_own() {
        let mut trees = Trees::default();
        let make = trees.context(1);
        trees.forked(10, 1);
        trees.forked(11, 1);
        assert_eq!(trees.context(10), make);
        let second = trees.context(11);
        assert_ne!(second, make);
        trees.ended(11);
        assert_eq!(trees.take_ended()[0].0, second);
        trees.ended(10);
        trees.forked(12, 1);
        assert_eq!(trees.context(12), make);
    }

    #[test]
    fn a_process_runs_its_parents_program_until_it_starts_another() {
        let mut trees = Trees::default();
        let named = |name: &str| (Arc::from(name), 7);
        assert_eq!(trees.program(1, 7), named(UNKNOWN));
        trees.started(1, named("sh"));
        trees.forked(10, 1);
        assert_eq!(trees.program(10, 0), named("sh"));
        trees.started(10, named("cat"));
        assert_eq!(trees.program(10, 0), named("cat"));
        assert_eq!(trees.program(1, 0), named("sh"));
        trees.ended(10);
        assert_eq!(trees.program(10, 0), (Arc::from(UNKNOWN), 0));
    }

    #[test]
    fn floods_of_processes_are_bounded() {
        let mut trees = Trees::default();
        for pid in 2..200_000 {
            trees.forked(pid, pid / 2);
            trees.started(pid, (Arc::from("flood"), 0));
            assert!(trees.processes.len() <= PROCESSES && trees.len() <= SEQUENCES);
            assert!(trees.programs.len() <= trees.processes.len());
        }
        let known = trees.sequences.values().map(|tree| tree.live).sum::<u32>();
        assert!(known as usize <= trees.processes.len());
        assert!(!trees.take_ended().is_empty());
    }
}
