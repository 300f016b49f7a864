//! Parallel programs in C and Fortran, under MPICH and Open MPI: the accesses recorded for each call of MPI-IO, the records of ranks and
//! their reuse, the collective cache, and programs unharmed.
//!
//! The programs are in `tests/mpi`. Each test runs under each MPI, mostly with two ranks: MPICH waits busily, which is slow with more
//! ranks than processors.

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

/// The needs of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    C,
    Fortran,
    /// A C compiler, and MPICH as the MPI.
    Mpich,
    /// A C compiler, and the ability to mount slow file systems.
    Mount,
    /// A C compiler, and hosts in network namespaces.
    Hosts,
    /// Parallel HDF5.
    Hdf5,
    /// The utilities of PnetCDF.
    Pnetcdf,
    /// mpi4py.
    Mpi4py,
    /// h5py with parallel HDF5, and parallel HDF5 for C.
    H5py,
}

/// A test: its name, when it runs, its needs, and its body.
type Test = (&'static str, When, Needs, fn(Mpi));

/// Adds each test once per MPI. The quick ring has only the tests of the first MPI that is installed.
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
            // Ranks that wait busily take the processors from one another.
            suite.add_one(name, when.one_at_a_time(), all, missing, move || test(mpi));
        }
    }
}
