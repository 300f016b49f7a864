//! Every case, one row each: name, description, data, command, and differences from the group: disks, needs, purpose, floors.

use super::words::{Made, OUT, PLAIN, Words};
use super::{build, library, packages, predicted, predicted_sources, predicted_ssh, programs, reads, signature, slice, sqlite, start};
use crate::case::Group::{self, Api, Files, Hot, Main, Signature, Slice};
use crate::case::{Case, Data, Purpose, Start, Workload};
use crate::disk::DiskKind::{self, Hdd7200, NetworkSsd, Own};
use crate::want::Want::{self, AsFast, Faster, Improved, Masked};

use build::{LINK, MAKE, TREE};
use library::{SAMPLES, Samples, TILES};
use packages::{BAM, LMDB, LMDB_MAP, NETCDF, PYTHON, SCIPY, SITE};
use predicted::{ALL_FOUR, ANDREW_SOURCES, DOCUMENTS};
use predicted_sources::{GLIMPSE, KERNEL, RELEASES};
use predicted_ssh::SSH;
use programs::{HEADERS, PARQUET, POINTS, POSTGRES, ROCKSDB, SAFETENSORS};
use reads::{HEADS, HOT, RANDOM, RandomReads, SCANNED, STRIDED, Stride};
use signature::{Backward, CHUNKS, FIRST, IMAGE, PATTERNS, Pattern, RASTER, TWO, WIDE};
use slice::{FILM, FILM_BACKWARD, Fft, POINTS_18, POINTS_19, SCATTERED, Sliced, UNIT, VOLUME_16, VOLUME_32, Video};
use sqlite::{ByZip, FOUR, HALF, LINEITEMS, ONE, QUARTER, Scan, TWO as TWICE};
use start::{EMPTY, GIT, LINUX, LINUX_TWICE, MODULES, OFFICE, OFFICE_PROGRAM, REPOSITORY, SCRIPT, SOURCES, WORD};

type Disks = &'static [DiskKind];
type Needs = &'static [(&'static str, &'static str)];

const ALL: Disks = &[Hdd7200, NetworkSsd, Own];
const HDD: Disks = &[Hdd7200];
const NET: Disks = &[NetworkSsd];
const OWN: Disks = &[Own];
const SLOW: Disks = &[Hdd7200, NetworkSsd];
const FAST: Disks = &[NetworkSsd, Own];

const CC: Needs = &[("cc", "gcc")];
const SLICER: Needs = &[("cc", "gcc"), ("size", "binutils")];
const MAKER: Needs = &[("make", "make"), ("cc", "gcc")];
const PYTHON3: Needs = &[(PYTHON, "python3")];
const PIP: Needs = &[(PYTHON, "python3"), ("/usr/bin/pip3", "python3-pip")];
const VENV: Needs = &[("python3", "python3-venv")];
const LINUX_GIT: Needs = &[(SOURCES, "linux-source-6.1"), ("git", "git"), ("xz", "xz-utils")];
const LINUX_RSYNC: Needs = &[(SOURCES, "linux-source-6.1"), ("rsync", "rsync"), ("xz", "xz-utils")];
const LIBREOFFICE: Needs = &[(OFFICE_PROGRAM, "libreoffice-writer-nogui")];
const SQLITE: Needs = &[("sqlite3", "sqlite3")];
const NCKS: Needs = &[("ncks", "nco"), ("ncgen", "netcdf-bin")];
const GDAL: Needs = &[("gdal_translate", "gdal-bin")];
const HDF5: Needs = &[("h5dump", "hdf5-tools"), ("h5import", "hdf5-tools")];
const COMPILER: Needs = &[("gcc", "gcc"), ("ar", "binutils")];
const LD: Needs = &[
    (SOURCES, "linux-source-6.1"), ("gcc", "gcc"), ("make", "make"), ("flex", "flex"), ("bison", "bison"), ("bc", "bc"),
    ("xz", "xz-utils"),
];
const PATCH: Needs = &[("gcc", "gcc"), ("patch", "patch"), ("diff", "diffutils"), ("/usr/bin/pip3", "python3-pip")];
const SSH_BUILD: Needs = &[
    ("gcc", "gcc"), ("make", "make"), ("patch", "patch"), ("diff", "diffutils"), ("/usr/include/openssl/crypto.h", "libssl-dev"),
    ("/usr/include/zlib.h", "zlib1g-dev"), ("/usr/include/crypt.h", "libcrypt-dev"),
];
const EVERYTHING: Needs = &[
    (SOURCES, "linux-source-6.1"), ("gcc", "gcc"), ("make", "make"), ("flex", "flex"), ("bison", "bison"), ("bc", "bc"),
    ("xz", "xz-utils"), ("patch", "patch"), ("/usr/bin/pip3", "python3-pip"), (GLIMPSE, "glimpse"),
];

