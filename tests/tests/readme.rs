//! README.md stays true: every command and every piece of code that it quotes is run, or is on the list of exceptions with a reason. A
//! quotation on neither list fails. Commands that the documents name must exist.

use std::collections::BTreeSet;
use std::path::PathBuf;

use foreread_tests::suite::{QUICK, Suite, Test};
use foreread_tests::{Lab, Need, check, check_not_held_up, finish, foreread, root, start, text};

/// Quotations that no test here runs, by their beginnings, with the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("make install", "writes below /usr/local"),
    ("sudo make install", "the same"),
    ("make test", "runs this test"),
    ("foreread run -- COMMAND", "stands for any command"),
];

const RUN: &str = "foreread run -- sqlite3 orders.db < query.sql";

const TESTS: &[Test] = &[
    ("every_quotation_is_run_or_named", QUICK, &[], all_known),
    (
        "the_run_that_is_shown_says_what_is_shown",
        QUICK,
        &[Need::Command("sqlite3")],
        shown_run,
    ),
    ("the_commands_it_names_exist", QUICK, &[], commands),
    (
        "the_targets_of_make_exist",
        QUICK,
        &[Need::Command("make")],
        targets,
    ),
    ("the_files_it_refers_to_exist", QUICK, &[], links),
    (
        "its_figures_stand_on_the_pages_that_it_names",
        QUICK,
        &[],
        figures,
    ),
];

pub fn add(suite: &mut Suite) {
    suite.add("readme", TESTS);
    let name = "readme::the_code_in_c_compiles";
    suite.add_one(name.to_owned(), QUICK, &[], no_library, code_in_c);
}

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).expect("README.md")
}

/// The lines of code blocks, each with its block's language: fenced blocks have one, blocks indented by four have none.
fn quoted() -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let mut fence: Option<String> = None;
    for line in readme().lines() {
        if let Some(language) = line.strip_prefix("```") {
            fence = match fence {
                None => Some(language.to_owned()),
                Some(_) => None,
            };
        } else if let Some(language) = &fence {
            lines.push((language.clone(), line.to_owned()));
        } else if let Some(line) = line.strip_prefix("    ") {
            lines.push((String::new(), line.to_owned()));
        }
    }
    assert!(lines.len() > 8, "the blocks are found: {lines:?}");
    lines
}

/// A line without its prompt, its comment and the explanation beside it.
fn command(line: &str) -> &str {
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let line = line.split(" # ").next().unwrap_or(line);
    line.split("   ").next().unwrap_or(line).trim()
}

/// The commands of the blocks without a language.
fn quoted_commands() -> Vec<String> {
    let plain: Vec<String> = quoted()
        .into_iter()
        .filter(|(language, _)| language.is_empty())
        .map(|(_, line)| line)
        .collect();
    let starts = |line: &&String| {
        let known = ["$ ", "make ", "foreread "];
        known.iter().any(|word| line.starts_with(word)) && !line.contains(": ")
    };
    plain
        .iter()
        .filter(starts)
        .map(|line| command(line).to_owned())
        .collect()
}

fn all_known() {
    let commands = quoted_commands();
    assert!(commands.len() >= 4, "{commands:?}");
    let unknown: Vec<String> = commands
        .into_iter()
        .filter(|line| line != RUN && !NOT_RUN.iter().any(|(start, _)| line.starts_with(start)))
        .collect();
    assert_eq!(unknown, [""; 0], "nobody runs these");
    let languages: Vec<String> = quoted().into_iter().map(|(language, _)| language).collect();
    let known = |language: &String| ["", "c"].contains(&language.as_str());
    assert!(languages.iter().all(known), "{languages:?}");
}

/// The words of a line without figures and their units, which differ from run to run.
fn words(said: &str) -> Vec<String> {
    let units = ["ms", "s", "MiB", "KiB", "B"];
    let words = said.split_whitespace().filter(|word| {
        !units.contains(&word.trim_end_matches([',', ';']))
            && !word.starts_with(|c: char| c.is_ascii_digit())
    });
    words.map(str::to_owned).collect()
}

