//! One line for all ranks of a parallel program on this host.
//!
//! Each rank has a foreread of its own. At its end each adds its part to a shared file. The last rank prints the sum and removes the file.
//! If a rank leaves no part because it was killed together with its foreread, no line is printed. Ranks recognise each other by their
//! common launcher process on this host.
//!
//! Data flow: account → [`RankRun`] → the shared file → the last one's line.
//!
//! Invariant: nobody waits for another rank.

use std::env;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use foreread_engine::Ledger;
use foreread_plan::Rank;
use foreread_sys::procfs::{self, Stat};
use foreread_words::units::{bytes, duration};
use foreread_words::{counted, shown};
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};

use crate::report::became;

/// Bytes of a shared file that are read: the parts of 100,000 ranks.
const LIMIT: u64 = 64 << 20;
/// Files of ranks that left no part are deleted when they are so old.
const OLD: Duration = Duration::from_secs(24 * 3600);
/// Environment variables in which launchers give the number of ranks on this host.
const LOCAL: [&str; 3] = [
    "MPI_LOCALNRANKS",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MV2_COMM_WORLD_LOCAL_SIZE",
];

/// One rank's part of the account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RankRun {
    pub(super) rank: u32,
    pub(super) program: String,
    pub(super) wall_ns: u64,
    pub(super) ledger: Ledger,
    /// Reads recorded, if a record was kept.
    pub(super) recorded: Option<u64>,
    /// The reason why foreread could not help, and other remarks.
    pub(super) reason: Option<String>,
}

/// The text to print for a rank whose launcher started the process `front`: the common line for the last rank on this host, and nothing for
/// others.
pub(super) fn line(folder: Option<&Path>, front: u32, rank: Rank, part: RankRun) -> String {
    let shared = folder
        .zip(local_ranks(|name| env::var(name).ok(), rank))
        .and_then(|(folder, local)| gather(folder, &launcher(front).ok()?, local, &part).ok());
    match shared {
        Some(Some(parts)) => in_words(&parts, rank.of),
        Some(None) => String::new(),
        // Without the others one stands for all.
        None if rank.rank == 0 => in_words(&[part], rank.of),
        None => String::new(),
    }
}

/// The number of ranks on this host, if the launcher gives it.
fn local_ranks(variable: impl Fn(&str) -> Option<String>, rank: Rank) -> Option<usize> {
    let told = LOCAL.iter().find_map(|name| variable(name)?.parse().ok());
    // Slurm says "4(x2)" for two hosts, and a list where they differ.
    let by_slurm = || {
        let text = variable("SLURM_STEP_TASKS_PER_NODE")?;
        let (first, _) = text.split_once("(x").unwrap_or((&text, ""));
        first.parse().ok()
    };
    let local: usize = told.or_else(by_slurm)?;
    (1..=rank.of as usize).contains(&local).then_some(local)
}

/// A name for the process that has started this one, which no other process has had.
fn launcher(front: u32) -> io::Result<String> {
    let field = |pid: u32, field: usize| -> io::Result<u64> {
        let stat = procfs::stat(pid)?;
        let found = Stat::of(&stat).and_then(|fields| fields.number(field));
        found.ok_or(io::ErrorKind::InvalidData.into())
    };
    let parent = field(front, Stat::PARENT)?;
    let parent = u32::try_from(parent).map_err(io::Error::other)?;
    let started = field(parent, Stat::STARTED)?;
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy().replace('/', "_");
    Ok(format!("{host}-{parent}-{started}"))
}

/// Adds a part to those of the launcher's other ranks on this host. Returns all parts if this is the last one.
fn gather(
    folder: &Path,
    launcher: &str,
    local: usize,
    part: &RankRun,
) -> io::Result<Option<Vec<RankRun>>> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(why) if why.kind() != io::ErrorKind::AlreadyExists => return Err(why),
        _ => tidy(folder),
    }
    let path = folder.join(launcher);
    let mut file = shared(&path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    let mut line = serde_json::to_string(part).map_err(io::Error::other)?;
    line.push('\n');
    file.write_all(line.as_bytes())?;
    let mut text = String::new();
    File::open(&path)?.take(LIMIT).read_to_string(&mut text)?;
    let parts: Vec<RankRun> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    if parts.len() < local {
        return Ok(None);
    }
    fs::remove_file(&path)?;
    Ok(Some(parts))
}

/// The file at this path, to be added to.
fn shared(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    options
        .custom_flags(OFlags::NOFOLLOW.bits() as i32)
        .open(path)
}

/// Deletes the files of ranks that were killed before they had left their parts.
fn tidy(folder: &Path) {
    let old = |path: &PathBuf| {
        let changed = path.metadata().and_then(|meta| meta.modified());
        let age = changed.map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
        age.is_ok_and(|age| age > OLD)
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()).filter(old) {
        let _ = fs::remove_file(path);
    }
}

