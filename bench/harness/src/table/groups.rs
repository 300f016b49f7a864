//! The tables of measured cases, by group: a block for each table, with its heading and columns.

use super::{Column, MIB, column};
use crate::case::Group::{self, Api, Main, Signature, Slice};
use crate::foreread::Ledger;
use crate::results::{FilesOnlyFigures, Summary};
use crate::stats::{self, Spread};
use crate::translated::Build;

/// A table: its heading, its columns, and the condition for its rows.
pub(super) struct Block {
    pub heading: &'static str,
    pub columns: &'static [Column],
    pub has: fn(&Summary) -> bool,
}

const fn block(heading: &'static str, columns: &'static [Column]) -> Block {
    Block { heading, columns, has: |_| true }
}

const CASE: Column = column("case", 11, |s| s.case.clone());
const DISK: Column = column("disk", 11, |s| s.disk.clone());
const PLAIN: Column = column("plain", 8, |s| seconds(Some(s.plain.median)));
const FOREREAD: Column = column("foreread", 9, |s| median(s.foreread));
const HOT: Column = column("hot", 7, |s| median(s.hot));
const LIMIT: Column = column("limit", 8, |s| seconds(s.limit));
const IMPROVED: Column = column("improved", 9, |s| percent(s.improvement_pct));
const MASKED: Column = column("masked", 8, |s| percent(s.masked_pct));
const FASTER: Column = column("faster", 8, |s| s.speed_up.map_or("-".into(), |times| format!("{times:.2}x")));
const RATIO: Column = column("ratio", 7, |s| thousandths(s.paired_ratio.map(|ratio| ratio.median)));
const PLAIN_RANGE: Column = column("plain", 15, |s| range(Some(s.plain)));
const FOREREAD_RANGE: Column = column("foreread", 15, |s| range(s.foreread));
const RECORDING: Column = column("recording", 10, |s| percent(s.recording_pct));
const PLAIN_MIB: Column = column("plain", 9, |s| mib(s.plain_device_bytes));
const FOREREAD_MIB: Column = column("foreread", 9, |s| mib(s.foreread_device_bytes));
const ISSUED: Column = column("issued", 7, |s| mib(ledger(s, |l| l.issued)));
const USEFUL: Column = column("useful", 7, |s| mib(ledger(s, |l| l.useful)));
const LATE: Column = column("late", 5, |s| mib(ledger(s, |l| l.late)));
const INFILL: Column = column("infill", 7, |s| mib(ledger(s, |l| l.infill)));
const WASTED: Column = column("wasted", 7, |s| mib(ledger(s, |l| l.wasted)));
const EVICTED: Column = column("evicted", 8, |s| mib(ledger(s, |l| l.evicted)));

/// A column under another title.
const fn titled(title: &'static str, width: usize, column: &Column) -> Column {
    Column { title, width, cell: column.cell }
}

/// Programs under `foreread run`: their times and, for starts as after a reboot, the times with only the case's files out of
/// memory.
const UNDER_RUN: &[Block] = &[
    block("", &[
        CASE, DISK, PLAIN, FOREREAD, HOT, LIMIT, IMPROVED, MASKED,
        column("paper", 7, |s| percent(s.paper.map(|paper| paper.improvement_pct))),
    ]),
    Block {
        heading: "the case's files alone out of memory",
        columns: &[
            CASE, DISK,
            column("plain", 8, |s| seconds(files(s, |f| Some(f.plain.median)))),
            column("foreread", 9, |s| seconds(files(s, |f| Some(f.foreread?.median)))),
            column("limit", 8, |s| seconds(files(s, |f| f.limit))),
            column("masked", 9, |s| percent(files(s, |f| f.masked_pct))),
        ],
        has: |s| s.files_only.is_some(),
    },
    Block {
        heading: "MiB from the disks, foreread's for each of plain's: everything cold; files alone",
        columns: &[
            CASE, DISK, PLAIN_MIB, FOREREAD_MIB,
            column("ratio", 7, |s| thousandths(s.device_ratio)),
            column("plain", 9, |s| mib(files(s, |f| f.plain_device_bytes))),
            column("foreread", 9, |s| mib(files(s, |f| f.foreread_device_bytes))),
            column("ratio", 7, |s| thousandths(files(s, FilesOnlyFigures::device_ratio))),
        ],
        has: |s| s.files_only.is_some(),
    },
    Block {
        heading: "waits: a plain run's time less the processor's; gone: the share foreread takes",
        columns: &[
            CASE, DISK, PLAIN_TIME,
            column("waits", 9, |s| seconds(s.waits)),
            column("gone", 9, |s| percent(s.waits_gone_pct)),
        ],
        has: |s| s.files_only.is_some() && s.waits.is_some(),
    },
    block("shortest..longest run; foreread / plain pair by pair; the price of recording",
        &[CASE, DISK, FASTER, PLAIN_RANGE, FOREREAD_RANGE, RATIO, RECORDING]),
    block("read from the device, and where the bytes foreread issued ended, in MiB", &[
        CASE, DISK, titled("plain", 6, &PLAIN_MIB), FOREREAD_MIB, ISSUED, USEFUL, LATE, INFILL, WASTED, EVICTED,
    ]),
];
const PLAIN_TIME: Column = titled("plain", 9, &PLAIN);

