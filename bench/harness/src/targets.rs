//! The project's targets, each with the measured figure.
//!
//! Targets are reported, never asserted: a missed target is a fact about a machine and a version.

mod files;
mod mpi;

use crate::case::{Case, Cold, Group, Purpose};
use crate::cases::{HOT_LOOP, OTHER_INPUT};
use crate::cost::{Cost, PREFETCHED};
use crate::curves::Measured;
use crate::disk::DiskKind;
use crate::results::Summary;
use crate::stats;
use crate::want::Want;

pub use files::render as render_files;
pub use mpi::render as render_mpi;

/// The speed-up that a walk through a secondary key must reach at the best point of its curve (the best of the cases with this
/// prefix), with the disk it is measured on.
const CURVE: &str = "sql-x";
const AT_BEST: (&str, f64) = ("hdd-7200", 20.0);

/// After a reboot: the share of the avoidable waiting that must go, in percent, and the most bytes from the disks per byte of a
/// plain run.
const MASKED_PCT: f64 = 90.0;
const DEVICE_BYTES: f64 = 1.02;

/// The targets of a case, each with its disk: those in its row, and those of its group.
fn floors(case: &Case) -> Vec<(DiskKind, Want)> {
    let mut floors = case.floors.to_vec();
    let gain = case.purpose == Purpose::Gain;
    let everywhere = |want| case.disks.iter().map(move |disk| (*disk, want));
    match (case.group, case.name) {
        _ if gain && case.cold() == Cold::Reboot => {
            let want = match case.name {
                "lmdb-map" => Want::Faster(4.0),
                "build" => Want::WaitsGone(MASKED_PCT),
                _ => Want::Masked(MASKED_PCT),
            };
            floors.extend(everywhere(want).chain(everywhere(Want::DeviceBytes(DEVICE_BYTES))));
        }
        // The paper's improvement in every row of its tables. On every disk: nearly all waiting masked if the row has any to
        // mask, no loss otherwise.
        (Group::Slice, name) => {
            let paper = crate::paper::paper(name);
            let improved = paper.map(|paper| Want::Improved(paper.improvement_pct));
            let turning = case.disks.contains(&DiskKind::Hdd7200);
            let synchronized = turning.then_some(Want::Synchronized(1.0));
            let thread = name.starts_with("vol-vis").then_some(Want::ThreadCpu(10.0));
            let hdd = [improved, synchronized, thread].into_iter().flatten();
            floors.extend(hdd.map(|want| (DiskKind::Hdd7200, want)));
            floors.extend(everywhere(if gain {
                Want::Masked(95.0)
            } else {
                Want::AsFast
            }));
        }
        // A first run must gain nearly as much as a run with a record; the programs of other projects must only become faster.
        (Group::Signature, _) if !gain => floors.extend(everywhere(Want::AsFast)),
        (Group::Signature, "sig-gegl") => floors.push((DiskKind::Hdd7200, Want::Faster(1.0))),
        // A record cannot contain a file that the program has yet to write.
        (Group::Signature, "sig-solver") => floors.extend(everywhere(Want::Faster(1.0))),
        (Group::Signature, "sig-ncks" | "sig-raster" | "sig-chunks") => {
            floors.push((DiskKind::Own, Want::Faster(1.5)));
        }
        (Group::Signature, name) => {
            let share = if name.starts_with(OTHER_INPUT) {
                80.0
            } else {
                85.0
            };
            floors.extend(everywhere(Want::Gain(share)));
        }
        (Group::Hot, _) => floors.extend(everywhere(Want::Unnoticed)),
        _ => {}
    }
    floors
}

/// The most that one more process may add, in ms.
const PROCESS_MS: f64 = 0.06;

