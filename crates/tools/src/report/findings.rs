//! Findings about a command, the most costly first: what happened, where, and what to do about it.
//!
//! Data flow: [`CommandFacts`] → [`Finding`]s, sorted by cost; pure.

use std::cmp::Reverse;

use foreread_run::Why;
use foreread_words::counted;
use foreread_words::units::{bytes, duration};

use super::digest::{Order, SMALL};
use super::facts::{CommandFacts, Finding};

/// Files with waiting in the last run that become findings, at most.
const FILES: usize = 4;

/// Start of the clause about a changed file, after its path.
const CHANGES: [&str; 4] = [
    ": is another file ",
    ": has changed ",
    ": was modified ",
    NOT_FETCHED,
];
/// The clause about a file that was not fetched.
const NOT_FETCHED: &str = ": was not fetched: ";

impl CommandFacts {
    pub(crate) fn with_findings(mut self) -> Self {
        self.findings = of(&self);
        self
    }
}

/// All findings.
fn of(facts: &CommandFacts) -> Vec<Finding> {
    let mut found = Vec::new();
    in_record(facts, &mut found);
    in_run(facts, &mut found);
    for said in &facts.unseen {
        found.push(Finding {
            what: sentence(said),
            place: "not observed".to_owned(),
            advice: "Such reads are not fetched ahead. As root, foreread run --observer ebpf sees most of them.".to_owned(),
            cost_ns: None,
        });
    }
    // Findings with equal cost keep the order above.
    found.sort_by_key(|finding| Reverse(finding.cost_ns));
    found
}

/// Findings in the record.
fn in_record(facts: &CommandFacts, found: &mut Vec<Finding>) {
    let Some(record) = &facts.record else { return };
    let small = record.span_ns / SMALL;
    let helped = facts.was_helped();
    let advice = match helped {
        true => "foreread fetches it ahead.",
        false => "foreread run fetches it ahead when it is not in memory.",
    };
    for file in record.files.iter().filter(|file| file.alone) {
        let order = file.order();
        let advice = match order {
            Some(Order::Onward) => {
                "The kernel reads ahead of this by itself: foreread adds little."
            }
            _ => advice,
        };
        let order = match order {
            None => "",
            Some(Order::Onward) => " from front to back",
            Some(Order::Gaps) => " from front to back with gaps",
            Some(Order::Scattered) => " in scattered order",
        };
        found.push(Finding {
            what: format!(
                "When recorded, {} of this file{order} waited {} in all.",
                counted(file.reads_waited, "read", "reads"),
                duration(file.waited_ns)
            ),
            place: file.path.clone(),
            advice: advice.to_owned(),
            cost_ns: Some(file.waited_ns),
        });
    }
    if let Some(others) = (record.others.as_ref()).filter(|others| others.waited_ns >= small) {
        found.push(Finding {
            what: format!(
                "When recorded, {} of {} waited {} in all.",
                counted(others.reads_waited, "read", "reads"),
                if others.files == 1 {
                    "this file"
                } else {
                    "these files"
                },
                duration(others.waited_ns)
            ),
            place: match others.files {
                1 => others.place.clone(),
                files => format!("{files} files in {}", others.place),
            },
            advice: match (helped, others.files) {
                (_, 1) => advice,
                (true, _) => "foreread fetches them ahead.",
                (false, _) => "foreread run fetches them ahead when they are not in memory.",
            }
            .to_owned(),
            cost_ns: Some(others.waited_ns),
        });
    }
    if record.name_waited_ns >= small.max(1) {
        found.push(Finding {
            what: format!(
                "When recorded, opening or looking up files and listing folders waited {} in all, in {}.",
                duration(record.name_waited_ns),
                counted(record.names_waited, "call", "calls")
            ),
            place: "names of files and folders".to_owned(),
            advice: match helped {
                true => "foreread looks them up ahead.",
                false => "foreread run looks them up ahead when they are not in memory.",
            }
            .to_owned(),
            cost_ns: Some(record.name_waited_ns),
        });
    }
}

