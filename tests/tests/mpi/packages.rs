//! Other projects' programs on MPI-IO, as distributions package them: parallel HDF5, PnetCDF's utilities, mpi4py and h5py.
//!
//! Each runs alone, then under foreread without a record, then with the record of that run. It must print the same and end the same, and
//! the accesses that its libraries request from MPI must be recorded.

use std::path::Path;
use std::process::{Command, Output};

use foreread_tests::{Lab, check};

use super::harness::{Mpi, asked, lines};
use super::{Needs, Test};
use foreread_tests::suite::ALL;

pub const TESTS: &[Test] = &[
    ("hyperslabs_by_parallel_hdf5", ALL, Needs::Hdf5, hdf5),
    ("utilities_of_pnetcdf", ALL, Needs::Pnetcdf, pnetcdf),
    ("reads_by_mpi4py", ALL, Needs::Mpi4py, mpi4py),
    ("hyperslabs_by_h5py", ALL, Needs::H5py, h5py),
];

const RANKS: u32 = 2;
/// Debian's own Python: another one does not find the modules of packages.
const PYTHON: &str = "/usr/bin/python3";

impl Needs {
    /// The unmet requirement for the packages of this MPI; `None` if there is none.
    pub fn missing_package(self, mpi: Mpi) -> Option<String> {
        match self {
            Needs::Hdf5 => {
                let compiler = format!("h5pcc.{}", mpi.name());
                found(&compiler).is_none().then(|| format!("no {compiler}"))
            }
            Needs::Pnetcdf => {
                let Some(tool) = found("ncmpidiff") else {
                    return Some("no ncmpidiff".into());
                };
                (!linked(&tool, mpi)).then(|| "ncmpidiff is of another MPI".into())
            }
            Needs::Mpi4py => module("mpi4py.MPI", mpi),
            Needs::H5py => module("mpi4py.MPI", mpi)
                .or_else(|| Needs::Hdf5.missing_package(mpi))
                .or_else(parallel_h5py),
            _ => None,
        }
    }
}

fn found(tool: &str) -> Option<std::path::PathBuf> {
    let mut folders = std::env::split_paths(&std::env::var_os("PATH")?).collect::<Vec<_>>();
    folders.retain(|folder| folder.join(tool).is_file());
    Some(folders.first()?.join(tool))
}

/// True if a program or library is linked with this MPI.
fn linked(path: &Path, mpi: Mpi) -> bool {
    let library = match mpi {
        Mpi::Mpich => "libmpich.so",
        Mpi::OpenMpi => "libmpi.so",
    };
    let output = Command::new("ldd").arg(path).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(library))
}

fn module(name: &str, mpi: Mpi) -> Option<String> {
    let script = format!("import importlib.util as u; print(u.find_spec({name:?}).origin)");
    let output = Command::new(PYTHON).args(["-c", &script]).output();
    let origin = output.ok().filter(|output| output.status.success());
    let Some(origin) = origin.and_then(|output| String::from_utf8(output.stdout).ok()) else {
        return Some(format!("no module {name} of {PYTHON}"));
    };
    (!linked(Path::new(origin.trim()), mpi)).then(|| format!("{name} is of another MPI"))
}

fn parallel_h5py() -> Option<String> {
    let script = "import h5py; print(h5py.get_config().mpi)";
    let mut python = Command::new(PYTHON);
    // Without this variable Debian's h5py is parallel only under a launcher.
    python.args(["-c", script]).env("H5PY_ALWAYS_USE_MPI", "1");
    let output = python.output();
    let parallel = output.is_ok_and(|output| output.stdout.ends_with(b"True\n"));
    (!parallel).then(|| format!("no parallel h5py of {PYTHON}"))
}

/// Runs a command alone and then twice under foreread; output and status must be equal. Returns the run alone.
fn thrice(lab: &Lab, mpi: Mpi, file: &str, words: &[&str]) -> Output {
    let plain = mpi.launch(lab, RANKS, words);
    assert!(plain.status.success(), "{words:?}: {plain:?}");
    for time in ["first", "second"] {
        lab.cold(&[file]);
        let output = mpi.foreread(lab, RANKS, &["run", "--quiet"], words);
        let told = format!("{words:?}, {time} run: {output:?}");
        assert_eq!(lines(&output), lines(&plain), "{told}");
        assert_eq!(output.status, plain.status, "{told}");
    }
    plain
}

/// Asserts that each rank requested at least this number of bytes from MPI.
fn recorded(lab: &Lab, file: &str, bytes: u64) {
    for (rank, asked) in asked(lab, RANKS, file).iter().enumerate() {
        let all: u64 = asked.iter().map(|(_, _, len)| len).sum();
        check!(
            all >= bytes,
            "rank {rank}: {all} of {bytes} bytes: {asked:?}"
        );
    }
}

/// A file of 4 MiB with a field of 1024 by 1024 numbers.
fn field(lab: &Lab, mpi: Mpi) {
    mpi.build_by(lab, &format!("h5pcc.{}", mpi.name()), "slabs.c", &[]);
    let made = mpi.launch(lab, RANKS, &["./slabs", "field.h5", "make"]);
    assert!(made.status.success(), "{made:?}");
}

fn hdf5(mpi: Mpi) {
    let lab = Lab::new();
    field(&lab, mpi);
    thrice(&lab, mpi, "field.h5", &["./slabs", "field.h5"]);
    recorded(&lab, "field.h5", 4 << 20 >> 1);
}

fn h5py(mpi: Mpi) {
    let lab = Lab::new();
    field(&lab, mpi);
    let script = foreread_tests::root().join("tests/mpi/reader.py");
    let script = script.to_str().expect("a path");
    thrice(
        &lab,
        mpi,
        "field.h5",
        &[PYTHON, script, "field.h5", "slabs"],
    );
    recorded(&lab, "field.h5", 4 << 20 >> 1);
}

fn mpi4py(mpi: Mpi) {
    let lab = Lab::new();
    lab.data("data", 4);
    let script = foreread_tests::root().join("tests/mpi/reader.py");
    let script = script.to_str().expect("a path");
    thrice(&lab, mpi, "data", &[PYTHON, script, "data"]);
    recorded(&lab, "data", 4 << 20 >> 1);
}

fn pnetcdf(mpi: Mpi) {
    let lab = Lab::new();
    let numbers: Vec<String> = (0..200_000)
        .map(|n| (n * 7919 % 65_536).to_string())
        .collect();
    let text = format!(
        "netcdf field {{\ndimensions:\n  x = 500; y = 400;\nvariables:\n  int v(x, y);\ndata:\n v = {};\n}}\n",
        numbers.join(", ")
    );
    lab.write("field.cdl", text);
    for name in ["field.nc", "other.nc"] {
        let made = mpi.launch(&lab, 1, &["ncmpigen", "-o", name, "field.cdl"]);
        assert!(made.status.success(), "{made:?}");
    }
    let same = thrice(
        &lab,
        mpi,
        "field.nc",
        &["ncmpidiff", "field.nc", "other.nc"],
    );
    let told = String::from_utf8_lossy(&same.stdout);
    assert!(
        told.contains("All variables of two files are the same"),
        "{told}"
    );
    recorded(&lab, "field.nc", 200_000 * 4 / 2);
}
