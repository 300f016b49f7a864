//! A rank's part of the collective cache: made before the program starts, and accounted for at its end.
//!
//! Data flow: [`segment`] → front: the program's environment; helper: [`Collective`] → the session's backend → [`CacheAccount`].

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow, ensure};
use foreread_backend::Collective;
use foreread_segment::{Counts, Mode, PAGE, Segment};
use foreread_words::counted;
use foreread_words::units::{bytes, parse_size};
use serde::Serialize;

/// Bytes of a rank's part (the paper's 32 MB).
const SIZE: u64 = 32 << 20;
/// The pages that a part has room for at least: as many are read at a time, each in a place of its own, and with fewer one read would
/// wait for the other.
const LEAST: u64 = 16;
/// Environment variable with the cache's size.
const SIZE_ENV: &str = "FOREREAD_CACHE_SIZE";
/// Environment variable that switches the cache on or off for all file systems.
const MODE_ENV: &str = "FOREREAD_CACHE_MODE";

/// The segment of this process's rank, with this many bytes; `None` if no launcher started the process as a rank.
pub(super) fn segment(size: Option<u64>) -> Result<Option<Segment>> {
    if foreread_store::rank().is_none() {
        return Ok(None);
    }
    let (size, said) = sized(size, env::var(SIZE_ENV).ok())?;
    let made = Segment::create(size).map_err(anyhow::Error::new);
    made.map(Some)
        .with_context(|| format!("{said}there is no collective cache"))
}

/// The size in bytes from the option, else from the variable, else the default. Also returns the start of an error message about the value.
fn sized(option: Option<u64>, variable: Option<String>) -> Result<(u64, String)> {
    let (size, said) = match (option, variable) {
        (Some(size), _) => (Ok(size), "--cache: ".to_owned()),
        (None, Some(text)) => (parse_cache(&text), format!("{SIZE_ENV}={text}: ")),
        (None, None) => (Ok(SIZE), String::new()),
    };
    let size = size.map_err(|why| anyhow!("{said}there is no collective cache: {why}"))?;
    ensure!(
        size >= LEAST * PAGE,
        "{said}there is no collective cache: a part of {} is of no use to a rank, for {LEAST} pages of {} are read at a time",
        bytes(size),
        bytes(PAGE)
    );
    Ok((size, said))
}

/// The size of a cache as users write it.
///
/// # Errors
/// No size, or one below a page.
pub fn parse_cache(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        size if size < PAGE => Err(format!(
            "a collective cache of {} has no room for a page of {}",
            bytes(size),
            bytes(PAGE)
        )),
        size => Ok(size),
    }
}

/// The segment, for the backend, where the program can take from it: a library in front of MPI is put into it.
pub(super) fn collective(
    segment: Option<Segment>,
    libraries: &[PathBuf],
) -> Result<Option<Collective>> {
    let Some(segment) = segment.filter(|_| libraries.len() > 1) else {
        return Ok(None);
    };
    let decided = match env::var(MODE_ENV).as_deref() {
        Ok("plain") => Ok(Some(Mode::Plain)),
        Ok("collective") => Ok(Some(Mode::Collective)),
        Ok("") | Err(_) => Ok(None),
        Ok(other) => Err(anyhow!(
            "{MODE_ENV}: neither plain nor collective: {other:?}"
        )),
    };
    Ok(Some(Collective::new(segment, decided?)))
}

/// Account of a rank's part of the cache, as JSON. Sizes in bytes.
#[derive(Debug, Default, Serialize)]
pub(super) struct CacheAccount {
    /// The size of all pages.
    size: u64,
    /// For each file system that MPI read files of: whether its pages go to the page cache, which ranks share, or here.
    file_systems: BTreeMap<String, &'static str>,
    #[serde(flatten)]
    counts: Counted,
}

/// Counts of the cache's work.
#[derive(Debug, Default, Serialize)]
struct Counted {
    /// Fills from the file system.
    filled: u64,
    filled_bytes: u64,
    /// Bytes that this rank was foretold to read and left to other ranks of the host, which had them or were reading them.
    left_bytes: u64,
    /// Fills that failed because the page was written meanwhile or cannot be read.
    lost: u64,
    /// Bytes that were read in one piece with predicted pages, because other ranks read such bytes of the pages before.
    beside_bytes: u64,
    /// Reads served from the own part, from that of another rank on this host, and from another host's.
    hit_local: u64,
    hit_local_bytes: u64,
    hit_host: u64,
    hit_host_bytes: u64,
    hit_remote: u64,
    hit_remote_bytes: u64,
    /// Reads that waited for a fill, among these.
    late: u64,
    /// Reads that found nothing.
    missed: u64,
    /// Pages that had to make room, and of these, those with something unread.
    evicted: u64,
    evicted_unread: u64,
    /// Pages made void when a file that had changed was opened or synced.
    invalidated: u64,
    /// Files that changed while they were open, and were left to their file systems.
    changed: u64,
}

impl From<Counts> for Counted {
    fn from(counts: Counts) -> Self {
        Self {
            filled: counts.filled,
            filled_bytes: counts.filled_bytes,
            left_bytes: counts.left_bytes,
            lost: counts.lost,
            beside_bytes: counts.beside_bytes,
            hit_local: counts.hits,
            hit_local_bytes: counts.hit_bytes,
            hit_host: counts.host_hits,
            hit_host_bytes: counts.host_bytes,
            hit_remote: counts.remote_hits,
            hit_remote_bytes: counts.remote_bytes,
            late: counts.late,
            missed: counts.missed,
            evicted: counts.evicted,
            evicted_unread: counts.unread,
            invalidated: counts.voided,
            changed: counts.changed,
        }
    }
}

