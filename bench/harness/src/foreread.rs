//! Running a command under `foreread run`, and reading its account of the run.
//!
//! Every case has a record store of its own, so that a user's records are neither used nor changed; the store is evicted before
//! cold runs like the case's own files.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
pub use foreread_plan::Ledger;
use serde::{Deserialize, Serialize};

use crate::process::Invocation;

/// Linux systems have a file system in memory here.
const MEMORY: &str = "/dev/shm";

/// The `foreread` binary, and the record store of one case.
#[derive(Clone, Debug)]
pub struct Foreread {
    binary: PathBuf,
    store: PathBuf,
    report: PathBuf,
}

/// The output of `foreread run --json`. A missing or null field counts as no statement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Account {
    /// `recorded`, `prefetched` or `aside`.
    pub mode: String,
    /// Why it stood aside or could not help, if it gives a reason.
    pub reason: Option<String>,
    /// The fate of each byte issued; `None` if no byte was issued.
    pub ledger: Option<Ledger>,
    /// Bytes the program read.
    pub read_bytes: Option<u64>,
}

impl Foreread {
    /// The given binary, or the one beside this program.
    pub fn find(given: Option<&Path>) -> Result<PathBuf> {
        let path = match given {
            Some(path) => path.to_owned(),
            None => std::env::current_exe()
                .context("finding this program's own folder")?
                .with_file_name("foreread"),
        };
        if !path.is_file() {
            bail!(
                "{} is missing: build it with `make build`, or use --no-foreread",
                path.display()
            );
        }
        path.canonicalize()
            .with_context(|| format!("resolving {}", path.display()))
    }

    /// `binary` with its records in `store` and its report in memory, or else in `scratch`. Users do not ask for a report, and
    /// writing one to a disk would take 0.3 ms of a run.
    pub fn new(binary: &Path, store: &Path, scratch: &Path) -> Self {
        let memory = Path::new(MEMORY);
        let folder = if memory.is_dir() { memory } else { scratch };
        Self {
            binary: binary.to_owned(),
            store: store.to_owned(),
            report: folder.join(format!("foreread-bench-{}.json", std::process::id())),
        }
    }

    /// Removes every record, so that the next run records.
    pub fn forget(&self) -> Result<()> {
        if self.store.exists() {
            fs::remove_dir_all(&self.store)
                .with_context(|| format!("removing {}", self.store.display()))?;
        }
        fs::create_dir_all(&self.store)
            .with_context(|| format!("creating {}", self.store.display()))
    }

    /// The folder with the records.
    pub fn store(&self) -> &Path {
        &self.store
    }

    /// `command` under `foreread run`.
    pub fn wrap(&self, command: &Invocation) -> Invocation {
        let leading: Vec<OsString> = vec![
            "run".into(),
            "--quiet".into(),
            "--json".into(),
            self.report.clone().into(),
            "--".into(),
        ];
        let mut wrapped = command.under(&self.binary, leading);
        wrapped
            .env
            .push(("XDG_DATA_HOME".into(), self.store.clone().into()));
        wrapped
    }

    /// The account of the run just finished; reading it removes it.
    pub fn account(&self) -> Result<Account> {
        let text = fs::read_to_string(&self.report)
            .with_context(|| format!("foreread left no report in {}", self.report.display()))?;
        fs::remove_file(&self.report)
            .with_context(|| format!("removing {}", self.report.display()))?;
        serde_json::from_str(&text)
            .with_context(|| format!("{} is not what was agreed: {text}", self.report.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_read_leniently() {
        let full = r#"{"wall_ns":5,"exit_status":0,"mode":"prefetched","reason":null,
            "ledger":{"issued":9,"useful":5,"late":1,"wasted":2,"evicted":1,"more":7},"read_bytes":12,"new":{}}"#;
        let account: Account = serde_json::from_str(full).unwrap();
        assert_eq!(account.mode, "prefetched");
        assert_eq!(account.ledger.unwrap().issued, 9);
        assert_eq!(account.read_bytes, Some(12));
        let bare: Account =
            serde_json::from_str(r#"{"mode":"aside","reason":"no record","ledger":null}"#).unwrap();
        assert_eq!(bare.ledger, None);
        assert_eq!(bare.reason.as_deref(), Some("no record"));
    }

    #[test]
    fn the_command_follows_two_dashes_unchanged() {
        let command = Invocation {
            program: "/bin/cat".into(),
            args: vec!["--".into(), "a b".into()],
            ..Invocation::default()
        };
        let foreread = Foreread::new(Path::new("/opt/foreread"), Path::new("/s"), Path::new("/t"));
        let report = foreread.report.to_str().unwrap();
        assert_eq!(
            foreread.wrap(&command).line(),
            format!("/opt/foreread run --quiet --json {report} -- /bin/cat -- a b")
        );
    }
}
