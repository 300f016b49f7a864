//! The observed system calls, with the places of their arguments. Pure: two tables.

use foreread_plan::Kind;

use crate::decode::record::{
    AT_ARGUMENT, AT_CURSOR, AT_HALVES, AT_POINTER, AT_POINTER32, CALL_COMPAT, CALL_URING,
    FLAGS_ARGUMENT, FLAGS_FIXED, FLAGS_NONE, FLAGS_POINTER, NO_ARGUMENT, WHAT_LIST, WHAT_LOOK,
    WHAT_OPEN, WHAT_READ, WHAT_SUBMIT, call,
};

/// `AT_SYMLINK_NOFOLLOW`.
pub(crate) const NO_FOLLOW: u64 = libc::AT_SYMLINK_NOFOLLOW as u64;

/// A system call: its number, with the mark of its table, the facts to observe, and for a read its kind.
type Row = (u32, call, Option<Kind>);

const NOTHING: call = call {
    what: 0,
    fd: NO_ARGUMENT as u8,
    path: NO_ARGUMENT as u8,
    at: AT_CURSOR as u8,
    place: 0,
    flags: FLAGS_NONE as u8,
    flags_value: 0,
};

/// A read of argument `fd`, at an offset given in the way `at` by argument `place`.
const fn read(number: u32, kind: Kind, fd: u8, at: u32, place: u8) -> Row {
    let call = call {
        what: WHAT_READ as u8,
        fd,
        at: at as u8,
        place,
        ..NOTHING
    };
    (number, call, Some(kind))
}

/// A path, from argument `fd` on, with flags given in this way.
const fn path(number: u32, what: u32, fd: u8, path: u8, flags: (u32, u16)) -> Row {
    let call = call {
        what: what as u8,
        fd,
        path,
        flags: flags.0 as u8,
        flags_value: flags.1,
        ..NOTHING
    };
    (number, call, None)
}

/// Reads that are handed over, from the third argument on.
const fn submit(number: u32) -> Row {
    let call = call {
        what: WHAT_SUBMIT as u8,
        ..NOTHING
    };
    (number, call, None)
}

const fn list(number: u32) -> Row {
    let call = call {
        what: WHAT_LIST as u8,
        fd: 0,
        ..NOTHING
    };
    (number, call, None)
}

/// No argument: the path begins at the working directory.
const CWD: u8 = NO_ARGUMENT as u8;
const CREATES: (u32, u16) = (FLAGS_FIXED, (libc::O_WRONLY | libc::O_TRUNC) as u16);
const FOLLOWS: (u32, u16) = (FLAGS_FIXED, 0);
const FOLLOWS_NOT: (u32, u16) = (FLAGS_FIXED, NO_FOLLOW as u16);

const fn in_argument(number: u16) -> (u32, u16) {
    (FLAGS_ARGUMENT, number)
}

/// Calls of every architecture, with its own numbers.
fn common() -> Vec<Row> {
    let number = |number: libc::c_long| number as u32;
    vec![
        read(number(libc::SYS_read), Kind::Read, 0, AT_CURSOR, 0),
        read(number(libc::SYS_pread64), Kind::Pread, 0, AT_ARGUMENT, 3),
        read(number(libc::SYS_readv), Kind::Readv, 0, AT_CURSOR, 0),
        read(number(libc::SYS_preadv), Kind::Preadv, 0, AT_ARGUMENT, 3),
        read(number(libc::SYS_preadv2), Kind::Preadv, 0, AT_ARGUMENT, 3),
        read(number(libc::SYS_sendfile), Kind::Sendfile, 1, AT_POINTER, 2),
        read(
            number(libc::SYS_copy_file_range),
            Kind::CopyFileRange,
            0,
            AT_POINTER,
            1,
        ),
        read(number(libc::SYS_splice), Kind::Splice, 0, AT_POINTER, 1),
        path(number(libc::SYS_openat), WHAT_OPEN, 0, 1, in_argument(2)),
        path(
            number(libc::SYS_openat2),
            WHAT_OPEN,
            0,
            1,
            (FLAGS_POINTER, 2),
        ),
        path(
            number(libc::SYS_newfstatat),
            WHAT_LOOK,
            0,
            1,
            in_argument(3),
        ),
        path(number(libc::SYS_statx), WHAT_LOOK, 0, 1, in_argument(2)),
        path(number(libc::SYS_faccessat), WHAT_LOOK, 0, 1, FOLLOWS),
        path(
            number(libc::SYS_faccessat2),
            WHAT_LOOK,
            0,
            1,
            in_argument(3),
        ),
        path(number(libc::SYS_readlinkat), WHAT_LOOK, 0, 1, FOLLOWS_NOT),
        list(number(libc::SYS_getdents64)),
        submit(number(libc::SYS_io_submit)),
    ]
}

