//! The results of a whole benchmark run: the environment, all samples, and the summary figures behind every table, plot and
//! target.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::case::Group;
use crate::cost::Cost;
use crate::curves::Measured;
use crate::device::{self, DEFAULT_READ_AHEAD_KB};
use crate::disk::DiskKind;
use crate::files;
use crate::foreread::Ledger;
use crate::measure::{FilesOnly, Measurement};
use crate::mpi;
use crate::paper::{Paper, paper};
use crate::sample::{Sample, seconds};
use crate::stats::{self, Spread};
use crate::translated::{Build, PrefetchThread};

/// All results, as written to results.json.
#[derive(Serialize)]
pub struct Results {
    /// The machine.
    pub environment: Environment,
    /// One summary per measurement, in the same order.
    pub summaries: Vec<Summary>,
    /// All samples.
    pub measurements: Vec<Measurement>,
    /// The measurements of the group files.
    pub files: Vec<files::Measured>,
    /// The figures of `files`, in the same order.
    pub files_figures: Vec<Vec<files::figures::Figures>>,
    /// The measurements of the group mpi.
    pub mpi: Vec<mpi::Measured>,
    /// The curves.
    pub curves: Vec<Measured>,
    /// The cost of observation.
    pub cost: Cost,
    /// Cases that could not run: name, disk, reason.
    pub skipped: Vec<(String, String, String)>,
}

/// The machine of the figures.
#[derive(Serialize)]
pub struct Environment {
    /// Kernel release.
    pub kernel: String,
    /// Logical processors.
    pub cpus: usize,
    /// The processor's name.
    pub cpu_model: Option<String>,
    /// Memory in KiB.
    pub memory_kb: Option<u64>,
    /// Read-ahead during the cases, in KiB.
    pub read_ahead_kb: u64,
    /// True if the kernel by itself pages out memory that lies idle (DAMON), whether it was read or not.
    pub pages_out: bool,
    /// The data directory's disk, before the benchmarks changed it.
    pub own_disk: Option<device::Facts>,
    /// `quick` or `full`.
    pub size: &'static str,
    /// Rounds asked for.
    pub rounds: usize,
}

impl Environment {
    /// The environment of this machine; `data` is the data directory.
    pub fn look(data: &Path, size: &'static str, rounds: usize) -> Result<Self> {
        let field = |path: &str, name: &str| {
            let text = fs::read_to_string(path).ok()?;
            let line = text.lines().find(|line| line.starts_with(name))?.to_owned();
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        Ok(Self {
            kernel: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            cpus: std::thread::available_parallelism()
                .context("counting processors")?
                .get(),
            cpu_model: field("/proc/cpuinfo", "model name"),
            memory_kb: field("/proc/meminfo", "MemTotal")
                .and_then(|text| text.split(' ').next().and_then(|kb| kb.parse().ok())),
            read_ahead_kb: DEFAULT_READ_AHEAD_KB,
            pages_out: pages_out(Path::new(KDAMONDS)),
            own_disk: device::Device::holding(data)?.map(|device| device.facts()),
            size,
            rounds,
        })
    }
}

/// The kernel's DAMON threads, as configured by an administrator.
const KDAMONDS: &str = "/sys/kernel/mm/damon/admin/kdamonds";

/// True if one of the threads below `kdamonds` is running a scheme that pages out.
fn pages_out(kdamonds: &Path) -> bool {
    let is =
        |path: &Path, word: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == word);
    let below = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    below(kdamonds)
        .iter()
        .filter(|thread| is(&thread.join("state"), "on"))
        .flat_map(|thread| below(&thread.join("contexts")))
        .flat_map(|context| below(&context.join("schemes")))
        .any(|scheme| is(&scheme.join("action"), "pageout"))
}

