//! The observers of both commands ("doors"), and the events that each does not see. docs/observers.md has the same list, which a test
//! compares.

/// An observer of one door: `foreread run`, or the daemon.
pub struct Sight {
    pub door: &'static str,
    pub observer: &'static str,
    /// Verbs that it does not deliver for any program.
    pub verbs: &'static [Verb],
    /// Single cases of which it delivers other events.
    pub cases: &'static [Otherwise],
}

/// Verbs that are not delivered, or delivered as another verb.
pub struct Verb {
    pub verbs: &'static [&'static str],
    pub delivered_as: Option<&'static str>,
    pub why: &'static str,
}

/// Cases with other events.
pub struct Otherwise {
    pub cases: &'static [&'static str],
    pub delivers: Delivers,
    pub why: &'static str,
}

/// The events that are delivered in place of the case's own.
#[derive(Clone, Copy)]
pub enum Delivers {
    /// No events: the library cannot be in the program.
    Nothing,
    /// These events after the start.
    This(&'static str),
    /// Each first word is replaced by the second one.
    Instead(&'static [(&'static str, &'static str)]),
    /// A varying part of the events.
    Part,
}

use Delivers::{Instead, Nothing, Part, This};

const READS: &[&str] = &[
    "read",
    "pread",
    "readv",
    "preadv",
    "stdio",
    "sendfile",
    "copy_file_range",
    "splice",
];
const NAMES: &[&str] = &["stat", "list"];

const fn unseen(verbs: &'static [&'static str], why: &'static str) -> Verb {
    Verb {
        verbs,
        delivered_as: None,
        why,
    }
}

const fn taken_for(verb: &'static [&'static str], other: &'static str, why: &'static str) -> Verb {
    Verb {
        verbs: verb,
        delivered_as: Some(other),
        why,
    }
}

const fn of(cases: &'static [&'static str], delivers: Delivers, why: &'static str) -> Otherwise {
    Otherwise {
        cases,
        delivers,
        why,
    }
}

/// Programs that cannot load the preload library.
const OUTSIDE: Otherwise = of(
    &[
        "a static program",
        "a 32-bit program",
        "a static program of musl",
        "a program of musl",
        "the same, static",
        "the same, without a C library",
    ],
    Nothing,
    "the library is not in the program",
);
/// System calls that the library does not intercept.
const PAST: &[&str] = &["io_uring_enter", "io_submit"];
const SHORT_LIVED: &[&str] = &[
    "fork",
    "vfork",
    "system, popen, wordexp",
    "posix_spawn",
    "exec",
    "a file that is gone",
    "sendfile, copy_file_range, splice",
];
const GONE: &str = "what is gone before the daemon looks is not found";