/// Findings in the last run.
fn in_run(facts: &CommandFacts, found: &mut Vec<Finding>) {
    let Some(run) = &facts.run else { return };
    let mut say = |what: String, place: &str, advice: &str, cost_ns| {
        found.push(Finding {
            what,
            place: place.to_owned(),
            advice: advice.to_owned(),
            cost_ns,
        });
    };
    let small = run.wall_ns / SMALL;
    if facts.was_helped() {
        for file in run.went.worst.iter().take(FILES) {
            if file.waited_ns >= small {
                say(
                    format!(
                        "With foreread, {} still waited {}.",
                        counted(file.reads, "read", "reads"),
                        duration(file.waited_ns)
                    ),
                    &file.path,
                    match file.reads {
                        1 => "Its bytes were still on the way, or are not in the record.",
                        _ => "Their bytes were still on the way, or are not in the record.",
                    },
                    Some(file.waited_ns),
                );
            }
        }
    }
    if let Some(ledger) = run.ledger.filter(|ledger| ledger.issued > 0) {
        let of = format!("of the {} fetched", bytes(ledger.issued));
        let share = |part: u64| part > ledger.issued / SMALL;
        if share(ledger.late) {
            say(
                format!(
                    "{} {of} came late: the program was waiting for them already.",
                    bytes(ledger.late)
                ),
                "the last run",
                "The device could not deliver them sooner. It may help to keep other programs off it.",
                None,
            );
        }
        if share(ledger.wasted) {
            say(
                format!("{} {of} were not read.", bytes(ledger.wasted)),
                "the last run",
                "If the command will read other files from now on, foreread record -- COMMAND makes a new record.",
                None,
            );
        }
        if share(ledger.evicted) {
            say(
                format!(
                    "{} {of} had left memory before they were read.",
                    bytes(ledger.evicted)
                ),
                "the last run",
                "Memory was short. Leave the command more of it, or run fewer programs beside it.",
                None,
            );
        }
        if ledger.missed > ledger.issued / SMALL {
            say(
                format!(
                    "The program waited for {} that were not fetched ahead.",
                    bytes(ledger.missed)
                ),
                "the last run",
                "If that happens again, foreread makes a new record by itself.",
                None,
            );
        }
    }
    if let Some(Why::Left { at, .. }) = &run.why {
        let place = at.as_ref().map_or("the record", |(file, _)| file);
        let what = run.why.as_ref().map(|why| why.sentence(&run.program));
        say(
            sentence(&what.unwrap_or_default()),
            place,
            "The next run follows what was seen of this one.",
            None,
        );
    }
    for file in &run.files {
        // The end of the path and the start of the clause.
        let joint = CHANGES.iter().find_map(|change| file.rfind(change));
        let advice = match file.contains(NOT_FETCHED) {
            true => "The next run tries again.",
            false => "The next run takes the file as it is now.",
        };
        let (what, place) = match joint {
            Some(joint) => (
                sentence(&format!("this file{}", &file[joint + 1..])),
                &file[..joint],
            ),
            None => (sentence(file), "changed since it was recorded"),
        };
        say(what, place, advice, None);
    }
}

/// Makes a sentence of a clause.
fn sentence(clause: &str) -> String {
    let clause = clause.trim_end_matches('.');
    // A file name keeps its first letter.
    match clause.chars().next() {
        Some(first) if first.is_ascii_lowercase() && !clause.contains('/') => {
            format!("{}{}.", first.to_ascii_uppercase(), &clause[1..])
        }
        _ => format!("{clause}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_become_sentences_and_names_stay_as_they_are() {
        assert_eq!(sentence("when recorded: 2"), "When recorded: 2.");
        assert_eq!(sentence("a/b: gone."), "a/b: gone.");
        assert_eq!(sentence(""), ".");
    }
}
