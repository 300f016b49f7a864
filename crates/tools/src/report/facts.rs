//! All facts of a report or an explanation: the command's condensed record and the account of its last run.
//!
//! Each missing fact has a sentence in [`CommandFacts::lacks`].
//!
//! Data flow: [`Chosen`] → [`CommandFacts`] → page, text, JSON, CSV.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use foreread_plan::{Identity, Summary};
use foreread_run::{Outcome, RunAccount, Why};
use foreread_words::shown;
use foreread_words::units::duration;
use serde::Serialize;

use super::digest::{Digest, digest};
use crate::chosen::Chosen;
use crate::command_line::short_command_line;

/// Facts about a command. Times in ns, sizes in bytes.
#[derive(Serialize)]
pub(crate) struct CommandFacts {
    /// Version of the JSON layout.
    version: u32,
    pub(crate) command: String,
    pub(crate) program: String,
    pub(crate) folder: String,
    pub(crate) rank: Option<String>,
    pub(crate) host: Option<String>,
    /// Time of the recording and start of the last run, in seconds since the epoch.
    pub(crate) recorded_at: Option<u64>,
    pub(crate) run_at: Option<u64>,
    pub(crate) devices: Vec<String>,
    pub(crate) numbers: Numbers,
    /// The line printed after the last run.
    pub(crate) line: Option<String>,
    pub(crate) verdict: String,
    pub(crate) findings: Vec<Finding>,
    /// Parts of the command that were not observed.
    pub(crate) unseen: Vec<String>,
    /// Missing facts, with ways to obtain them.
    pub(crate) lacks: Vec<String>,
    pub(crate) summary: Option<Summary>,
    pub(crate) record: Option<Digest>,
    pub(crate) run: Option<RunAccount>,
    /// For a rank: the last runs of its program's ranks, by rank.
    pub(crate) ranks: BTreeMap<u32, RunAccount>,
}

/// A finding about the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) what: String,
    /// A file, or another subject.
    pub(crate) place: String,
    /// Advice to the user.
    pub(crate) advice: String,
    /// Its cost in ns, if known.
    pub(crate) cost_ns: Option<u64>,
}

/// The four numbers of a report.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Numbers {
    /// Duration of the recorded run, plain and cold.
    pub(crate) plain_ns: Option<u64>,
    /// Duration of the last run, if foreread prefetched for it.
    pub(crate) with_ns: Option<u64>,
    /// Duration of the plain run minus its waiting.
    pub(crate) limit_ns: Option<u64>,
    /// Share of the waiting that the last run avoided.
    pub(crate) masked: Option<f64>,
}

impl CommandFacts {
    /// All facts except the findings, which [`CommandFacts::with_findings`] adds.
    pub(crate) fn of(mut chosen: Chosen) -> Self {
        let run = chosen.told;
        let fates = run.as_ref().map_or(&[][..], |run| &run.fates);
        let record = chosen.record.as_mut();
        let digest = record.map(|record| digest(record, fates));
        let reader = chosen.record.as_ref();
        let meta = reader.map(|reader| reader.meta());
        let identity = meta.or(run.as_ref().map(|run| &run.meta));
        let identity = identity.map(|meta| meta.identity.clone());
        let identity = identity.unwrap_or_else(|| Identity {
            exe: String::new(),
            argv: Vec::new(),
            cwd: String::new(),
            rank: None,
        });
        let summary = reader.and_then(|reader| reader.summary()).cloned();
        let numbers = Numbers::of(summary.as_ref(), run.as_ref(), digest.as_ref());
        let program = identity.argv.first().map_or("", String::as_str);
        let program = program.rsplit('/').next().unwrap_or_default();
        let mut facts = Self {
            version: 1,
            command: short_command_line(&identity),
            program: shown(program).into_owned(),
            folder: shown(&identity.cwd).into_owned(),
            rank: identity
                .rank
                .map(|rank| format!("rank {} of {}", rank.rank, rank.of)),
            host: run.as_ref().map(|run| run.host.clone()),
            recorded_at: meta.map(|meta| meta.recorded_at),
            run_at: run.as_ref().map(|run| run.meta.recorded_at),
            devices: run
                .as_ref()
                .map_or(Vec::new(), |run| run.went.devices.clone()),
            line: run.as_ref().map(|run| run.line.clone()),
            verdict: String::new(),
            findings: Vec::new(),
            unseen: unseen(summary.as_ref(), run.as_ref()),
            lacks: chosen.remarks,
            numbers,
            summary,
            record: digest,
            run,
            ranks: chosen.ranks,
        };
        facts.verdict = facts.verdict();
        let lacks = facts.lacking();
        facts.lacks.extend(lacks);
        facts
    }

    /// True if foreread prefetched for the last run.
    pub(crate) fn was_helped(&self) -> bool {
        self.run.as_ref().is_some_and(was_helped)
    }

