//! The cases: their table, the makers of their data, and commands that are more than fixed words.

mod build;
mod data;
mod library;
mod mpi;
mod packages;
mod predicted;
mod predicted_sources;
mod predicted_ssh;
mod programs;
mod reads;
mod signature;
mod slice;
mod sqlite;
mod start;
// A row of a table is written on one line.
#[rustfmt::skip]
mod table;
mod words;

use std::sync::LazyLock;

use crate::case::Case;

pub use data::Random;
pub use reads::{FILE as RANDOM_FILE, RANDOM};
pub use signature::OTHER_INPUT;
pub use sqlite::times_memory as sql_times_memory;
pub use sqlite::{ROW_BYTES as SQLITE_ROW_BYTES, generate as generate_sqlite};

/// Processes started by the loop among the everyday commands.
pub const HOT_LOOP: u64 = 200;

/// Every case, in the order of the report.
pub fn all() -> &'static [Case] {
    static ALL: LazyLock<Vec<Case>> = LazyLock::new(listed);
    &ALL
}

fn listed() -> Vec<Case> {
    let named = |prefix: &'static str| {
        let quick = prefix == "hot-";
        table::EVERY_DAY.iter().map(move |case| Case {
            name: String::leak(format!("{prefix}{}", case.name)),
            quick: if quick { case.quick } else { &[] },
            ..*case
        })
    };
    let every_day = named("hot-").chain(named("busy-"));
    let cases = table::MAIN.iter().copied().chain(every_day);
    cases
        .chain(table::OTHERS.iter().copied())
        .chain(mpi::cases())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Data, Size};
    use crate::tools::{Tools, in_path};

    #[test]
    fn cases_share_a_folder_only_with_the_same_data() {
        let mut known: Vec<&Data> = Vec::new();
        for case in all() {
            let same = known.iter().find(|data| data.name == case.data.name);
            assert!(
                same.is_none_or(|data| std::ptr::eq(*data, case.data)),
                "{}",
                case.name
            );
            known.push(case.data);
        }
    }

    #[test]
    fn the_loop_starts_as_many_processes_as_its_cost_is_divided_by() {
        let case = all()
            .iter()
            .find(|case| case.name == "hot-loop")
            .expect("the loop");
        let tools = Tools {
            root: "/".into(),
            checkout: "/".into(),
        };
        let job = case
            .work
            .job("/".as_ref(), "/".as_ref(), Size::Quick, &tools);
        let line = job.expect("a job").command.line();
        assert!(line.contains(&format!("$(seq {HOT_LOOP})")), "{line}");
    }

    #[test]
    fn what_git_and_the_script_work_on_is_made_and_gives_the_same_each_time() {
        let (root, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let tools = Tools {
            root: root.path().to_owned(),
            checkout: "/".into(),
        };
        for name in ["hot-script", "hot-status", "hot-log"] {
            let case = all().iter().find(|case| case.name == name).expect("a case");
            if let Some((program, _)) = case.needs.iter().find(|(program, _)| !in_path(program)) {
                println!("skipped: {name}: no {program}");
                continue;
            }
            let data = case.data.folder(Size::Quick, &tools).unwrap();
            let job = case
                .work
                .job(&data, scratch.path(), Size::Quick, &tools)
                .unwrap();
            let run = || crate::process::run(&job.command, scratch.path(), &[]).unwrap();
            let (first, second) = (run(), run());
            assert_eq!(first.outcome, second.outcome, "{name}");
            assert_eq!(first.outcome.status, 0, "{}", first.stderr);
            assert!(!first.stdout.is_empty(), "{name}");
        }
    }
}
