//! `foreread analyze`, on traces written here.

use std::fmt::Write as _;
use std::path::PathBuf;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A folder with traces.
struct Traces(TempDir);

impl Traces {
    fn new() -> Self {
        Self(TempDir::new().expect("a folder"))
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).expect("a trace");
        path
    }
}

/// Exit status, standard output, standard error.
fn analyze(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::cargo_bin("foreread")
        .expect("foreread")
        .arg("analyze")
        .args(arguments)
        .output()
        .expect("a run");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn json(path: &str) -> Value {
    let (status, out, err) = analyze(&["--json", path]);
    assert_eq!(status, Some(0), "{err}");
    serde_json::from_str(&out).expect("JSON")
}

/// DXT text of ranks that each read a block of one file, in pieces.
fn ranks(count: u64) -> String {
    let mut text = String::from("# darshan log version: 3.41\n");
    for rank in 0..count {
        let _ = write!(
            text,
            "\n# DXT, file_id: 9, file_name: /scratch/shared.dat\n# DXT, rank: {rank}, hostname: n{rank}\n\
             # DXT, write_count: 0, read_count: 64\n"
        );
        for piece in 0..64 {
            let offset = rank * (64 << 16) + piece * (1 << 16);
            // Here and there a read comes back empty.
            let len = if piece == rank % 60 { 0 } else { 1 << 16 };
            let start = f64::from(u32::try_from(piece * piece).expect("small")) * 0.013;
            let end = start + 0.001;
            let _ = writeln!(
                text,
                " X_POSIX {rank:8}   read {piece:8} {offset:15} {len:15} {start:11.4} {end:11.4}   N/A"
            );
        }
    }
    text
}

/// The signature of a member, with its values in the places of the parameters.
fn filled(family: &Value, member: &Value) -> String {
    let mut text = family["signature"]
        .as_str()
        .expect("a signature")
        .to_owned();
    let values = member["values"].as_array().expect("values");
    for (index, value) in values.iter().enumerate().rev() {
        let value = value.as_i64().expect("a number");
        let name = format!("${}", index + 1);
        while let Some(at) = text.find(&name) {
            let rest = text[at + name.len()..].to_owned();
            let digits = rest.strip_prefix(['+', '-']).map_or(0, |after| {
                1 + after.bytes().take_while(u8::is_ascii_digit).count()
            });
            let plus: i64 = if digits > 1 {
                rest[..digits].parse().expect("a number")
            } else {
                0
            };
            let skipped = if digits > 1 { digits } else { 0 };
            text = format!("{}{}{}", &text[..at], value + plus, &rest[skipped..]);
        }
    }
    text
}

#[test]
fn ranks_that_do_the_same_at_different_places_are_one_row_and_each_comes_back_exactly() {
    let traces = Traces::new();
    let path = traces.write("ior.txt", &ranks(192));
    let path = path.to_str().expect("UTF-8");
    let told = json(path);
    let families = told["families"].as_array().expect("rows");
    assert_eq!(families.len(), 1, "{families:#?}");
    let members = families[0]["members"].as_array().expect("members");
    assert_eq!(members.len(), 192);
    for (rank, member) in members.iter().enumerate() {
        let signatures = foreread_sources::signature::parse(&filled(&families[0], member), &[]);
        let trace = foreread_sources::signature::Trace {
            terms: signatures
                .expect("a signature")
                .into_iter()
                .map(|one| one.term)
                .collect(),
        };
        let rank = rank as u64;
        let expected = (0..64).map(|piece| (rank * (64 << 16) + piece * (1 << 16), 1 << 16));
        let extents = trace.expand().map(|extent| (extent.offset, extent.len));
        assert!(extents.eq(expected), "rank {rank}");
        let empty = member["empty"].as_array().expect("exceptions");
        assert_eq!(empty, &[Value::from(rank % 60)]);
    }
    let ratio = told["reads"]["ratio"].as_f64().expect("a ratio");
    assert!(ratio > 100.0, "{ratio}");
    assert_eq!(told["reads"]["accesses"], 192 * 64);
    assert_eq!(told["processes"], 192);
}

#[test]
fn what_is_printed_has_eighty_columns_and_the_largest_first() {
    let traces = Traces::new();
    let mut text = ranks(192);
    // Thousands of streams that have little in common.
    for rank in 192u64..2500 {
        let _ = write!(
            text,
            "\n# DXT, file_id: {rank}, file_name: /scratch/{}/{rank}\n",
            "x".repeat(90)
        );
        let mut at = rank;
        for piece in 0..rank % 23 + 1 {
            at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) >> 20;
            let _ = writeln!(
                text,
                " X_POSIX {rank} write {piece} {at} {} 1.0 1.0 N/A",
                at % 1000
            );
        }
    }
    let path = traces.write("many.txt", &text);
    let path = path.to_str().expect("UTF-8");
    let (status, short, err) = analyze(&[path]);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    // Twenty rows of at most eighteen lines, below the head.
    assert!(short.lines().count() < 20 * 18 + 12, "{short}");
    let (_, long, _) = analyze(&["--all", path]);
    assert!(long.lines().count() > short.lines().count());
    // A line without a blank to break it at is broken all the same; names of files are whole where no terminal is.
    let names = |line: &&str| !line.trim_start().starts_with('/');
    for line in short.lines().chain(long.lines()).filter(names) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let rows = |text: &str| -> Vec<String> {
        let first = |line: &&str| line.contains(" stream");
        text.lines()
            .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
            .filter(first)
            .map(str::to_owned)
            .collect()
    };
    assert!(
        rows(&short)[0].starts_with("192 streams, 12288 reads of"),
        "{short}"
    );
    assert_eq!(rows(&short).len(), 20);
    assert!(short.contains("more (--all lists them)"), "{short}");
}

