//! `foreread sim`, on traces written here.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use foreread_plan::format::Writer;
use foreread_plan::{
    Access, Extent, FileId, FileMeta, Identity, Kind, Meta, Summary, ThreadId, ThreadMeta,
};
use serde_json::Value;
use tempfile::TempDir;

/// Exit status, standard output, standard error.
fn sim(arguments: &[&str]) -> (Option<i32>, String, String) {
    foreread(&[&["sim"], arguments].concat())
}

/// The same of any command.
fn foreread(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::cargo_bin("foreread")
        .expect("foreread")
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

/// A trace of a build: each unit's compiler opens the unit and the headers, 5 ms apart. Units share all headers but one.
fn build(folder: &TempDir, name: &str, rounds: u32) -> PathBuf {
    let mut text = String::new();
    let mut at = 0;
    let mut call = |pid: u32, call: &str| {
        at += 5;
        let _ = writeln!(
            text,
            "{pid} {}.{:03}000 {call}",
            1_000 + at / 1000,
            at % 1000
        );
    };
    for round in 0..rounds {
        for unit in 0..20 {
            let pid = 100 + round * 20 + unit;
            call(
                pid,
                "execve(\"/usr/bin/cc\", [\"cc\"], 0x7ffe /* 3 vars */) = 0",
            );
            let mut open = |path: &str| {
                call(pid, &format!("openat(AT_FDCWD, \"{path}\", O_RDONLY) = 3"));
            };
            open(&format!("/src/unit{unit}.c"));
            (0..15).for_each(|header| open(&format!("/usr/include/h{header}.h")));
            open(&format!("/src/unit{unit}.h"));
            call(pid, "+++ exited with 0 +++");
        }
    }
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("a trace");
    path
}

fn json(arguments: &[&str]) -> Value {
    let (status, out, err) = sim(&[&["--json"], arguments].concat());
    assert_eq!(status, Some(0), "{err}");
    serde_json::from_str(&out).expect("JSON")
}

#[test]
fn models_are_compared_by_accuracy_and_lead() {
    let folder = TempDir::new().expect("a folder");
    let (train, test) = (build(&folder, "train", 4), build(&folder, "test", 1));
    let (train, test) = (
        train.to_str().expect("UTF-8"),
        test.to_str().expect("UTF-8"),
    );
    let said = json(&["--train", train, test]);
    assert_eq!(said["events"], 20 * 18);
    let models = said["models"].as_array().expect("models");
    let model = |name: &str| {
        let found = models.iter().find(|model| model["name"] == name);
        found.unwrap_or_else(|| panic!("{name}: {models:?}"))
    };
    let accuracy = |name| model(name)["accuracy"].as_f64().expect("a share");
    // Only the unit and the unit's own header differ. Which unit comes next the machine's sequence says, and a pattern
    // that is longer than one event.
    assert!(accuracy("epcm:64/51") > accuracy("last"), "{models:?}");
    assert!(accuracy("epcm:64/51") > 0.9, "{models:?}");
    let ahead = |name| model(name)["ahead"]["median"].as_u64().expect("a number");
    assert_eq!(ahead("pcm:64/8"), 1);
    assert!(ahead("epcm:64/51") >= 4, "{models:?}");
    // Events are 5 ms apart: a file that was predicted n events ahead had 5n ms.
    let lead = |of: &str| {
        model("epcm:64/51")[of]["median"]
            .as_u64()
            .expect("a number")
    };
    let (events, ns) = (lead("lead_events"), lead("lead_ns"));
    assert!(
        events >= 4 && ns.abs_diff(events * 5_000_000) < ns / 100,
        "{events}, {ns}"
    );
    assert_eq!(model("last")["lead_from_10_ms"], 0.0);
    // Cold files are fetched ahead, and none in vain: what is not predicted from 0.55 on is not fetched.
    let cold = model("epcm:64/51");
    let cache = &cold["caches"][0];
    assert!(cache["covered"].as_u64() > Some(10), "{cold}");
    assert_eq!(cache["wasted"]["files"], 0);
    assert!(cache["hits"].as_u64() > said["plain"][0]["hits"].as_u64());
}

#[test]
fn the_table_fits_a_terminal_and_has_lead_beside_accuracy() {
    let folder = TempDir::new().expect("a folder");
    let test = build(&folder, "test", 6);
    let test = test.to_str().expect("UTF-8");
    let (status, out, err) = sim(&[test, "--memory", "64K", "--model", "epcm:4096/4000+64"]);
    assert_eq!(status, Some(0), "{err}");
    let head = out.lines().find(|line| line.starts_with("model "));
    let head = head.expect("a head");
    assert!(head.contains("accuracy") && head.contains("lead"), "{head}");
    let table = out.lines().skip_while(|line| !line.starts_with("model "));
    assert!(table.clone().count() > 5, "{out}");
    assert!(
        table.clone().all(|line| line.chars().count() <= 80),
        "{out}"
    );
    assert!(out.contains("epcm:4096/4000+64"), "{out}");
}

#[test]
fn a_model_that_may_not_learn_knows_nothing_of_what_it_was_not_trained_on() {
    let folder = TempDir::new().expect("a folder");
    let test = build(&folder, "test", 3);
    let test = test.to_str().expect("UTF-8");
    let frozen = json(&["--frozen", test]);
    for model in frozen["models"].as_array().expect("models") {
        assert_eq!(model["right"], 0, "{model}");
        assert_eq!(model["caches"][0]["issued"]["files"], 0, "{model}");
    }
    let learning = json(&[test]);
    for model in learning["models"].as_array().expect("models") {
        assert!(model["right"].as_u64() > Some(100), "{model}");
    }
}

#[test]
fn what_a_process_opens_first_only_the_machines_sequence_says() {
    let folder = TempDir::new().expect("a folder");
    // Each process opens one file, and the order is the same each time.
    let mut text = String::new();
    for number in 0..200 {
        let call = format!("openat(AT_FDCWD, \"/f{}\", O_RDONLY) = 3", number % 10);
        let _ = writeln!(text, "{} {}.0 {call}", 100 + number, 1000 + number);
    }
    let path = folder.path().join("trace");
    std::fs::write(&path, text).expect("a trace");
    let path = path.to_str().expect("UTF-8");
    let right = |sequences| {
        let said = json(&["--sequences", sequences, "--model", "pcm", path]);
        said["models"][0]["right"].as_u64().expect("a number")
    };
    assert_eq!(right("process"), 0);
    assert_eq!((right("machine"), right("both")), (189, 189));
}

#[test]
fn what_is_wrong_is_named() {
    let folder = TempDir::new().expect("a folder");
    let test = build(&folder, "test", 1);
    let test = test.to_str().expect("UTF-8");
    for (arguments, said) in [
        (&[test, "--model", "lru"][..], "no model"),
        (&[test, "--threshold", "0.5"], "above 0.5"),
        (&[test, "--threshold", "0.6,2"], "above 0.5"),
        (&[test, "--size", "16,1"], "from 2 to 4096"),
        (
            &[test, "--model", "pcm", "--size", "16", "--order", "32"],
            "no order given",
        ),
        (&[test, "--max-files", "1"], "from 16"),
        (&[test, "--plots", "/dev/null/plots"], "/dev/null/plots"),
        (&["/nowhere/trace"], "/nowhere/trace"),
        (&[], "TRACE"),
    ] {
        let (status, _, err) = sim(arguments);
        assert_eq!(status, Some(2), "{arguments:?}");
        assert!(err.contains(said), "{err}");
    }
}

#[test]
fn a_record_that_cannot_be_read_is_named_once() {
    let folder = TempDir::new().expect("a folder");
    let whole = fs::read(record(&folder, 1)).expect("a record");
    let files: [(&str, &[u8]); 4] = [
        ("garbage.fr", b"no record at all"),
        ("empty.fr", b""),
        ("magic.fr", &whole[..30]),
        ("header.fr", &whole[..whole.len() / 2]),
    ];
    for (name, content) in files {
        fs::write(folder.path().join(name), content).expect("a file");
    }
    fs::create_dir(folder.path().join("folder.fr")).expect("a folder");
    let mut refused = 0;
    for name in files
        .map(|(name, _)| name)
        .iter()
        .chain(&["folder.fr", "none.fr"])
    {
        let path = folder.path().join(name);
        let path = path.to_str().expect("UTF-8");
        for command in [&["sim"][..], &["sim", "--train"], &["show"], &["analyze"]] {
            let given = if command.len() > 1 {
                &[path, path][..]
            } else {
                &[path]
            };
            let (status, _, err) = foreread(&[command, given].concat());
            // Of a record that ends early there may be enough.
            if status != Some(0) {
                assert_eq!(err.matches(name).count(), 1, "{command:?}: {err}");
                refused += 1;
            }
        }
    }
    assert!(refused > 15, "{refused}");
}

#[test]
fn lists_of_parameters_give_what_each_of_them_gives_alone() {
    let folder = TempDir::new().expect("a folder");
    let test = build(&folder, "test", 5);
    let test = test.to_str().expect("UTF-8");
    let all = json(&[
        test,
        "--model",
        "last,epcm",
        "--size",
        "16,64",
        "--order",
        "12",
        "--threshold",
        "0.55,0.9",
        "--memory",
        "64K,1M",
    ]);
    let models = all["models"].as_array().expect("models");
    let names: Vec<&str> = models
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    let twice = |name| [name; 2];
    assert_eq!(
        names,
        [twice("last"), twice("epcm:16/12"), twice("epcm:64/12")].concat()
    );
    for model in models {
        let name = model["name"].as_str().expect("a name");
        let threshold = model["threshold"].to_string();
        for (place, memory) in ["64K", "1M"].iter().enumerate() {
            let alone = json(&[
                test,
                "--model",
                name,
                "--threshold",
                &threshold,
                "--memory",
                memory,
            ]);
            let one = &alone["models"][0];
            assert_eq!(
                one["caches"][0], model["caches"][place],
                "{name} {threshold} {memory}"
            );
            assert_eq!(
                (&one["right"], &one["lead_ns"]),
                (&model["right"], &model["lead_ns"])
            );
            assert_eq!(alone["plain"][0], all["plain"][place]);
        }
    }
    let hits = |model: &Value, place: usize| model["caches"][place]["hits"].as_u64();
    assert!(
        models.iter().all(|one| hits(one, 0) <= hits(one, 1)),
        "{models:?}"
    );
    let (status, out, err) = sim(&[test, "--memory", "64K,1M", "--threshold", "0.55,0.9"]);
    assert_eq!(status, Some(0), "{err}");
    let tables = out
        .lines()
        .take_while(|line| !line.starts_with("accuracy:"));
    assert!(
        tables.clone().all(|line| line.chars().count() <= 80),
        "{out}"
    );
    assert_eq!(
        tables.filter(|line| line.starts_with("hits, %")).count(),
        2,
        "{out}"
    );
}

/// The width and height of a PNG file, and how many colours are in it.
fn drawn(path: &Path) -> (u32, u32, usize) {
    let decoder = png::Decoder::new(std::io::BufReader::new(
        std::fs::File::open(path).expect("a plot"),
    ));
    let mut reader = decoder.read_info().expect("a PNG");
    let mut bytes = vec![0; reader.output_buffer_size()];
    let info = reader.next_frame(&mut bytes).expect("its pixels");
    let colours: std::collections::HashSet<&[u8]> = bytes[..info.buffer_size()].chunks(3).collect();
    (info.width, info.height, colours.len())
}

#[test]
fn the_comparison_is_drawn_for_one_of_each_and_for_many() {
    let folder = TempDir::new().expect("a folder");
    let test = build(&folder, "test", 5);
    let test = test.to_str().expect("UTF-8");
    for (name, options) in [
        ("one", &["--model", "last"][..]),
        (
            "many",
            &["--memory", "64K,1M,16M", "--threshold", "0.55,0.7,0.9"],
        ),
    ] {
        let plots = folder.path().join(name);
        let (status, out, err) =
            sim(&[&[test, "--plots", plots.to_str().expect("UTF-8")], options].concat());
        assert_eq!(status, Some(0), "{err}");
        assert!(out.contains("Drawn into"), "{out}");
        for file in ["figures.png", "lead.png", "memory.png", "threshold.png"] {
            let (width, height, colours) = drawn(&plots.join(file));
            assert!(width >= 1000 && height == 520, "{file}: {width}x{height}");
            // Letters are drawn in shades of grey, and lines in colours.
            assert!(colours > 20, "{file}: {colours}");
        }
    }
}

#[test]
fn models_and_tables_stay_within_their_limits_on_ever_new_files_and_processes() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("trace");
    let mut text = String::new();
    for number in 0..20_000 {
        let call = format!("openat(AT_FDCWD, \"/f{number}\", O_RDONLY) = 3");
        let _ = writeln!(text, "{} {}.0 {call}", 100 + number / 3, 1000 + number);
    }
    std::fs::write(&path, text).expect("a trace");
    let path = path.to_str().expect("UTF-8");
    let few = [
        "--max-files",
        "64",
        "--max-contexts",
        "16",
        "--max-nodes",
        "64",
    ];
    let said = json(&[&[path], &few[..]].concat());
    assert_eq!(said["events"], 20_000);
    for model in said["models"].as_array().expect("models") {
        // 64 partitions of 64 nodes twice over are 170 KiB.
        assert!(model["bytes"].as_u64() < Some(256 << 10), "{model}");
    }
}

