//! The status in Prometheus's text format, for whoever collects it: printed on demand, or in a file that is replaced as a whole, as
//! node_exporter's textfile collector reads.
//!
//! Invariants: each metric has one HELP and one TYPE line before its samples; no two samples have the same name and labels; a label's
//! value is escaped and bounded, and there are at most [`PROGRAMS`] programs, whatever programs call themselves.
//!
//! Data flow: [`Status`] → [`text`] → [`replace`](foreread_sys::replace).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::{Ledger, Predictions, Status};

/// Programs with samples of their own: those with most bytes fetched. The others are in the sums.
const PROGRAMS: usize = 50;
/// Characters of a label's value.
const MOST_LABEL: usize = 64;

/// The status as text.
pub fn text(status: &Status) -> String {
    let mut out = Text(String::new());
    let about = [
        ("version", status.version.as_str()),
        ("observer", &status.observer),
        ("model", &status.model.kind),
    ];
    out.gauge("info", "What the daemon is.").sample(&about, 1);
    let since = "When the daemon was started, in seconds since 1970.";
    out.gauge("start_time_seconds", since)
        .sample(&[], status.since);
    events(&mut out, status);
    model(&mut out, status);
    out.counter("predictions_total", "Files predicted at the threshold.")
        .sample(&[], status.predictions.made);
    let mut judged = out.counter(
        "predictions_judged_total",
        "Files predicted that were opened (right) or not (wrong).",
    );
    for (outcome, count) in outcomes(&status.predictions) {
        judged.sample(&[("outcome", outcome)], count);
    }
    out.counter(
        "foretold_events_total",
        "Events whose file was predicted before.",
    )
    .sample(&[], status.predictions.foretold);
    out.counter(
        "judged_events_total",
        "Events whose file could have been predicted.",
    )
    .sample(&[], status.predictions.events);
    let mut lead = out.gauge(
        "lead_seconds",
        "From a prediction to the event it foretold: half of them, and a tenth, were shorter.",
    );
    let quantiles = [("0.1", status.lead.tenth), ("0.5", status.lead.median)];
    for (quantile, ns) in quantiles {
        lead.sample(&[("quantile", quantile)], seconds(ns));
    }
    out.counter("fetched_bytes_total", "Bytes fetched ahead of programs.")
        .sample(&[], status.bytes.issued);
    let mut fates = out.counter("fate_bytes_total", "What became of bytes fetched ahead.");
    for (fate, bytes) in fates_of(&status.bytes) {
        fates.sample(&[("fate", fate)], bytes);
    }
    if let Some(missed) = status.missed() {
        out.counter(
            "missed_bytes_total",
            "Bytes that programs fetched themselves.",
        )
        .sample(&[], missed);
    }
    out.gauge("holding_back", "Whether nothing is fetched at present.")
        .sample(&[], u8::from(status.pressure.is_some()));
    out.counter("processor_seconds_total", "Processor time of the daemon.")
        .sample(&[], seconds(status.processor_ns));
    out.gauge("resident_bytes", "Memory of the daemon.")
        .sample(&[], status.memory);
    programs(&mut out, status);
    out.0
}

fn events(out: &mut Text, status: &Status) {
    out.counter("events_total", "Events taken from the observer.")
        .sample(&[], status.events);
    out.counter("events_ignored_total", "Events of no use.")
        .sample(&[], status.ignored);
    let mut lost = BTreeMap::new();
    for (probe, count) in status.lost.iter().take(PROGRAMS) {
        *lost.entry(value(probe)).or_insert(0) += count;
    }
    let mut family = out.counter(
        "events_lost_total",
        "Events that the observer lost, by probe.",
    );
    for (probe, count) in lost {
        family.sample(&[("probe", &probe)], count);
    }
}

fn model(out: &mut Text, status: &Status) {
    let model = &status.model;
    out.gauge("model_symbols", "Files and program starts known.")
        .sample(&[], model.symbols);
    out.gauge("model_partitions", "Partitions of the models.")
        .sample(&[], model.partitions);
    out.gauge("model_bytes", "Memory of the models.")
        .sample(&[], model.bytes);
    let saved = "When the models were saved last, in seconds since 1970; 0: never.";
    out.gauge("model_saved_time_seconds", saved)
        .sample(&[], model.saved);
}