fn shown_run() {
    let readme = quoted();
    let at = |n: usize| {
        let places = readme.iter().enumerate();
        let mut runs = places.filter(|(_, (_, line))| command(line) == RUN);
        let (at, _) = runs.nth(n).expect("the command is there twice");
        readme[at + 1].1.clone()
    };
    let lab = Lab::new();
    let make = "create table t(k integer, pad blob);
        with recursive n(i) as (values(0) union all select i + 1 from n where i < 11999)
        insert into t select i * 7919 % 12007, zeroblob(900) from n;
        create index by_k on t(k);";
    assert!(lab.plain(&["sqlite3", "orders.db", make]).status.success());
    lab.write(
        "query.sql",
        "select sum(k * length(pad)) from t indexed by by_k where k > 100;\n",
    );
    let line = RUN.replace("foreread", foreread().to_str().expect("a readable path"));
    let run = || {
        lab.cold(&["orders.db"]);
        let output = finish(start(lab.command("sh").args(["-c", &line])));
        assert!(output.status.success(), "{output:?}");
        check_not_held_up(&output);
        text(&output.stderr)
    };
    let (first, second) = (run(), run());
    // How many bytes of a first run signatures prefetch depends on how soon they are found; perhaps none.
    let end = |said: &str| {
        let at = said
            .find("recorded ")
            .unwrap_or_else(|| panic!("not recorded: {said}"));
        words(&said[at..])
            .into_iter()
            .filter(|word| !["of", "in", "sqlite3"].contains(&word.as_str()))
            .collect::<Vec<_>>()
    };
    check!(
        end(&first) == end(&at(0)) || !first.contains(" ahead of sqlite3"),
        "{first}"
    );
    // Only columns that are not empty are printed.
    check!(
        words(&second).get(..5) == words(&at(1)).get(..5),
        "{second}"
    );
    check!(second.contains(" against "), "{second}");
}

/// The commands in README.md and docs/, by the words before their first argument: `foreread show NAME` is `show`.
fn named_commands() -> BTreeSet<Vec<String>> {
    let folder = std::fs::read_dir(root().join("docs")).expect("docs/");
    let pages = folder.map(|entry| entry.expect("an entry").path());
    let pages = pages.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let texts = pages.map(|path| std::fs::read_to_string(path).expect("a page"));
    let mut names = BTreeSet::new();
    for text in texts.chain([readme()]) {
        // Every second piece is between backquotes.
        let code = text.split('`').skip(1).step_by(2);
        for name in code.filter_map(|code| code.strip_prefix("foreread ")) {
            let lower = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '+');
            let words = name.split_whitespace().take_while(lower);
            names.insert(words.map(str::to_owned).collect());
        }
    }
    names.retain(|words: &Vec<String>| !words.is_empty());
    names
}

fn commands() {
    let names = named_commands();
    assert!(names.len() >= 12, "the commands are found: {names:?}");
    for words in names {
        let lab = Lab::new();
        // These pass every argument on to the compiler.
        let driver = ["cc", "c++"].contains(&words[0].as_str());
        let help = if driver { "--version" } else { "--help" };
        let line: Vec<&str> = words.iter().map(String::as_str).chain([help]).collect();
        let output = lab.foreread(&line);
        // Without its translator the command prints how to build it.
        let said = text(&output.stderr);
        let known = output.status.success() || said.contains("make slicer builds it");
        assert!(known, "foreread {words:?}: {output:?}");
    }
}

/// The library's path, as built by `make build`.
fn library() -> PathBuf {
    root().join("target/release/libforeread.a")
}

fn no_library() -> Option<String> {
    (!library().is_file()).then(|| "no libforeread.a: make build".to_owned())
}

