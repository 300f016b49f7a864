//! foreread's own records as traces: by rank, the requests to MPI in place of the reads.

use std::path::Path;

use foreread_plan::format::Writer;
use foreread_plan::{
    Access, Extent, FileId, FileMeta, Identity, Kind, Meta, Rank, Summary, ThreadId, ThreadMeta,
};
use foreread_traces::{Format, Names, Trace};

/// A record in which one thread makes these accesses of files 0 and 1.
fn record(rank: Option<Rank>, accesses: &[(u32, Kind, u64, u64)]) -> Vec<u8> {
    let meta = Meta {
        identity: Identity {
            exe: "/bin/app".into(),
            argv: vec!["app".into()],
            cwd: "/".into(),
            rank,
        },
        recorded_at: 0,
        writer: "test".into(),
    };
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &meta).unwrap();
    for number in 0..2 {
        let file = FileMeta::regular(format!("/data/{number}"), (1, number.into()), 1 << 20, 0);
        writer.file(FileId(number), file).unwrap();
    }
    let thread = ThreadMeta {
        pid: 7,
        tid: 7,
        ppid: 1,
        exe: "/bin/app".into(),
    };
    writer.thread(ThreadId(0), thread).unwrap();
    for (start, &(file, kind, offset, len)) in (0..).zip(accesses) {
        let access = Access {
            file: FileId(file),
            extent: Extent::new(offset, len),
            thread: ThreadId(0),
            kind,
            start: start * 1_000_000,
            took: 1000,
        };
        writer.access(&access).unwrap();
    }
    writer.finish(Summary::default()).unwrap();
    bytes
}

/// `who: operation file offset+length` of each access with bytes, and the number of problems.
fn read(bytes: &[u8]) -> (Vec<String>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.fr");
    std::fs::write(&path, bytes).unwrap();
    let mut trace = Trace::open(&path, None).unwrap();
    assert_eq!(trace.format(), Format::Record);
    let mut names = Names::new();
    let mut lines = Vec::new();
    while let Some(one) = trace.next(&mut names) {
        if one.operation.has_bytes() {
            lines.push(format!(
                "{}: {} {} {}+{}",
                names.who(one.who).unwrap(),
                one.operation.name(),
                names.file(one.file),
                one.extent.offset,
                one.extent.len
            ));
        }
    }
    (lines, trace.problems().kept().len())
}

const ASKED: [(u32, Kind, u64, u64); 6] = [
    (0, Kind::Open, 0, 0),
    (0, Kind::Pread, 0, 65536),
    (0, Kind::MpiRead, 100, 50),
    (0, Kind::MpiWrite, 300, 50),
    (1, Kind::Read, 0, 10),
    (1, Kind::Touch, 0, 4096),
];

#[test]
fn what_mpi_was_asked_for_stands_in_place_of_what_it_read() {
    let rank = Some(Rank { rank: 3, of: 4 });
    let expected = [
        "rank 3: read /data/0 100+50",
        "rank 3: write /data/0 300+50",
        "rank 3: read /data/1 0+10",
    ];
    assert_eq!(
        read(&record(rank, &ASKED)),
        (expected.map(String::from).into(), 0)
    );
    let alone = read(&record(None, &[(0, Kind::Pread, 0, 10)])).0;
    assert_eq!(alone, ["process 7: read /data/0 0+10"]);
}

#[test]
fn a_damaged_record_is_refused_or_read_up_to_the_damage() {
    let whole = record(Some(Rank { rank: 0, of: 2 }), &ASKED);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.fr");
    for cut in (8..whole.len()).step_by(7) {
        let mut broken = whole.clone();
        broken[cut] ^= 0x11;
        for bytes in [&whole[..cut], &broken] {
            std::fs::write(&path, bytes).unwrap();
            let mut names = Names::new();
            if let Ok(mut trace) = Trace::open(&path, None) {
                let mut count = 0;
                while trace.next(&mut names).is_some() {
                    count += 1;
                }
                assert!(count <= ASKED.len());
            }
        }
    }
    assert!(Trace::open(Path::new("/no/such.fr"), Some(Format::Record)).is_err());
}