pub const SIGHTS: &[Sight] = &[
    Sight {
        door: "run",
        observer: "preload",
        verbs: &[
            unseen(&["fetch"], "the kernel alone knows"),
            unseen(
                &["touch"],
                "foreread looks for mapped pages itself, in the page table",
            ),
        ],
        cases: &[
            OUTSIDE,
            of(
                &["system calls of its own"],
                This(""),
                "the library intercepts functions of the C library",
            ),
            of(
                PAST,
                This("open data"),
                "reads that no function of the C library makes",
            ),
            of(
                &["liburing"],
                Instead(&[("pread data 0+33", ""), ("pread data 300+20", "")]),
                "reads at the cursor and of registered files are known to the kernel alone",
            ),
            of(
                &["opened by a descriptor's name"],
                Instead(&[("open data", "")]),
                "the file is found open",
            ),
            of(
                &["opened by a name of its own"],
                This("read data 0+10"),
                "a name that is not absolute is not known to be a descriptor's",
            ),
            of(
                &["a pipe"],
                This("write pipe"),
                "the kind of an opened file is looked at later",
            ),
            of(
                &["vfork"],
                This(
                    "open data, read data 0+10, read data 10+20, fork, begin cat, read data 30+19970, read data 0+30",
                ),
                "a child that does nothing with files of its own does not report",
            ),
        ],
    },
    Sight {
        door: "run",
        observer: "ebpf",
        verbs: &[
            unseen(&["fetch"], "known by the waits of reads and touches"),
            taken_for(
                &["stdio"],
                "read",
                "to the kernel a stream's read is one like others",
            ),
        ],
        cases: &[
            of(
                &["O_PATH"],
                This("open data"),
                "it is an open like others, without reads",
            ),
            of(
                &["a thread of libforeread's"],
                This(
                    "open data, read data 0+100, open other, read other 0+50, pread other 1000+50, open other, read other 0+50, \
                     pread other 1000+50, read data 100+100, pread data 7000+100",
                ),
                "threads of the program are not told apart by who has started them",
            ),
        ],
    },
    Sight {
        door: "daemon",
        observer: "ebpf",
        verbs: &[
            unseen(READS, "the daemon predicts files, not reads"),
            unseen(NAMES, "the daemon learns names of files that are opened"),
            unseen(&["touch"], "the daemon predicts files, not pages"),
        ],
        cases: &[of(
            &["a thread of libforeread's"],
            This("open data, open other, open other"),
            "threads of the program are not told apart by who has started them",
        )],
    },
    Sight {
        door: "daemon",
        observer: "fanotify",
        verbs: &[
            unseen(READS, "the daemon predicts files, not reads"),
            unseen(NAMES, "the daemon learns names of files that are opened"),
            unseen(&["touch"], "the daemon predicts files, not pages"),
            unseen(&["fetch"], "fanotify reports opens"),
            taken_for(
                &["write"],
                "open",
                "fanotify does not say what a file is opened for",
            ),
        ],
        cases: &[
            of(SHORT_LIVED, Part, GONE),
            of(
                &["a number used again", "freopen, fdopen"],
                Part,
                "opens of one file by one process, one soon after the other, are one event",
            ),
            of(
                &[
                    "opened by a descriptor's name",
                    "opened by a name of its own",
                ],
                Part,
                "opens of one file by one process, one soon after the other, are one event",
            ),
            of(
                &["a thread of libforeread's"],
                This("open data, open other"),
                "threads of the program are not told apart by who has started them",
            ),
        ],
    },
    Sight {
        door: "daemon",
        observer: "preload",
        verbs: &[
            unseen(READS, "the daemon predicts files, not reads"),
            unseen(NAMES, "the daemon learns names of files that are opened"),
            unseen(&["touch"], "the daemon predicts files, not pages"),
            unseen(&["fetch"], "the kernel alone knows"),
        ],
        cases: &[
            OUTSIDE,
            of(
                &["system calls of its own"],
                This(""),
                "the library intercepts functions of the C library",
            ),
            of(SHORT_LIVED, Part, GONE),
            of(
                &[
                    "opened by a descriptor's name",
                    "opened by a name of its own",
                ],
                This(""),
                "the file is found open",
            ),
        ],
    },
];

impl Sight {
    /// The difference of a case, if it has one.
    pub fn otherwise(&self, case: &str) -> Option<&'static Otherwise> {
        self.cases.iter().find(|one| one.cases.contains(&case))
    }

    /// The events that are delivered when a program does this.
    pub fn delivered(&self, case: &str, does: &'static str) -> Vec<String> {
        let (does, instead): (_, &[(&str, &str)]) =
            match self.otherwise(case).map(|one| one.delivers) {
                Some(This(other)) => (other, &[]),
                Some(Instead(others)) => (does, others),
                _ => (does, &[]),
            };
        let words = does.split(", ").filter(|word| !word.is_empty());
        let words = words.filter_map(|word| {
            let word = instead
                .iter()
                .find(|(of, _)| *of == word)
                .map_or(word, |(_, other)| other);
            let (verb, rest) = word.split_once(' ').unwrap_or((word, ""));
            match self.verbs.iter().find(|one| one.verbs.contains(&verb)) {
                _ if word.is_empty() => None,
                None => Some(word.to_owned()),
                Some(verb) => verb.delivered_as.map(|other| format!("{other} {rest}")),
            }
        });
        words.collect()
    }

    /// The rows of the list of unseen events, as Markdown.
    pub fn rows(&self) -> Vec<String> {
        let at = format!("| {} | {} |", self.door, self.observer);
        let verbs = self.verbs.iter().map(|verb| {
            let verbs = verb.verbs.iter().map(|verb| format!("`{verb}`"));
            let verbs: Vec<String> = verbs.collect();
            let other = verb.delivered_as.map(|other| format!(" as `{other}`"));
            let other = other.unwrap_or_default();
            format!("{at} {}{other} | {} |", verbs.join(", "), verb.why)
        });
        let cases = self
            .cases
            .iter()
            .map(|one| format!("{at} {} | {} |", one.cases.join("; "), one.why));
        verbs.chain(cases).collect()
    }
}
