//! `foreread doctor`: this machine's features, and the cost of missing ones.
//!
//! Data flow: each check yields a [`Check`]; they are printed in groups, or as JSON.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::Result;
use foreread_engine::Profile;
use foreread_profiles::{Constants, Measured, Profiles};
use foreread_ring::{Clock, Ring};
use foreread_run::{find_preload, in_words};
use foreread_store::Store;
use foreread_sys::device::Device;
use foreread_sys::features::{Availability, Feature, Features};
use foreread_sys::memory;
use foreread_sys::mounts::Mount;
use foreread_words::units::{WIDTH, bytes, duration, wrapped};
use foreread_words::{plain, shown};
use serde::Serialize;

use crate::args;
use crate::output::{columns, narrow, output};

/// A sleep long enough for the kernel to switch to another thread.
const WAIT: Duration = Duration::from_millis(2);

/// A program that exists on every machine, for loading the library.
const HARMLESS: &str = "/bin/true";

/// Column at which the text of a check begins.
const COLUMN: usize = 22;
/// Column at which the text of a device's profile begins.
const PROFILE_COLUMN: usize = 4;
/// Columns for a mount point beside its device.
const MOUNT_WIDTH: usize = 19;

/// One check.
#[derive(Serialize)]
struct Check {
    name: &'static str,
    available: bool,
    /// In which way the feature is available, or the reason why it is not.
    detail: String,
    /// The cost of a missing feature.
    cost: Option<&'static str>,
    /// True if foreread cannot work without the feature.
    needed: bool,
}

/// A device as JSON; sizes in bytes.
#[derive(Serialize)]
struct Disk {
    name: String,
    mounted_at: String,
    fs_type: String,
    rotational: bool,
    read_ahead: u64,
    max_hint: u64,
    queue_depth: u32,
    /// The constants in force for the device.
    profile: Constants,
    /// Time of the measurement, in seconds since the epoch; `null` for a built-in profile.
    measured_at: Option<u64>,
    /// The same in words.
    #[serde(skip)]
    in_force: String,
}

#[derive(Serialize)]
struct Diagnosis {
    works: bool,
    checks: Vec<Check>,
    /// Memory that prefetching may fill, in bytes.
    memory_available: Option<u64>,
    /// Bytes left below the control group's limit, if there is one.
    memory_limit_room: Option<u64>,
    devices: Vec<Disk>,
    /// The reason why stored profiles cannot be used.
    profiles_problem: Option<String>,
}

/// Runs all checks and prints their results.
pub(crate) fn doctor(args: &args::Doctor) -> Result<ExitCode> {
    let mut checks = vec![check_preload(), check_ebpf(), check_store()];
    let (profiles, problem) = match Profiles::load() {
        Ok(profiles) => (profiles, None),
        Err(error) => (
            Profiles::default(),
            Some(format!(
                "{:#}; the built-in profiles are, until `foreread calibrate` replaces it",
                anyhow::Error::from(error)
            )),
        ),
    };
    checks.push(check_switches());
    checks.extend(Features::probe().0.into_iter().map(check_feature));
    let diagnosis = Diagnosis {
        works: checks.iter().all(|check| check.available || !check.needed),
        checks,
        memory_available: memory::available().ok(),
        memory_limit_room: memory::cgroup_room(),
        devices: disks(&profiles),
        profiles_problem: problem,
    };
    let mut out = output();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &diagnosis).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        print(&mut out, &diagnosis)?;
    }
    Ok(ExitCode::from(u8::from(!diagnosis.works)))
}

fn check_preload() -> Check {
    let loaded = find_preload().and_then(|library| {
        loads(&library)?;
        Ok(library.display().to_string())
    });
    check(
        "preload library",
        loaded,
        "programs cannot report their reads: nothing is recorded or prefetched",
        true,
    )
}

