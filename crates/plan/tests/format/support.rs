//! What the tests of the format share.

use std::path::Path;

use foreread_plan::format::{Reader, Signature, Writer};
use foreread_plan::{
    Access, Advice, Extent, FileId, FileMeta, Identity, Kind, Meta, Summary, ThreadId, ThreadMeta,
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
    FileMeta {
        path: format!("/data/part-{number:05}.bin").into(),
        dev: 0xfe01,
        ino: 1_000 + u64::from(number),
        size: 1 << 30,
        mtime_ns: 1_700_000_000_123_456_789,
        written: false,
        advice: Advice::Normal,
        directory: false,
    }
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

/// A small generator of noise: the same at every run.
pub struct Noise(pub u64);

impl Noise {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Around `middle`, at most `spread` away.
    pub fn around(&mut self, middle: u64, spread: u64) -> u64 {
        middle - spread + self.below(2 * spread + 1)
    }
}
