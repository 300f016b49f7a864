//! Arbitrary content of the slots.

use std::os::unix::fs::FileExt;

use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damage_never_panics_or_hangs(
        writes in prop::collection::vec((0_u64..1 << 20, any::<u64>(), 1_usize..200), 1..60),
        polls in 1_usize..4,
    ) {
        let mut ring = ring();
        let mut victim = writer(&ring, own_pid(), 1);
        let file = std::fs::OpenOptions::new().write(true).open(path(&ring)).unwrap();
        for _ in 0..polls {
            for i in 0..200 {
                let _ = victim.push(ring.shared(), &read(1, now(), i, 1));
            }
            for &(at, value, times) in &writes {
                // Header, owners, cursors, advice and the first ring are all below 1 MiB; small values pass the first checks most often.
                let value = if at % 3 == 0 { value % 7 } else { value };
                let damage = value.to_le_bytes().repeat(times);
                file.write_all_at(&damage, at / 8 * 8).unwrap();
            }
            let began = Instant::now();
            let count = ring.poll(&mut |_| true);
            prop_assert!(count <= RINGS * RING_SLOTS);
            prop_assert!(began.elapsed() < Duration::from_secs(10));
        }
    }

    #[test]
    fn any_slots_decode_or_are_refused(
        kind in 0_u64..10,
        extra in 0_u64..4,
        mut first: Slot,
        rest in prop::collection::vec(any::<u8>(), 0..128),
    ) {
        first[0] = first[0] & !0xffff_00ff | kind | extra << 16;
        if let Ok((_, what)) = decode(&first, &rest, |path| path) {
            match what {
                What::Open { path, inst, .. } => {
                    prop_assert!(path.len() <= PATH_MAX && path[0] == b'/' && inst != 0);
                }
                What::Name { path, .. } => {
                    prop_assert!(path.len() <= PATH_MAX && path[0] == b'/');
                }
                What::Access { offset, len, .. } => {
                    prop_assert!(len != 0 && offset.checked_add(len.into()).is_some());
                }
                _ => {}
            }
            prop_assert!(rest.len() <= EXTRA_MAX * 32);
        }
    }

    #[test]
    fn accesses_come_out_as_they_went_in_however_they_are_packed(
        reads in prop::collection::vec(
            (prop::bool::weighted(0.1), 0_u64..3, prop::bool::weighted(0.1)),
            1..300,
        ),
    ) {
        let mut ring = ring();
        let mut writer = writer(&ring, own_pid(), 1);
        let (mut expected, mut seen) = (Vec::new(), Vec::new());
        let mut at = 0;
        for (other, jump, look) in reads {
            let inst = 1 + u32::from(other);
            let who = (inst, kind::READ);
            at += jump / 2 * 1000;
            if writer.add(ring.shared(), who, at, 100).is_none() {
                let slot = encode::access(inst, kind::READ, now(), 0, at, 100);
                writer.push_access(ring.shared(), &slot).expect("room");
            }
            expected.push((inst, at));
            at += 100;
            if look {
                seen.extend(poll(&mut ring));
            }
        }
        seen.extend(poll(&mut ring));
        let access = |event: RawEvent| match event.what {
            What::Access { inst, offset, len: 100, .. } => Some((inst, offset)),
            _ => None,
        };
        let seen: Vec<_> = seen.into_iter().filter_map(access).collect();
        prop_assert_eq!(seen, expected);
        prop_assert_eq!(ring.lost(), 0);
    }

    #[test]
    fn an_encoded_access_decodes_to_itself(
        inst in 1_u32.., kind: u8, start: u64, took in 0_u64..1 << 36, offset in 0_u64..1 << 62, len in 1_u32..,
    ) {
        let slot = encode::access(inst, kind, start, took, offset, len);
        let expected: What<&[u8]> = What::Access { inst, kind, offset, len, took: took >> 4 << 4 };
        prop_assert_eq!(decode(&slot, b"", |path| path), Ok((start, expected)));
    }

    #[test]
    fn an_encoded_open_or_name_decodes_to_itself(
        inst in 1_u32.., flags: u8, start: u64, name in "[a-z]{0,300}",
    ) {
        let path = format!("/{name}");
        let slot = encode::open(inst, flags, start, u64::MAX, path.len());
        let took = u64::from(u32::MAX) << 4;
        let expected = What::Open { inst, flags, took, path: path.as_bytes() };
        let rest = padded(path.as_bytes());
        prop_assert_eq!(decode(&slot, &rest, |path| path), Ok((start, expected)));
        let flags = flags & (NAME_LISTED | NAME_FOLLOWED);
        let slot = encode::name(flags, start, u64::MAX, path.len(), None);
        let expected = What::Name { flags, took, path: path.as_bytes(), inode: None };
        prop_assert_eq!(decode(&slot, &rest, |path| path), Ok((start, expected)));
        let inode = Inode { dev: inst, ino: start, kind: 15, size: u64::MAX, mtime_ns: i64::MIN, ctime_ns: -1 };
        let slot = encode::name(flags, start, u64::MAX, path.len(), Some(&inode));
        let facts = inode.slot().map(u64::to_le_bytes).concat();
        let rest = [facts, rest].concat();
        let expected = What::Name { flags, took, path: path.as_bytes(), inode: Some(inode) };
        prop_assert_eq!(decode(&slot, &rest, |path| path), Ok((start, expected)));
    }
}
