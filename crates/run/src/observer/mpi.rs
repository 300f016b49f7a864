//! Finds the library that intercepts the program's MPI-IO, if it uses MPI.
//!
//! Each binary interface of MPI has its own library (`observers/pmpi`). The right one follows from the libraries that the program links,
//! directly or indirectly. For a program that loads MPI later, such as Python, it follows from the launcher. A library for an MPI that is
//! never loaded does nothing.
//!
//! Data flow: the program's ELF file and its libraries' → the names that they need → [`Interface`] → a path.
//!
//! Invariant: of a program that no launcher has started only its own file is read, and of that a few pages.

use std::collections::HashSet;
use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::{self, FileHeader64};
use object::read::elf::FileHeader;
use object::read::{ReadCache, ReadRef};

/// Number of libraries examined: as many as the largest programs link.
const LIBRARIES: usize = 512;
/// Folders of libraries without an explicit path.
const FOLDERS: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/usr/local/lib",
    "/lib",
];

/// A binary interface of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interface {
    /// MPICH and those that agreed on its: Intel MPI, MVAPICH, Cray MPICH.
    Mpich,
    OpenMpi,
    /// The standard interface, from MPI 5 on.
    Standard,
}

impl Interface {
    /// Whose a library of this name is.
    fn of(name: &[u8]) -> Option<Self> {
        let is = |names: &[&str]| names.iter().any(|one| name == one.as_bytes());
        if is(&[
            "libmpich.so.12",
            "libmpichfort.so.12",
            "libmpi.so.12",
            "libmpifort.so.12",
            "libmpi_cray.so.12",
        ]) {
            return Some(Self::Mpich);
        }
        let of_open_mpi = [
            "libmpi.so.40",
            "libmpi_mpifh.so.40",
            "libmpi_usempif08.so.40",
        ];
        if is(&of_open_mpi) {
            return Some(Self::OpenMpi);
        }
        name.starts_with(b"libmpi_abi.so.")
            .then_some(Self::Standard)
    }

    /// Whose launcher has started this process.
    fn of_launcher(has: impl Fn(&str) -> bool) -> Option<Self> {
        if has("OMPI_COMM_WORLD_RANK") {
            return Some(Self::OpenMpi);
        }
        has("PMI_RANK").then_some(Self::Mpich)
    }

    fn file(self) -> Option<&'static str> {
        match self {
            Self::Mpich => Some("libforeread_mpich.so"),
            Self::OpenMpi => Some("libforeread_openmpi.so"),
            Self::Standard => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Mpich => "MPICH",
            Self::OpenMpi => "Open MPI",
            Self::Standard => "MPI's standard binary interface",
        }
    }
}

/// The library for the program at `exe`, with or without a launcher of parallel programs; it is beside the preload library. `None` if the
/// program does not use MPI, an error if its calls cannot be seen.
pub(crate) fn library(
    exe: &Path,
    launched: bool,
    preload: &Path,
) -> Option<Result<PathBuf, String>> {
    let most = if launched { LIBRARIES } else { 0 };
    let linked = linked(exe, most);
    let by_launcher =
        || launched.then(|| Interface::of_launcher(|name| env::var_os(name).is_some()));
    let interface = linked.or_else(|| by_launcher()?)?;
    let path = interface.file().map(|name| preload.with_file_name(name));
    Some(match path.filter(|path| path.is_file()) {
        Some(path) => Ok(path),
        None => Err(format!(
            "its calls of MPI are not seen: there is no library for {} beside {}",
            interface.name(),
            preload.display()
        )),
    })
}

/// The MPI that a program links, directly or through at most this many libraries.
fn linked(exe: &Path, most: usize) -> Option<Interface> {
    let mut seen = HashSet::new();
    let mut files = vec![exe.to_owned()];
    let mut at = 0;
    while let Some(file) = files.get(at).cloned() {
        at += 1;
        let Some(needs) = Needs::of(&file) else {
            continue;
        };
        if let Some(found) = needs.names.iter().find_map(|name| Interface::of(name)) {
            return Some(found);
        }
        let folders = needs.folders(&file);
        for name in needs.names {
            if files.len() > most {
                break;
            }
            if seen.insert(name.clone()) {
                files.extend(find(&name, &folders));
            }
        }
    }
    None
}