/// The sum of the parts, in one line.
fn in_words(parts: &[RankRun], of: u32) -> String {
    let program = parts.first().map_or("", |part| part.program.as_str());
    let whose = match parts.len() {
        one if one == of as usize => counted(of.into(), "rank", "ranks"),
        some => format!("{some} of {}", counted(of.into(), "rank", "ranks")),
    };
    let mut line = format!("foreread: {whose} of {program}: ");
    let ledger: Ledger = parts.iter().map(|part| part.ledger).sum();
    let wall = parts.iter().map(|part| part.wall_ns).max().unwrap_or(0);
    let recorded: Vec<u64> = parts.iter().filter_map(|part| part.recorded).collect();
    if ledger.issued > 0 {
        let _ = write!(line, "{} ahead: {}", bytes(ledger.issued), became(&ledger));
    } else if recorded.is_empty() {
        line.push_str("stood aside");
    }
    if !recorded.is_empty() {
        let reads = counted(recorded.iter().sum(), "read", "reads");
        let joint = if ledger.issued > 0 { "; " } else { "" };
        let _ = write!(
            line,
            "{joint}recorded {reads}, to keep ahead of the next run"
        );
    }
    let _ = write!(line, "; {}", duration(wall));
    // A reason that several ranks have is printed once.
    let mut said: Vec<(&str, Vec<u32>)> = Vec::new();
    for part in parts {
        let Some(reason) = part.reason.as_deref() else {
            continue;
        };
        match said.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, ranks)) => ranks.push(part.rank),
            None => said.push((reason, vec![part.rank])),
        }
    }
    said.sort_by_key(|(_, ranks)| std::cmp::Reverse(ranks.len()));
    if let Some((reason, ranks)) = said.first() {
        let _ = match ranks[..] {
            _ if ranks.len() == parts.len() => write!(line, "; {reason}"),
            [only] => write!(line, "; rank {only}: {reason}"),
            _ => write!(line, "; {} ranks: {reason}", ranks.len()),
        };
    }
    if said.len() > 1 {
        let others = counted(said.len() as u64 - 1, "other remark", "other remarks");
        let _ = write!(line, " (and {others}: --explain)");
    }
    shown(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(rank: u32, issued: u64, recorded: Option<u64>, reason: Option<&str>) -> RankRun {
        RankRun {
            rank,
            program: "app".into(),
            wall_ns: 1_000_000_000 + u64::from(rank),
            ledger: Ledger {
                issued,
                useful: issued,
                ..Ledger::default()
            },
            recorded,
            reason: reason.map(str::to_owned),
        }
    }

    #[test]
    fn the_last_rank_has_the_parts_of_all() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("ranks");
        let add = |rank| gather(&folder, "host-1-2", 3, &part(rank, 0, None, None)).unwrap();
        assert_eq!(add(2), None);
        assert_eq!(add(0), None);
        let all = add(1).unwrap();
        assert_eq!(
            all.iter().map(|one| one.rank).collect::<Vec<_>>(),
            [2, 0, 1]
        );
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        // The next run has nothing of this one.
        assert_eq!(add(0), None);
    }

    #[test]
    fn ranks_that_end_at_once_have_one_last_among_them() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("ranks");
        let add = |rank| gather(&folder, "x", 16, &part(rank, 0, None, None)).unwrap();
        let lasts: usize = std::thread::scope(|scope| {
            let all: Vec<_> = (0..16).map(|rank| scope.spawn(move || add(rank))).collect();
            all.into_iter()
                .map(|one| usize::from(one.join().unwrap().is_some()))
                .sum()
        });
        assert_eq!(lasts, 1);
    }

    #[test]
    fn a_link_in_the_place_of_the_shared_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink(&victim, folder.path().join("x")).unwrap();
        assert!(gather(folder.path(), "x", 2, &part(0, 0, None, None)).is_err());
        assert_eq!(fs::read_to_string(victim).unwrap(), "mine");
    }

    #[test]
    fn the_ranks_on_this_host_are_counted_as_the_launcher_says() {
        let local = |name: &'static str, value: &'static str| {
            let rank = Rank { rank: 0, of: 8 };
            local_ranks(move |asked| (asked == name).then(|| value.to_owned()), rank)
        };
        assert_eq!(local("MPI_LOCALNRANKS", "4"), Some(4));
        assert_eq!(local("OMPI_COMM_WORLD_LOCAL_SIZE", "8"), Some(8));
        assert_eq!(local("SLURM_STEP_TASKS_PER_NODE", "4(x2)"), Some(4));
        assert_eq!(local("SLURM_STEP_TASKS_PER_NODE", "4,2"), None);
        assert_eq!(local("MPI_LOCALNRANKS", "9"), None, "more than there are");
        assert_eq!(local("HOME", "/"), None);
    }

    #[test]
    fn the_line_is_the_sum_and_says_once_what_all_say() {
        let all = [part(0, 1 << 20, None, None), part(1, 1 << 20, None, None)];
        assert_eq!(
            in_words(&all, 2),
            "foreread: 2 ranks of app: 2.00 MiB ahead: 2.00 MiB useful, 0 B late, 0 B wasted; 1.00 s"
        );
        let first = [part(0, 0, Some(10), None), part(1, 0, Some(5), None)];
        assert_eq!(
            in_words(&first, 4),
            "foreread: 2 of 4 ranks of app: recorded 15 reads, to keep ahead of the next run; 1.00 s"
        );
        let why = Some("all of it was in memory already");
        let same = [part(0, 0, None, why), part(1, 0, None, why)];
        assert!(
            in_words(&same, 2).ends_with("stood aside; 1.00 s; all of it was in memory already")
        );
        let some = [
            part(0, 0, None, why),
            part(1, 0, None, Some("no eBPF")),
            part(2, 0, None, why),
        ];
        assert!(
            in_words(&some, 3).ends_with(
                "2 ranks: all of it was in memory already (and 1 other remark: --explain)"
            )
        );
    }

    #[test]
    fn a_launcher_has_a_name_of_its_own() {
        let own = launcher(std::process::id()).unwrap();
        assert_eq!(own, launcher(std::process::id()).unwrap());
        assert!(launcher(1).is_err() || launcher(1).unwrap() != own);
    }
}
