//! Lists, written and read again; lists that nobody vouches for.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use foreread_lists::{FileState, Format, Line, Lines, Writer};
use foreread_plan::{Advice, Extent, Kind};
use proptest::prelude::*;

fn written(format: Format, lines: &[Line]) -> (Vec<u8>, Vec<String>) {
    let mut writer = Writer::new(format, Vec::new()).unwrap();
    for line in lines {
        writer.line(line).unwrap();
    }
    let (refused, text) = writer.finish().unwrap();
    let refused = refused.into_iter();
    let refused = refused.map(|one| format!("{}: {}", one.path.display(), one.why));
    (text, refused.collect())
}

fn read(format: Format, text: &[u8]) -> Vec<Result<Line, String>> {
    let lines = Lines::new(format, text).unwrap();
    lines
        .map(|line| line.map_err(|fault| fault.to_string()))
        .collect()
}

fn path(bytes: &[u8]) -> PathBuf {
    OsString::from_vec(bytes.to_vec()).into()
}

fn paths(lines: Vec<Result<Line, String>>) -> Vec<PathBuf> {
    lines.into_iter().map(|line| line.unwrap().path).collect()
}

fn any_line() -> impl Strategy<Value = Line> {
    let byte = prop_oneof![
        4 => any::<u8>().prop_filter("Linux has no such name", |byte| *byte != 0),
        1 => prop::sample::select(b"/\n\r\t\\\",=+ \x7f\xff[{".to_vec()),
    ];
    let kind = prop::sample::select(Kind::ALL.to_vec());
    let advice = prop::sample::select(vec![
        Advice::Normal,
        Advice::Random,
        Advice::Sequential,
        Advice::Dropped,
    ]);
    let times = (any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>());
    let state = (any::<Option<u64>>(), any::<Option<i64>>());
    let extent = (0..1_u64 << 62, 0..1_u64 << 62);
    let file = (
        prop::collection::vec(byte, 0..40),
        state,
        advice,
        any::<bool>(),
    );
    (file, extent, kind, times).prop_map(|(file, extent, kind, times)| {
        let (name, (size, mtime_ns), advice, written) = file;
        let (start_ns, took_ns, pid, tid) = times;
        Line {
            path: path(&[b"/", &name[..]].concat()),
            extent: Some(Extent::new(extent.0, extent.1)),
            kind,
            start_ns,
            took_ns,
            pid,
            tid,
            state: FileState { size, mtime_ns },
            advice,
            written,
        }
    })
}

proptest! {
    #[test]
    fn every_access_of_every_path_survives_a_table_and_json_lines(
        lines in prop::collection::vec(any_line(), 1..20),
    ) {
        for format in [Format::Csv, Format::Jsonl] {
            let (text, refused) = written(format, &lines);
            prop_assert!(refused.is_empty());
            prop_assert!(std::str::from_utf8(&text).is_ok(), "{format} is text");
            let rows = text.iter().filter(|byte| **byte == b'\n').count();
            prop_assert_eq!(rows, lines.len() + usize::from(format == Format::Csv));
            prop_assert_eq!(Lines::<&[u8]>::format_of(&text), Some(format));
            let again: Result<Vec<_>, _> = read(format, &text).into_iter().collect();
            prop_assert_eq!(again.as_ref(), Ok(&lines));
        }
    }

    #[test]
    fn a_list_of_files_has_what_it_can_hold_and_names_the_rest(
        lines in prop::collection::vec(any_line(), 1..20),
    ) {
        for format in [Format::Vmtouch, Format::Soci, Format::Estargz] {
            let (text, refused) = written(format, &lines);
            let again = paths(read(format, &text));
            let mut wanted: Vec<_> = lines
                .iter()
                .filter(|line| !line.written && line.state.size != Some(0))
                .filter(|line| line.kind == Kind::Map || line.kind.reads() && line.extent != Some(Extent::new(0, 0)))
                .filter(|line| line.kind == Kind::Map || line.extent.is_some_and(|extent| !extent.is_empty()))
                .map(|line| line.path.clone())
                .collect();
            let mut seen = std::collections::HashSet::new();
            wanted.retain(|path| seen.insert(path.clone()));
            prop_assert_eq!(again.len() + refused.len(), wanted.len(), "{:?}", refused);
        }
    }

    #[test]
    fn any_bytes_end_without_harm(text in prop::collection::vec(any::<u8>(), 0..400)) {
        for format in Format::ALL {
            if let Some(lines) = Lines::new(format, &text[..]) {
                prop_assert!(lines.count() <= text.len() + 1);
            }
        }
        let _ = Lines::<&[u8]>::format_of(&text);
    }
}

#[test]
fn lists_of_files_are_as_their_tools_read_them() {
    let mut line = Line::whole(path(b"/usr/bin/a"));
    let mut again = line.clone();
    again.extent = Some(Extent::new(0, 10));
    let mut name = Line::whole(path(b"/usr"));
    name.kind = Kind::Stat;
    line.extent = Some(Extent::new(4096, 1));
    let other = Line::whole(path(b"/etc/\"b\""));
    let lines = [name, line, again, other];
    let text = |format| String::from_utf8(written(format, &lines).0).unwrap();
    assert_eq!(text(Format::Vmtouch), "/usr/bin/a\n/etc/\"b\"\n");
    assert_eq!(
        text(Format::Soci),
        "[\n  \"/usr/bin/a\",\n  \"/etc/\\\"b\\\"\"\n]\n"
    );
    assert_eq!(
        text(Format::Estargz),
        "{\"path\":\"usr/bin/a\"}\n{\"path\":\"etc/\\\"b\\\"\"}\n"
    );
    for format in [Format::Vmtouch, Format::Soci, Format::Estargz] {
        assert_eq!(
            Lines::<&[u8]>::format_of(text(format).as_bytes()),
            Some(format)
        );
        let again = paths(read(format, text(format).as_bytes()));
        assert_eq!(again, [path(b"/usr/bin/a"), path(b"/etc/\"b\"")]);
    }
    // As ctr-remote writes it, and vmtouch -0 reads it.
    let optimized = br#"{"path":"app/x","manifestDigest":"sha256:0","layerIndex":1}"#;
    assert_eq!(paths(read(Format::Estargz, optimized)), [path(b"/app/x")]);
    let by_zero = b"/a\nb\0/c\0";
    assert_eq!(Lines::<&[u8]>::format_of(by_zero), Some(Format::Vmtouch));
    assert_eq!(
        paths(read(Format::Vmtouch, by_zero)),
        [path(b"/a\nb"), path(b"/c")]
    );
}

