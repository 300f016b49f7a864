//! The session's knowledge of files and devices: the scheduler's view of the backend.

use std::collections::VecDeque;
use std::sync::Arc;

use foreread_backend::{Backend, Change, DeviceFacts, Placed};
use foreread_plan::{Expected, FileId, Kin, Pattern};
use foreread_sched::{DeviceId, Devices, Layout, Order, Profile, Stretch};
use rustc_hash::FxHashMap;

/// Number of files whose layouts are asked for at the same time. Opening a file takes 40 µs of processor time, and a seek if its inode is
/// not in memory, and hints wait behind it. Asking for all 25,000 files of a plan at once delayed the first fetch so long that a run on a
/// disk was given up. This number keeps four threads busy.
const LAYOUTS: usize = 32;

/// State of a file.
#[derive(Debug, Default)]
struct FileState {
    device: Option<Option<DeviceId>>,
    layout: Option<Arc<Layout>>,
    prepared: bool,
    /// True if its layout is being asked for.
    asked: bool,
    gone: bool,
    /// True if the kernel does not read it ahead.
    unaided: bool,
}

/// The lookup of a device's measured profile, by its number and facts.
pub(crate) type Profiles = Box<dyn Fn(u64, &DeviceFacts) -> Option<Profile> + Send>;

/// Measures the program's processor time so far, in ns.
pub(crate) type Computed = Box<dyn Fn() -> Option<u64> + Send>;

/// A device met.
#[derive(Debug)]
struct Met {
    name: String,
    profile: Profile,
    /// True if the profile was measured, and not chosen by the kind of the device.
    measured: bool,
    /// True if the order is certain: measured, or valid without proof.
    decided: bool,
    /// Whether distance costs time on the device, once this session has found out.
    found: Option<bool>,
    /// The file that is being opened to find out.
    asked: Option<FileId>,
    /// Files of which is asked where they lie, and those of which that is to be asked after them.
    under_way: usize,
    waiting: VecDeque<FileId>,
}

/// Files and devices, as reported by the backend.
#[derive(Default)]
pub(crate) struct Table {
    files: FxHashMap<FileId, FileState>,
    devices: FxHashMap<DeviceId, Met>,
    pub(crate) profiles: Option<Profiles>,
    pub(crate) computed: Option<Computed>,
    /// Files that differ from the record.
    pub(crate) changed: Vec<(FileId, Change)>,
    /// Files that could not be fetched, and why.
    pub(crate) gone: Vec<(FileId, String)>,
}

impl Table {
    pub(crate) fn opened(
        &mut self,
        file: FileId,
        change: Option<Change>,
        layout: &[Placed],
        rotational: Option<bool>,
    ) {
        let runs = layout
            .iter()
            .map(|placed| Stretch {
                logical: placed.logical,
                physical: placed.physical,
                len: placed.len,
            })
            .collect();
        let known = self.files.entry(file).or_default();
        known.layout = Some(Arc::new(Layout::new(runs)));
        if let (Some(rotational), Some(Some(device))) = (rotational, known.device)
            && let Some(met) = self.devices.get_mut(&device)
            && !met.measured
        {
            met.profile = profile_of(rotational);
            if !std::mem::replace(&mut met.decided, true) {
                met.found = Some(rotational);
            }
        }
        self.changed.extend(change.map(|change| (file, change)));
    }

    /// A file by this number was not known to the backend, or was another.
    pub(crate) fn forget(&mut self, file: FileId) {
        let Some(known) = self.files.remove(&file) else {
            return;
        };
        let device = known.device.flatten();
        if let Some(met) = device.and_then(|device| self.devices.get_mut(&device)) {
            if known.asked {
                met.under_way -= 1;
            } else if known.prepared && known.layout.is_none() {
                met.waiting.retain(|&waiting| waiting != file);
            }
        }
        self.gone.retain(|(gone, _)| *gone != file);
    }

    /// True if the file could not be fetched.
    pub(crate) fn is_gone(&self, file: FileId) -> bool {
        self.files.get(&file).is_some_and(|known| known.gone)
    }

    /// The kernel reads none of a file ahead.
    pub(crate) fn unaided(&mut self, file: FileId) {
        self.files.entry(file).or_default().unaided = true;
    }

    /// True if the kernel does not read the file ahead.
    pub(crate) fn is_unaided(&self, file: FileId) -> bool {
        self.files.get(&file).is_some_and(|known| known.unaided)
    }

    /// A stream that the kernel does not read ahead is read like anything else.
    pub(crate) fn aid(&self, expected: &mut Expected) {
        if expected.pattern == Pattern::Sequential && self.is_unaided(expected.file) {
            expected.pattern = expected.pattern.unaided();
        }
    }

