//! The plain command lines of `foreread run` and `foreread record`.
//!
//! Invariant: a command line that is read here means the same to `foreread-tools`, whose declaration of it makes the help and names
//! errors (a test there compares the two). A command line that is not read here is read there, whatever is unusual or wrong about it.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use foreread_run::{Choice, Limits, RunArgs, parse_cache};

/// Whether command lines are always to be redacted.
pub fn redacts() -> bool {
    std::env::var_os("FOREREAD_REDACT").is_some_and(|value| !value.is_empty() && value != "0")
}

/// The run that these words, without the program's name, ask for; `None` if it is none, or not said plainly.
pub fn run(words: impl IntoIterator<Item = OsString>) -> Option<RunArgs> {
    let mut words = words.into_iter();
    let first = words.next()?;
    let records = match first.to_str()? {
        "run" => false,
        "record" => true,
        _ => return None,
    };
    let mut run = RunArgs {
        command: Vec::new(),
        quiet: false,
        explain: false,
        json: None,
        prefetch: !records,
        observer: Choice::Auto,
        record: true,
        output: None,
        redact: redacts(),
        cache: None,
        map: Default::default(),
        limits: Limits::default(),
    };
    let mut seen: Vec<String> = Vec::new();
    loop {
        let word = words.next()?.into_string().ok()?;
        if !word.starts_with('-') && !word.is_empty() {
            run.command.push(word.into());
            break;
        }
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (word.as_str(), None),
        };
        let mut value = || value.clone().or_else(|| words.next());
        match name {
            "--" if name == word => break,
            "--json-out" | "--json" if !records => run.json = Some(path(value()?)?),
            "--output" if records => run.output = Some(path(value()?)?),
            "--observer" => run.observer = observer(&value()?)?,
            "--cache" if !records => run.cache = parse_cache(value()?.to_str()?).ok(),
            // A flag has no value.
            _ if name != word => return None,
            "-q" | "--quiet" => run.quiet = true,
            "--redact" => run.redact = true,
            "--explain" if !records => run.explain = true,
            "--no-prefetch" if !records => run.prefetch = false,
            "--no-record" if !records => run.record = false,
            _ => return None,
        }
        // Said twice is wrong, and the other program says so.
        let name = match name {
            "-q" => "--quiet",
            "--json" => "--json-out",
            name => name,
        };
        if seen.iter().any(|one| one == name) || (name == "--cache" && run.cache.is_none()) {
            return None;
        }
        seen.push(name.to_owned());
    }
    run.command.extend(words);
    let wrong = run.command.is_empty() || run.quiet && run.explain;
    (!wrong).then_some(run)
}

fn observer(name: &OsStr) -> Option<Choice> {
    match name.to_str()? {
        "auto" => Some(Choice::Auto),
        "preload" => Some(Choice::Preload),
        "ebpf" => Some(Choice::Ebpf),
        _ => None,
    }
}

/// A value that cannot be taken for an option.
fn path(value: OsString) -> Option<PathBuf> {
    let plain = !value.is_empty() && !value.as_encoded_bytes().starts_with(b"-");
    plain.then(|| value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<RunArgs> {
        run(line.split(' ').map(OsString::from))
    }

    #[test]
    fn plain_lines_are_read_and_others_are_left() {
        let plain = of("run --quiet --json=a.json --observer ebpf -- ls --json -q").unwrap();
        assert_eq!(plain.command, ["ls", "--json", "-q"]);
        assert_eq!(plain.json.as_deref(), Some("a.json".as_ref()));
        assert!(plain.quiet && plain.prefetch && plain.record);
        assert_eq!(plain.observer, Choice::Ebpf);
        let without = of("run -q make -j4 -- x").unwrap();
        assert_eq!(without.command, ["make", "-j4", "--", "x"]);
        assert!(without.quiet);
        let record = of("record --output x.fr -- true").unwrap();
        assert!(!record.prefetch && record.record);
        assert_eq!(record.output.as_deref(), Some("x.fr".as_ref()));
        for other in [
            "list",
            "run",
            "run --",
            "run --quiet",
            "run --help",
            "run --quiet=1 -- ls",
            "run --quiet --quiet -- ls",
            "run --quiet --explain -- ls",
            "run --cache nothing -- ls",
            "run --cache 1 -- ls",
            "run --json -- ls",
            "run --json a --json-out b -- ls",
            "run --output x -- ls",
            "run --observer nobody -- ls",
            "record --no-record -- ls",
            "record -ox.fr -- ls",
        ] {
            assert!(of(other).is_none(), "{other}");
        }
    }
}