/// The figures of one case on one disk. Times in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The case.
    pub case: String,
    /// The disk.
    pub disk: String,
    /// True if the case shows that foreread does no harm.
    pub no_harm: bool,
    /// The table that the case belongs to.
    pub group: Group,
    /// Plain runs.
    pub plain: Spread,
    /// After WILLNEED on the whole files.
    pub willneed: Option<Spread>,
    /// After `vmtouch -t`.
    pub vmtouch: Option<Spread>,
    /// Runs with foreread's help.
    pub foreread: Option<Spread>,
    /// The plain program under `foreread run` with a record, next to a translated program or a first run.
    pub recorded: Option<Spread>,
    /// With everything in memory.
    pub hot: Option<Spread>,
    /// The program's bytes at full depth.
    pub deep: Option<Spread>,
    /// The slower of hot and deep.
    pub limit: Option<f64>,
    /// The share of the plain time that is gone, in percent.
    pub improvement_pct: Option<f64>,
    /// Plain time / foreread time.
    pub speed_up: Option<f64>,
    /// The share of the avoidable time that is gone, in percent.
    pub masked_pct: Option<f64>,
    /// foreread / plain, pair by pair.
    pub paired_ratio: Option<Spread>,
    /// How far the median of `paired_ratio` may be from the true one.
    pub ratio_margin: Option<f64>,
    /// The gain of a first run as a percentage of the gain of a run with its own record, round by round.
    pub gain_share_pct: Option<Spread>,
    /// foreread - plain, pair by pair.
    pub added: Option<Spread>,
    /// How far the median of `added` may be from the true one.
    pub added_margin: Option<f64>,
    /// Median bytes read from the device by plain runs.
    pub plain_device_bytes: Option<f64>,
    /// Median bytes read from the device by foreread runs.
    pub foreread_device_bytes: Option<f64>,
    /// Device bytes of foreread runs / those of plain runs.
    pub device_ratio: Option<f64>,
    /// Runs with only the case's files out of memory, if the other figures are of starts as after a reboot.
    pub files_only: Option<FilesOnlyFigures>,
    /// Time that a plain run waits for the disk: its time minus processor time; `None` if that is under 2 %. For programs that
    /// use one processor at a time.
    pub waits: Option<f64>,
    /// The share of `waits` that is gone under foreread, in percent.
    pub waits_gone_pct: Option<f64>,
    /// The ledger of the foreread run with the median time.
    pub ledger: Option<Ledger>,
    /// Time added by recording to a plain run, in percent.
    pub recording_pct: Option<f64>,
    /// The cost of a translated program's prefetch thread.
    pub prefetch_thread: Option<ThreadCosts>,
    /// The computation per block, in the program's own unit, if it was fitted.
    pub work: Option<u64>,
    /// Time and size of the program's translation.
    pub build: Option<Build>,
    /// The paper's figures, if it has the case.
    pub paper: Option<Paper>,
}

/// The figures of runs with only the files out of memory.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FilesOnlyFigures {
    /// Plain runs.
    pub plain: Spread,
    /// Runs with foreread's help.
    pub foreread: Option<Spread>,
    /// The larger of the hot time and the time to read the files' bytes at full depth.
    pub limit: Option<f64>,
    /// The share of the avoidable time that is gone, in percent.
    pub masked_pct: Option<f64>,
    /// Median bytes read from the device by plain runs.
    pub plain_device_bytes: Option<f64>,
    /// Median bytes read from the device by foreread runs.
    pub foreread_device_bytes: Option<f64>,
}

impl FilesOnlyFigures {
    /// The figures of these runs; `hot` is the spread of the times with everything in memory.
    fn of(runs: &FilesOnly, hot: Option<Spread>) -> Option<Self> {
        let plain = Spread::of(seconds(&runs.plain))?;
        let foreread = Spread::of(seconds(&runs.foreread));
        let deep = Spread::of(seconds(&runs.deep));
        let limit = hot.map(|hot| stats::limit(hot.median, deep.map(|deep| deep.median)));
        Some(Self {
            plain,
            foreread,
            limit,
            masked_pct: foreread
                .zip(limit)
                .and_then(|(f, limit)| stats::masked_pct(plain.median, f.median, limit)),
            plain_device_bytes: device_bytes(&runs.plain),
            foreread_device_bytes: device_bytes(&runs.foreread),
        })
    }

