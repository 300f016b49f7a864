//! Records made to mislead, with right checksums.

use foreread_plan::Summary;

use crate::support::meta;

pub const HEAD: usize = 13;

pub fn seal(tag: u8, raw_len: u32, stored: &[u8]) -> Vec<u8> {
    let mut frame = vec![tag];
    frame.extend(raw_len.to_le_bytes());
    frame.extend((stored.len() as u32).to_le_bytes());
    let mut crc = crc32fast::Hasher::new();
    crc.update(&frame);
    crc.update(stored);
    frame.extend(crc.finalize().to_le_bytes());
    frame.extend(stored);
    frame
}

pub fn frame(tag: u8, payload: &[u8]) -> Vec<u8> {
    let stored = zstd::bulk::compress(payload, 1).unwrap();
    seal(tag, payload.len() as u32, &stored)
}

pub fn trailer(index: u64) -> Vec<u8> {
    let mut bytes = index.to_le_bytes().to_vec();
    let crc = crc32fast::hash(&[&bytes[..], b"FOREDONE"].concat());
    bytes.extend(crc.to_le_bytes());
    bytes.extend(b"FOREDONE");
    bytes
}

pub fn header() -> Vec<u8> {
    let mut bytes = Vec::new();
    foreread_plan::format::Writer::new(&mut bytes, &meta()).unwrap();
    bytes
}

pub fn assemble(parts: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = header();
    let mut index = 0;
    for (tag, payload) in parts {
        if *tag == b'I' {
            index = bytes.len() as u64;
        }
        bytes.extend(frame(*tag, payload));
    }
    bytes.extend(trailer(index));
    bytes
}

/// Rows of this many files, numbered from 0, with the fewest bytes that a row may have: a million rows in a few bytes.
pub fn rows(count: u32) -> Vec<(u8, Vec<u8>)> {
    let row = |number: u32| {
        // The number is the previous one plus one; the path is the previous one, with one byte more in the first row.
        let (change, path) = if number == 0 {
            (0, &[0, 1, b'/'][..])
        } else {
            (2, &[1, 0][..])
        };
        [&[change], path, &[0; 5]].concat()
    };
    let rows: Vec<u8> = (0..count).flat_map(row).collect();
    // A row is of eight bytes, but the first: none is cut.
    let mut parts = vec![(b'I', Vec::new())];
    let mut at = 0;
    let mut first = 0;
    while at < rows.len() {
        let end = (at + (1 << 20) + usize::from(at == 0)).min(rows.len());
        let mut payload = rows[at..end].to_vec();
        if at > 0 {
            // A frame begins anew: its first row says number and path in full.
            let mut number = Vec::new();
            let mut value = u64::from(first) * 2;
            while value >= 0x80 {
                number.push(value as u8 | 0x80);
                value >>= 7;
            }
            number.push(value as u8);
            payload.splice(..3, [&number[..], &[0, 1, b'/']].concat());
        }
        parts.push((b'F', payload));
        first += ((end - at) / 8) as u32;
        at = end;
    }
    parts
}

pub fn ended(mut parts: Vec<(u8, Vec<u8>)>, summary: &Summary) -> Vec<u8> {
    parts.push((b'E', serde_json::to_vec(summary).unwrap()));
    assemble(&parts)
}