/// Starts a program with the library. The error is the loader's message, or how the program ended.
fn loads(library: &Path) -> Result<(), String> {
    let output = Command::new(HARMLESS)
        .env("LD_PRELOAD", library)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| plain(&format!("{HARMLESS}: {error}")))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match (output.status.success(), said.lines().next()) {
        (true, None) => Ok(()),
        (_, Some(line)) => Err(line.trim().to_owned()),
        (false, None) => Err(format!(
            "{}: {HARMLESS} ended with {}",
            library.display(),
            output.status
        )),
    }
}

/// Tries to load the eBPF observer.
fn check_ebpf() -> Check {
    check(
        "eBPF",
        foreread_ebpf::probe().map_err(|why| plain(&why)),
        "static, 32-bit and other programs that the preload library is not for are not observed, and mapped pages are sampled",
        false,
    )
}

fn check_store() -> Check {
    let written = Store::open()
        .map_err(|error| plain(&format!("{error:#}")))
        .and_then(|store| {
            let folder = store.folder();
            // Permissions do not show a full or read-only file system, so a file is created.
            tempfile::tempfile_in(folder)
                .and_then(|mut file| file.write_all(&[0; 4096]))
                .map_err(|error| plain(&format!("{}: {error}", folder.display())))?;
            Ok(folder.display().to_string())
        });
    check(
        "records",
        written,
        "what is learnt cannot be kept: nothing is known of any program",
        true,
    )
}

/// Checks that the kernel counts a sleep of this thread as a switch.
fn check_switches() -> Check {
    let told = Ring::create(Clock::detect())
        .map_err(|error| plain(&error.to_string()))
        .and_then(|ring| {
            ring.waiting(|| std::thread::sleep(WAIT));
            let told = ring.shared().tells_switches();
            told.then(|| "the kernel tells threads of them: spares recording the clock".to_owned())
                .ok_or_else(|| "the kernel does not tell a thread that it waited".to_owned())
        });
    check(
        "thread switches",
        told,
        "the clock is read twice for every read that is recorded",
        false,
    )
}

fn check_feature(feature: Feature) -> Check {
    let needed = feature.name == "memfd";
    match feature.state {
        Availability::Available(how) if how.is_empty() => {
            check(feature.name, Ok(feature.purpose.to_owned()), "", needed)
        }
        Availability::Available(how) => check(
            feature.name,
            Ok(format!("{how}: {}", feature.purpose)),
            "",
            needed,
        ),
        Availability::Missing { why, cost } => check(feature.name, Err(plain(&why)), cost, needed),
    }
}

fn check(
    name: &'static str,
    outcome: Result<String, String>,
    cost: &'static str,
    needed: bool,
) -> Check {
    let available = outcome.is_ok();
    let (Ok(detail) | Err(detail)) = outcome;
    Check {
        name,
        available,
        detail,
        cost: (!available).then_some(cost),
        needed,
    }
}

/// The disks under the mounted file systems, each once.
fn disks(profiles: &Profiles) -> Vec<Disk> {
    let mut seen = BTreeSet::new();
    Mount::all()
        .unwrap_or_default()
        .into_iter()
        .filter(|mount| seen.insert(mount.dev))
        .filter_map(|mount| {
            let device = Device::of(mount.dev);
            let measured = profiles.of(mount.dev);
            let (profile, in_force) = profile_of(measured, &device);
            device.block.then(|| Disk {
                name: device.name,
                mounted_at: mount.point.display().to_string(),
                fs_type: device.fs_type,
                rotational: device.rotational,
                read_ahead: device.read_ahead,
                max_hint: device.max_hint,
                queue_depth: device.queue_depth,
                profile: Constants::from(&profile),
                measured_at: measured.map(|measured| measured.measured_at),
                in_force,
            })
        })
        .collect()
}