impl CacheAccount {
    pub(super) fn of(collective: &Collective) -> Self {
        let name = |mode| match mode {
            Mode::Collective => "collective cache",
            Mode::Plain | Mode::Undecided => "page cache",
        };
        let homes = collective.homes().into_iter();
        Self {
            size: u64::from(collective.segment().slots()) * PAGE,
            file_systems: homes.map(|(fs, mode)| (fs, name(mode))).collect(),
            counts: collective.counts().into(),
        }
    }

    /// True if anything was fetched into the cache.
    pub(super) fn is_used(&self) -> bool {
        self.counts.filled + self.counts.lost > 0
    }

    /// Reads that were served from anywhere in the cache.
    fn hits(&self) -> u64 {
        self.counts.hit_local + self.counts.hit_host + self.counts.hit_remote
    }

    /// In a few words, for the line of a run; the same for all ranks.
    pub(super) const SHORT: &str = "by the collective cache";

    /// The choice between page cache and collective cache for each file system, in words.
    pub(super) fn chosen(&self) -> impl Iterator<Item = String> {
        self.file_systems.iter().map(|(fs, home)| match *home {
            "page cache" => format!("{fs}: the page cache is shared: plain prefetching"),
            home => format!("{fs}: no page cache that ranks share: {home}"),
        })
    }

    /// The counts as rows of text.
    pub(super) fn rows(&self) -> Vec<String> {
        let counts = &self.counts;
        let changed = (counts.changed > 0).then(|| {
            format!(
                "a file changed while it was open {}: it was left to the file system until its next sync or open",
                counted(counts.changed, "time", "times"),
            )
        });
        let rows = [
            format!(
                "{} filled, {} left to other ranks, {} beside what this one was foretold to read; {} evicted, {} of them unread; {} invalidated",
                bytes(counts.filled_bytes),
                bytes(counts.left_bytes),
                bytes(counts.beside_bytes),
                counted(counts.evicted, "page", "pages"),
                counts.evicted_unread,
                counts.invalidated,
            ),
            format!(
                "{} of {} served: {} from the own part, {} from other ranks' on this host, {} from other hosts'; {} late",
                self.hits(),
                counted(self.hits() + counts.missed, "read", "reads"),
                bytes(counts.hit_local_bytes),
                bytes(counts.hit_host_bytes),
                bytes(counts.hit_remote_bytes),
                counts.late,
            ),
        ];
        let unseen = self.is_used().then(|| Self::UNSEEN.to_owned());
        rows.into_iter().chain(changed).chain(unseen).collect()
    }

    /// Changes of a file that reach ranks later than with plain reads.
    const UNSEEN: &str = "seen at the next sync or open only: writes of other hosts, and stores to mapped pages that had unsaved changes when the file was opened";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_page_at_least() {
        assert_eq!(parse_cache("64K"), Ok(PAGE));
        assert_eq!(parse_cache("1G"), Ok(1 << 30));
        assert!(parse_cache("60K").is_err_and(|why| why.contains("64.0 KiB")));
        assert!(parse_cache("lots").is_err());
    }

    #[test]
    fn a_part_that_is_of_no_use_is_not_made_and_whoever_asked_for_it_is_named() {
        let refused = |option, variable: &str| {
            let why = sized(option, Some(variable.to_owned()));
            format!("{:#}", why.expect_err("no size"))
        };
        for variable in ["lots", "1K", "60K", "128K", "960K", "-1", ""] {
            let said = refused(None, variable);
            let start = format!("FOREREAD_CACHE_SIZE={variable}: there is no collective cache: ");
            assert!(said.starts_with(&start), "{said}");
        }
        let said = refused(Some(2 * PAGE), "64M");
        assert!(
            said.starts_with("--cache: ") && said.contains("a part of 128 KiB"),
            "{said}"
        );
        let size = |option, variable: Option<&str>| {
            let sized = sized(option, variable.map(str::to_owned));
            sized.expect("a size").0
        };
        assert_eq!(size(None, Some("1M")), 1 << 20);
        assert_eq!(size(Some(1 << 21), Some("lots")), 1 << 21);
        assert_eq!(size(None, None), SIZE);
    }

    #[test]
    fn the_account_says_where_pages_go_and_what_became_of_them() {
        let collective = Collective::new(Segment::create(4 * PAGE).unwrap(), None);
        let account = CacheAccount::of(&collective);
        assert!(!account.is_used() && account.chosen().next().is_none());
        let account = CacheAccount {
            file_systems: [("nfs".to_owned(), "page cache")].into(),
            counts: Counted {
                filled: 3,
                filled_bytes: 3 * PAGE,
                hit_local: 2,
                hit_host: 1,
                missed: 1,
                changed: 1,
                ..Counted::default()
            },
            ..account
        };
        assert!(account.is_used());
        let chosen: Vec<_> = account.chosen().collect();
        assert_eq!(chosen, ["nfs: the page cache is shared: plain prefetching"]);
        let rows = account.rows();
        let [filled, served, changed, unseen] = &rows[..] else {
            panic!("{rows:?}");
        };
        assert!(
            filled.starts_with("192 KiB filled, 0 B left to other ranks"),
            "{filled}"
        );
        assert!(served.starts_with("3 of 4 reads served"), "{served}");
        assert!(changed.contains("open 1 time:"), "{changed}");
        assert!(unseen.contains("other hosts"), "{unseen}");
        let json = serde_json::to_value(&account).unwrap();
        assert_eq!(json["size"], 4 * PAGE);
        assert_eq!(
            (&json["hit_host"], &json["file_systems"]["nfs"]),
            (&1.into(), &"page cache".into())
        );
    }
}
