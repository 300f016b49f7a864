//! Builds the stored account of a run.

use foreread_plan::Meta;

use super::Account;
use crate::timeline::Went;
use crate::told::RunAccount;

impl Account {
    /// True if the run deserves a stored account: it has a record, or a reason why it gained nothing. Storing takes a fraction of a
    /// millisecond; commands that read nothing are spared it.
    pub(crate) fn is_worth_storing(&self) -> bool {
        let has_record = self.followed.is_some() || self.recorded.is_some();
        has_record || self.was_helped() || self.why().is_some()
    }

    /// The account to store, for the run of `meta`.
    pub(crate) fn told(&self, meta: Meta, went: Went) -> RunAccount {
        let report = self.report.as_ref();
        let line = self.line();
        let line = line.strip_prefix("foreread: ").unwrap_or(&line);
        RunAccount {
            meta,
            host: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            program: self.program.clone(),
            line: line.to_owned(),
            outcome: self.outcome(),
            why: self.why(),
            wall_ns: self.wall_ns,
            exit_status: self.status,
            cpu_ns: self.cpu_ns,
            device_bytes: self.device_bytes,
            unseen_bytes: self.unseen_bytes,
            lost: self.lost,
            cold_wall_ns: self.baseline.as_ref().and_then(|base| base.cold_wall_ns),
            recorded_wall_ns: self.baseline.as_ref().map(|base| base.wall_ns),
            followed: self
                .followed
                .as_ref()
                .map(|found| found.path.display().to_string()),
            followed_own: self.has_own_record(),
            recorded: self
                .recorded
                .as_ref()
                .map(|path| path.display().to_string()),
            ledger: report.map(|report| report.ledger),
            names: report.map(|report| report.names),
            reads_seen: report.map(|report| report.reads),
            foreseen: report.map(|report| report.foreseen),
            notes: self.told_beside().map(str::to_owned).collect(),
            unobserved: self.unobserved.clone(),
            files: self.files.clone(),
            rank: self.rank,
            went,
            fates: self.fates.clone(),
        }
    }
}
