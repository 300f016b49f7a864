//! Reads objects and programs: records, code, imports.
//!
//! Objects and archives are untrusted input here: a file that does not parse has no records.

use std::collections::BTreeSet;
use std::path::Path;

use object::{File, FileKind, Object, ObjectKind, ObjectSection, ObjectSymbol, SectionFlags, elf};

/// The section of an object that holds its record.
pub(super) const SECTION: &str = ".foreread.cc";
/// Functions of the C library that read from files, as programs import them. A program that
/// imports none of them reads nothing that a prefetch thread could read first.
const READS: &[&str] = &[
    "read",
    "pread",
    "pread64",
    "readv",
    "preadv",
    "preadv64",
    "preadv2",
    "preadv64v2",
    "fread",
    "fread_unlocked",
    "fgetc",
    "fgetc_unlocked",
    "getc",
    "getc_unlocked",
    "_IO_getc",
    "__uflow",
    "fgets",
    "fgets_unlocked",
    "fgetwc",
    "getwc",
    "fgetws",
    "getw",
    "getline",
    "getdelim",
    "__getdelim",
    "fscanf",
    "vfscanf",
    "fwscanf",
    "__isoc99_fscanf",
    "__isoc99_vfscanf",
    "__isoc23_fscanf",
    "__isoc23_vfscanf",
    "mmap",
    "mmap64",
    "__read_chk",
    "__pread_chk",
    "__pread64_chk",
    "__fread_chk",
    "__fread_unlocked_chk",
    "__fgets_chk",
    "__fgets_unlocked_chk",
];

/// Functions of the C library that the runtime calls in the program's own process (birth.c, program.c, outlook.c, ends/). If the program
/// defines one, it would be called instead. malloc and free are excluded: the whole C library calls those.
const CALLED: &[&str] = &[
    "clone",
    "dlsym",
    "fstat",
    "getauxval",
    "getenv",
    "geteuid",
    "getpid",
    "lseek",
    "madvise",
    "mmap",
    "munmap",
    "pthread_atfork",
    "pthread_create",
    "pthread_mutex_init",
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_sigmask",
    "sched_getaffinity",
    "sched_setaffinity",
    "sysconf",
    "waitpid",
];

/// An object as the driver sees it.
#[derive(Debug)]
pub(super) struct Contents {
    /// Content of the record section; empty if there is none.
    pub(super) records: Vec<u8>,
    /// Digest of the loaded content and of the visible symbols. The record section, debugging information and local symbols are excluded,
    /// so it survives `strip -g`. It does not survive `ld -r` with others, nor a change of symbols.
    pub(super) digest: String,
}

/// The contents of a relocatable ELF object that was not left to link-time optimisation.
pub(super) fn contents(bytes: &[u8]) -> Option<Contents> {
    if !matches!(
        FileKind::parse(bytes).ok()?,
        FileKind::Elf32 | FileKind::Elf64
    ) {
        return None;
    }
    let file = File::parse(bytes).ok()?;
    if file.kind() != ObjectKind::Relocatable {
        return None;
    }
    let mut hash = blake3::Hasher::new();
    let mut records = Vec::new();
    for section in file.sections() {
        let name = section.name_bytes().ok()?;
        if name.starts_with(b".gnu.lto_") {
            return None;
        }
        if name == SECTION.as_bytes() {
            records = section.data().ok()?.to_vec();
        }
        if !is_loaded(section.flags()) {
            continue;
        }
        hash.update(name);
        hash.update(&[0]);
        hash.update(&section.size().to_le_bytes());
        hash.update(section.data().ok()?);
    }
    let seen = file.symbols().filter(|symbol| !symbol.is_local());
    let symbols: BTreeSet<_> = seen
        .map(|symbol| {
            let name = symbol.name_bytes().unwrap_or_default().to_vec();
            (name, symbol.is_undefined(), symbol.is_weak())
        })
        .collect();
    for (name, undefined, weak) in symbols {
        hash.update(&name);
        hash.update(&[0, undefined.into(), weak.into()]);
    }
    Some(Contents {
        records,
        digest: hash.finalize().to_hex().to_string(),
    })
}

fn is_loaded(flags: SectionFlags) -> bool {
    matches!(flags, SectionFlags::Elf { sh_flags, .. } if sh_flags.contains(elf::SHF_ALLOC))
}

/// True if a program may read files through the C library; false for anything but a dynamically linked program.
pub(super) fn may_read(program: &Path) -> bool {
    let Ok(bytes) = std::fs::read(program) else {
        return false;
    };
    let Ok(file) = File::parse(&*bytes) else {
        return false;
    };
    file.dynamic_symbols()
        .filter(|symbol| symbol.is_undefined())
        .filter_map(|symbol| symbol.name().ok())
        .any(|name| READS.contains(&name))
}

/// A function of the C library that the runtime calls and the program defines. In a stripped program only those that libraries call are
/// found.
pub(super) fn redefined(program: &Path) -> Option<&'static str> {
    let bytes = std::fs::read(program).ok()?;
    let file = File::parse(&*bytes).ok()?;
    let own: BTreeSet<_> = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.is_definition() && symbol.is_global())
        .filter_map(|symbol| symbol.name().ok())
        .collect();
    // The latter is the linker's result for a call with --wrap.
    CALLED
        .iter()
        .copied()
        .find(|name| own.contains(name) || own.contains(&*format!("__wrap_{name}")))
}
