//! Each format, with small traces: the accesses, and the problems reported.

use std::io::Write;
use std::path::Path;

use foreread_plan::Extent;
use foreread_traces::{Access, Format, Names, Trace, TraceError, TracePlace};

/// A trace read to its end.
struct Read {
    trace: Trace,
    names: Names,
    accesses: Vec<Access>,
}

fn read_as(bytes: &[u8], name: &str, format: Option<Format>) -> Read {
    let mut trace = Trace::from_bytes(bytes.to_vec(), Path::new(name), format).expect("a trace");
    let mut names = Names::new();
    let mut accesses = Vec::new();
    while let Some(access) = trace.next(&mut names) {
        accesses.push(access);
    }
    Read {
        trace,
        names,
        accesses,
    }
}

fn read(text: &str) -> Read {
    read_as(text.as_bytes(), "some/trace.7", None)
}

impl Read {
    /// `who: operation file offset+length` of each access but opens.
    fn lines(&self) -> Vec<String> {
        let moved = |access: &&Access| access.operation.has_bytes();
        self.accesses
            .iter()
            .filter(moved)
            .map(|access| {
                format!(
                    "{}: {} {} {}+{}",
                    self.names.who(access.who).expect("somebody"),
                    access.operation.name(),
                    self.names.file(access.file),
                    access.extent.offset,
                    access.extent.len
                )
            })
            .collect()
    }

    fn problems(&self) -> Vec<String> {
        let kept = self.trace.problems().kept();
        kept.iter().map(ToString::to_string).collect()
    }
}

const FIO: &str = "fio version 3 iolog\n\
    15 /tmp/a b add\n\
    90 /tmp/a b open\n\
    97 /tmp/a b read 0 4096\n\
    526 /tmp/a b write 8192 4096\n\
    530 /tmp/a b sync 0 0\n\
    536 /tmp/a b close\n";

#[test]
fn a_fio_iolog_of_version_3_has_times_and_names_with_spaces() {
    let read = read(FIO);
    assert_eq!(read.trace.format(), Format::Fio);
    assert_eq!(
        read.lines(),
        [
            "job trace: read /tmp/a b 0+4096",
            "job trace: write /tmp/a b 8192+4096"
        ]
    );
    let starts: Vec<u64> = read.accesses.iter().map(|access| access.start).collect();
    assert_eq!(starts, [90_000, 97_000, 526_000]);
    assert_eq!(read.accesses[1].raw, 24);
    assert!(read.problems().is_empty());
}

#[test]
fn a_fio_iolog_of_version_2_has_the_times_that_its_waits_add_up_to() {
    let read = read(
        "fio version 2 iolog\n/a add\n/a open\n/a read 0 512\n/a wait 100 0\n/a read 512 512\n/a close\n",
    );
    assert_eq!(read.lines().len(), 2);
    assert_eq!(read.accesses[2].start, 100_000);
}

#[test]
fn wrong_lines_of_an_iolog_are_named_and_the_others_are_read() {
    let read = read(
        "fio version 3 iolog\n1 /a open\n2 /a read 0 x\n3 /a read 99999999999999999999 1\n\
         9 /a read 0 1\n5 /a read 1 1\n6 /a jump\n7 /a read 9223372036854775807 1\n8 /a read 2 1\n9 /a read 40",
    );
    assert_eq!(read.lines().len(), 3);
    let said = read.problems();
    assert_eq!(
        said,
        [
            r#"some/trace.7, line 3, column 13: length "x" is not a number; left out"#,
            r#"some/trace.7, line 4, column 11: offset "99999999999999999999" is too large; left out"#,
            "some/trace.7, line 6, column 1: time 5 runs backward: the line before has 9",
            r#"some/trace.7, line 7, column 6: "jump" ends a line that is neither FILE ACTION nor FILE ACTION OFFSET LENGTH; left out"#,
            "some/trace.7, line 8, column 31: 1 bytes at 9223372036854775807 end beyond the end of any file; left out",
            r#"some/trace.7, line 10: the trace ends in the middle of the line "9 /a read 40", which is left out; the 4 accesses before it stand"#,
        ]
    );
    assert_eq!(
        read.trace.problems().end().map(|end| end.place),
        Some(TracePlace::Line {
            line: 10,
            column: 0
        })
    );
}

