//! How a command is started as the ranks of an MPI.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::process::Invocation;

/// How a command is started as ranks.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The MPI.
    pub mpi: Mpi,
    /// The number of ranks.
    pub ranks: u32,
    /// The file in which the program leaves its figures: bytes, and the seconds of the slowest rank.
    pub figures: PathBuf,
}

/// An MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mpi {
    /// MPICH.
    Mpich,
    /// Open MPI.
    OpenMpi,
}

impl Mpi {
    /// Both.
    pub const ALL: [Mpi; 2] = [Mpi::Mpich, Mpi::OpenMpi];

    /// The suffix of Debian's commands for it.
    pub fn name(self) -> &'static str {
        match self {
            Mpi::Mpich => "mpich",
            Mpi::OpenMpi => "openmpi",
        }
    }

    /// Waiting ranks yield the processor, if the MPI has an option for that. No rank is bound to a processor, because there may
    /// be fewer processors than ranks.
    fn options(self) -> &'static [&'static str] {
        match self {
            Mpi::Mpich => &["-bind-to", "none"],
            Mpi::OpenMpi => &[
                "--allow-run-as-root",
                "--oversubscribe",
                "--bind-to",
                "none",
                "--mca",
                "mpi_yield_when_idle",
                "1",
            ],
        }
    }
}

impl Launch {
    /// `command` started as the ranks.
    pub fn start(&self, command: &Invocation) -> Invocation {
        let mut leading: Vec<OsString> = self.mpi.options().iter().map(Into::into).collect();
        leading.extend(["-n".into(), self.ranks.to_string().into()]);
        let launcher = format!("mpirun.{}", self.mpi.name());
        command.under(Path::new(&launcher), leading)
    }

    /// `command` as the ranks, each under `foreread run` with this store.
    pub fn under(&self, foreread: &Path, store: &Path, command: &Invocation) -> Invocation {
        let leading = ["run", "--quiet", "--"].map(Into::into).to_vec();
        let mut wrapped = self.start(&command.under(foreread, leading));
        wrapped
            .env
            .push(("XDG_DATA_HOME".into(), store.to_owned().into()));
        wrapped
    }
}