/// Every group's introduction and tables, in the order of the report.
pub(super) const GROUPS: &[(Group, &str, &[Block])] = &[
    (Main, "unmodified programs under `foreread run`, cold as after a reboot", UNDER_RUN),
    (Group::Start, "starts and walks over many files under `foreread run`, cold as after a reboot", UNDER_RUN),
    (Api, "programs that hand over their list, and other means (their time counts)", &[
        block("", &[
            CASE, DISK, PLAIN,
            column("WILLNEED", 9, |s| median(s.willneed)),
            column("vmtouch", 8, |s| median(s.vmtouch)),
            FOREREAD, titled("limit", 7, &LIMIT), titled("faster", 7, &FASTER), MASKED,
        ]),
        block("shortest..longest run; foreread / plain pair by pair; MiB from the device",
            &[CASE, DISK, PLAIN_RANGE, FOREREAD_RANGE, RATIO, PLAIN_MIB, FOREREAD_MIB]),
    ]),
    (Slice, "programs translated by `foreread cc`, and the plain ones under `foreread run`", &[
        block("", &[
            CASE, DISK, PLAIN, titled("cc", 8, &FOREREAD), column("run", 8, |s| median(s.recorded)), HOT,
            titled("limit", 7, &LIMIT), IMPROVED, MASKED,
        ]),
        block("the paper's figures; the work chosen, and hot / plain with it; percent of hot", &[
            CASE, DISK,
            column("paper", 7, |s| percent(s.paper.map(|paper| paper.improvement_pct))),
            column("masked", 7, |s| percent(s.paper.map(|paper| paper.masked_pct))),
            column("work", 5, |s| s.work.map_or("-".into(), |work| work.to_string())),
            column("hot", 7, |s| percent(s.hot.map(|hot| hot.median / s.plain.median * 100.0))),
            column("paper", 7, |s| percent(s.paper.and_then(|paper| Some(paper.computing? * 100.0)))),
            column("thread", 7, |s| percent(s.prefetch_thread.map(|thread| thread.cpu_pct))),
            column("process", 8, |s| percent(s.prefetch_thread.map(|thread| thread.process_cpu_pct))),
        ]),
        block("added by synchronization, percent of hot; to translate, percent of a run of cc", &[
            CASE, DISK,
            column("sync", 8, |s| percent(s.prefetch_thread.map(|thread| thread.synchronization_pct))),
            column("paper", 8, |s| percent(s.paper.and_then(|paper| paper.synchronization_pct))),
            column("compile", 8, |s| {
                let added = s.build.as_ref().map(|build| build.translated_s - build.plain_s);
                percent(added.zip(s.foreread).map(|(added, run)| added / run.median * 100.0))
            }),
            column("paper", 8, |s| percent(s.paper.and_then(|paper| paper.compile_pct))),
        ]),
        block("shortest..longest run; cc / plain pair by pair; the price of recording",
            &[CASE, DISK, FASTER, PLAIN_RANGE, titled("cc", 15, &FOREREAD_RANGE), RATIO, RECORDING]),
        block("read from the device, and where the bytes the program had issued ended, in MiB", &[
            CASE, DISK, titled("plain", 6, &PLAIN_MIB), titled("cc", 9, &FOREREAD_MIB), ISSUED, USEFUL, LATE, INFILL, WASTED,
            EVICTED,
        ]),
        Block {
            heading: "seconds to compile; KiB of code, with the prefetch thread's library",
            columns: &[
                CASE, column("program", 11, |s| s.build.as_ref().map_or("-".into(), |build| build.program.clone())),
                column("plain s", 8, |s| hundredths(s, |build| build.plain_s)),
                column("cc s", 8, |s| hundredths(s, |build| build.translated_s)),
                column("plain KiB", 12, |s| hundredths(s, |build| build.plain_code as f64 / 1024.0)),
                column("cc KiB", 9, |s| hundredths(s, |build| build.translated_code as f64 / 1024.0)),
            ],
            has: |s| s.build.is_some(),
        },
    ]),
    (Signature, "first runs under `foreread run`: nothing known, or (other-…) another input\n\
        replay: with the record of the same run; gain: first's share of replay's gain", &[
        block("", &[
            CASE, DISK, PLAIN, titled("first", 8, &FOREREAD), column("replay", 8, |s| median(s.recorded)), HOT, LIMIT,
            column("gain", 8, |s| percent(s.gain_share_pct.map(|gain| gain.median))), MASKED,
        ]),
        block("shortest..longest run; first / plain pair by pair", &[
            CASE, DISK,
            titled("plain", 14, &PLAIN_RANGE), titled("first", 14, &FOREREAD_RANGE), column("replay", 14, |s| range(s.recorded)),
            titled("ratio", 6, &RATIO), column("±", 6, |s| thousandths(s.ratio_margin)),
        ]),
        block("read from the device, and where the first run's issued bytes ended, in MiB", &[
            CASE, DISK, titled("plain", 6, &PLAIN_MIB), titled("first", 9, &FOREREAD_MIB), ISSUED, USEFUL, LATE, INFILL, WASTED,
            EVICTED,
        ]),
    ]),
    (Group::Hot, "everything in memory, under `foreread run` with its record; milliseconds\n\
        hot: the processors as they are; busy: beside a busy loop on each of them\n\
        added: foreread - plain, the median of the pairs, and its margin", &[
        block("", &[
            CASE,
            column("pairs", 6, |s| s.plain.samples.to_string()),
            column("plain", 9, |s| ms(Some(s.plain.median))),
            column("foreread", 10, |s| ms(s.foreread.map(|f| f.median))),
            column("added", 9, |s| ms(s.added.map(|added| added.median))),
            column("±", 7, |s| ms(s.added_margin)),
            column("added", 9, |s| percent(s.added.map(|added| added.median / s.plain.median * 100.0))),
            column("allowed", 9, |s| ms(Some(stats::allowed(s.plain.median)))),
        ]),
        block("shortest..longest run, milliseconds", &[
            CASE,
            column("plain", 20, |s| ms_range(Some(s.plain))),
            column("foreread", 20, |s| ms_range(s.foreread)),
            column("added", 20, |s| ms_range(s.added)),
        ]),
    ]),
];