#[test]
fn compressed_traces_are_read_and_ones_cut_short_keep_what_comes_before() {
    let long: String = FIO.to_owned() + &"600 /tmp/a b read 0 4096\n".repeat(20_000);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(long.as_bytes()).expect("gz");
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(long.as_bytes()).expect("xz");
    let compressed = [
        gz.finish().expect("gz"),
        xz.finish().expect("xz"),
        zstd::bulk::compress(long.as_bytes(), 1).expect("zst"),
    ];
    for bytes in compressed {
        let whole = read_as(&bytes, "t", None);
        assert_eq!(whole.accesses.len(), 20_003);
        assert!(whole.problems().is_empty(), "{:?}", whole.problems());
        let two = read_as(&[&bytes[..], &bytes[..]].concat(), "t", None);
        assert_eq!(
            two.accesses.len(),
            40_006,
            "streams one after the other are one"
        );
        let mut cut = bytes.clone();
        cut.truncate(bytes.len() - 9);
        let cut = read_as(&cut, "t", None);
        let end = cut.trace.problems().end().expect("an end").to_string();
        assert!(
            end.contains("ends in the middle of its compressed data"),
            "{end}"
        );
        assert!(end.ends_with(&format!(
            "the {} accesses before it stand",
            cut.accesses.len()
        )));
    }
}

const DXT: &str = "# darshan log version: 3.21\n\n# DXT, file_id: 12, file_name: /data/x y.h5\n\
# DXT, rank: 3, hostname: c35n08\n# DXT, number of threads: 1\n# DXT, write_count: 1, read_count: 2\n\
# DXT, mnt_pt: /, fs_type: xfs\n# Module    Rank  Wt/Rd  Segment          Offset          Length    Start(s)      End(s)   Pthread-ID\n \
X_POSIX       3  write        0               0            4096     94.0000     94.5000   N/A\n \
X_POSIX       3   read        0            4096             100     93.0000     93.0010   [2] [3]    N/A\n \
X_POSIX       3   read        1            8192             100     93.5000     93.5010   N/A\n";

#[test]
fn the_text_of_darshan_dxt_parser_is_read() {
    let read = read(DXT);
    assert_eq!(read.trace.format(), Format::Dxt);
    assert_eq!(
        read.lines(),
        [
            "rank 3: write /data/x y.h5 0+4096",
            "rank 3: read /data/x y.h5 4096+100",
            "rank 3: read /data/x y.h5 8192+100"
        ]
    );
    assert_eq!(read.accesses[1].start, 93_000_000_000);
    assert_eq!(read.accesses[1].took, Some(1_000_000));
    assert!(read.problems().is_empty(), "{:?}", read.problems());
}

#[test]
fn dxt_text_that_keeps_less_than_it_announces_is_said_to() {
    let last = DXT.rfind(" X_POSIX").expect("a line");
    let cut = read(&DXT[..last]);
    assert_eq!(cut.accesses.len(), 2);
    assert_eq!(
        cut.problems(),
        [
            "some/trace.7, line 11: 3 accesses to a file were announced before this place, and 2 came"
        ]
    );
    let wrong = DXT
        .replace("93.5000 ", "92.5000 ")
        .replace("94.5000", "93.5000")
        .replace("            8192", "           -8192");
    let wrong = read(&wrong);
    let said = wrong.problems();
    assert!(
        said[0].contains("\"93.5000\" is an end before the start"),
        "{said:?}"
    );
    assert!(said[1].contains("offset \"-8192\" is negative"), "{said:?}");
    assert_eq!(wrong.accesses.len(), 2);
}

#[test]
fn of_the_two_levels_of_mpi_io_one_is_read() {
    let both = format!("{DXT}{}", DXT.replace("X_POSIX", "X_MPIIO"));
    let read = read(&both);
    assert_eq!(read.accesses.len(), 3);
    assert_eq!(read.trace.left_out().len(), 1);
}

#[test]
fn the_text_of_recorder_follows_positions_through_reads_and_seeks() {
    let text = "0.000010 0.000020 open 0 0 ( /d/my file 0 438 )\n\
        0.000030 0.000040 read 0 0 ( /d/my file 0x7ff 100 )\n\
        0.000041 0.000042 lseek 0 0 ( /d/my file 50 1 )\n\
        0.000043 0.000044 MPI_File_read_at 1 1 ( 0x1 2 3 4 )\n\
        0.000050 0.000060 fread 0 0 ( 0x1 8 4 /d/my file )\n\
        0.000070 0.000080 pread64 0 0 ( /d/my file 0x1 4096 1048576 )\n\
        0.000081 0.000082 lseek 0 0 ( /d/my file -5 2 )\n\
        0.000083 0.000084 read 0 0 ( /d/my file 0x1 5 )\n\
        0.000090 0.000085 write 0 0 ( /d/out 0x1 5 )\n\
        0.000020 0.000021 readv 0 0 ( /d/out 7 2 )\n\
        0.000091 0.000092 read 0 0 ( /d/out 0x1 -5 )\n\
        0.000091 0.000092 pread 0 0 ( 5 )\n";
    let read = read_as(text.as_bytes(), "_text/012.txt", None);
    assert_eq!(read.trace.format(), Format::Recorder);
    assert_eq!(
        read.lines(),
        [
            "rank 12: read /d/my file 0+100",
            "rank 12: read /d/my file 150+32",
            "rank 12: read /d/my file 1048576+4096",
            "rank 12: write /d/out 0+5",
            "rank 12: read /d/out 5+7",
        ]
    );
    assert_eq!(read.accesses[1].took, Some(10_000));
    let said = read.problems();
    assert!(
        said[0].contains("line 9, column 10: \"0.000085\" is an end before the start"),
        "{said:?}"
    );
    assert!(
        said[1].contains("line 10, column 1: \"0.000020\" is a start before"),
        "{said:?}"
    );
    assert!(
        said[2].contains("line 11, column 41: length \"-5\" is negative"),
        "{said:?}"
    );
    assert!(
        said[3].contains("pread has 1 arguments, and at least 4"),
        "{said:?}"
    );
    assert_eq!(read.trace.left_out().len(), 1);
}

