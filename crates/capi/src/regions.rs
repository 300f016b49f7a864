//! The regions of clients: bytes of a descriptor, or of a file registered by path, whose reads are matched.
//!
//! Invariant: a region of a descriptor is counted by the client, by the client's names and by the process's table of
//! descriptors. If one step fails, the steps before it are reversed.
//!
//! Data flow: [`crate::calls`] → [`add`], [`remove`] → [`Handle`] and the table in [`Process`].

use std::ffi::c_int;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use foreread_client::{FileId, RegionId};

use crate::abi::FOREREAD_FIRST_FILE;
use crate::errors::code;
use crate::handle::{Handle, fd_is_real};
use crate::process::Process;
use crate::real;

/// Registers a region. Returns its number.
///
/// # Errors
/// As documented for `foreread_register_region`.
pub fn add(handle: &Arc<Handle>, fd: c_int, start: u64, end: u64) -> Result<c_int, c_int> {
    if start >= end {
        return Err(-libc::EINVAL);
    }
    if fd >= FOREREAD_FIRST_FILE {
        let file = handle.file(fd)?;
        let path = handle.names().path(file);
        let facts = path.and_then(|path| std::fs::metadata(path).ok());
        let identity = handle.client.identity(file);
        // The path may name another file by now, or none. The end of the registered one is unknown then.
        if let Some(facts) = facts.filter(|facts| identity == Some((facts.dev(), facts.ino()))) {
            begins_inside(start, facts.len())?;
        }
        let region = handle.client.region(file, start..end);
        let region = region.map_err(|error| code(&error))?;
        handle.names().enter(region, fd, file);
        return number(region);
    }
    let facts = real::facts(fd)?;
    if !real::readable(fd) {
        return Err(-libc::EBADF);
    }
    if !facts.regular {
        return Err(-libc::ENODEV);
    }
    begins_inside(start, facts.size)?;
    // SAFETY: open, as fstat has just shown. If the program closes it meanwhile, the result is an error or another
    // file, and `join` notices the other file.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    let file = handle
        .client
        .add_fd(borrowed)
        .map_err(|error| code(&error))?;
    let joined = join(handle, fd, facts.file, file, start..end);
    if joined.is_err() {
        // An error means that the file is removed already.
        let _ = handle.client.remove_file(file);
    }
    joined
}

fn join(
    handle: &Arc<Handle>,
    fd: c_int,
    identity: (u64, u64),
    file: FileId,
    bytes: std::ops::Range<u64>,
) -> Result<c_int, c_int> {
    if handle.client.identity(file) != Some(identity) {
        return Err(-libc::EBADF);
    }
    let process = Process::current().ok_or(-libc::ECHILD)?;
    let region = handle
        .client
        .region(file, bytes)
        .map_err(|error| code(&error))?;
    if let Err(code) = process.descriptors.join(fd, identity, handle, file) {
        let _ = handle.client.remove_region(region);
        return Err(code);
    }
    handle.names().join(region, fd, file);
    number(region)
}

/// Removes a region.
///
/// # Errors
/// `-ENOENT` if the client has no region with this number.
pub fn remove(handle: &Arc<Handle>, region: c_int) -> Result<(), c_int> {
    let region = RegionId(u32::try_from(region).map_err(|_| -libc::ENOENT)?);
    let (fd, file) = handle.names().leave(region).ok_or(-libc::ENOENT)?;
    handle
        .client
        .remove_region(region)
        .map_err(|error| code(&error))?;
    if !fd_is_real(fd) {
        return Ok(());
    }
    let current = handle.names().part(fd, file);
    if let Some(process) = Process::current().filter(|_| current) {
        process.descriptors.part(fd, handle);
    }
    handle
        .client
        .remove_file(file)
        .map_err(|error| code(&error))?;
    if handle.client.identity(file).is_none() {
        handle.names().forget(file);
    }
    Ok(())
}

fn number(region: RegionId) -> Result<c_int, c_int> {
    c_int::try_from(region.0).map_err(|_| -libc::EMFILE)
}

/// Checks that a region begins inside its file; in an empty file it may begin at 0.
///
/// # Errors
/// `-ERANGE` if it does not.
fn begins_inside(start: u64, size: u64) -> Result<(), c_int> {
    if start < size.max(1) {
        Ok(())
    } else {
        Err(-libc::ERANGE)
    }
}