#[test]
fn the_lu_decomposition_has_the_papers_signature() {
    let mut text = String::from("fio version 2 iolog\n/lu add\n/lu open\n");
    for row in 0..125u64 {
        let _ = writeln!(text, "/lu read {} 524544", 1_049_088 + row * 524_544);
        for column in 0..=row {
            let _ = writeln!(
                text,
                "/lu read {} {}",
                524_544 * (1 + column),
                518_272 - 4096 * column
            );
        }
        text += "/lu read 0 522368\n";
    }
    let traces = Traces::new();
    let path = traces.write("lu.log", &text);
    let told = json(path.to_str().expect("UTF-8"));
    let row = &told["families"][0];
    let pattern = row["pattern"].as_str().expect("a pattern");
    assert!(
        pattern.starts_with("{READ, <Non-contiguous, 3d strided>, <repetitive>"),
        "{pattern}"
    );
    assert!(told["reads"]["ratio"].as_f64() > Some(1000.0), "{told}");
}

#[test]
fn broken_traces_are_analysed_as_far_as_they_go_and_the_place_is_named() {
    let traces = Traces::new();
    let whole = ranks(2);
    let path = traces.write("cut.txt", &whole[..whole.len() - 100]);
    let (status, out, _) = analyze(&[path.to_str().expect("UTF-8")]);
    assert_eq!(status, Some(0));
    let said: String = out
        .lines()
        .map(|line| line.get(10..).unwrap_or_default().trim_end())
        .collect::<Vec<_>>()
        .join(" ");
    assert!(said.contains("line 136"), "{out}");
    assert!(
        said.contains("the trace ends in the middle of the line"),
        "{out}"
    );
    assert!(said.contains("the 126 accesses before it stand"), "{out}");
}