fn files(summary: &Summary, figure: fn(&FilesOnlyFigures) -> Option<f64>) -> Option<f64> {
    figure(summary.files_only.as_ref()?)
}

fn hundredths(summary: &Summary, figure: fn(&Build) -> f64) -> String {
    summary.build.as_ref().map_or("-".into(), |build| format!("{:.2}", figure(build)))
}

fn thousandths(ratio: Option<f64>) -> String {
    ratio.map_or("-".into(), |ratio| format!("{ratio:.3}"))
}

fn median(spread: Option<Spread>) -> String {
    seconds(spread.map(|spread| spread.median))
}

pub(super) fn seconds(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(value) if value < 9.9995 => format!("{value:.3}"),
        Some(value) if value < 999.95 => format!("{value:.1}"),
        Some(value) => format!("{value:.0}"),
    }
}

fn ms(seconds: Option<f64>) -> String {
    seconds.map_or("-".into(), |seconds| format!("{:.2}", seconds * 1000.0))
}

fn ms_range(spread: Option<Spread>) -> String {
    spread.map_or("-".into(), |s| format!("{}..{}", ms(Some(s.min)), ms(Some(s.max))))
}

fn range(spread: Option<Spread>) -> String {
    spread.map_or("-".into(), |s| format!("{}..{}", seconds(Some(s.min)), seconds(Some(s.max))))
}

fn percent(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:.1}%"))
}

fn mib(bytes: Option<f64>) -> String {
    bytes.map_or("-".into(), |bytes| {
        let mib = bytes / MIB;
        let decimals = if mib < 1000.0 { 1 } else { 0 };
        format!("{mib:.decimals$}")
    })
}

fn ledger(summary: &Summary, part: fn(&Ledger) -> u64) -> Option<f64> {
    summary.ledger.as_ref().map(|ledger| part(ledger) as f64)
}
