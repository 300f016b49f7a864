//! Files and the devices that they are on, and the program, as the scheduler asks for them.

use std::sync::Arc;

use foreread_plan::{FileId, Kin};

use crate::{DeviceId, Layout, Profile};

/// Facts about files and the program that the scheduler needs. The engine has them from its backend.
pub trait Devices {
    /// The device a file is on; `None` if the file cannot be fetched at all.
    fn device(&mut self, file: FileId) -> Option<DeviceId>;
    /// A device's constants.
    fn profile(&mut self, device: DeviceId) -> Profile;
    /// Small files with the same number are likely to lie next to each other on their device; `None` for a file of which that is
    /// not known, and for one that is not small.
    fn kin(&mut self, _file: FileId) -> Option<Kin> {
        None
    }
    /// The layout of a file; `None` until it is known. The call starts finding it out.
    fn layout(&mut self, file: FileId) -> Option<Arc<Layout>>;
    /// The file will soon be opened: have its metadata in memory.
    fn announce(&mut self, file: FileId);
    /// Computing of the program so far, in ns of processor time; `None` if unknown.
    fn computed(&mut self) -> Option<u64>;
}
