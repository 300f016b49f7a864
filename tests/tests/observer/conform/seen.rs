//! The events that observers deliver of a program, as words.
//!
//! Data flow: a program that runs → [`Watch::poll`] → events of its processes and of the files of one folder → [`Watch::delivered`].

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use foreread_observe::{Budget, Event, Observer, What};

/// An observer, with the events that it has delivered.
pub struct Watch {
    /// True for the ring of one run: all its events are of the program, and forks are not reported.
    is_ring: bool,
    pub observer: Box<dyn Observer>,
    events: Vec<Event>,
}

impl Watch {
    /// A watch of the ring of one run.
    pub fn of_ring(observer: impl Observer + 'static) -> Self {
        Self {
            is_ring: true,
            observer: Box::new(observer),
            events: Vec::new(),
        }
    }

    /// A watch of an observer that sees forks.
    pub fn of_kernel(observer: impl Observer + 'static) -> Self {
        Self {
            is_ring: false,
            ..Self::of_ring(observer)
        }
    }

    pub fn poll(&mut self) {
        let hour = Duration::from_secs(3600);
        let Self {
            observer, events, ..
        } = self;
        while observer
            .poll(&mut Budget::new(1 << 20, hour), &mut |event| {
                events.push(event)
            })
            .more
        {}
    }

    /// The delivered events of a process and its children, for the files in this folder, as words. Fetches of the file at `data` (device
    /// and inode) are included only if the program `does` fetch.
    pub fn delivered(
        &mut self,
        pid: u32,
        folder: &Path,
        data: (u64, u64),
        does: &str,
    ) -> Vec<String> {
        self.poll();
        let mut said = Said {
            is_ring: self.is_ring,
            folder,
            data,
            is_cold: does.contains("fetch"),
            first: pid,
            family: HashSet::from([pid]),
            files: HashMap::new(),
            programs: HashMap::new(),
            words: Vec::new(),
        };
        for event in &self.events {
            said.tell(event);
        }
        said.words
    }

    /// True if the end of a process was delivered.
    pub fn has_ended(&mut self, pid: u32) -> bool {
        self.poll();
        let ended =
            |event: &Event| event.who.pid == pid && matches!(event.what, What::Ended | What::Exit);
        self.events.iter().any(ended)
    }
}

struct Said<'a> {
    is_ring: bool,
    folder: &'a Path,
    /// Device and inode of the data file.
    data: (u64, u64),
    is_cold: bool,
    first: u32,
    family: HashSet<u32>,
    files: HashMap<u32, String>,
    programs: HashMap<u32, PathBuf>,
    words: Vec<String>,
}

impl Said<'_> {
    /// The name of a file in the folder.
    fn name(&self, path: &Path) -> Option<String> {
        // A link is reported under its own name, and this one leads to the data file.
        if path == Path::new("/dev/stdin") {
            return Some("data".to_owned());
        }
        let mut plain = PathBuf::new();
        for part in path.components() {
            match part {
                std::path::Component::CurDir => {}
                std::path::Component::ParentDir => drop(plain.pop()),
                other => plain.push(other),
            }
        }
        let name = plain.strip_prefix(self.folder).ok()?;
        Some(if name.as_os_str().is_empty() {
            ".".to_owned()
        } else {
            name.to_string_lossy().into_owned()
        })
    }

    fn tell(&mut self, event: &Event) {
        let pid = event.who.pid;
        match &event.what {
            What::Forked { parent } | What::Begin { parent, .. }
                if self.family.contains(parent) && !self.family.contains(&pid) =>
            {
                self.family.insert(pid);
                let program = self.programs.get(parent).cloned();
                program.map(|program| self.programs.insert(pid, program));
                self.words.push("fork".to_owned());
            }
            // In a ring all other processes are the program's children.
            _ if self.is_ring && self.family.insert(pid) => {
                let program = self.programs.get(&self.first).cloned();
                program.map(|program| self.programs.insert(pid, program));
                self.words.push("fork".to_owned());
            }
            _ => {}
        }
        if !self.family.contains(&pid) {
            return;
        }
        match &event.what {
            // The event of a thread, or of a process that continues with its parent's program.
            What::Begin { program, .. } if self.programs.get(&pid) == Some(&program.path) => {}
            What::Begin { program, .. } => {
                self.programs.insert(pid, program.path.clone());
                let name = program.path.file_name().unwrap_or_default();
                self.words.push(format!("begin {}", name.to_string_lossy()));
            }
            What::Open {
                handle, file, how, ..
            } => {
                let node = file.node.map(|node| (node.device, node.inode));
                let name = if node == Some(self.data) {
                    Some("data".to_owned())
                } else {
                    self.name(&file.path)
                };
                let Some(name) = name else {
                    self.files.remove(handle);
                    return;
                };
                if !how.found && !how.directory {
                    let verb = if how.writes { "write" } else { "open" };
                    self.words.push(format!("{verb} {name}"));
                }
                self.files.insert(*handle, name);
            }
            What::Read {
                handle,
                kind,
                extent,
                more,
                ..
            } => {
                let Some(name) = self.files.get(handle) else {
                    return;
                };
                for nth in 0..=u64::from(*more) {
                    let offset = extent.offset + nth * extent.len;
                    let verb = kind.name();
                    self.words
                        .push(format!("{verb} {name} {offset}+{}", extent.len));
                }
            }
            What::Touched { handle, extent, .. } => {
                if let Some(name) = self.files.get(handle) {
                    let at = (extent.offset, extent.len);
                    self.words.push(format!("touch {name} {}+{}", at.0, at.1));
                }
            }
            What::Named { path, kind, .. } => {
                if let Some(name) = self.name(path) {
                    self.words.push(format!("{} {name}", kind.name()));
                }
            }
            What::Fetched { device, inode, .. }
                if self.is_cold && self.data == (*device, *inode) =>
            {
                self.words.push("fetch data".to_owned());
            }
            _ => {}
        }
        // Successive fetches and listings count once, because their number may vary.
        if let [.., before, last] = &self.words[..]
            && before == last
            && ["fetch", "list"].iter().any(|verb| last.starts_with(verb))
        {
            self.words.pop();
        }
    }
}
