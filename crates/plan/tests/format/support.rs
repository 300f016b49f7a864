//! Shared code of the format's tests.

use std::path::Path;

use foreread_plan::format::{Reader, Signature, Writer};
use foreread_plan::{
    Access, Extent, FileId, FileMeta, Identity, Kind, Meta, Summary, ThreadId, ThreadMeta,
};

pub fn meta() -> Meta {
    Meta {
        identity: Identity {
            exe: "/usr/bin/true".into(),
            argv: vec!["true".into(), "--help".into()],
            cwd: "/".into(),
            rank: None,
        },
        recorded_at: 1_700_000_000,
        writer: "0.1.0".into(),
    }
}

pub fn file(number: u32) -> FileMeta {
    FileMeta::regular(
        format!("/data/part-{number:05}.bin"),
        (0xfe01, 1_000 + u64::from(number)),
        1 << 30,
        1_700_000_000_123_456_789,
    )
}

pub fn signature(number: usize) -> Signature {
    Signature {
        role: format!("data/*.{number}"),
        notation: "{READ, 0, 1, ([8192, 4096, 100]), 1}".into(),
    }
}

pub fn thread(number: u32) -> ThreadMeta {
    ThreadMeta {
        pid: 4_000,
        tid: 4_000 + number,
        ppid: 1,
        exe: "/usr/bin/true".into(),
    }
}

/// A pread by thread 0, times in µs.
pub fn pread(file: u32, offset: u64, len: u64, start: u64, took: u64) -> Access {
    Access {
        file: FileId(file),
        extent: Extent::new(offset, len),
        thread: ThreadId(0),
        kind: Kind::Pread,
        start: start * 1_000,
        took: took * 1_000,
    }
}

pub fn written(accesses: &[Access]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &meta()).unwrap();
    writer.thread(ThreadId(0), thread(0)).unwrap();
    writer.file(FileId(0), file(0)).unwrap();
    for access in accesses {
        writer.access(access).unwrap();
    }
    writer.finish(Summary::default()).unwrap()
}

pub fn read(bytes: &[u8]) -> Vec<Access> {
    let mut reader = Reader::from_bytes(bytes, Path::new("memory")).unwrap();
    reader.accesses().collect::<Result<_, _>>().unwrap()
}
