//! Parallel programs in C and Fortran, under MPICH and Open MPI: what each call of MPI-IO is recorded as, records of ranks and
//! what becomes of them, the collective cache, and programs unharmed.
//!
//! The programs are in `tests/mpi`. Each test runs under each MPI. Two ranks mostly: MPICH waits busily, which more ranks than processors make slow.

mod bad;
mod cache;
mod calls;
mod collective;
mod harness;
mod hosts;
mod packages;
mod ranks;
mod unharmed;

use foreread_tests::Need;
use foreread_tests::suite::{Suite, When};
use harness::Mpi;

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

/// A test: its name, when it runs, its needs, and its body.
type Test = (&'static str, When, Needs, fn(Mpi));

/// Adds each test once for each MPI. The quick ring has those of the first MPI that is there.
pub fn add(suite: &mut Suite) {
    let first = Mpi::ALL
        .into_iter()
        .find(|mpi| mpi.missing(false).is_none());
    let first = first.unwrap_or(Mpi::Mpich);
    for mpi in Mpi::ALL {
        for &(name, when, needs, test) in [
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
            let when = if mpi == first { when } else { when.later() };
            let all: &[Need] = match needs {
                Needs::Mount => &[Need::Root, Need::Fuse],
                _ => &[],
            };
            let missing = || {
                mpi.missing(needs == Needs::Fortran)
                    .or_else(|| needs.missing_package(mpi))
                    .or_else(|| (needs == Needs::Hosts).then(hosts::missing).flatten())
            };
            let name = format!("mpi::{name}_{}", mpi.name());
            // Ranks that wait busily take each other's processors.
            suite.add_one(name, when.one_at_a_time(), all, missing, move || test(mpi));
        }
    }
}