/// A record: a program that is started `runs` times, looks at a name and a folder, and reads eight files.
fn record(folder: &TempDir, runs: u32) -> PathBuf {
    let text = |words: &str| words.to_owned();
    let meta = Meta {
        identity: Identity {
            exe: text("/bin/sh"),
            argv: vec![text("sh")],
            cwd: text("/"),
            rank: None,
        },
        recorded_at: 0,
        writer: text("0.1.0"),
    };
    let mut writer = Writer::new(Vec::new(), &meta).expect("a head");
    for number in 0..10 {
        let file = FileMeta {
            directory: number == 9,
            ..FileMeta::regular(
                format!("/data/f{number}"),
                (1, 10 + u64::from(number)),
                1000 * u64::from(number),
                0,
            )
        };
        writer.file(FileId(number), file).expect("a file");
    }
    for run in 0..runs {
        let thread = ThreadId(run);
        let known = ThreadMeta {
            pid: 100 + run,
            tid: 100 + run,
            ppid: 1,
            exe: text("/bin/cat"),
        };
        writer.thread(thread, known).expect("a thread");
        let mut at = u64::from(run) * 1_000_000_000;
        let mut call = |file, kind, len| {
            at += 20_000_000;
            let access = Access {
                file: FileId(file),
                extent: Extent { offset: 0, len },
                thread,
                kind,
                start: at,
                took: 1000,
            };
            writer.access(&access).expect("an access");
        };
        call(8, Kind::Stat, 0);
        call(9, Kind::Open, 0);
        call(9, Kind::List, 0);
        for file in 0..8 {
            call(file, Kind::Open, 0);
            call(file, Kind::Read, 1000);
        }
    }
    let path = folder.path().join("cat.fr");
    let bytes = writer.finish(Summary::default()).expect("a foot");
    std::fs::write(&path, bytes).expect("a record");
    path
}