/// One line for the processes of each loop: the time that each of the loop's commands adds, without what a single process adds.
fn processes(summaries: &[Summary]) -> String {
    let added = |case: &str| {
        let summary = summaries.iter().find(|summary| summary.case == case)?;
        Some(summary.added?.median * 1000.0)
    };
    let mut out = String::new();
    for (many, one) in [("hot-loop", "hot-true"), ("busy-loop", "busy-true")] {
        if let Some((many_ms, one_ms)) = added(many).zip(added(one)) {
            let each_ms = (many_ms - one_ms) / HOT_LOOP as f64;
            let wanted = format!("a process at most {PROCESS_MS} ms");
            out += &line(
                many,
                "own",
                &wanted,
                &format!("{each_ms:+.3} ms"),
                each_ms <= PROCESS_MS,
            );
        }
    }
    out
}

/// One line per target whose case was measured with foreread.
pub fn render(summaries: &[Summary]) -> String {
    let mut out = String::new();
    for case in crate::cases::all() {
        for (disk, want) in floors(case) {
            let measured = summaries
                .iter()
                .find(|s| s.case == case.name && s.disk == disk.name());
            if let Some(summary) = measured.filter(|summary| summary.foreread.is_some()) {
                let (wanted, found, met) = judge(want, summary);
                out += &line(case.name, disk.name(), &wanted, &found, met);
            }
        }
    }
    out += &processes(summaries);
    let (disk, bound) = AT_BEST;
    let curve = summaries
        .iter()
        .filter(|s| s.case.starts_with(CURVE) && s.disk == disk);
    let points = curve.filter_map(|s| Some((s.speed_up?, &s.case)));
    if let Some((best, case)) = points.max_by(|a, b| a.0.total_cmp(&b.0)) {
        let wanted = format!("at best {bound} times faster");
        let found = format!("{best:.1}x ({case})");
        out += &line(CURVE, disk, &wanted, &found, best >= bound);
    }
    out
}

fn line(case: &str, disk: &str, wanted: &str, found: &str, met: bool) -> String {
    let verdict = if met { "met" } else { "MISSED" };
    format!("{case:<12} {disk:<11} {wanted:<28} {found:<18} {verdict}\n")
}

/// The number of concurrent readers that must share fairly, and the least fairness (Jain).
const READERS: u64 = 8;
const FAIR: f64 = 0.9;
/// Together they may have the device read at most this many times as many bytes per byte needed as one reader alone; more is
/// thrashing.
const THRASH: f64 = 1.1;

/// The targets of contending readers, for each disk they were measured on.
pub fn render_contention(curves: &[Measured]) -> String {
    let mut out = String::new();
    let mut say = |curve: &Measured, wanted: &str, found: String, met: bool| {
        out += &line(&curve.curve, &curve.disk, wanted, &found, met);
    };
    for curve in curves {
        let alone = curve.points.iter().find(|point| point.readers == 1);
        let together = curve.points.iter().find(|point| point.readers == READERS);
        let (Some(alone), Some(together)) = (alone, together) else {
            continue;
        };
        let fair = together.foreread.fairness;
        say(
            curve,
            "8 as fair as 0.9",
            format!("{fair:.3}"),
            fair >= FAIR,
        );
        let faster = together.plain.seconds / together.foreread.seconds;
        say(
            curve,
            "8 no slower than plain",
            format!("{faster:.2}x"),
            faster >= 1.0,
        );
        let traffic = alone.traffic(&alone.foreread);
        if let Some((one, all)) = traffic.zip(together.traffic(&together.foreread)) {
            let more = all / one;
            say(
                curve,
                "8 read no byte twice",
                format!("{more:.2} x one's"),
                more <= THRASH,
            );
        }
    }
    out
}

/// The largest cost of observation: ns added to a hot read while prefetching; percent of the run time and MiB of memory while
/// recording.
const READ_NS: f64 = 60.0;
const RECORDING_PCT: f64 = 5.0;
const RECORDING_MIB: f64 = 64.0;