/// Older calls of x86-64, and those of 32-bit programs on it, whose numbers are in another table (arch/x86/entry/syscalls/syscall_32.tbl).
#[cfg(target_arch = "x86_64")]
fn own() -> Vec<Row> {
    let number = |number: libc::c_long| number as u32;
    let native = [
        path(number(libc::SYS_open), WHAT_OPEN, CWD, 0, in_argument(1)),
        path(number(libc::SYS_creat), WHAT_OPEN, CWD, 0, CREATES),
        path(number(libc::SYS_stat), WHAT_LOOK, CWD, 0, FOLLOWS),
        path(number(libc::SYS_lstat), WHAT_LOOK, CWD, 0, FOLLOWS_NOT),
        path(number(libc::SYS_access), WHAT_LOOK, CWD, 0, FOLLOWS),
        path(number(libc::SYS_readlink), WHAT_LOOK, CWD, 0, FOLLOWS_NOT),
        list(number(libc::SYS_getdents)),
    ];
    let compat = [
        read(3, Kind::Read, 0, AT_CURSOR, 0),
        read(145, Kind::Readv, 0, AT_CURSOR, 0),
        read(180, Kind::Pread, 0, AT_HALVES, 3),
        read(333, Kind::Preadv, 0, AT_HALVES, 3),
        read(378, Kind::Preadv, 0, AT_HALVES, 3),
        read(187, Kind::Sendfile, 1, AT_POINTER32, 2),
        read(239, Kind::Sendfile, 1, AT_POINTER, 2),
        read(377, Kind::CopyFileRange, 0, AT_POINTER, 1),
        read(313, Kind::Splice, 0, AT_POINTER, 1),
        path(5, WHAT_OPEN, CWD, 0, in_argument(1)),
        path(8, WHAT_OPEN, CWD, 0, CREATES),
        path(295, WHAT_OPEN, 0, 1, in_argument(2)),
        path(437, WHAT_OPEN, 0, 1, (FLAGS_POINTER, 2)),
        path(106, WHAT_LOOK, CWD, 0, FOLLOWS),
        path(107, WHAT_LOOK, CWD, 0, FOLLOWS_NOT),
        path(195, WHAT_LOOK, CWD, 0, FOLLOWS),
        path(196, WHAT_LOOK, CWD, 0, FOLLOWS_NOT),
        path(300, WHAT_LOOK, 0, 1, in_argument(3)),
        path(383, WHAT_LOOK, 0, 1, in_argument(2)),
        path(33, WHAT_LOOK, CWD, 0, FOLLOWS),
        path(307, WHAT_LOOK, 0, 1, FOLLOWS),
        path(439, WHAT_LOOK, 0, 1, in_argument(3)),
        path(85, WHAT_LOOK, CWD, 0, FOLLOWS_NOT),
        path(305, WHAT_LOOK, 0, 1, FOLLOWS_NOT),
        list(141),
        list(220),
    ];
    let compat = compat.map(|(number, call, kind)| (number | CALL_COMPAT, call, kind));
    native.into_iter().chain(compat).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn own() -> Vec<Row> {
    Vec::new()
}

/// All of them.
pub(crate) fn table() -> Vec<Row> {
    [common(), own()].concat()
}

/// The kind of a read by this call. A call that is not in the table reads at a given offset.
pub(crate) fn kind_of(rows: &[Row], number: u16) -> Kind {
    let number = u32::from(number);
    if number & CALL_URING != 0 {
        return Kind::Pread;
    }
    let row = rows.iter().find(|row| row.0 == number);
    row.and_then(|row| row.2).unwrap_or(Kind::Pread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::record::CALLS;

    #[test]
    fn each_number_is_there_once_and_within_the_kernels_table() {
        let mut numbers: Vec<_> = table().into_iter().map(|row| row.0).collect();
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count);
        assert!(numbers.iter().all(|&number| number < CALLS));
    }

    #[test]
    fn a_number_means_another_call_in_a_32_bit_program() {
        let rows = table();
        assert_eq!(kind_of(&rows, libc::SYS_pread64 as u16), Kind::Pread);
        assert_eq!(kind_of(&rows, CALL_URING as u16), Kind::Pread);
        #[cfg(target_arch = "x86_64")]
        {
            assert_eq!(kind_of(&rows, (3 | CALL_COMPAT) as u16), Kind::Read);
            assert_eq!(kind_of(&rows, (145 | CALL_COMPAT) as u16), Kind::Readv);
        }
    }
}