#[test]
fn what_is_no_trace_fails_with_the_files_name() {
    let traces = Traces::new();
    let prose = traces.write("prose", "Call me Ishmael.\n");
    let prose = prose.to_str().expect("UTF-8");
    let wrong = traces.write("wrong", "fio version 3 iolog\n1 /a read x 1\n");
    let cases = [
        (vec![prose], "prose: not a trace that is known"),
        (
            vec!["--format", "strace", prose],
            "prose, line 1, column 1: \"Call me Ishmael.\" is no system call",
        ),
        (
            vec![wrong.to_str().expect("UTF-8")],
            "wrong, line 2, column 11: offset \"x\" is not a number",
        ),
        (vec!["/no/such"], "/no/such: No such file"),
    ];
    for (arguments, expected) in cases {
        let (status, out, err) = analyze(&arguments);
        assert_eq!((status, out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(err.contains(expected), "{err}");
        assert!(err.matches("No such file").count() < 2, "said twice: {err}");
    }
    let (_, _, err) = analyze(&["--format", "blktrace", prose]);
    assert!(err.contains("strace, fio, darshan, dxt, recorder"), "{err}");
}

#[test]
fn a_stream_without_a_pattern_is_counted_and_has_no_signature() {
    let mut text = String::from("fio version 3 iolog\n1 /a open\n2 /b open\n");
    let mut at = 1u64;
    for read in 0..70_000u64 {
        at = at
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let _ = writeln!(
            text,
            "{read} /a read {} 4096\n{read} /b read {} 512",
            at >> 24,
            read * 4096
        );
    }
    let traces = Traces::new();
    let path = traces.write("random.log", &text);
    let told = json(path.to_str().expect("UTF-8"));
    let rows = told["families"].as_array().expect("rows");
    let of = |file: &str| {
        rows.iter()
            .find(|row| row["members"][0]["file"] == file)
            .expect("a row")
    };
    assert_eq!(
        (&of("/a")["signature"], &of("/a")["pattern"]),
        (&Value::Null, &Value::from("no pattern"))
    );
    assert_eq!(of("/a")["members"][0]["accesses"], 70_000);
    // The other stream of the same trace keeps its own.
    assert!(
        of("/b")["signature"]
            .as_str()
            .is_some_and(|text| text.len() < 80)
    );
    assert_eq!(told["reads"]["unsigned_streams"], 1);
    assert!(
        told["reads"]["ratio"]
            .as_f64()
            .is_some_and(|ratio| ratio < 2.5),
        "{told:#}"
    );
}

#[test]
fn a_trace_without_reads_says_so() {
    let traces = Traces::new();
    let path = traces.write(
        "opens",
        "7 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n8 openat(AT_FDCWD, \"/b\", O_RDONLY) = 3\n",
    );
    let (status, out, _) = analyze(&[path.to_str().expect("UTF-8")]);
    assert_eq!(status, Some(0));
    assert!(out.contains("2 accesses, 2 of them opens"), "{out}");
    assert!(out.contains("files     2 files by 2 processes"), "{out}");
    assert!(out.contains("no reads and no writes"), "{out}");
}

#[test]
fn a_folder_has_a_trace_of_each_rank() {
    let traces = Traces::new();
    let folder = traces.0.path().join("_text");
    std::fs::create_dir(&folder).expect("a folder");
    for rank in 0..3u64 {
        let text = format!(
            "0.1 0.2 open 0 0 ( /d/a 0 438 )\n0.3 0.4 pread 0 0 ( /d/a 0x1 100 {} )\n",
            rank * 100
        );
        std::fs::write(folder.join(format!("{rank}.txt")), text).expect("a trace");
    }
    let told = json(folder.to_str().expect("UTF-8"));
    assert_eq!(told["traces"].as_array().map(Vec::len), Some(3));
    let row = &told["families"][0]["members"];
    let whos: Vec<&str> = row
        .as_array()
        .expect("members")
        .iter()
        .filter_map(|one| one["who"].as_str())
        .collect();
    assert_eq!(whos, ["rank 0", "rank 1", "rank 2"]);
}
