//! Decodes the kernel's bytes into events. Pure: no file is examined.
//!
//! Invariant: the number of remembered names is limited, and the kernel's side regards only the last used ones as known. An event with an
//! unknown name is counted and not passed on.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use foreread_observe::{Event, File, How, Node, What, Who};
use foreread_plan::Extent;
use rustc_hash::FxHashMap;

/// The record, as `module/bpf/system.h` defines it.
#[allow(
    missing_docs,
    dead_code,
    non_camel_case_types,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
#[rustfmt::skip]
#[path = "record.rs"]
pub(crate) mod record;

use record::{
    SYSTEM_EXEC, SYSTEM_EXIT, SYSTEM_FETCH, SYSTEM_FORK, SYSTEM_OPEN, SYSTEM_WRITES, system_event,
};

/// Names of a generation: as many as the kernel's side has at a time, about 200 bytes each.
const NAMES: usize = 1 << 16;
/// Bytes of an event before its names.
const HEAD: usize = std::mem::offset_of!(system_event, names);

/// A name of an inode.
type Key = (u64, u64, u64);

/// Makes events of bytes.
#[derive(Default)]
pub(crate) struct Decoder {
    /// The names used last, and those used before there were [`NAMES`] of them.
    names: FxHashMap<Key, PathBuf>,
    former: FxHashMap<Key, PathBuf>,
    /// Events with an unknown name.
    pub(crate) nameless: u64,
}

impl Decoder {
    /// The event that these bytes are; `None` if they are none.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Option<Event> {
        let (head, names) = bytes.split_at_checked(HEAD)?;
        let head = Head(head);
        let what = match u32::from(head.0[0]) {
            SYSTEM_FORK => What::Forked {
                parent: head.u32(8),
            },
            SYSTEM_EXIT => What::Ended,
            SYSTEM_EXEC => What::Begin {
                parent: head.u32(8),
                program: self.file(&head, names)?,
                stdio: true,
            },
            SYSTEM_OPEN => What::Open {
                handle: 0,
                file: self.file(&head, names)?,
                took: 0,
                how: How {
                    writes: u32::from(head.0[1]) & SYSTEM_WRITES != 0,
                    ..How::default()
                },
            },
            SYSTEM_FETCH => What::Fetched {
                device: device(head.u64(24)),
                inode: head.u64(32),
                extent: Extent::new(head.u64(56), head.u64(64)),
            },
            _ => return None,
        };
        Some(Event {
            who: Who {
                pid: head.u32(4),
                tid: 0,
                uid: Some(head.u32(12)),
            },
            at: head.u64(16),
            what,
        })
    }

    fn file(&mut self, head: &Head<'_>, names: &[u8]) -> Option<File> {
        let key = (head.u64(24), head.u64(32), head.u64(40));
        let Some(path) = self.name(key, names) else {
            self.nameless += 1;
            return None;
        };
        Some(File {
            path,
            node: Some(Node {
                device: device(key.0),
                inode: key.1,
                generation: head.u32(72),
                size: head.u64(48),
            }),
        })
    }

    /// The path that was sent with this key, now or before.
    fn name(&mut self, key: Key, names: &[u8]) -> Option<PathBuf> {
        let path = match names {
            [] => match self.names.get(&key) {
                Some(path) => return Some(path.clone()),
                None => self.former.remove(&key)?,
            },
            names => path(names),
        };
        if self.names.len() >= NAMES {
            self.former = std::mem::take(&mut self.names);
        }
        self.names.insert(key, path.clone());
        Some(path)
    }
}

/// The fields of an event, by their offsets.
struct Head<'a>(&'a [u8]);

impl Head<'_> {
    fn u32(&self, at: usize) -> u32 {
        let bytes = self.0.get(at..).and_then(<[u8]>::first_chunk);
        bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    }

    fn u64(&self, at: usize) -> u64 {
        let bytes = self.0.get(at..).and_then(<[u8]>::first_chunk);
        bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    }
}

const _: () = assert!(
    std::mem::offset_of!(system_event, pid) == 4
        && std::mem::offset_of!(system_event, parent) == 8
        && std::mem::offset_of!(system_event, uid) == 12
        && std::mem::offset_of!(system_event, at) == 16
        && std::mem::offset_of!(system_event, device) == 24
        && std::mem::offset_of!(system_event, inode) == 32
        && std::mem::offset_of!(system_event, name) == 40
        && std::mem::offset_of!(system_event, size) == 48
        && std::mem::offset_of!(system_event, offset) == 56
        && std::mem::offset_of!(system_event, len) == 64
        && std::mem::offset_of!(system_event, generation) == 72
);

/// The kernel's own number of a device, converted to the one that programs see.
fn device(kernel: u64) -> u64 {
    let (major, minor) = (kernel >> 20, kernel & 0xf_ffff);
    libc::makedev(major as u32, minor as u32)
}

/// The path of names that come last one first.
fn path(mut names: &[u8]) -> PathBuf {
    let mut parts = Vec::new();
    while let Some((&len, rest)) = names.split_first() {
        let (part, rest) = rest.split_at(rest.len().min(len.into()));
        parts.push(part);
        names = rest;
    }
    let mut path = Vec::new();
    for part in parts.into_iter().rev() {
        path.push(b'/');
        path.extend(part);
    }
    PathBuf::from(OsStr::from_bytes(&path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    fn event(what: u32, inode: u64, names: &[&str]) -> Vec<u8> {
        let mut bytes = vec![0; HEAD];
        bytes[0] = what as u8;
        bytes[4..8].copy_from_slice(&7_u32.to_ne_bytes());
        bytes[24..32].copy_from_slice(&(8_u64 << 20 | 1).to_ne_bytes());
        bytes[32..40].copy_from_slice(&inode.to_ne_bytes());
        for name in names {
            bytes.push(name.len() as u8);
            bytes.extend(name.as_bytes());
        }
        bytes
    }

    #[test]
    fn a_name_is_sent_once_and_known_from_then_on() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.take(&event(SYSTEM_OPEN, 5, &[])), None);
        assert_eq!(decoder.nameless, 1);
        for names in [&["c", "b a"][..], &[]] {
            let taken = decoder.take(&event(SYSTEM_OPEN, 5, names));
            let Some(Event {
                who,
                what: What::Open { file, .. },
                ..
            }) = taken
            else {
                panic!("an open");
            };
            assert_eq!((who.pid, file.path.as_path()), (7, Path::new("/b a/c")));
            let node = file.node.expect("the kernel has looked");
            assert_eq!(node.device, libc::makedev(8, 1));
        }
    }

    #[test]
    fn a_flood_of_names_makes_none_forgotten_that_is_in_use() {
        let mut decoder = Decoder::default();
        decoder.take(&event(SYSTEM_OPEN, 5, &["used"]));
        for number in 0..4 * NAMES as u64 {
            decoder.take(&event(SYSTEM_OPEN, 100 + number, &["other"]));
            // The kernel's side takes those for known that were used last.
            if number % (NAMES as u64 / 2) == 0 {
                assert!(
                    decoder.take(&event(SYSTEM_OPEN, 5, &[])).is_some(),
                    "{number}"
                );
            }
            assert!(decoder.names.len() + decoder.former.len() <= 2 * NAMES);
        }
        assert_eq!(decoder.nameless, 0);
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_event_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut decoder = Decoder::default();
            let _ = decoder.take(&bytes);
        }
    }
}