    pub(crate) fn lost(&mut self, file: FileId, why: String) {
        let known = self.files.entry(file).or_default();
        known.gone = true;
        known.layout = Some(Arc::default());
        for met in self.devices.values_mut() {
            // Another file has to be asked.
            met.asked = met.asked.filter(|&asked| asked != file);
        }
        self.gone.push((file, why));
    }

    /// Devices of which this session has found out whether distance costs time on them.
    pub(crate) fn found(&self) -> Vec<(u64, bool)> {
        let found = self.devices.iter();
        found
            .filter_map(|(device, met)| Some((device.0, met.found?)))
            .collect()
    }

    /// Names of the devices met.
    pub(crate) fn devices(&self) -> Vec<String> {
        let mut names: Vec<_> = self.devices.values().map(|met| met.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

fn profile_of(rotational: bool) -> Profile {
    if rotational {
        Profile::rotational()
    } else {
        Profile::solid_state()
    }
}

/// The table together with the backend it asks.
pub(crate) struct Site<'a, B> {
    pub(crate) table: &'a mut Table,
    pub(crate) backend: &'a mut B,
}

impl<B: Backend> Site<'_, B> {
    /// True if the file may be opened for its layout. Until a device has proved that positions matter, one file at a time is enough: if
    /// positions do not matter, layouts are useless, and opening every planned file would delay the first hints.
    fn may_ask(&mut self, file: FileId) -> bool {
        let device = self.table.files.get(&file).and_then(|known| known.device);
        let Some(met) = device
            .flatten()
            .and_then(|device| self.table.devices.get_mut(&device))
        else {
            return true;
        };
        met.decided || *met.asked.get_or_insert(file) == file
    }

    /// The question where this file lies is answered, or cannot be.
    pub(crate) fn answered(&mut self, file: FileId) {
        let Table { files, devices, .. } = &mut *self.table;
        if let Some(known) = files.get_mut(&file)
            && std::mem::take(&mut known.asked)
            && let Some(met) = known
                .device
                .flatten()
                .and_then(|device| devices.get_mut(&device))
        {
            met.under_way -= 1;
            while met.under_way < LAYOUTS
                && let Some(next) = met.waiting.pop_front()
            {
                if let Some(known) = files.get_mut(&next).filter(|known| known.layout.is_none()) {
                    known.asked = true;
                    met.under_way += 1;
                    self.backend.prepare(next);
                }
            }
        }
    }
}

impl<B: Backend> Devices for Site<'_, B> {
    fn device(&mut self, file: FileId) -> Option<DeviceId> {
        let known = self.table.files.entry(file).or_default();
        if known.gone {
            return None;
        }
        *known
            .device
            .get_or_insert_with(|| self.backend.device(file).map(DeviceId))
    }

    fn profile(&mut self, device: DeviceId) -> Profile {
        let (backend, profiles) = (&mut self.backend, &self.table.profiles);
        let met = self.table.devices.entry(device).or_insert_with(|| {
            let facts = backend.facts(device.0);
            let measured = profiles
                .as_ref()
                .and_then(|profiles| profiles(device.0, &facts));
            if let Some(profile) = &measured {
                backend.assume(device.0, profile.order == Order::Position);
            }
            Met {
                name: facts.name,
                measured: measured.is_some(),
                decided: measured.is_some() || facts.positions.is_some(),
                found: None,
                asked: None,
                under_way: 0,
                waiting: VecDeque::new(),
                profile: measured.unwrap_or_else(|| profile_of(facts.positions.unwrap_or(true))),
            }
        });
        met.profile.clone()
    }

    fn kin(&mut self, file: FileId) -> Option<Kin> {
        self.backend.kin(file)
    }

    fn layout(&mut self, file: FileId) -> Option<Arc<Layout>> {
        let known = self
            .table
            .files
            .get(&file)
            .and_then(|known| known.layout.clone());
        if known.is_none() && self.may_ask(file) {
            self.announce(file);
        }
        known
    }

    fn announce(&mut self, file: FileId) {
        let known = self.table.files.entry(file).or_default();
        if std::mem::replace(&mut known.prepared, true) || known.layout.is_some() {
            return;
        }
        let device = known.device.flatten();
        if let Some(met) = device.and_then(|device| self.table.devices.get_mut(&device))
            && met.profile.order == Order::Position
        {
            if met.under_way >= LAYOUTS {
                met.waiting.push_back(file);
                return;
            }
            known.asked = true;
            met.under_way += 1;
        }
        self.backend.prepare(file);
    }

    fn computed(&mut self) -> Option<u64> {
        self.table.computed.as_ref().and_then(|computed| computed())
    }
}