/// The targets of the cost of observation.
pub fn render_cost(cost: &Cost) -> String {
    let mut out = String::new();
    let mut say = |what: &str, wanted: String, found: Option<f64>, unit: &str, bound: f64| {
        let figure = found.map_or("no figure".into(), |found| format!("{found:.1}{unit}"));
        let met = found.is_some_and(|found| found <= bound);
        out += &line(what, "memory", &wanted, &figure, met);
    };
    if !cost.reads.is_empty() {
        let ahead = cost.reads.iter().find(|read| read.state == PREFETCHED);
        let added = ahead.and_then(|read| Some(read.added_ns?.median));
        let wanted = format!("prefetching at most {READ_NS} ns");
        say("pread 4 KiB", wanted, added, " ns", READ_NS);
    }
    for recording in &cost.recording {
        let wanted = format!("recording at most {RECORDING_PCT}%");
        let added = Some(recording.added_pct.median);
        let unit = format!("%{}", margin(recording.margin_pct));
        say(&recording.case, wanted, added, &unit, RECORDING_PCT);
        let wanted = format!("recording at most {RECORDING_MIB} MiB");
        let memory = recording.memory_mib.map(|memory| memory.median);
        say(&recording.case, wanted, memory, " MiB", RECORDING_MIB);
    }
    out
}

/// How far a median may be from the true one, in percent, shown behind the median.
fn margin(pct: Option<f64>) -> String {
    pct.map_or_else(String::new, |pct| format!(" \u{b1}{pct:.2}"))
}

