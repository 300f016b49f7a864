//! Descriptors with their files and positions, as the kernel keeps them.
//!
//! An open file ([`Open`]) has one position, which all descriptors that were made of one another by dup or fork share. A
//! table of descriptors belongs to a process; its threads share the table, a fork copies it, an exec takes from it the
//! descriptors that are closed on exec.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use foreread_plan::FileId;
use rustc_hash::FxHashMap;

/// Descriptors that all tables may hold together.
const MAX_DESCRIPTORS: usize = 1 << 20;

/// An open file description.
#[derive(Debug)]
pub(crate) struct Open {
    /// The file; `None` for objects without positions: pipes, sockets, devices.
    pub(crate) file: Option<FileId>,
    /// The position; `None` if it is unknown.
    pub(crate) position: Cell<Option<u64>>,
    /// True if writes go to the end of the file.
    pub(crate) append: bool,
}

#[derive(Clone, Debug)]
struct Descriptor {
    open: Rc<Open>,
    close_on_exec: bool,
}

/// A table of descriptors, shared by those who hold it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    descriptors: Rc<RefCell<FxHashMap<u64, Descriptor>>>,
    /// Number of descriptors in all tables.
    held: Rc<Cell<usize>>,
}

/// There is no room for another descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Table {
    /// An empty table that counts with this one.
    pub(crate) fn beside(&self) -> Self {
        Self {
            descriptors: Rc::default(),
            held: self.held.clone(),
        }
    }

    /// The table of a child: with the same open files.
    pub(crate) fn copy(&self) -> Result<Self, Full> {
        let copy = self.beside();
        copy.room(self.descriptors.borrow().len())?;
        copy.descriptors
            .borrow_mut()
            .clone_from(&self.descriptors.borrow());
        Ok(copy)
    }

    pub(crate) fn get(&self, number: u64) -> Option<Rc<Open>> {
        let descriptors = self.descriptors.borrow();
        let descriptor = descriptors.get(&number)?;
        Some(descriptor.open.clone())
    }

    pub(crate) fn set(&self, number: u64, open: Rc<Open>, close_on_exec: bool) -> Result<(), Full> {
        let descriptor = Descriptor {
            open,
            close_on_exec,
        };
        let before = self.descriptors.borrow_mut().insert(number, descriptor);
        if before.is_none() {
            self.room(1)?;
        }
        Ok(())
    }

    pub(crate) fn close_on_exec(&self, number: u64, close: bool) {
        if let Some(descriptor) = self.descriptors.borrow_mut().get_mut(&number) {
            descriptor.close_on_exec = close;
        }
    }

    /// Closes the descriptors from `first` to `last`, or sees to it that an exec closes them.
    pub(crate) fn close(&self, first: u64, last: u64, only_on_exec: bool) {
        let mut descriptors = self.descriptors.borrow_mut();
        let before = descriptors.len();
        if only_on_exec {
            for (number, descriptor) in descriptors.iter_mut() {
                descriptor.close_on_exec |= (first..=last).contains(number);
            }
        } else if first == last {
            descriptors.remove(&first);
        } else {
            descriptors.retain(|number, _| !(first..=last).contains(number));
        }
        self.gone(before - descriptors.len());
    }

    /// The table after an exec: unshared, without descriptors that are closed on exec.
    pub(crate) fn after_exec(&self) -> Result<Self, Full> {
        let own = self.copy()?;
        let mut descriptors = own.descriptors.borrow_mut();
        let before = descriptors.len();
        descriptors.retain(|_, descriptor| !descriptor.close_on_exec);
        own.gone(before - descriptors.len());
        drop(descriptors);
        Ok(own)
    }

    fn room(&self, more: usize) -> Result<(), Full> {
        self.held.set(self.held.get() + more);
        if self.held.get() > MAX_DESCRIPTORS {
            return Err(Full);
        }
        Ok(())
    }

    fn gone(&self, count: usize) {
        self.held.set(self.held.get().saturating_sub(count));
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if Rc::strong_count(&self.descriptors) == 1 {
            self.gone(self.descriptors.borrow().len());
        }
    }
}