    /// The outcome of the last run, in one sentence.
    fn verdict(&self) -> String {
        let Some(run) = &self.run else {
            return format!(
                "There is a record of {}, and no account of a run with foreread.",
                self.program
            );
        };
        let wall = duration(run.wall_ns);
        let because = run.why.as_ref().map(|why| why.sentence(&run.program));
        let because = because.map_or(String::new(), |why| format!(": {why}"));
        match (run.outcome, self.was_helped(), self.numbers.plain_ns) {
            (Outcome::Prefetched, true, Some(plain)) if run.wall_ns < plain => {
                let share = (plain - run.wall_ns) as f64 / plain as f64 * 100.0;
                format!(
                    "Faster by {share:.0} %: {wall} with foreread; the one run recorded without it took {}{because}.",
                    duration(plain)
                )
            }
            (Outcome::Prefetched, true, Some(plain)) => {
                let waited = self.numbers.limit_ns.map(|limit| {
                    let waited = duration(plain.saturating_sub(limit));
                    format!(", of which it waited {waited} for files")
                });
                format!(
                    "No faster: {wall} with foreread; the one run recorded without it took {}{}{because}.",
                    duration(plain),
                    waited.unwrap_or_default()
                )
            }
            (Outcome::Prefetched, true, None) => format!(
                "{wall} with foreread. The gain is not known, because no cold run without foreread is recorded{because}."
            ),
            (Outcome::Recorded, ..) => format!(
                "This run took {wall}. It was recorded, so that foreread can fetch ahead of the next one{because}."
            ),
            (Outcome::Aside | Outcome::Prefetched, ..) => {
                let told = run.line.strip_prefix("stood aside: ");
                let because = match because.as_str() {
                    "" => told.map_or(String::new(), |told| format!(": {told}")),
                    _ => because,
                };
                format!("foreread did nothing for this run of {wall}{because}.")
            }
        }
    }

    /// The missing facts.
    fn lacking(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        let mut say = |what: &str| lacks.push(what.to_owned());
        match (&self.record, &self.summary) {
            (None, _) => say(
                "There is no record of this command: which files it reads, and which of them it waits for, is not known.",
            ),
            (Some(_), None) => say(
                "The record has no end: its run was cut short, and only the reads before that are shown.",
            ),
            (Some(_), Some(summary)) if summary.helped => say(
                "foreread fetched for the recorded run, so its waits are not those of the command alone. foreread record -- COMMAND records a plain run; after a restart of the machine it is a cold one.",
            ),
            (Some(_), Some(summary)) if summary.cold_wall_ns.is_none() => say(
                "The recorded run found most of its files in memory. foreread record -- COMMAND after a restart of the machine records a cold run.",
            ),
            _ => {}
        }
        if let Some(damage) = self
            .record
            .as_ref()
            .and_then(|record| record.damage.as_ref())
        {
            lacks.push(format!(
                "The record is damaged, and only what comes before the damage is shown: {damage}."
            ));
        }
        let mut say = |what: &str| lacks.push(what.to_owned());
        match &self.run {
            None => say(
                "No account of a run with foreread is stored. foreread run writes it at its end, unless all files of the run were in memory.",
            ),
            Some(run) => {
                if run.went.devices.is_empty() {
                    say(
                        "The queue and the speed of the device are not known: the kernel counts neither for the file systems of this run.",
                    );
                }
                if run.went.samples.len() < 2 {
                    say(
                        "The run was too short, or was not observed long enough, for a course of distance and device over time.",
                    );
                }
            }
        }
        lacks
    }
}

impl Numbers {
    fn of(summary: Option<&Summary>, run: Option<&RunAccount>, digest: Option<&Digest>) -> Self {
        let plain_ns = summary.and_then(|summary| summary.cold_wall_ns);
        // The record of another command does not show how long this command takes.
        let own = run.filter(|run| run.followed_own);
        let plain_ns = plain_ns.or(own.and_then(|run| run.cold_wall_ns));
        let is_cold = summary.is_some_and(|summary| !summary.helped && plain_ns.is_some());
        let limit_ns = digest.filter(|_| is_cold).map(|digest| digest.busy_ns);
        let with_ns = run
            .filter(|run| was_helped(run) && run.outcome == Outcome::Prefetched)
            .map(|run| run.wall_ns);
        let masked = match (plain_ns, with_ns, limit_ns) {
            (Some(plain), Some(with), Some(limit)) if plain > limit => {
                Some((plain as f64 - with as f64) / (plain - limit) as f64)
            }
            _ => None,
        };
        Self {
            plain_ns,
            with_ns,
            limit_ns,
            masked,
        }
    }
}

fn was_helped(run: &RunAccount) -> bool {
    let issued = run.ledger.is_some_and(|ledger| ledger.issued > 0);
    issued || run.names.is_some_and(|names| names.fetched > 0)
}

/// Parts that were not observed, in the recording run and in the last run.
fn unseen(summary: Option<&Summary>, run: Option<&RunAccount>) -> Vec<String> {
    let mut unseen: Vec<String> = Vec::new();
    let mut say = |said: String| {
        if !unseen.contains(&said) {
            unseen.push(said);
        }
    };
    if let Some(run) = run {
        run.unobserved
            .iter()
            .for_each(|said| say(shown(said).into_owned()));
        if let Some(Why::Unobserved { because }) = &run.why {
            because
                .iter()
                .for_each(|said| say(shown(said).into_owned()));
        }
        if run.lost > 0 {
            say(format!(
                "{} reads of the last run came too fast to be reported",
                run.lost
            ));
        }
    }
    if let Some(summary) = summary {
        for said in &summary.unobserved {
            say(format!("when recorded: {}", shown(said)));
        }
        if summary.lost > 0 {
            say(format!(
                "when recorded: {} accesses came too fast to be reported",
                summary.lost
            ));
        }
    }
    unseen
}

/// A moment as text.
pub(crate) fn date(seconds: u64) -> String {
    let then = UNIX_EPOCH + Duration::from_secs(seconds.min(u64::from(u32::MAX)));
    let text = humantime::format_rfc3339_seconds(then).to_string();
    let minutes = text.get(..16).unwrap_or(&text);
    format!("{} UTC", minutes.replace('T', " "))
}