/// The first file of this name in these folders, or in those where libraries are.
fn find(name: &[u8], folders: &[PathBuf]) -> Option<PathBuf> {
    let usual = FOLDERS.iter().map(PathBuf::from);
    let all = folders.iter().cloned().chain(usual);
    all.map(|folder| folder.join(OsStr::from_bytes(name)))
        .find(|path| path.is_file())
}

/// The dependencies of an ELF file.
#[derive(Default)]
struct Needs {
    names: Vec<Vec<u8>>,
    /// The search paths in the file.
    paths: Vec<Vec<u8>>,
}

impl Needs {
    fn of(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        Self::read(&ReadCache::new(file))
    }

    fn read<'data>(file: impl ReadRef<'data>) -> Option<Self> {
        let header = FileHeader64::<Endianness>::parse(file).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, file).ok()?;
        let (entries, strings) = sections.dynamic(endian, file).ok()??;
        let strings = sections.strings(endian, file, strings).ok()?;
        let mut needs = Self::default();
        for entry in entries {
            let text = || {
                strings
                    .get(u32::try_from(entry.d_val.get(endian)).ok()?)
                    .ok()
            };
            match entry.d_tag.get(endian) {
                elf::DT_NEEDED => needs.names.extend(text().map(<[u8]>::to_vec)),
                elf::DT_RUNPATH | elf::DT_RPATH => needs.paths.extend(text().map(<[u8]>::to_vec)),
                _ => {}
            }
        }
        Some(needs)
    }

    /// The folders in which the libraries of the file at `path` are looked for.
    fn folders(&self, path: &Path) -> Vec<PathBuf> {
        let origin = path.canonicalize().ok();
        let origin = origin.as_deref().and_then(Path::parent);
        let own = self
            .paths
            .iter()
            .flat_map(|list| list.split(|&byte| byte == b':'));
        let own = own.filter_map(|folder| {
            let folder = Path::new(OsStr::from_bytes(folder));
            let rest = folder
                .strip_prefix("$ORIGIN")
                .or_else(|_| folder.strip_prefix("${ORIGIN}"));
            match rest {
                Ok(rest) => origin.map(|origin| origin.join(rest)),
                Err(_) => Some(folder.to_owned()),
            }
        });
        let named = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        own.chain(env::split_paths(&named)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_known_by_the_library_that_is_linked() {
        assert_eq!(Interface::of(b"libmpich.so.12"), Some(Interface::Mpich));
        assert_eq!(
            Interface::of(b"libmpi.so.12"),
            Some(Interface::Mpich),
            "Intel MPI"
        );
        assert_eq!(Interface::of(b"libmpi.so.40"), Some(Interface::OpenMpi));
        assert_eq!(Interface::of(b"libmpi_abi.so.0"), Some(Interface::Standard));
        assert_eq!(Interface::of(b"libm.so.6"), None);
        assert_eq!(
            Interface::of(b"libmpi.so.1"),
            None,
            "an Open MPI of long ago"
        );
    }

    #[test]
    fn a_program_without_mpi_has_none_but_by_its_launcher() {
        let own = env::current_exe().unwrap();
        assert_eq!(linked(&own, LIBRARIES), None);
        let launcher = |known: &'static str| Interface::of_launcher(move |name| name == known);
        assert_eq!(launcher("OMPI_COMM_WORLD_RANK"), Some(Interface::OpenMpi));
        assert_eq!(launcher("PMI_RANK"), Some(Interface::Mpich));
        assert_eq!(launcher("SLURM_PROCID"), None);
    }

    #[test]
    fn what_a_program_needs_is_read_from_its_file_whatever_that_is() {
        let own = Needs::of(&env::current_exe().unwrap()).unwrap();
        assert!(own.names.iter().any(|name| name.starts_with(b"libc.so")));
        let whole = std::fs::read(env::current_exe().unwrap()).unwrap();
        for cut in [0, 4, 64, 1000, 65536] {
            Needs::read(&whole[..cut]);
        }
        let mut broken = whole;
        for at in (0..broken.len()).step_by(97) {
            broken[at] ^= 0x55;
        }
        Needs::read(broken.as_slice());
        assert!(Needs::of(Path::new("/")).is_none() && Needs::of(Path::new("/dev/zero")).is_none());
    }
}