fn programs(out: &mut Text, status: &Status) {
    // Names that are the same once they are cut are one.
    let mut programs: BTreeMap<(String, u32), (Ledger, Predictions)> = BTreeMap::new();
    for program in status.programs.iter().take(PROGRAMS) {
        let key = (value(&program.name), program.uid);
        let (bytes, predictions) = programs.entry(key).or_default();
        *bytes += program.bytes;
        predictions.right += program.predictions.right;
        predictions.wrong += program.predictions.wrong;
    }
    let mut family = out.counter(
        "program_fetched_bytes_total",
        "Bytes fetched, by program and user.",
    );
    for ((name, uid), (bytes, _)) in &programs {
        let labels = [("program", name.as_str()), ("uid", &uid.to_string())];
        family.sample(&labels, bytes.issued);
    }
    let mut family = out.counter(
        "program_fate_bytes_total",
        "What became of bytes fetched, by program and user.",
    );
    for ((name, uid), (bytes, _)) in &programs {
        for (fate, bytes) in fates_of(bytes) {
            let uid = uid.to_string();
            let labels = [("program", name.as_str()), ("uid", &uid), ("fate", fate)];
            family.sample(&labels, bytes);
        }
    }
    let mut family = out.counter(
        "program_predictions_judged_total",
        "Files predicted that were opened or not, by program and user.",
    );
    for ((name, uid), (_, predictions)) in &programs {
        for (outcome, count) in outcomes(predictions) {
            let uid = uid.to_string();
            let labels = [
                ("program", name.as_str()),
                ("uid", &uid),
                ("outcome", outcome),
            ];
            family.sample(&labels, count);
        }
    }
}

fn fates_of(bytes: &Ledger) -> [(&'static str, u64); 5] {
    [
        ("useful", bytes.useful),
        ("late", bytes.late),
        ("wasted", bytes.wasted),
        ("evicted", bytes.evicted),
        ("infill", bytes.infill),
    ]
}

fn outcomes(predictions: &Predictions) -> [(&'static str, u64); 2] {
    [("right", predictions.right), ("wrong", predictions.wrong)]
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// A label's value, of bounded length, without control characters.
fn value(text: &str) -> String {
    let text = foreread_words::shown(text);
    text.chars().take(MOST_LABEL).collect()
}

/// The growing text: samples belong to the metric begun last.
struct Text(String);

impl Text {
    fn gauge(&mut self, name: &str, help: &str) -> Family<'_> {
        self.family(name, "gauge", help)
    }

    fn counter(&mut self, name: &str, help: &str) -> Family<'_> {
        self.family(name, "counter", help)
    }

    fn family(&mut self, name: &str, kind: &str, help: &str) -> Family<'_> {
        let name = format!("foreread_{name}");
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family {
            name,
            out: &mut self.0,
        }
    }
}

struct Family<'a> {
    name: String,
    out: &'a mut String,
}

impl Family<'_> {
    fn sample(&mut self, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", labels.join(",")),
        };
        let _ = writeln!(self.out, "{}{labels} {value}", self.name);
    }
}

fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use proptest::prelude::*;

    use super::*;
    use crate::{Lead, Program};

    /// A sample: its name, its labels in order, its value.
    type Sample = (String, Vec<(String, String)>, f64);

    /// Parses the text format; panics at an invalid line.
    fn parse(text: &str) -> (HashMap<String, String>, Vec<Sample>) {
        assert!(text.ends_with('\n'));
        let (mut kinds, mut helped, mut samples) = (HashMap::new(), HashSet::new(), Vec::new());
        let mut current = String::new();
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').expect("a help");
                assert!(helped.insert(name.to_owned()), "{name} twice");
                assert!(!help.is_empty());
                current = name.to_owned();
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').expect("a type");
                assert_eq!(name, current, "TYPE follows HELP");
                assert!(["gauge", "counter"].contains(&kind));
                assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
                assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none());
            } else {
                let sample = sample(line);
                assert_eq!(sample.0, current, "samples follow their TYPE");
                samples.push(sample);
            }
        }
        (kinds, samples)
    }

    fn sample(line: &str) -> Sample {
        let end = line.find(['{', ' ']).expect("a name");
        let (name, mut rest) = line.split_at(end);
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        let mut labels = Vec::new();
        if let Some(inner) = rest.strip_prefix('{') {
            rest = inner;
            loop {
                let (label, after) = rest.split_once("=\"").expect("a label");
                assert!(label.chars().all(|c| c.is_ascii_lowercase()));
                let mut value = String::new();
                let mut chars = after.char_indices();
                let end = loop {
                    match chars.next().expect("an end") {
                        (at, '"') => break at,
                        (_, '\\') => match chars.next().expect("an escape").1 {
                            'n' => value.push('\n'),
                            other @ ('\\' | '"') => value.push(other),
                            other => panic!("\\{other}"),
                        },
                        (_, plain) => value.push(plain),
                    }
                };
                labels.push((label.to_owned(), value));
                rest = &after[end + 1..];
                if let Some(after) = rest.strip_prefix('}') {
                    rest = after;
                    break;
                }
                rest = rest.strip_prefix(',').expect("another label");
            }
        }
        let value = rest.strip_prefix(' ').expect("a value");
        (name.to_owned(), labels, value.parse().expect("a number"))
    }

    fn program(name: &str, uid: u32) -> Program {
        Program {
            name: name.to_owned(),
            uid,
            bytes: Ledger {
                issued: 10,
                useful: 6,
                ..Ledger::default()
            },
            ..Program::default()
        }
    }

    #[test]
    fn the_status_is_there_in_the_text() {
        let status = Status {
            version: "1.2".to_owned(),
            events: 12,
            lost: vec![("open".to_owned(), 3)],
            processor_ns: 1_500_000_000,
            pressure: Some("memory".to_owned()),
            lead: Lead {
                median: 20_000_000,
                ..Lead::default()
            },
            programs: vec![program("cc1", 1000)],
            ..Status::default()
        };
        let (kinds, samples) = parse(&text(&status));
        assert!(kinds.len() > 20);
        let value = |name: &str, label: &str| {
            let found: Vec<_> = samples
                .iter()
                .filter(|(one, labels, _)| {
                    one == &format!("foreread_{name}")
                        && (label.is_empty() || labels.iter().any(|(_, value)| value == label))
                })
                .collect();
            assert_eq!(found.len(), 1, "{name} {label}");
            found[0].2
        };
        assert_eq!(value("events_total", ""), 12.0);
        assert_eq!(value("events_lost_total", "open"), 3.0);
        assert_eq!(value("processor_seconds_total", ""), 1.5);
        assert_eq!(value("holding_back", ""), 1.0);
        assert_eq!(value("lead_seconds", "0.5"), 0.02);
        assert_eq!(value("program_fetched_bytes_total", "cc1"), 10.0);
        assert_eq!(value("program_fate_bytes_total", "useful"), 6.0);
        assert_eq!(value("info", "1.2"), 1.0);
    }

    proptest! {
        #[test]
        fn whatever_programs_are_called_the_text_can_be_read(
            names in prop::collection::vec("(?s).{0,100}", 0..80),
            odd in "[\\\\\"\n{}, ]{0,20}",
        ) {
            let names = names.iter().chain([&odd]);
            let programs: Vec<Program> = names.map(|name| program(name, 7)).collect();
            let status = Status { programs, lost: vec![(odd.clone(), 1)], ..Status::default() };
            let (_, samples) = parse(&text(&status));
            let mut met = HashSet::new();
            for (name, labels, _) in samples {
                for (_, value) in &labels {
                    prop_assert!(value.chars().count() <= MOST_LABEL);
                }
                prop_assert!(met.insert((name, labels)), "twice");
            }
            prop_assert!(met.len() < PROGRAMS * 8 + 60);
        }
    }
}