/// The target, the measured figure, and whether the figure reaches the target.
fn judge(want: Want, summary: &Summary) -> (String, String, bool) {
    let shown = |value: Option<f64>, unit: &str| {
        value.map_or("no figure".into(), |v| format!("{v:.1}{unit}"))
    };
    let reaches = |value: Option<f64>, bound: f64| value.is_some_and(|value| value >= bound);
    match want {
        Want::Improved(bound) => (
            format!("improved by at least {bound}%"),
            shown(summary.improvement_pct, "%"),
            reaches(summary.improvement_pct, bound),
        ),
        Want::Masked(bound) => (
            format!("at least {bound}% masked"),
            shown(summary.masked_pct, "%"),
            reaches(summary.masked_pct, bound),
        ),
        Want::Faster(bound) => (
            format!("at least {bound} times faster"),
            shown(summary.speed_up, "x"),
            reaches(summary.speed_up, bound),
        ),
        Want::WaitsGone(bound) => (
            format!("at least {bound}% of waits gone"),
            shown(summary.waits_gone_pct, "%"),
            reaches(summary.waits_gone_pct, bound),
        ),
        Want::DeviceBytes(bound) => (
            format!("disk reads at most {bound} x"),
            summary
                .device_ratio
                .map_or("no figure".into(), |ratio| format!("{ratio:.3} x")),
            summary.device_ratio.is_some_and(|ratio| ratio <= bound),
        ),
        Want::Gain(_) if summary.gain_share_pct.is_none() => judge(Want::AsFast, summary),
        Want::Gain(bound) => {
            let share = summary.gain_share_pct.map(|share| share.median);
            (
                format!("at least {bound}% of replay's gain"),
                shown(share, "%"),
                reaches(share, bound),
            )
        }
        Want::AsFast => {
            let ratio = summary.paired_ratio.map(|ratio| ratio.median);
            let change = ratio.map_or("no figure".into(), |ratio| {
                let margin = margin(summary.ratio_margin.map(|margin| margin * 100.0));
                format!("{:+.2}%{margin}", (ratio - 1.0) * 100.0)
            });
            (
                "within 1% of plain".into(),
                change,
                ratio.is_some_and(|ratio| ratio <= 1.01),
            )
        }
        Want::Unnoticed => {
            let allowed = stats::allowed(summary.plain.median);
            let added = summary.added.map(|added| added.median);
            let found = added.map_or("no figure".into(), |added| {
                let percent = added / summary.plain.median * 100.0;
                format!("{:+.2} ms {percent:+.1}%", added * 1000.0)
            });
            (
                format!("at most {:.2} ms more", allowed * 1000.0),
                found,
                added.is_some_and(|added| added <= allowed),
            )
        }
        Want::Synchronized(bound) => {
            let cost = summary
                .prefetch_thread
                .map(|costs| costs.synchronization_pct);
            (
                format!("synchronization at most {bound}%"),
                shown(cost, "%"),
                cost.is_some_and(|cost| cost <= bound),
            )
        }
        Want::ThreadCpu(bound) => {
            let cost = summary.prefetch_thread.map(|costs| costs.cpu_pct);
            (
                format!("thread at most {bound}% of hot"),
                shown(cost, "%"),
                cost.is_some_and(|cost| cost <= bound),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::measured;

    #[test]
    fn a_target_is_met_at_its_bound_and_missed_below_it() {
        let good = Summary::of(&measured(&[100.0], &[14.5], &[1.0], &[10.0])).unwrap();
        let text = render(&[good]);
        assert!(text.lines().next().unwrap().ends_with("met"), "{text}");
        let (_, found, met) = judge(
            Want::Masked(95.0),
            &Summary::of(&measured(&[100.0], &[20.0], &[1.0], &[10.0])).unwrap(),
        );
        assert_eq!((found.as_str(), met), ("88.9%", false));
    }

    #[test]
    fn a_curve_is_judged_by_its_best_point() {
        let point = |case: &str, foreread: f64| Summary {
            case: case.into(),
            disk: "hdd-7200".into(),
            ..Summary::of(&measured(&[100.0], &[foreread], &[1.0], &[1.0])).unwrap()
        };
        let best = |points: &[Summary]| -> Vec<String> {
            let text = render(points);
            let line = text.lines().last().unwrap_or_default();
            line.split_whitespace()
                .rev()
                .take(3)
                .map(Into::into)
                .collect()
        };
        let fast = [point("sql-x0.5", 4.0), point("sql-x2", 50.0)];
        assert_eq!(best(&fast), ["met", "(sql-x0.5)", "25.0x"]);
        assert_eq!(best(&fast[1..]), ["MISSED", "(sql-x2)", "2.0x"]);
    }

    #[test]
    fn as_fast_goes_by_pairs() {
        let slower = Summary::of(&measured(&[1.0, 2.0], &[1.02, 2.04], &[1.0], &[1.0])).unwrap();
        assert!(!judge(Want::AsFast, &slower).2);
        let same = Summary::of(&measured(&[1.0, 2.0], &[1.009, 1.99], &[1.0], &[1.0])).unwrap();
        assert!(judge(Want::AsFast, &same).2);
    }

    #[test]
    fn a_first_run_goes_by_its_replays_gain_or_by_the_plain_run_where_there_is_none() {
        let verdict = |first: f64, replay: f64| {
            let mut measured = measured(&[10.0], &[first], &[1.0], &[1.0]);
            measured.group = Group::Signature;
            measured.recorded = crate::results::tests::measured(&[replay], &[], &[], &[]).plain;
            judge(Want::Gain(85.0), &Summary::of(&measured).unwrap())
        };
        assert!(verdict(3.2, 2.0).2);
        let (_, found, met) = verdict(3.3, 2.0);
        assert_eq!((found.as_str(), met), ("83.8%", false));
        assert!(verdict(10.05, 10.0).2 && !verdict(10.2, 10.0).2);
    }

    #[test]
    fn a_hot_command_may_cost_the_larger_of_2_ms_and_1_percent() {
        let verdict = |plain: f64, with: f64| {
            let summary = Summary::of(&measured(&[plain], &[with], &[plain], &[plain])).unwrap();
            let (wanted, found, met) = judge(Want::Unnoticed, &summary);
            (wanted, found, met)
        };
        assert!(verdict(0.0007, 0.0026).2);
        let (wanted, found, met) = verdict(0.1, 0.1021);
        assert_eq!(
            (wanted.as_str(), found.as_str(), met),
            ("at most 2.00 ms more", "+2.10 ms +2.1%", false)
        );
        assert!(verdict(1.0, 1.009).2 && !verdict(1.0, 1.011).2);
    }

    #[test]
    fn what_a_process_costs_is_told_from_the_loop() {
        let of = |case: &str, plain: f64, with: f64| Summary {
            case: case.into(),
            ..Summary::of(&measured(&[plain], &[with], &[plain], &[plain])).unwrap()
        };
        let (one, many) = (of("hot-true", 0.001, 0.003), of("hot-loop", 0.1, 0.112));
        let text = render(&[one.clone(), many]);
        assert!(text.contains("+0.050 ms"), "{text}");
        assert!(text.lines().last().unwrap().ends_with("met"), "{text}");
        let text = render(&[one, of("hot-loop", 0.1, 0.12)]);
        assert!(text.lines().last().unwrap().ends_with("MISSED"), "{text}");
    }

    #[test]
    fn each_row_of_the_papers_table_has_its_figure_to_reach() {
        let slices = crate::cases::all()
            .iter()
            .filter(|case| case.group == Group::Slice);
        let figures: Vec<(&str, f64)> = slices
            .flat_map(|case| floors(case).into_iter().map(|(_, want)| (case.name, want)))
            .filter_map(|(name, want)| match want {
                Want::Improved(bound) => Some((name, bound)),
                _ => None,
            })
            .collect();
        let improved = |name| {
            figures
                .iter()
                .find(|(case, _)| *case == name)
                .map(|(_, bound)| *bound)
        };
        assert_eq!(improved("vol-vis-1"), Some(53.94));
        assert_eq!(improved("video-bwd-2"), Some(75.26));
        assert_eq!(figures.len(), 10);
    }

    #[test]
    fn what_was_not_measured_with_foreread_is_not_judged() {
        let bare = Summary::of(&measured(&[1.0], &[], &[1.0], &[1.0])).unwrap();
        assert_eq!(render(&[bare]), "");
    }

    #[test]
    fn contending_readers_are_judged_by_fairness_time_and_traffic() {
        use crate::curves::{Point, Run};
        let run = |seconds, fairness, device_bytes| Run {
            seconds,
            device_bytes: Some(device_bytes),
            fairness,
        };
        let point = |readers, foreread| Point {
            x: readers,
            readers,
            needed_bytes: 100 * readers,
            reads: 1,
            plain: run(9.0, 1.0, 100 * readers),
            foreread,
            fixed: None,
        };
        let curve = |eight| Measured {
            curve: "contend".into(),
            about: String::new(),
            unit: "programs".into(),
            disk: "hdd-7200".into(),
            single: false,
            points: vec![point(1, run(2.0, 1.0, 150)), point(8, eight)],
        };
        let good = render_contention(&[curve(run(5.0, 0.95, 1200))]);
        assert_eq!(
            good.lines().filter(|line| line.ends_with(" met")).count(),
            3
        );
        let bad = render_contention(&[curve(run(9.5, 0.85, 1500))]);
        assert_eq!(
            bad.lines().filter(|line| line.ends_with("MISSED")).count(),
            3
        );
    }

    #[test]
    fn what_being_watched_costs_is_judged_by_time_and_memory() {
        use crate::cost::tests::measured;
        let verdicts = |cost: &Cost| -> Vec<String> {
            let text = render_cost(cost);
            let words = text.lines().filter_map(|line| line.split(' ').next_back());
            words.map(Into::into).collect()
        };
        assert_eq!(verdicts(&measured(60.0, 5.0, 64.0)), ["met"; 3]);
        assert_eq!(verdicts(&measured(60.1, 5.1, 64.1)), ["MISSED"; 3]);
        let mut never_ahead = measured(1.0, 1.0, 1.0);
        never_ahead.reads.retain(|read| read.state != PREFETCHED);
        assert_eq!(verdicts(&never_ahead), ["MISSED", "met", "met"]);
        assert_eq!(render_cost(&Cost::default()), "");
    }

    #[test]
    fn every_floor_is_on_a_disk_that_its_case_runs_on() {
        for case in crate::cases::all() {
            for (disk, want) in floors(case) {
                assert!(
                    case.disks.contains(&disk),
                    "{}: {want:?} on {}",
                    case.name,
                    disk.name()
                );
            }
        }
    }
}