#[test]
fn content_that_is_no_trace_is_refused_with_how_it_begins() {
    let refused = |bytes: &[u8]| {
        Trace::from_bytes(bytes.to_vec(), Path::new("t"), None)
            .err()
            .expect("refused")
    };
    assert!(matches!(refused(b""), TraceError::Empty { .. }));
    let why = refused(b"hello\nworld\n");
    assert!(matches!(why, TraceError::Unknown { .. }));
    assert!(
        why.to_string()
            .contains(r#"it begins with "hello\nworld\n""#),
        "{why}"
    );
    let why = Trace::open(Path::new("/no/such/trace"), None)
        .err()
        .expect("refused");
    assert_eq!(why.to_string(), "/no/such/trace");
    let reason = std::error::Error::source(&why).expect("a reason");
    assert!(reason.to_string().contains("No such file"), "{reason}");
    assert!(Trace::open(Path::new("/"), None).is_err());
}

/// A binary log of Darshan: the records of one module, compressed as one zlib stream each.
struct Log {
    big: bool,
    version: &'static str,
    streams: Vec<Vec<u8>>,
}

impl Log {
    fn u64(&self, value: u64) -> [u8; 8] {
        if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn record(&self, rank: u64, writes: u64, segments: &[(i64, i64, f64, f64)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.u64(77));
        bytes.extend(self.u64(rank));
        bytes.extend(self.u64(0));
        bytes.extend([b'h'; 64]);
        bytes.extend(self.u64(writes));
        bytes.extend(self.u64(segments.len() as u64 - writes));
        for (offset, len, start, end) in segments {
            bytes.extend(self.u64(*offset as u64));
            bytes.extend(self.u64(*len as u64));
            bytes.extend(self.u64(start.to_bits()));
            bytes.extend(self.u64(end.to_bits()));
            if self.version == "3.41" {
                bytes.extend(self.u64(0));
            }
        }
        bytes
    }

    fn bytes(&self) -> Vec<u8> {
        let zlib = |bytes: &[u8]| {
            let mut to = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            to.write_all(bytes).expect("zlib");
            to.finish().expect("zlib")
        };
        let (modules, posix) = match self.version {
            "3.41" => (64usize, 10),
            _ => (16, 9),
        };
        let list = if modules == 64 { 32 } else { 24 };
        let header = list + 16 + modules * 20;
        let job = zlib(&[0; 100]);
        let mut names = self.u64(77).to_vec();
        names.extend(b"/gpfs/file.h5\0");
        let names = zlib(&names);
        let records: Vec<u8> = self
            .streams
            .iter()
            .flat_map(|stream| zlib(stream))
            .collect();
        let mut log = vec![0; 8];
        log[..4].copy_from_slice(self.version.as_bytes());
        log.extend(self.u64(6_567_223));
        log.resize(list, 0);
        let at = header + job.len();
        log.extend(self.u64(at as u64));
        log.extend(self.u64(names.len() as u64));
        for module in 0..modules {
            let here = module == posix;
            log.extend(self.u64(if here { (at + names.len()) as u64 } else { 0 }));
            log.extend(self.u64(if here { records.len() as u64 } else { 0 }));
        }
        for module in 0..modules {
            let version = if self.version == "3.41" { 2u32 } else { 1 };
            let version = if module == posix { version } else { 0 };
            log.extend(if self.big {
                version.to_be_bytes()
            } else {
                version.to_le_bytes()
            });
        }
        assert_eq!(log.len(), header);
        log.extend(job);
        log.extend(names);
        log.extend(records);
        log
    }
}

#[test]
fn binary_darshan_logs_of_either_byte_order_and_of_each_version_are_read() {
    for (big, version) in [(false, "3.21"), (true, "3.21"), (false, "3.41")] {
        let mut log = Log {
            big,
            version,
            streams: Vec::new(),
        };
        let segments = [
            (0, 4096, 1.5, 2.0),
            (4096, 100, 0.5, 0.75),
            (8192, 0, 0.6, 0.6),
        ];
        // A record may begin in one zlib stream and end in the next.
        let bytes = [
            log.record(0, 1, &segments),
            log.record(191, 0, &segments[1..]),
        ]
        .concat();
        log.streams = vec![bytes[..150].to_vec(), bytes[150..].to_vec()];
        let read = read_as(&log.bytes(), "x.darshan", None);
        assert_eq!(read.trace.format(), Format::Darshan);
        assert_eq!(
            read.lines(),
            [
                "rank 0: write /gpfs/file.h5 0+4096",
                "rank 0: read /gpfs/file.h5 4096+100",
                "rank 0: read /gpfs/file.h5 8192+0",
                "rank 191: read /gpfs/file.h5 4096+100",
                "rank 191: read /gpfs/file.h5 8192+0",
            ]
        );
        assert_eq!(
            (read.accesses[1].start, read.accesses[1].took),
            (500_000_000, Some(250_000_000))
        );
        assert!(read.problems().is_empty(), "{:?}", read.problems());
    }
}

#[test]
fn a_binary_darshan_log_with_wrong_values_or_cut_short_keeps_what_is_right() {
    let mut log = Log {
        big: false,
        version: "3.21",
        streams: Vec::new(),
    };
    let wrong = [
        (0, 10, 2.0, 2.5),
        (-7, 10, 2.0, 2.5),
        (0, 10, f64::NAN, 2.5),
        (i64::MAX, 10, 2.0, 2.5),
        (20, 10, 1.0, 2.5),
        (-1, 10, 3.0, 3.0),
        (30, 10, 3.0, 2.0),
    ];
    log.streams = vec![log.record(5, 0, &wrong)];
    let read = read_as(&log.bytes(), "x.darshan", None);
    let offsets: Vec<u64> = read
        .accesses
        .iter()
        .map(|access| access.extent.offset)
        .collect();
    assert_eq!(offsets, [0, 20, 30]);
    let said = read.problems().join("\n");
    for what in [
        "byte 168 of the records: 10 bytes at -7 are no extent of a file; left out",
        "a start or an end is not a time; left out",
        "10 bytes at 9223372036854775807 end beyond the end of any file; left out",
        "time runs backward: an access starts at 1000000000 ns, the one before it at 2000000000 ns",
        "an access ends at 2000000000 ns, before it starts at 3000000000 ns",
    ] {
        assert!(said.contains(what), "{said}");
    }
    assert!(read.trace.left_out()[0].starts_with("1 accesses whose offset"));

    let good: Vec<_> = (0..1000)
        .map(|n| (n * n * 7919, 512, n as f64, n as f64 + 0.5))
        .collect();
    log.streams = vec![log.record(5, 0, &good)];
    let whole = log.bytes();
    let cut = read_as(&whole[..whole.len() - 3000], "x.darshan", None);
    assert!(!cut.accesses.is_empty() && cut.accesses.len() < 1000);
    assert_eq!(cut.accesses[1].extent, Extent::new(7919, 512));
    let end = cut.trace.problems().end().expect("an end").to_string();
    assert!(
        end.contains(&format!(
            "the {} accesses before it stand",
            cut.accesses.len()
        )),
        "{end}"
    );

    let mut short = log.record(5, 0, &good);
    short.truncate(104 + 32 * 10);
    log.streams = vec![short];
    let short = read_as(&log.bytes(), "x.darshan", None);
    assert_eq!(short.accesses.len(), 10);
    let said = short.problems();
    assert!(
        said[0].contains("the records end where 990 more accesses of rank 5 were announced"),
        "{said:?}"
    );
}

#[test]
fn darshan_logs_that_cannot_be_read_say_why() {
    let log = Log {
        big: false,
        version: "3.21",
        streams: vec![vec![]],
    };
    let refused = |bytes: Vec<u8>| {
        Trace::from_bytes(bytes, Path::new("t"), None)
            .err()
            .expect("refused")
            .to_string()
    };
    let mut bytes = log.bytes();
    bytes[16] = 1;
    assert!(refused(bytes).contains("bzip2"));
    let mut bytes = log.bytes();
    bytes[3] = b'9';
    assert!(refused(bytes).contains("\"3.29\""));
    let mut bytes = log.bytes();
    bytes[40 + 9 * 16 + 8..][..8].fill(0);
    assert!(refused(bytes).contains("DXT_ENABLE_IO_TRACE"));
    let bytes = log.bytes();
    assert!(refused(bytes[..365].to_vec()).contains("the log ends"));
}