#[test]
fn a_record_is_a_trace_and_names_looked_at_are_no_opens() {
    let folder = TempDir::new().expect("a folder");
    let path = record(&folder, 6);
    let said = json(&[path.to_str().expect("UTF-8"), "--model", "epcm"]);
    // A start and eight files for each run, and no more.
    assert_eq!(said["events"], 6 * 9);
    assert_eq!(said["sizes_assumed"], true, "a program's start has no size");
    let model = &said["models"][0];
    assert!(model["right"].as_u64() >= Some(3 * 9), "{model}");
    // Files are 40 ms apart, and a start has the time of the first file.
    assert!(model["lead_from_10_ms"].as_f64() > Some(0.8), "{model}");
    assert!(
        model["lead_ns"]["median"].as_u64() > Some(39_000_000),
        "{model}"
    );
}

#[test]
fn reads_of_a_device_that_takes_time_are_hits_partial_hits_or_misses() {
    let folder = TempDir::new().expect("a folder");
    let (train, test) = (build(&folder, "train", 4), build(&folder, "test", 1));
    let [train, test] = [&train, &test].map(|path| path.to_str().expect("UTF-8"));
    let model = "last,epcm";
    // Calls are 5 ms apart: one file ahead is too late for a device that takes 8, and longer leads are not.
    let said = json(&["--train", train, test, "--model", model, "--read-ms", "8"]);
    let reads = |of: &Value, name: &str| of["reads"][name].as_u64().expect("a number");
    let plain = &said["plain"][0];
    assert_eq!(reads(plain, "partial"), 0);
    let waited = 8_000_000 * reads(plain, "misses");
    assert_eq!(reads(plain, "waited_ns"), waited);
    let models = said["models"].as_array().expect("models");
    let [last, epcm] = [&models[0]["caches"][0], &models[1]["caches"][0]];
    for of in [plain, last, epcm] {
        let sum = ["hits", "partial", "misses"].map(|name| reads(of, name));
        assert_eq!(sum.iter().sum::<u64>(), 20 * 18, "{of}");
    }
    assert!(reads(last, "partial") > 10, "{last}");
    assert!(
        reads(epcm, "waited_ns") < reads(last, "waited_ns"),
        "{said}"
    );
    let (status, out, err) = sim(&["--train", train, test, "--read-ms", "8"]);
    assert_eq!(status, Some(0), "{err}");
    assert!(
        out.contains("partial") && out.lines().all(|line| line.chars().count() <= 80),
        "{out}"
    );
    // Without times there is none to arrive in.
    let untimed = folder.path().join("untimed");
    fs::write(&untimed, "1 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n").expect("a trace");
    let untimed = untimed.to_str().expect("UTF-8");
    for (arguments, part) in [
        (&[untimed, "--read-ms", "8"][..], "no times"),
        (&[test, "--read-ms", "0"], "0.001"),
    ] {
        let (status, _, err) = sim(arguments);
        assert!(status == Some(2) && err.contains(part), "{status:?} {err}");
    }
}
