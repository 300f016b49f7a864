//! Tests whether small reads at a distance take a device long: whether distance costs time.
//!
//! Many virtual disks call themselves rotational and are not, so the flag alone is no
//! ground for reordering. The reads go around the page cache: they change nothing in it.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// Number of timed reads at most; the majority decides.
const READS: u64 = 3;
/// Bytes a read.
const BLOCK: usize = 4096;

/// A buffer aligned as direct reads need it.
#[repr(align(4096))]
struct Aligned([u8; BLOCK]);

/// Whether most of a few scattered 4 KiB reads of the file behind `fd`, `size` bytes long, take at least `limit`; `None` for an empty file.
/// A small file gets fewer reads, one per block. A disk with a moving head needs milliseconds, any other well under one. A read of twice
/// the limit is proof enough, because on the tested disk such reads delay the program's own.
///
/// # Errors
/// `EINVAL` if the file system has no direct reads, and errors of reading.
pub fn is_slow<Fd: AsFd>(fd: Fd, size: u64, limit: Duration) -> io::Result<Option<bool>> {
    let path = format!("/proc/thread-self/fd/{}", fd.as_fd().as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let direct = openat(CWD, path, flags, Mode::empty())?;
    let mut buffer = Aligned([0; BLOCK]);
    let blocks = size.div_ceil(BLOCK as u64);
    most(READS.min(blocks), |n| {
        // Far apart, and at no constant distance that read-ahead in the device could guess.
        let block = blocks * [3, 6, 1][n as usize] / 7;
        let begun = Instant::now();
        rustix::io::pread(&direct, &mut buffer.0, block * BLOCK as u64)?;
        let took = begun.elapsed();
        Ok(match took {
            _ if took >= limit.saturating_mul(2) => Says::Proof,
            _ if took >= limit => Says::Yes,
            _ => Says::No,
        })
    })
}

/// Result of one trial.
#[derive(Clone, Copy)]
enum Says {
    No,
    Yes,
    /// Yes, whatever others say.
    Proof,
}

/// The majority of this many trials, a tie counting as yes. Trials that cannot change the result are left out, because the caller waits.
fn most(trials: u64, mut trial: impl FnMut(u64) -> io::Result<Says>) -> io::Result<Option<bool>> {
    let (mut yes, mut no) = (0, 0);
    for n in 0..trials {
        match trial(n)? {
            Says::Proof => return Ok(Some(true)),
            Says::Yes => yes += 1,
            Says::No => no += 1,
        }
        if 2 * yes >= trials {
            return Ok(Some(true));
        }
        if 2 * no > trials {
            return Ok(Some(false));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn no_trial_is_made_that_cannot_change_the_answer() {
        use Says::{No, Proof, Yes};
        let after = |said: &[Says]| {
            let mut made = 0;
            let answer = most(said.len() as u64, |n| {
                made += 1;
                Ok(said[n as usize])
            });
            (answer.unwrap(), made)
        };
        assert_eq!(after(&[]), (None, 0));
        assert_eq!(after(&[Yes]), (Some(true), 1));
        assert_eq!(after(&[No]), (Some(false), 1));
        assert_eq!(after(&[No, Yes]), (Some(true), 2));
        assert_eq!(after(&[No, No]), (Some(false), 2));
        assert_eq!(after(&[Yes, Yes, No]), (Some(true), 2));
        assert_eq!(after(&[No, No, Yes]), (Some(false), 2));
        assert_eq!(after(&[Yes, No, No]), (Some(false), 3));
        assert_eq!(after(&[No, Yes, Yes]), (Some(true), 3));
        assert_eq!(after(&[Proof, No, No]), (Some(true), 1));
        assert_eq!(after(&[No, Proof, No]), (Some(true), 2));
    }

    #[test]
    fn an_empty_file_tells_nothing() {
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        match is_slow(&file, 0, Duration::ZERO) {
            Ok(slow) => assert_eq!(slow, None),
            Err(why) => assert_eq!(why.kind(), io::ErrorKind::InvalidInput, "{why}"),
        }
    }

    #[test]
    fn reads_of_a_real_file_are_timed_or_refused_as_unsupported() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let size = file.metadata().unwrap().len();
        for (limit, slow) in [(Duration::ZERO, true), (Duration::MAX, false)] {
            match is_slow(&file, size, limit) {
                Ok(found) => assert_eq!(found, Some(slow)),
                Err(why) => assert_eq!(why.kind(), io::ErrorKind::InvalidInput, "{why}"),
            }
        }
    }
}