/// The profile in force for a device, and its description.
fn profile_of(measured: Option<&Measured>, device: &Device) -> (Profile, String) {
    if let Some(measured) = measured
        && let Some(profile) = measured.profile()
    {
        let words = format!(
            "measured on {}: {} a page, {:.0} MB/s; {}",
            measured.day(),
            duration(measured.samples.service_ns),
            measured.samples.sequential_bytes_per_s() as f64 / 1e6,
            in_words(&profile)
        );
        return (profile, words);
    }
    if device.rotational {
        let profile = Profile::rotational();
        let words = format!(
            "built in, unless reads turn out quick: {}",
            in_words(&profile)
        );
        (profile, words)
    } else {
        let profile = Profile::solid_state();
        (profile.clone(), format!("built in: {}", in_words(&profile)))
    }
}

fn print(out: &mut impl Write, diagnosis: &Diagnosis) -> Result<()> {
    let width = columns();
    // Printed beside the names if there is room for a few words.
    let indent = if width < WIDTH {
        PROFILE_COLUMN
    } else {
        COLUMN
    };
    for check in &diagnosis.checks {
        let mark = if check.available { "yes" } else { "NO " };
        let cost = check.cost.map(|cost| format!("without it {cost}"));
        let said = [Some(shown(&check.detail).into_owned()), cost];
        let lines = said
            .iter()
            .flatten()
            .flat_map(|text| wrapped(text, width - indent));
        let name = format!("{mark}  {}", check.name);
        let mut beside = if indent < COLUMN {
            writeln!(out, "{name}")?;
            ""
        } else {
            &name
        };
        for line in lines {
            writeln!(out, "{beside:<indent$}{line}")?;
            beside = "";
        }
    }
    if let Some(available) = diagnosis.memory_available {
        let limit = diagnosis.memory_limit_room.map_or_else(
            || "no control group limits it".to_owned(),
            |room| format!("{} left under the control group's limit", bytes(room)),
        );
        let said = format!("memory  {} available; {limit}", bytes(available));
        writeln!(out)?;
        for line in wrapped(&said, width) {
            writeln!(out, "{line}")?;
        }
    }
    if !diagnosis.devices.is_empty() {
        if let Some(said) = narrow() {
            writeln!(out)?;
            for line in wrapped(&said, width) {
                writeln!(out, "{line}")?;
            }
        }
        writeln!(
            out,
            "\n{:<10} {:<8} {:<10} {:>10} {:>10} {:>6}  MOUNTED AT",
            "DEVICE", "TYPE", "KIND", "READ-AHEAD", "LARGEST", "QUEUE"
        )?;
    }
    for disk in &diagnosis.devices {
        let mounted_at = shown(&disk.mounted_at);
        let fits = mounted_at.chars().count() <= MOUNT_WIDTH;
        let beside = if fits {
            format!("  {mounted_at}")
        } else {
            String::new()
        };
        writeln!(
            out,
            "{:<10} {:<8} {:<10} {:>10} {:>10} {:>6}{beside}",
            disk.name,
            disk.fs_type,
            if disk.rotational { "rotating" } else { "other" },
            bytes(disk.read_ahead),
            bytes(disk.max_hint),
            disk.queue_depth,
        )?;
        if !fits {
            for line in wrapped(&mounted_at, width - PROFILE_COLUMN) {
                writeln!(out, "{:PROFILE_COLUMN$}{line}", "")?;
            }
        }
        for line in wrapped(&disk.in_force, width - PROFILE_COLUMN) {
            writeln!(out, "{:PROFILE_COLUMN$}{line}", "")?;
        }
    }
    if diagnosis
        .devices
        .iter()
        .any(|disk| disk.measured_at.is_none())
    {
        let hint = "`foreread calibrate DIR` measures the device DIR is on: how many reads at once, \
                    which gaps and which order pay there, and how far to be ahead.";
        writeln!(out)?;
        for line in wrapped(hint, width) {
            writeln!(out, "{line}")?;
        }
    }
    if let Some(problem) = &diagnosis.profiles_problem {
        writeln!(out)?;
        for line in wrapped(&shown(problem), width) {
            writeln!(out, "{line}")?;
        }
    }
    let verdict = if diagnosis.works {
        "foreread works here."
    } else {
        "foreread cannot help here; programs run as they would without it."
    };
    writeln!(out)?;
    for line in wrapped(verdict, width) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}