#[test]
fn names_that_a_format_cannot_hold_are_named_once() {
    let of = |bytes: &[u8]| {
        let mut line = Line::whole(path(bytes));
        line.extent = Some(Extent::new(0, 10));
        [line.clone(), line]
    };
    let lines = [of(b"/a\nb"), of(b"/\xff"), of(b"/c "), of(b"/d")].concat();
    let refused = |format| written(format, &lines).1.len();
    assert_eq!(refused(Format::Vmtouch), 1);
    assert_eq!(refused(Format::Soci), 2);
    assert_eq!(refused(Format::Estargz), 1);
    assert_eq!(refused(Format::Fio), 2);
    let (text, said) = written(Format::Vmtouch, &lines);
    assert_eq!(text, b"/\xff\n/c \n/d\n");
    assert!(said[0].starts_with("/a\nb: vmtouch"), "{said:?}");
}

#[test]
fn an_iolog_opens_what_it_reads_and_few_files_at_a_time() {
    let read = |file: u64, offset, len| {
        let mut line = Line::whole(format!("/f{file}").into());
        line.extent = Some(Extent::new(offset, len));
        line
    };
    let (text, _) = written(
        Format::Fio,
        &[read(1, 0, 4096), read(1, 8192, (1 << 20) + 1)],
    );
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "fio version 2 iolog\n/f1 add\n/f1 open\n/f1 read 0 4096\n/f1 read 8192 1048576\n\
         /f1 read 1056768 1\n/f1 close\n"
    );
    // A page of a mapping may reach beyond the end of its file, where fio would fail.
    let mut last = read(1, 4096, 4096);
    last.state.size = Some(5000);
    let (text, _) = written(Format::Fio, &[last]);
    assert!(String::from_utf8_lossy(&text).contains("/f1 read 4096 904\n"));
    let many: Vec<_> = (0..1000)
        .chain(0..1000)
        .map(|file| read(file, 0, 1))
        .collect();
    let (text, _) = written(Format::Fio, &many);
    let (mut open, mut most) = (0_i64, 0);
    for line in String::from_utf8(text).unwrap().lines() {
        open += i64::from(line.ends_with(" open")) - i64::from(line.ends_with(" close"));
        most = most.max(open);
    }
    assert_eq!(open, 0);
    assert!(most <= 256, "{most}");
}

#[test]
fn what_is_wrong_is_said_with_its_line_and_the_others_stand() {
    let text = b"offset,path,length,colour\n0,/a,10,red\nx,/b,10\n0,/c\n0,,10\n\"0\",/d,5\n";
    let lines = read(Format::Csv, text);
    assert_eq!(Lines::<&[u8]>::format_of(text), Some(Format::Csv));
    let faults: Vec<_> = lines.iter().filter_map(|line| line.clone().err()).collect();
    assert_eq!(
        faults,
        [
            "line 3: the offset \"x\" is no number; left out",
            "line 4: the offset 0 has no length; left out",
            "line 5: the path is empty; left out",
        ]
    );
    let good: Vec<_> = lines.into_iter().filter_map(Result::ok).collect();
    assert_eq!(good.len(), 2);
    assert_eq!(good[1].extent, Some(Extent::new(0, 5)));
    let lines = read(Format::Csv, b"name,size\n/a,1\n");
    assert!(
        lines[0]
            .as_ref()
            .is_err_and(|why| why.contains("no column path"))
    );
    let lines = read(
        Format::Jsonl,
        b"{\"path\":\"/a\"}\n{}\n\n{\"path\":\"/b\",\"kind\":\"look\"}\n{\n",
    );
    let faults = lines.iter().filter(|line| line.is_err()).count();
    assert_eq!((lines.len(), faults), (4, 3));
    assert!(
        lines[3].as_ref().is_err_and(
            |why| why.starts_with("line 5: ") && why.ends_with(" at column 1; left out")
        ),
        "{:?}",
        lines[3]
    );
    // Entries before the fault are valid, and so are those after it, if they can be read.
    let lines = read(Format::Soci, b"[\"/a\", 1, \"/b\", \"/c");
    let said: Vec<_> = lines
        .iter()
        .map(|line| match line {
            Ok(line) => line.path.to_string_lossy().into_owned(),
            Err(why) => why.clone(),
        })
        .collect();
    assert_eq!(
        said[..3],
        ["/a", "entry 2: it is no string; left out", "/b"]
    );
    assert!(
        said[3].contains("JSON array of paths") && said.len() == 4,
        "{said:?}"
    );
    // A quotation mark that is never closed takes in no more than a row may have.
    let mut text = b"path\n\"/a\n".to_vec();
    text.resize(4 << 20, b'x');
    let lines = read(Format::Csv, &text);
    assert!(
        lines[0]
            .as_ref()
            .is_err_and(|why| why.contains("longer than")),
        "{:?}",
        lines[0]
    );
}
