use super::*;

fn record(what: u32, handle: u32, start: u64) -> record::record {
    record::record {
        what: what as u8,
        pid: 7,
        tid: 7,
        handle,
        start,
        ..Default::default()
    }
}

fn bytes_of<T: Numbers>(value: T) -> Vec<u8> {
    let at = (&raw const value).cast::<u8>();
    // SAFETY: as many bytes as it has, none of them padding that was never written.
    unsafe { std::slice::from_raw_parts(at, size_of::<T>()) }.to_vec()
}

fn named(record: record::record, flags: u32, names: &[&str], given: &str) -> Vec<u8> {
    let mut path = Vec::new();
    for name in names.iter().rev() {
        path.push(name.len() as u8);
        path.extend(name.bytes());
    }
    let len = path.len() as u32;
    path.extend(given.bytes());
    let head = Head(record, 0, flags, len, given.len() as u32, 0);
    [bytes_of(head), path].concat()
}

fn fault(page: u64, added: Range<u64>, along: Range<u64>, is_program: bool, start: u64) -> Vec<u8> {
    let mut head = record(WHAT_FAULT, 1, start);
    head.offset = page * PAGE;
    head.len = PAGE;
    bytes_of(record::fault {
        record: head,
        added_first: added.start,
        added_end: added.end,
        along_first: along.start,
        along_end: along.end,
        is_program: u32::from(is_program),
        reserved: 0,
    })
}

fn drained(decoder: &mut Decoder) -> Vec<Event> {
    let mut events = Vec::new();
    decoder.drain(&|_| "/bin/x".into(), &mut |event| events.push(event));
    events
}

/// The pages touched, each run as its first page and its length.
fn pages(decoder: &mut Decoder) -> Vec<(u64, u64)> {
    let touched = drained(decoder)
        .into_iter()
        .filter_map(|event| match event.what {
            What::Touched { extent, .. } => Some((extent.offset / PAGE, extent.len / PAGE)),
            _ => None,
        });
    touched.collect()
}

fn with_file() -> Decoder {
    let mut decoder = Decoder::default();
    decoder.take(&named(record(WHAT_FILE, 1, 5), 0, &["data", "file"], ""));
    decoder
}

#[test]
fn a_path_is_put_together_from_the_root() {
    let path = |names: &[&str], given: &str| {
        named_in(&named(record(WHAT_OPEN, 1, 0), 0, names, given)).map(|(path, ..)| path)
    };
    assert_eq!(path(&["a", "b"], ""), Some("/a/b".into()));
    assert_eq!(path(&["a"], "../c\0"), Some("/a/../c".into()));
    assert_eq!(path(&[], "/d/e\0"), Some("/d/e".into()));
    assert_eq!(path(&[], ""), Some("/".into()));
}

#[test]
fn cut_short_bytes_make_no_event() {
    let whole = [
        named(record(WHAT_OPEN, 1, 0), 0, &["a"], "/b\0"),
        named(record(WHAT_FILE, 1, 0), 0, &["a"], ""),
        named(record(WHAT_EXEC, 1, 0), 0, &["a"], ""),
        fault(3, 0..9, 0..16, true, 0),
    ];
    for bytes in whole {
        for len in 0..bytes.len() {
            let mut decoder = Decoder::default();
            decoder.take(&bytes[..len]);
            drained(&mut decoder);
        }
    }
    // Lengths beyond the bytes that exist.
    let mut bytes = named(record(WHAT_OPEN, 1, 0), 0, &["a"], "/b\0");
    let names = std::mem::offset_of!(record::named, names);
    bytes[names..names + 4].fill(0xff);
    assert_eq!(named_in(&bytes), None);
}

#[test]
fn a_process_begins_and_a_file_is_open_before_a_read_of_it_however_they_come() {
    let mut decoder = with_file();
    let mut read = record(WHAT_READ, 1, 3);
    read.len = 10;
    decoder.take(&bytes_of(read));
    let words: Vec<_> = drained(&mut decoder)
        .into_iter()
        .map(|event| event.what)
        .collect();
    assert!(
        matches!(&words[0], What::Begin { program, .. } if program.path == Path::new("/bin/x"))
    );
    assert!(
        matches!(&words[1], What::Open { handle: 1, file, .. } if file.path == Path::new("/data/file"))
    );
    assert!(matches!(words[2], What::Read { handle: 1, .. }));
    assert_eq!(words.len(), 3);
}

#[test]
fn a_file_that_is_met_by_its_opening_is_called_what_it_was_opened_by() {
    let mut decoder = Decoder::default();
    let mut read = record(WHAT_READ, 1, 7);
    read.len = 10;
    decoder.take(&named(record(WHAT_OPEN, 1, 5), 0, &["data"], "file\0"));
    decoder.take(&bytes_of(read));
    let words: Vec<_> = drained(&mut decoder)
        .into_iter()
        .map(|event| event.what)
        .collect();
    assert!(
        matches!(&words[1], What::Open { handle: 1, file, .. } if file.path == Path::new("/data/file"))
    );
    assert!(matches!(words[2], What::Read { handle: 1, .. }));
    assert_eq!(words.len(), 3, "it is opened once");
}

#[test]
fn events_come_in_order_of_start() {
    let mut decoder = with_file();
    for start in [30, 10, 20] {
        let mut read = record(WHAT_READ, 1, start);
        read.len = 1;
        decoder.take(&bytes_of(read));
    }
    let starts: Vec<_> = drained(&mut decoder).iter().map(|event| event.at).collect();
    assert!(starts.is_sorted(), "{starts:?}");
}

#[test]
fn of_cold_data_the_page_and_what_this_run_has_fetched_around_it_are_touched() {
    let mut decoder = with_file();
    // Read-around of 32 pages; then a touch of another of these.
    decoder.take(&fault(100, 84..116, 0..0, false, 10));
    assert_eq!(pages(&mut decoder), [(100, 1)]);
    decoder.take(&fault(90, 0..0, 80..96, false, 20));
    assert_eq!(pages(&mut decoder), [(90, 1), (84, 6), (91, 5)]);
}

#[test]
fn of_data_in_memory_the_page_alone_is_touched_and_of_programs_those_mapped_with_it() {
    let mut decoder = with_file();
    decoder.take(&fault(100, 0..0, 96..112, false, 10));
    assert_eq!(pages(&mut decoder), [(100, 1)]);
    decoder.take(&fault(200, 0..0, 192..208, true, 20));
    assert_eq!(pages(&mut decoder), [(200, 1), (192, 8), (201, 7)]);
}

#[test]
fn what_the_supervisor_cannot_find_is_counted_and_not_handed_on() {
    let mut decoder = Decoder::default();
    decoder.take(&named(record(WHAT_FILE, 1, 0), NAMED_APART, &["x"], ""));
    decoder.take(&named(record(WHAT_FILE, 2, 0), NAMED_DELETED, &["y"], ""));
    for handle in [1, 2] {
        let mut read = record(WHAT_READ, handle, 3);
        read.len = 10;
        decoder.take(&bytes_of(read));
    }
    assert_eq!(drained(&mut decoder), []);
    assert_eq!(decoder.elsewhere(), 1, "a deleted file is no other's");
}