    /// Device bytes under foreread / device bytes of a plain run.
    pub fn device_ratio(&self) -> Option<f64> {
        ratio(self.foreread_device_bytes, self.plain_device_bytes)
    }
}

/// The median of the runs' bytes from the device.
fn device_bytes(samples: &[Sample]) -> Option<f64> {
    let bytes = samples.iter().filter_map(|sample| sample.device_bytes);
    Some(Spread::of(bytes.map(|bytes| bytes as f64))?.median)
}

/// `with / without`; `None` if `without` is 0.
fn ratio(with: Option<f64>, without: Option<f64>) -> Option<f64> {
    let (with, without) = with.zip(without)?;
    (without > 0.0).then(|| with / without)
}

/// The cost of a prefetch thread, in percent of its program's hot run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ThreadCosts {
    /// Processor time of the thread.
    pub cpu_pct: f64,
    /// Processor time of the process it is in, foreread's engine included.
    pub process_cpu_pct: f64,
    /// Time added to the program itself, which counts its reads and passes the thread the values it waits for.
    pub synchronization_pct: f64,
}

impl ThreadCosts {
    /// The costs in a translated program's runs; `None` without such runs.
    fn of(measurement: &Measurement, hot_s: f64) -> Option<Self> {
        let threads = || {
            let runs = measurement.foreread.iter();
            runs.filter_map(|sample| sample.prefetch_thread.as_ref())
        };
        let share = |cpu_s: fn(&PrefetchThread) -> f64| {
            Some(Spread::of(threads().map(cpu_s))?.median / hot_s * 100.0)
        };
        // A few calls take less time than a disturbance adds, so the least disturbed runs are compared.
        let (plain, translated): (Vec<f64>, Vec<f64>) =
            measurement.hot_pairs.iter().copied().unzip();
        let added_s = Spread::of(translated)?.min - Spread::of(plain)?.min;
        Some(Self {
            cpu_pct: share(|thread| thread.cpu_s)?,
            process_cpu_pct: share(|thread| thread.process_cpu_s)?,
            synchronization_pct: added_s / hot_s * 100.0,
        })
    }
}

impl Summary {
    /// The summary of `measurement`; `None` without a plain run.
    pub fn of(measurement: &Measurement) -> Option<Self> {
        let spread = |samples: &[Sample]| Spread::of(seconds(samples));
        let (with, without) = (seconds(&measurement.foreread), seconds(&measurement.plain));
        let plain = spread(&measurement.plain)?;
        let foreread = spread(&measurement.foreread);
        let hot = if measurement.hot_start {
            Some(plain)
        } else {
            spread(&measurement.hot)
        };
        let deep = spread(&measurement.deep);
        let limit = hot.map(|hot| stats::limit(hot.median, deep.map(|deep| deep.median)));
        let plain_device_bytes = device_bytes(&measurement.plain);
        let foreread_device_bytes = device_bytes(&measurement.foreread);
        let cpu = measurement.plain.iter().filter_map(|s| s.cpu_seconds);
        let waits = Spread::of(cpu)
            .map(|cpu| plain.median - cpu.median)
            .filter(|waits| *waits > 0.02 * plain.median);
        let ledger = foreread.and_then(|foreread| {
            let far = |sample: &&Sample| (sample.seconds - foreread.median).abs();
            let middle = measurement
                .foreread
                .iter()
                .min_by(|a, b| far(a).total_cmp(&far(b)))?;
            match &middle.prefetch_thread {
                Some(thread) => Some(thread.ledger),
                None => middle.account.as_ref()?.ledger,
            }
        });
        Some(Self {
            case: measurement.case.clone(),
            disk: measurement.disk.clone(),
            no_harm: measurement.no_harm,
            group: measurement.group,
            plain,
            willneed: spread(&measurement.willneed),
            vmtouch: spread(&measurement.vmtouch),
            foreread,
            recorded: spread(&measurement.recorded),
            hot,
            deep,
            limit,
            improvement_pct: foreread.map(|f| stats::improvement_pct(plain.median, f.median)),
            speed_up: foreread.map(|f| plain.median / f.median),
            masked_pct: foreread
                .zip(limit)
                .and_then(|(f, limit)| stats::masked_pct(plain.median, f.median, limit)),
            paired_ratio: stats::paired_ratio(&with, &without),
            ratio_margin: stats::ratio_margin(&with, &without),
            gain_share_pct: (measurement.group == Group::Signature)
                .then(|| stats::gain_share_pct(&without, &with, &seconds(&measurement.recorded)))
                .flatten(),
            added: stats::paired_difference(&with, &without),
            added_margin: stats::difference_margin(&with, &without),
            plain_device_bytes,
            foreread_device_bytes,
            device_ratio: ratio(foreread_device_bytes, plain_device_bytes),
            files_only: measurement
                .files_only
                .as_ref()
                .and_then(|runs| FilesOnlyFigures::of(runs, hot)),
            waits,
            waits_gone_pct: foreread
                .zip(waits)
                .map(|(f, waits)| (plain.median - f.median) / waits * 100.0),
            ledger,
            recording_pct: measurement
                .recording
                .as_ref()
                .map(|recording| (recording.seconds / plain.median - 1.0) * 100.0),
            prefetch_thread: hot.and_then(|hot| ThreadCosts::of(measurement, hot.median)),
            work: measurement.work,
            build: measurement.build.clone(),
            // The papers' machines had rotating disks; on other disks their figures mean nothing.
            paper: (measurement.disk == DiskKind::Hdd7200.name())
                .then(|| paper(&measurement.case))
                .flatten(),
        })
    }
}

