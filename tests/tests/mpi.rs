//! Parallel programs in C and Fortran, under MPICH and Open MPI: what each call of MPI-IO is recorded as, records of ranks and
//! what becomes of them, the collective cache, and programs unharmed.
//!
//! The programs are in `tests/mpi`. Each test runs under each MPI; what this machine has no compiler for is reported as
//! ignored, with the reason. Two ranks mostly: MPICH waits busily, which more ranks than processors make slow.

#![forbid(unsafe_code)]

#[path = "mpi/bad.rs"]
mod bad;
#[path = "mpi/cache.rs"]
mod cache;
#[path = "mpi/calls.rs"]
mod calls;
#[path = "mpi/collective.rs"]
mod collective;
#[path = "mpi/harness.rs"]
mod harness;
#[path = "mpi/hosts.rs"]
mod hosts;
#[path = "mpi/packages.rs"]
mod packages;
#[path = "mpi/ranks.rs"]
mod ranks;
#[path = "mpi/unharmed.rs"]
mod unharmed;

use foreread_tests::{Need, rounds};
use harness::Mpi;
use libtest_mimic::{Arguments, Failed, Trial};

/// What a test needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    C,
    Fortran,
    /// A C compiler, and that the MPI is this one.
    Mpich,
    /// A C compiler, and to mount slow file systems.
    Mount,
    /// A C compiler, and hosts in network namespaces.
    Hosts,
    /// Parallel HDF5.
    Hdf5,
    /// The utilities of PnetCDF.
    Pnetcdf,
    /// Python's MPI.
    Mpi4py,
    /// Python's parallel HDF5, and that of C.
    H5py,
}

/// A test, and what it needs.
type Test = (&'static str, Needs, fn(Mpi));

fn main() {
    let mut arguments = Arguments::from_args();
    // One at a time: ranks that wait busily take each other's processors.
    arguments.test_threads.get_or_insert(1);
    let mut trials = Vec::new();
    for mpi in Mpi::ALL {
        for &(name, needs, test) in [
            calls::TESTS,
            cache::TESTS,
            collective::TESTS,
            ranks::TESTS,
            unharmed::TESTS,
            packages::TESTS,
            hosts::TESTS,
            bad::TESTS,
        ]
        .into_iter()
        .flatten()
        {
            if needs == Needs::Mpich && mpi != Mpi::Mpich {
                continue;
            }
            let name = format!("{name}_{}", mpi.name());
            let run = move || -> Result<(), Failed> {
                rounds(|| test(mpi));
                Ok(())
            };
            let needs_all: &[Need] = match needs {
                Needs::Mount => &[Need::Root, Need::Fuse],
                _ => &[],
            };
            let missing = mpi
                .missing(needs == Needs::Fortran)
                .or_else(|| needs_all.iter().find_map(|need| need.missing()))
                .or_else(|| needs.missing_package(mpi))
                .or_else(|| (needs == Needs::Hosts).then(hosts::missing).flatten());
            trials.push(match missing {
                None => Trial::test(name, run),
                Some(missing) => Trial::test(format!("{name} (cannot run here: {missing})"), run)
                    .with_ignored_flag(true),
            });
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}
