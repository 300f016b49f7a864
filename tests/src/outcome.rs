//! The outcome of a command under `foreread run`: its output and its account.

use std::process::Output;

use serde_json::Value;

use crate::{check, text};

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Output and status.
    pub output: Output,
    /// The account, as printed by `--json`.
    pub account: Value,
}

impl Outcome {
    /// `recorded`, `prefetched`, or `aside`.
    pub fn mode(&self) -> &str {
        self.account["mode"].as_str().expect("a mode")
    }

    /// The reason why foreread did not help, or not fully; empty if it gives none.
    pub fn reason(&self) -> &str {
        self.account["reason"].as_str().unwrap_or("")
    }

    /// A column of the ledger, in bytes; 0 without a ledger.
    pub fn bytes(&self, column: &str) -> u64 {
        match &self.account["ledger"] {
            Value::Null => 0,
            ledger => ledger[column].as_u64().expect("a column of the ledger"),
        }
    }

    /// Checks the mode. On a busy machine a program may end before foreread's work does, and files in memory may be evicted.
    #[track_caller]
    pub fn check_mode(&self, mode: &str) {
        check!(self.mode() == mode, "not {mode}: {self:?}");
    }

    /// Standard output.
    pub fn stdout(&self) -> String {
        text(&self.output.stdout)
    }

    /// Standard error.
    pub fn stderr(&self) -> String {
        text(&self.output.stderr)
    }

    /// True if foreread printed `sentence` to standard error, however its lines are broken: that depends on the length of the paths in
    /// them.
    pub fn says(&self, sentence: &str) -> bool {
        let unbroken = |text: &str| text.split_whitespace().collect::<String>();
        let said: String = (self.stderr().lines())
            .map(|line| unbroken(line.strip_prefix("foreread:").unwrap_or(line)))
            .collect();
        said.contains(&unbroken(sentence))
    }

    /// Asserts that the program behaved as without foreread.
    #[track_caller]
    pub fn assert_as(&self, plain: &Output) {
        assert!(
            self.output.stdout == plain.stdout,
            "another output: {self:?}\nnot {plain:?}"
        );
        assert_eq!(self.output.status, plain.status, "{self:?}");
        assert!(
            self.output.stderr.starts_with(&plain.stderr),
            "{self:?}\nnot {plain:?}"
        );
    }

    /// Asserts that every issued byte is useful, late, wasted, evicted, infill or unknown, and that the account is of this run.
    #[track_caller]
    pub(crate) fn hold_to_account(&self) {
        let issued = self.bytes("issued");
        let columns = ["useful", "late", "wasted", "evicted", "infill", "unknown"];
        let parts = columns.map(|column| self.bytes(column));
        assert_eq!(
            issued,
            parts.iter().sum::<u64>(),
            "the ledger is open: {self:?}"
        );
        let names = |part: &str| self.account["names"][part].as_u64().unwrap_or(0);
        assert_eq!(
            names("asked"),
            names("used") + names("unused") + names("unknown"),
            "the account of names is open: {self:?}"
        );
        // A first run counts as recorded, whether it was helped or not.
        let is_first = self.account["followed"].is_null() && !self.account["recorded"].is_null();
        let expected = issued + names("fetched") > 0 && !is_first;
        assert_eq!(expected, self.mode() == "prefetched", "{self:?}");
        if self.mode() == "aside" {
            assert_ne!(self.reason(), "", "aside without a reason: {self:?}");
        }
        if let Some(code) = self.output.status.code() {
            assert_eq!(self.account["exit_status"], code, "{self:?}");
        }
    }
}