/// Writes everything as JSON.
pub fn write(results: &Results, path: &Path) -> Result<()> {
    let text = serde_json::to_string_pretty(results).context("writing results as JSON")?;
    fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A measurement with these times, for the tests here and for those of the tables.
    pub fn measured(plain: &[f64], foreread: &[f64], hot: &[f64], deep: &[f64]) -> Measurement {
        let samples = |times: &[f64]| {
            let sample = |seconds: &f64| Sample {
                seconds: *seconds,
                device_bytes: Some((*seconds * 1e6) as u64),
                cpu_seconds: Some(0.25),
                account: None,
                prefetch_thread: None,
            };
            times.iter().map(sample).collect::<Vec<_>>()
        };
        Measurement {
            case: "backward-1".into(),
            disk: "hdd-7200".into(),
            no_harm: false,
            hot_start: false,
            device: None,
            command: "stride".into(),
            group: Group::Main,
            memory_limit: None,
            plain: samples(plain),
            willneed: Vec::new(),
            vmtouch: Vec::new(),
            foreread: samples(foreread),
            recorded: Vec::new(),
            hot: samples(hot),
            hot_pairs: Vec::new(),
            deep: samples(deep),
            deep_way: None,
            files_only: None,
            names: None,
            work: None,
            build: None,
            recording: samples(&[plain[0] * 1.05]).pop(),
            footprint_bytes: Some(1),
            discarded: 0,
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_summary_is_made_from_medians_with_the_papers_figure_beside_it() {
        let measurement = measured(
            &[10.0, 12.0, 11.0],
            &[2.0, 2.2, 2.1],
            &[0.1, 0.1, 0.1],
            &[1.0, 1.2, 1.1],
        );
        let summary = Summary::of(&measurement).unwrap();
        assert_eq!(summary.plain.median, 11.0);
        assert_eq!(summary.limit, Some(1.1));
        assert!((summary.masked_pct.unwrap() - 8.9 / 9.9 * 100.0).abs() < 1e-9);
        assert!((summary.speed_up.unwrap() - 11.0 / 2.1).abs() < 1e-9);
        assert_eq!(summary.paper.unwrap().improvement_pct, 85.48);
        assert_eq!(summary.plain_device_bytes, Some(11e6));
    }

    #[test]
    fn a_cold_machine_and_cold_files_have_a_limit_and_device_bytes_each() {
        let files = measured(&[6.0], &[3.0], &[1.0], &[2.0]);
        let mut cold = measured(&[10.0], &[5.0], &[1.0], &[4.0]);
        cold.files_only = Some(FilesOnly {
            plain: files.plain,
            foreread: files.foreread,
            deep: files.deep,
            deep_way: None,
        });
        let summary = Summary::of(&cold).unwrap();
        let files = summary.files_only.unwrap();
        assert_eq!((summary.limit, files.limit), (Some(4.0), Some(2.0)));
        assert!((files.masked_pct.unwrap() - 75.0).abs() < 1e-9);
        assert_eq!(summary.device_ratio, Some(0.5));
        assert_eq!(files.device_ratio(), Some(0.5));
        assert_eq!(summary.waits, Some(9.75));
        assert!((summary.waits_gone_pct.unwrap() - 5.0 / 9.75 * 100.0).abs() < 1e-9);
    }

    #[test]
    fn without_foreread_only_its_columns_are_missing() {
        let summary = Summary::of(&measured(&[3.0], &[], &[1.0], &[2.0])).unwrap();
        assert_eq!(summary.foreread, None);
        assert_eq!(summary.masked_pct, None);
        assert_eq!(summary.limit, Some(2.0));
        assert!(
            Summary::of(&Measurement {
                plain: Vec::new(),
                ..measured(&[1.0], &[], &[], &[])
            })
            .is_none()
        );
    }

    #[test]
    fn a_prefetch_threads_costs_are_in_percent_of_the_hot_run() {
        let mut measurement = measured(&[10.0], &[2.1], &[2.0], &[1.0]);
        assert!(Summary::of(&measurement).unwrap().prefetch_thread.is_none());
        measurement.foreread[0].prefetch_thread = Some(PrefetchThread {
            cpu_s: 0.1,
            process_cpu_s: 0.5,
            ..PrefetchThread::default()
        });
        measurement.hot_pairs = vec![(1.0, 1.9), (1.1, 1.02)];
        let costs = Summary::of(&measurement).unwrap().prefetch_thread.unwrap();
        assert!((costs.cpu_pct - 5.0).abs() < 1e-9);
        assert!((costs.process_cpu_pct - 25.0).abs() < 1e-9);
        assert!((costs.synchronization_pct - 1.0).abs() < 1e-9);
    }

    #[test]
    fn results_are_json_with_every_sample() {
        let measurement = measured(&[3.0, 3.5], &[1.0], &[1.0], &[2.0]);
        let results = Results {
            environment: Environment::look(Path::new("."), "quick", 3).unwrap(),
            summaries: Summary::of(&measurement).into_iter().collect(),
            measurements: vec![measurement],
            files: Vec::new(),
            files_figures: Vec::new(),
            mpi: Vec::new(),
            curves: Vec::new(),
            cost: Default::default(),
            skipped: vec![("bam".into(), "own".into(), "samtools is missing".into())],
        };
        let file = tempfile::NamedTempFile::new().unwrap();
        write(&results, file.path()).unwrap();
        let read: serde_json::Value =
            serde_json::from_slice(&fs::read(file.path()).unwrap()).unwrap();
        assert_eq!(read["measurements"][0]["plain"][1]["seconds"], 3.5);
        assert_eq!(read["summaries"][0]["hot"]["median"], 1.0);
        assert_eq!(read["environment"]["read_ahead_kb"], 128);
    }

    #[test]
    fn a_kernel_that_pages_out_by_itself_is_found_out_while_it_does() {
        let root = tempfile::tempdir().unwrap();
        let thread = root.path().join("0");
        let scheme = thread.join("contexts/0/schemes/0");
        fs::create_dir_all(&scheme).unwrap();
        fs::write(scheme.join("action"), "pageout\n").unwrap();
        fs::write(thread.join("state"), "off\n").unwrap();
        assert!(!pages_out(root.path()));
        fs::write(thread.join("state"), "on\n").unwrap();
        assert!(pages_out(root.path()));
        fs::write(scheme.join("action"), "stat\n").unwrap();
        assert!(!pages_out(root.path()));
    }
}