/// A row: cold, on all disks, expected to gain, without needs and floors, and not with `--quick`.
const fn row(group: Group, name: &'static str, about: &'static str, data: &'static Data, work: &'static dyn Workload) -> Case {
    Case {
        name, group, about, data, work, disks: ALL, quick: &[], needs: &[], purpose: Purpose::Gain, start: Start::Cold, floors: &[],
    }
}

impl Case {
    const fn on(self, disks: Disks) -> Self { Self { disks, ..self } }
    const fn quick(self, quick: Disks) -> Self { Self { quick, ..self } }
    const fn needs(self, needs: Needs) -> Self { Self { needs, ..self } }
    const fn harmless(self) -> Self { Self { purpose: Purpose::NoHarm, ..self } }
    const fn hot(self) -> Self { Self { start: Start::Hot, disks: OWN, ..self } }
    const fn floors(self, floors: &'static [(DiskKind, Want)]) -> Self { Self { floors, ..self } }
}

/// Builds into an empty folder in memory.
const BUILD: Words = Words {
    env: &[("TMPDIR", "{scratch}")],
    outputs: &["{scratch}/build/program"],
    fresh: Some("{scratch}/build"),
    ..PLAIN
};
/// Its files are in memory after the first run.
const IN_MEMORY: Words = Words { env: GIT, files: false, ..PLAIN };

/// The rows of programs under `foreread run`.
pub(super) static MAIN: &[Case] = &[
    // AASFP's Forward and Backward.
    row(Main, "forward-1", "16 MB forward, every 4 KiB", &STRIDED,
        &Stride { direction: "forward", stride: 4096 }).quick(HDD).needs(CC).harmless().floors(&[(Hdd7200, AsFast)]),
    row(Main, "forward-2", "16 MB forward, every other 4 KiB", &STRIDED,
        &Stride { direction: "forward", stride: 8192 }).quick(HDD).needs(CC).harmless().floors(&[(Hdd7200, AsFast)]),
    row(Main, "backward-1", "16 MB backward, every 4 KiB", &STRIDED,
        &Stride { direction: "backward", stride: 4096 }).quick(HDD).needs(CC).floors(&[(Hdd7200, Improved(85.5)), (Hdd7200,
            Masked(95.0))]),
    row(Main, "backward-2", "16 MB backward, every other 4 KiB", &STRIDED,
        &Stride { direction: "backward", stride: 8192 }).quick(HDD).needs(CC).floors(&[(Hdd7200, Improved(75.3)), (Hdd7200,
            Masked(95.0))]),
    row(Main, "random-0us", "20,000 random 4 KiB reads of 1 GiB", &RANDOM,
        &RandomReads { compute_us: 0, reads: (20_000, 20_000) }).on(OWN).quick(OWN).needs(CC).floors(&[(Own, Faster(4.0))]),
    row(Main, "random-10us", "the same, computing 10 us after each", &RANDOM,
        &RandomReads { compute_us: 10, reads: (20_000, 20_000) }).on(OWN).quick(OWN).needs(CC),
    row(Main, "random-50us", "the same, computing 50 us after each", &RANDOM,
        &RandomReads { compute_us: 50, reads: (20_000, 20_000) }).on(OWN).quick(OWN).needs(CC).floors(&[(Own, Masked(95.0))]),
    row(Main, "random-slow", "3,000 random 4 KiB reads of 1 GiB", &RANDOM,
        &RandomReads { compute_us: 0, reads: (1_000, 3_000) }).on(SLOW).needs(CC),
    // Programs over generated data.
    row(Main, "sqlite", "sqlite3: 0.3 % of a table by a secondary index", &LINEITEMS,
        &Words { run: &["sqlite3", "{dir}/tpch.db", sqlite::QUERY], ..PLAIN }).quick(&[Hdd7200, Own]).needs(SQLITE)
            .floors(&[(Hdd7200, Faster(10.0)), (Own, Faster(2.0))]),
    // -h: no history attribute, which would hold the date.
    row(Main, "netcdf", "ncks: a time series out of a NetCDF file", &NETCDF,
        &Words { run: &["ncks", "-O", "-h", "-d", "lat,100,260,40", "-d", "lon,180", "{dir}/series.nc", "{scratch}/out.nc"],
            outputs: &["{scratch}/out.nc"], ..PLAIN }).needs(NCKS),
    row(Main, "bam", "samtools: 2,000 regions of a BAM file", &BAM,
        &Words { run: &["sh", "-c", "exec samtools view -c a.bam $(cat regions)"], ..PLAIN }).needs(&[("samtools", "samtools"),
            ("bwa", "bwa"), ("wgsim", "samtools")]),
    row(Main, "lmdb", "LMDB: 4,000 lookups through mmap", &LMDB,
        &Words { run: &[PYTHON, "look_up.py", "400000"], env: SITE, ..PLAIN }).needs(PIP),
    row(Main, "python", "python3: import numpy, pandas, scipy", &SCIPY,
        &Words { run: &[PYTHON, "-c", "import numpy, pandas, scipy.stats; print(numpy.arange(10).sum())"], env: SITE,
            ..PLAIN }).needs(PIP),
    row(Main, "link", "g++ and ld.bfd: a static link with LLVM", &LINK,
        &Words { run: &["sh", "-c", "exec g++ main.o -o {scratch}/main.out -fuse-ld=bfd -Llib $(cat libs)"], env: &[("TMPDIR",
            "{scratch}")], outputs: &["{scratch}/main.out"], ..PLAIN }).needs(&[("g++", "g++"), (build::LLVM_CONFIG,
            "llvm-14-dev")]),
    row(Main, "make", "make -j2 of 200 C files", &MAKE,
        &Words { run: &["make", "-j2", "--no-print-directory", "O={scratch}/build"], ..BUILD }).needs(MAKER),
    row(Main, "grep", "grep -rl over 8,000 files", &TREE,
        &Words { run: &["grep", "-rl", "needle", "."], ..PLAIN }).needs(&[("grep", "grep")]),
    // Real programs at their usual work.
    row(Main, "postgres", "PostgreSQL: start, 5,000 rows by an index, stop", &POSTGRES,
        &Words { run: &["sh", "-e", "-c", programs::RUN_POSTGRES], ..OUT }).on(FAST).needs(&[("psql", "postgresql")]),
    row(Main, "rocksdb", "RocksDB: 12,000 random gets (db_bench)", &ROCKSDB,
        &Words { run: &["sh", "-e", "-c", programs::RUN_ROCKSDB], ..OUT }).on(FAST).needs(&[("db_bench", "rocksdb-tools")]),
    row(Main, "safetensors", "safetensors: 160 of 300 tensors by 8 threads", &SAFETENSORS,
        &Words { run: &["sh", "-e", "-c", programs::RUN_SAFETENSORS], ..OUT }).on(FAST).needs(VENV),
    row(Main, "parquet", "DuckDB: a query of 24 Parquet files", &PARQUET,
        &Words { run: &["sh", "-e", "-c", programs::RUN_PARQUET], ..OUT }).on(FAST).needs(VENV),
    row(Main, "points", "gdallocationinfo: 3,000 points of 1,000 tiles", &POINTS,
        &Words { run: &["sh", "-e", "-c", programs::RUN_POINTS], ..OUT }).on(FAST).needs(&[("gdallocationinfo", "gdal-bin")]),
    row(Main, "ripgrep", "ripgrep: a word in 6,000 files", &HEADERS,
        &Words { run: &["sh", "-e", "-c", "rg --no-config -c zzzz tree || true"], ..OUT }).on(FAST).needs(&[("rg", "ripgrep")]),
    row(Main, "restic", "restic: the first backup of 6,000 files", &HEADERS,
        &Words { run: &["sh", "-e", "-c",
            "export RESTIC_PASSWORD=x; restic init -q -r $OUT/to; exec restic -q --no-cache -r $OUT/to backup tree"],
            ..OUT }).on(FAST).needs(&[("restic", "restic")]),
    row(Main, "borg", "borg: the first backup of 6,000 files", &HEADERS,
        &Words { run: &["sh", "-e", "-c",
            "export BORG_BASE_DIR=$OUT/home; borg init -e none $OUT/to 2> /dev/null; exec borg create $OUT/to::a tree"],
            ..OUT }).on(FAST).needs(&[("borg", "borgbackup")]),
    // Starts of large programs and walks over thousands of files.
    row(Group::Start, "grep-r", "grep -rl over 26,000 files", &LINUX,
        &Words { run: &["grep", "-rl", "--exclude-dir=.git", WORD, "."], env: GIT, ..PLAIN }).needs(LINUX_GIT),
    row(Group::Start, "tar", "tar of 26,000 files", &LINUX,
        &Words { run: &["sh", "-c", "tar cf - --exclude=.git . | wc -c"], env: GIT, ..PLAIN }).needs(LINUX_GIT),
    row(Group::Start, "git-status", "git status in 26,000 files", &LINUX,
        &Words { run: &["git", "status"], env: GIT, ..PLAIN }).needs(LINUX_GIT),
    row(Group::Start, "git-grep", "git grep in 26,000 files", &LINUX,
        &Words { run: &["git", "grep", "-l", WORD], env: GIT, ..PLAIN }).needs(LINUX_GIT),
    row(Group::Start, "rsync", "rsync -n of 9,000 files and their copies", &LINUX_TWICE,
        &Words { run: &["rsync", "-an", "--itemize-changes", "tree/", "copy/"], ..PLAIN }).needs(LINUX_RSYNC),
    row(Group::Start, "modules", "python3: import of 1,500 modules", &MODULES,
        &Words { run: &[PYTHON, "-c", "import app, sys; print(len([m for m in sys.modules if m.startswith('app.')]))"],
            env: SITE, ..PLAIN }).needs(PYTHON3),
    row(Group::Start, "office", "LibreOffice: start, and convert a letter", &OFFICE, &Made(start::office)).needs(LIBREOFFICE),
    row(Group::Start, "build", "make of 200 C files, one at a time", &MAKE,
        &Words { run: &["make", "-j1", "--no-print-directory", "O={scratch}/build"], ..BUILD }).needs(MAKER),
    row(Group::Start, "lmdb-map", "LMDB: 20,000 lookups, default flags", &LMDB_MAP,
        &Words { run: &[PYTHON, "look_up.py", "640000"], env: SITE, ..PLAIN }).needs(PIP),
    // Cases that foreread must leave alone.
    row(Main, "sequential", "dd of a whole file, 4 KiB reads", &SCANNED,
        &Made(reads::scan)).quick(OWN).harmless().floors(&[(Own, AsFast), (Hdd7200, AsFast)]),
    row(Main, "hot", "1,000,000 random reads of a file in memory", &HOT,
        &Made(reads::hot_reads)).hot().quick(OWN).needs(CC).harmless().floors(&[(Own, AsFast)]),
    row(Main, "first-page", "head -c 4096 of 400 files", &HEADS,
        &Words { run: &["sh", "-c", "exec head -q -c 4096 file-*"], ..PLAIN }).quick(OWN).harmless().floors(&[(Own, AsFast),
            (Hdd7200, AsFast)]),
];

/// Everyday commands with everything in memory, named without the prefix: each is measured on free processors, and beside a busy
/// loop on each processor.
pub(super) static EVERY_DAY: &[Case] = &[
    // Finds nothing.
    row(Hot, "grep", "grep -rl foobarbaz /usr/include", &EMPTY,
        &Words { run: &["grep", "-rl", "foobarbaz", "/usr/include"], status: 1, ..IN_MEMORY }).hot().quick(OWN).needs(&[("grep",
            "grep")]).harmless(),
    row(Hot, "tar", "tar cf - /usr/include | md5sum", &EMPTY,
        &Words { run: &["sh", "-c", "tar cf - /usr/include 2> /dev/null | md5sum"], ..IN_MEMORY }).hot().quick(OWN)
            .needs(&[("tar", "tar")]).harmless(),
    // The number is HOT_LOOP.
    row(Hot, "loop", "a shell that runs /bin/true 200 times", &EMPTY,
        &Words { run: &["sh", "-c", "for i in $(seq 200); do /bin/true; done"], ..IN_MEMORY }).hot().quick(OWN).harmless(),
    row(Hot, "script", "a shell script of 100 small commands", &SCRIPT,
        &Words { run: &["sh", "script"], ..IN_MEMORY }).hot().quick(OWN).needs(&[("awk", "mawk")]).harmless(),
    // The system's python3: another version may be started by a shell script.
    row(Hot, "python", "python3 -c pass", &EMPTY,
        &Words { run: &["/usr/bin/python3", "-c", "pass"], ..IN_MEMORY }).hot().quick(OWN).needs(&[("python3",
            "python3")]).harmless(),
    row(Hot, "status", "git status in 2,000 files", &REPOSITORY,
        &Words { run: &["git", "status"], ..IN_MEMORY }).hot().quick(OWN).needs(&[("git", "git")]).harmless(),
    row(Hot, "log", "git log of 50 commits", &REPOSITORY,
        &Words { run: &["git", "log", "--stat"], ..IN_MEMORY }).hot().quick(OWN).needs(&[("git", "git")]).harmless(),
    row(Hot, "find", "find of large files in /usr/include", &EMPTY,
        &Words { run: &["find", "/usr/include", "-type", "f", "-size", "+100k"], ..IN_MEMORY }).hot().quick(OWN)
            .needs(&[("find", "findutils")]).harmless(),
    row(Hot, "true", "true", &EMPTY, &Words { run: &["/bin/true"], ..IN_MEMORY }).hot().quick(OWN).harmless(),
    row(Hot, "make", "make -j2 of 200 C files", &MAKE,
        &Words { run: &["make", "-j2", "--no-print-directory", "O={scratch}/build"], files: false, ..BUILD }).hot()
            .needs(MAKER).harmless(),
];

/// The other groups.
pub(super) static OTHERS: &[Case] = &[
    // The walk of a table by a key: the first row and the first 16 of the database as large as memory, and the talk's curve.
    row(Api, "sql-limit1", "order by zip limit 1", &ONE,
        &ByZip { rows: 1, peers: true }).quick(ALL).needs(SQLITE).harmless().floors(&[(Hdd7200, AsFast), (NetworkSsd, AsFast),
            (Own, AsFast)]),
    row(Api, "sql-limit16", "order by zip limit 16", &ONE, &ByZip { rows: 16, peers: true }).needs(SQLITE),
    row(Api, "sql-x0.25", "10,000 rows by zip: 1/4 of the memory", &QUARTER,
        &ByZip { rows: 10_000, peers: true }).needs(SQLITE).floors(&[(Hdd7200, Faster(1.0))]),
    row(Api, "sql-x0.5", "10,000 rows by zip: 1/2 of the memory", &HALF,
        &ByZip { rows: 10_000, peers: true }).needs(SQLITE).floors(&[(Hdd7200, Faster(1.0))]),
    row(Api, "sql-x1", "10,000 rows by zip: the memory", &ONE,
        &ByZip { rows: 10_000, peers: true }).needs(SQLITE).quick(NET).floors(&[(Hdd7200, Faster(1.0)), (Own, Faster(2.5))]),
    row(Api, "sql-x2", "10,000 rows by zip: twice the memory", &TWICE,
        &ByZip { rows: 10_000, peers: false }).needs(SQLITE).floors(&[(Hdd7200, Faster(1.0))]),
    row(Api, "sql-x4", "10,000 rows by zip: 4 x the memory", &FOUR,
        &ByZip { rows: 10_000, peers: false }).needs(SQLITE).floors(&[(Hdd7200, Faster(1.0))]),
    // The same table from front to back, where the kernel reads ahead.
    row(Api, "scan-x0.5", "all rows in order: 1/2 of the memory", &HALF, &Scan).needs(SQLITE).harmless(),
    row(Api, "scan-x1", "all rows in order: the memory", &ONE, &Scan).needs(SQLITE).harmless(),
    row(Api, "scan-x2", "all rows in order: twice the memory", &TWICE, &Scan).needs(SQLITE).harmless(),
    row(Api, "scan-x4", "all rows in order: 4 x the memory", &FOUR, &Scan).needs(SQLITE).harmless(),
    // Programs that pass on their list. With less than the whole dataset, most of the remaining time would be the interpreter's
    // start.
    row(Api, "tiles", "C: a blur down columns and along rows of tiles", &TILES,
        &Made(library::tiles)).quick(HDD).needs(CC).floors(&[(Hdd7200, Masked(95.0))]),
    row(Api, "samples-0", "Python: 100,000 random samples", &SAMPLES,
        &Samples { compute_us: 0, count: (20_000, 100_000) }).on(OWN).quick(OWN).needs(PYTHON3).floors(&[(Own, Faster(4.0))]),
    row(Api, "samples-0", "Python: 3,000 random samples", &SAMPLES,
        &Samples { compute_us: 0, count: (1_000, 3_000) }).on(SLOW).needs(PYTHON3),
    row(Api, "samples-50", "20,000, computing 50 us on each", &SAMPLES,
        &Samples { compute_us: 50, count: (10_000, 20_000) }).on(OWN).needs(PYTHON3),
    row(Api, "samples-50", "3,000, computing 50 us on each", &SAMPLES,
        &Samples { compute_us: 50, count: (1_000, 3_000) }).on(SLOW).needs(PYTHON3),
    row(Api, "samples-200", "20,000, computing 200 us on each", &SAMPLES,
        &Samples { compute_us: 200, count: (10_000, 20_000) }).on(OWN).quick(OWN).needs(PYTHON3).floors(&[(Own, Masked(95.0))]),
    row(Api, "samples-200", "3,000, computing 200 us on each", &SAMPLES,
        &Samples { compute_us: 200, count: (1_000, 3_000) }).on(SLOW).needs(PYTHON3).floors(&[(NetworkSsd, Masked(95.0))]),
    row(Api, "samples-1ms", "3,000, computing 1 ms on each", &SAMPLES,
        &Samples { compute_us: 1000, count: (1_000, 3_000) }).needs(PYTHON3),
    row(Api, "api-scan", "a whole file front to back, announced", &RANDOM,
        &Made(library::scan)).quick(OWN).harmless().floors(&[(Hdd7200, AsFast), (NetworkSsd, AsFast), (Own, AsFast)]),
    // Table 1 of AASFP, in its order. The paper does not give the oblique direction; with this one the rays meet as many bricks
    // of either size as in the paper.
    row(Slice, "vol-vis-1", "volume straight through, bricks of 4 KiB", &VOLUME_16,
        &Sliced { program: "raycast", words: &["-b", "16", "-v", "0,0,1"], file: "volume" }).quick(HDD).needs(SLICER),
    row(Slice, "vol-vis-2", "volume obliquely, bricks of 4 KiB", &VOLUME_16,
        &Sliced { program: "raycast", words: &["-b", "16", "-v", "17,17,18"], file: "volume" }).needs(SLICER),
    row(Slice, "vol-vis-3", "volume straight through, bricks of 32 KiB", &VOLUME_32,
        &Sliced { program: "raycast", words: &["-b", "32", "-v", "0,0,1"], file: "volume" }).needs(SLICER),
    row(Slice, "vol-vis-4", "volume obliquely, bricks of 32 KiB", &VOLUME_32,
        &Sliced { program: "raycast", words: &["-b", "32", "-v", "17,17,18"], file: "volume" }).needs(SLICER),
    row(Slice, "fft-256k", "Fourier transform of 256K points in one file", &POINTS_18,
        &Fft { log2: 18 }).quick(HDD).needs(SLICER).harmless(),
    row(Slice, "fft-512k", "Fourier transform of 512K points in one file", &POINTS_19,
        &Fft { log2: 19 }).needs(SLICER).harmless(),
    row(Slice, "video-fwd-1", "film forward, every 4 KiB", &FILM,
        &Video { backward: false, stride: UNIT }).quick(HDD).needs(SLICER).harmless(),
    row(Slice, "video-bwd-1", "film backward, every 4 KiB", &FILM_BACKWARD,
        &Video { backward: true, stride: UNIT }).quick(HDD).needs(SLICER),
    row(Slice, "video-fwd-2", "film forward, every other 4 KiB", &FILM,
        &Video { backward: false, stride: 2 * UNIT }).needs(SLICER).harmless(),
    row(Slice, "video-bwd-2", "film backward, every other 4 KiB", &FILM_BACKWARD,
        &Video { backward: true, stride: 2 * UNIT }).needs(SLICER),
    row(Slice, "profile", "mapped volume, bricks of 4 KiB from its centre outward", &VOLUME_16,
        &Sliced { program: "profile", words: &[], file: "volume" }).needs(SLICER),
    row(Slice, "bricks", "volume of 512 MB obliquely, bricks of 4 KiB", &SCATTERED,
        &Sliced { program: "bricks", words: &[], file: "table" }).on(FAST).needs(SLICER),
    row(Slice, "rows", "rows of 4 KiB of a table of 512 MB, by an index", &SCATTERED, &Made(slice::rows)).on(FAST).needs(SLICER),
    // Patterns of reads on a first run; names with `other-` after a run on another file.
    row(Signature, "sig-bwd-1", "film backward, every 4 KiB", &signature::FILM,
        &Backward { stride: "4096" }).quick(OWN).needs(CC),
    row(Signature, "sig-bwd-2", "film backward, every other 4 KiB", &signature::FILM, &Backward { stride: "8192" }).needs(CC),
    row(Signature, "sig-8k", "4 KiB reads 8 KiB apart", &PATTERNS,
        &Pattern { words: "strided -s 8192", count: (512, 2048), ..FIRST }).needs(CC),
    row(Signature, "sig-64k", "4 KiB reads 64 KiB apart", &PATTERNS,
        &Pattern { words: "strided -s 65536", count: (512, 2048), ..FIRST }).quick(OWN).needs(CC),
    row(Signature, "sig-2m", "4 KiB reads 2 MiB apart", &WIDE,
        &Pattern { words: "strided -s 2097152", count: (256, 256), ..FIRST }).needs(CC),
    row(Signature, "sig-nested", "4 KiB, 4 KiB, then 12 KiB apart", &PATTERNS,
        &Pattern { words: "nested -s 12288", count: (256, 1024), ..FIRST }).quick(OWN).needs(CC),
    row(Signature, "sig-lu", "out-of-core LU in three quarters of its memory", &PATTERNS,
        &Pattern { words: "lu", count: (64, 64), memory: 24, ..FIRST }).needs(CC),
    row(Signature, "sig-column", "2 columns of a matrix, 8 bytes a row", &PATTERNS,
        &Pattern { words: "columns -b 8 -s 65536 -c 2", count: (512, 1024), ..FIRST }).needs(CC),
    row(Signature, "sig-tile", "a tile of a 3-D volume, by rows of 8 KiB", &PATTERNS,
        &Pattern { words: "tile -b 8192 -s 65536 -p 4194304", count: (16, 28), ..FIRST }).needs(CC),
    row(Signature, "sig-cur2", "2 cursors in turn, 16 KiB apart", &PATTERNS,
        &Pattern { words: "cyclic -c 2 -s 16384", count: (256, 1024), ..FIRST }).needs(CC),
    row(Signature, "sig-cur8", "8 cursors in turn, 16 KiB apart", &PATTERNS,
        &Pattern { words: "cyclic -c 8 -s 16384", count: (64, 256), ..FIRST }).needs(CC),
    row(Signature, "sig-mix2", "2 cursors by chance, 16 KiB apart", &PATTERNS,
        &Pattern { words: "mixed -c 2 -s 16384", count: (256, 1024), ..FIRST }).needs(CC),
    row(Signature, "sig-mix8", "8 cursors by chance, 16 KiB apart", &PATTERNS,
        &Pattern { words: "mixed -c 8 -s 16384", count: (64, 256), ..FIRST }).needs(CC),
    row(Signature, "sig-rungap", "runs of 2 MiB, 1 MiB skipped", &PATTERNS,
        &Pattern { words: "run-gap -b 65536 -c 32 -s 1048576", count: (16, 40), ..FIRST }).needs(CC),
    row(Signature, "sig-solver", "64 MiB written, read backward in 32 MiB", &signature::OWN,
        &Pattern { words: "solver -b 65536", count: (1024, 1024), memory: 32, ..FIRST }).needs(CC),
    row(Signature, "other-bwd", "backward: another file, size and start", &TWO,
        &Pattern { words: "strided -s -4096", count: (512, 1536), learn: "strided -s -4096 -o 8388608 -n 512", ..FIRST })
            .needs(CC),
    row(Signature, "other-64k", "64 KiB apart: another file, size and start", &TWO,
        &Pattern { words: "strided -s 65536 -o 12288", count: (512, 1280), learn: "strided -s 65536 -n 512", ..FIRST })
            .quick(OWN).needs(CC),
    row(Signature, "other-48k", "48 KiB apart, learnt with 64 KiB apart", &TWO,
        &Pattern { words: "strided -s 49152 -o 12288", count: (512, 1280), learn: "strided -s 65536 -n 512", ..FIRST }).needs(CC),
    row(Signature, "other-nest", "nested: another file, size and start", &TWO,
        &Pattern { words: "nested -s 12288 -o 4194304", count: (256, 1024), learn: "nested -s 12288 -n 256", ..FIRST }).needs(CC),
    row(Signature, "other-lu", "LU in three quarters of its memory, learnt with half the steps", &TWO,
        &Pattern { words: "lu", count: (64, 64), learn: "lu -n 32", memory: 24 }).needs(CC),
    row(Signature, "other-tile", "a 3-D tile: another file, place and size", &TWO,
        &Pattern { words: "tile -b 8192 -s 65536 -p 4194304 -o 98304", count: (16, 22),
            learn: "tile -b 8192 -s 65536 -p 4194304 -n 12", ..FIRST }).needs(CC),
    row(Signature, "other-cur4", "4 cursors: another file, size and start", &TWO,
        &Pattern { words: "cyclic -c 4 -s 16384 -o 8192", count: (128, 512), learn: "cyclic -c 4 -s 16384 -n 128",
            ..FIRST }).needs(CC),
    row(Signature, "sig-random", "4 KiB reads by chance", &PATTERNS,
        &Pattern { words: "random", count: (300, 1000), ..FIRST }).quick(OWN).needs(CC).harmless(),
    row(Signature, "sig-seq", "128 MiB from front to back, 4 KiB reads", &PATTERNS,
        &Pattern { words: "strided", count: (0, 0), ..FIRST }).needs(CC).harmless(),
    row(Signature, "sig-hot", "1,000,000 reads by chance, in memory", &PATTERNS,
        &Pattern { words: "random", count: (1_000_000, 1_000_000), ..FIRST }).needs(CC).hot().harmless(),
    row(Signature, "sig-hotmix", "1,000,000 reads of 8 cursors, in memory", &PATTERNS,
        &Pattern { words: "mixed -b 64 -c 8 -s 128", count: (125_000, 125_000), ..FIRST }).needs(CC).hot().harmless(),
    // Real programs whose reads follow a pattern, likewise.
    row(Signature, "sig-ncks", "ncks: hyperslabs of a NetCDF file", &NETCDF,
        &Words { run: &["ncks", "-O", "-h", "-d", "lat,100,260,40", "-d", "lon,180", "{dir}/series.nc", "{scratch}/out.nc"],
            outputs: &["{scratch}/out.nc"], ..PLAIN }).needs(NCKS),
    row(Signature, "sig-raster", "gdal_translate: a column of a tiled GeoTIFF", &RASTER,
        &Words { run: &["gdal_translate", "-q", "-of", "ENVI", "-srcwin", "1000", "0", "1", "131072", "{dir}/raster.tif",
            "{scratch}/column"], outputs: &["{scratch}/column"], ..PLAIN }).needs(GDAL),
    // A region of 32 x 16 x 1 chunks, one of eight along the fastest dimension.
    row(Signature, "sig-chunks", "h5dump: a region of a chunked HDF5 array", &CHUNKS,
        &Words { run: &["h5dump", "-d", "/v", "-s", "0,128,64", "-c", "512,256,16", "-b", "LE", "-o", "{scratch}/region",
            "{dir}/array.h5"], outputs: &["{scratch}/region"], ..PLAIN }).needs(HDF5),
    // With two threads, some runs on a slow disk wrote another image: GEGL's own warnings mention a swap file with inconsistent
    // gaps. One thread is also faster: 1.3 s against 3.5 s on a local disk. The pages that GEGL has swapped out are dropped from
    // memory.
    row(Signature, "sig-gegl", "gegl: blur of an image in swapped tiles", &IMAGE,
        &Words { run: &["gegl", "{dir}/image.ppm", "-o", "{dir}/made/blurred.ppm", "--", "gegl:gaussian-blur", "std-dev-x=8",
            "std-dev-y=8"], env: &[("GEGL_CACHE_SIZE", "16"), ("GEGL_SWAP", "{dir}/made"), ("GEGL_THREADS", "1")],
            outputs: &["{dir}/made/blurred.ppm"], fresh: Some("{dir}/made"), memory: Some(160 << 20), ..PLAIN })
            .needs(&[("gegl", "gegl")]),
    row(Signature, "other-ncks", "ncks: other hyperslabs of the file", &NETCDF,
        &Words { run: &["ncks", "-O", "-h", "-d", "lat,100,260,40", "-d", "lon,180", "{dir}/series.nc", "{scratch}/out.nc"],
            learn: &["ncks", "-O", "-h", "-d", "lat,20,220,40", "-d", "lon,75", "{dir}/series.nc", "{scratch}/out.nc"],
            outputs: &["{scratch}/out.nc"], ..PLAIN }).needs(NCKS),
    row(Signature, "other-gdal", "gdal_translate: another column", &RASTER,
        &Words { run: &["gdal_translate", "-q", "-of", "ENVI", "-srcwin", "1000", "0", "1", "131072", "{dir}/raster.tif",
            "{scratch}/column"], learn: &["gdal_translate", "-q", "-of", "ENVI", "-srcwin", "3000", "0", "1", "131072",
            "{dir}/raster.tif", "{scratch}/column"], outputs: &["{scratch}/column"], ..PLAIN }).needs(GDAL),
    row(Signature, "other-h5", "h5dump: another region", &CHUNKS,
        &Words { run: &["h5dump", "-d", "/v", "-s", "0,128,64", "-c", "512,256,16", "-b", "LE", "-o", "{scratch}/region",
            "{dir}/array.h5"], learn: &["h5dump", "-d", "/v", "-s", "0,32,16", "-c", "512,256,16", "-b", "LE", "-o",
            "{scratch}/region", "{dir}/array.h5"], outputs: &["{scratch}/region"], ..PLAIN }).needs(HDF5),
    // Programs that open many files in much the same order each time, for the daemon: those of section 4 of Kroeger and Long, and
    // two starts.
    row(Files, "andrew", "17 C files, two libraries, a program", &ANDREW_SOURCES, &Made(predicted::andrew)).needs(COMPILER),
    row(Files, "ldkernel", "ld: a kernel from 392 objects in 39 steps", &KERNEL, &Made(predicted_sources::kernel_link)).needs(LD),
    row(Files, "glimpse", "glimpseindex over /usr/share/doc", &DOCUMENTS,
        &Made(predicted::glimpse)).needs(&[(GLIMPSE, "glimpse")]),
    row(Files, "patch", "zstd: ten releases, patched and compiled", &RELEASES, &Made(predicted_sources::releases)).needs(PATCH),
    row(Files, "ssh", "OpenSSH: three releases, patched and built", &SSH, &Made(predicted_ssh::ssh)).needs(SSH_BUILD),
    row(Files, "multi-glimpse", "glimpse, after all four were learnt", &ALL_FOUR,
        &Made(predicted::many_patterns)).needs(EVERYTHING),
    row(Files, "multi-ld", "ldkernel, a search between the runs", &KERNEL, &Made(predicted::link_and_search)).needs(LD),
    row(Files, "python-start", "python3: import numpy, pandas, scipy", &SCIPY,
        &Words { run: &[PYTHON, "-c", "import numpy, pandas, scipy.stats; print(numpy.arange(10).sum())"], env: SITE,
            ..PLAIN }).needs(PIP),
    row(Files, "office-start", "LibreOffice: start, and convert a letter", &OFFICE, &Made(start::office)).needs(LIBREOFFICE),
];