/// The quoted C code compiles within a program.
fn code_in_c() {
    let lines = quoted().into_iter().filter(|(language, _)| language == "c");
    let (includes, body): (Vec<String>, Vec<String>) = lines
        .map(|(_, line)| line)
        .partition(|line| line.starts_with('#'));
    assert!(!includes.is_empty() && body.len() >= 3, "{body:?}");
    let program = format!(
        "#include <stddef.h>\n#include <stdint.h>\n{}\nvoid part(int fd, const foreread_entry *list, size_t n);\n\
         void part(int fd, const foreread_entry *list, size_t n)\n{{\nforeread_client *client;\n{}\n}}\n",
        includes.join("\n"),
        body.join("\n")
    );
    let lab = Lab::new();
    lab.write("part.c", program);
    let include = root().join("crates/capi/include");
    let include = include.to_str().expect("a readable path");
    let flags = [
        "cc", "-Wall", "-Wextra", "-Werror", "-I", include, "-c", "part.c",
    ];
    let output = lab.plain(&flags);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Every `make TARGET` of the blocks, and of the comments beside them, exists.
fn targets() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).expect("a Makefile");
    let readme = readme();
    let words: Vec<&str> = readme.split_whitespace().collect();
    let mut count = 0;
    for pair in words.windows(2) {
        let target = pair[1].trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        if pair[0].trim_start_matches(['`', '(']) != "make" || ["what", "and"].contains(&target) {
            continue;
        }
        let there = makefile
            .lines()
            .any(|line| line.starts_with(&format!("{target}:")));
        assert!(target.is_empty() || there, "make {target}");
        count += 1;
    }
    assert!(count >= 4, "{count} targets");
}

/// The linked files of the repository exist.
fn links() {
    let readme = readme();
    let mut count = 0;
    for (at, _) in readme.match_indices("](") {
        let rest = &readme[at + 2..];
        let link = &rest[..rest.find(')').expect("an end")];
        if !link.contains("://") {
            let path = root().join(link.split('#').next().unwrap_or(link));
            assert!(path.exists(), "{link}");
            count += 1;
        }
    }
    assert!(count >= 5, "{count} links");
}

/// The page of figures that the text links for a row's number: the first link after its last mention.
fn page_of(text: &str, number: &str) -> String {
    let at = text
        .rfind(number)
        .unwrap_or_else(|| panic!("{number} has no page"));
    let rest = &text[at..];
    let rest = &rest[rest.find("](bench/figures/").expect("a page of figures") + 2..];
    let link = &rest[..rest.find(')').expect("an end")];
    std::fs::read_to_string(root().join(link)).expect(link)
}

/// The measured times of a row: the cells with a figure, without sign and unit.
fn times(cells: &[&str]) -> Vec<String> {
    let figure = |cell: &&str| {
        let cell = cell.trim_start_matches("+ ").trim_end_matches(" ms");
        let is_figure = cell.starts_with(|c: char| c.is_ascii_digit());
        is_figure.then(|| cell.to_owned())
    };
    cells.iter().filter_map(figure).collect()
}

/// Each row's times are on one line of the page that the README links for the row.
fn figures() {
    let readme = readme();
    let (_, section) = readme.split_once("## Figures").expect("the figures");
    let (table, notes) = section.split_once("Machine:").expect("the notes");
    let mut count = 0;
    for line in table.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let Some((_, number)) = cells[1]
            .rsplit_once(' ')
            .filter(|(_, end)| end.starts_with('['))
        else {
            continue;
        };
        let (page, times) = (page_of(notes, number), times(&cells[3..6]));
        let is_there = |line: &str| times.iter().all(|time| line.contains(time.as_str()));
        assert!(!times.is_empty(), "{line}");
        assert!(page.lines().any(is_there), "{times:?} of {number}");
        count += 1;
    }
    assert!(count >= 7, "{count} rows");
}
