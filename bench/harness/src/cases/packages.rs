//! Data of real programs: NetCDF, BAM, LMDB, Python's packages.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::data::{Random, fill, write};
use crate::case::Data;
use crate::tools::{shell, succeed};

/// Debian's own: a wrapper that selects a version would be measured, too.
pub(super) const PYTHON: &str = "/usr/bin/python3";
/// python3 with the packages in a case's data; it writes no files beside them.
pub(super) const SITE: &[(&str, &str)] = &[
    ("PYTHONPATH", "{dir}/site"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
];

/// `series.nc`: a variable of 50 times, 20 levels, 360 latitudes and 360 longitudes.
pub(super) static NETCDF: Data = Data {
    name: "netcdf",
    make: |dir, _, _| {
        let times = 50;
        let header = format!(
            "netcdf t {{ dimensions: time={times}; lev=20; lat=360; lon=360; variables: float T(time,lev,lat,lon); }}"
        );
        write(dir, "t.cdl", header)?;
        shell(dir, "ncgen -k 64-bit-offset -o header.nc t.cdl")?;
        // ncgen leaves the variable's values, the end of the file, unwritten or filled: ours are written there.
        let values = times * 20 * 360 * 360 * 4;
        let header = fs::metadata(dir.join("header.nc")).context("looking at header.nc")?;
        let head = header.len().checked_sub(values).unwrap_or(header.len());
        fill(&dir.join("values"), values, 11)?;
        shell(
            dir,
            &format!(
                "head -c {head} header.nc > series.nc; cat values >> series.nc; rm header.nc values t.cdl"
            ),
        )
    },
};

/// Lines of 80 bases in the reference genome.
const REFERENCE_LINES: u64 = 100_000;

/// `a.bam` with its index, and `regions`: 2,000 random ones.
pub(super) static BAM: Data = Data {
    name: "bam-regions",
    make: |dir, _, _| {
        let path = dir.join("ref.fa");
        let file = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
        let mut out = BufWriter::new(file);
        let mut random = Random(12);
        writeln!(out, ">chr1")?;
        for _ in 0..REFERENCE_LINES {
            let bits = [random.next(), random.next(), random.next()];
            let line: String = (0..80)
                .map(|i| b"ACGT"[(bits[i / 32] >> (i % 32 * 2) & 3) as usize] as char)
                .collect();
            writeln!(out, "{line}")?;
        }
        out.flush()?;
        let (mut random, bases) = (Random(8), REFERENCE_LINES * 80);
        let region = |at: u64| format!("chr1:{at}-{}\n", at + 50);
        let regions = (0..2000).map(|_| region(1 + random.below(bases - 100)));
        write(dir, "regions", regions.collect::<String>())?;
        let reads = 4 * REFERENCE_LINES;
        shell(
            dir,
            &format!(
                "wgsim -N {reads} -1 100 -2 100 -r 0.001 -S 7 ref.fa r1.fq r2.fq > wgsim.log; bwa index ref.fa; \
                 bwa mem -t 2 ref.fa r1.fq r2.fq > a.sam; samtools sort -m 512M -o a.bam a.sam; \
                 samtools index a.bam; rm r1.fq r2.fq a.sam wgsim.log ref.fa*"
            ),
        )
    },
};

/// Fills a store of 300-byte values under shuffled keys.
const LMDB_FILL: &str = "\
import lmdb, random, struct, sys
keys = list(range(int(sys.argv[1])))
random.seed(1)
random.shuffle(keys)
pool = random.randbytes(1 << 16)
store = lmdb.open('store', map_size=4 << 30, sync=False)
for first in range(0, len(keys), 50000):
    with store.begin(write=True) as write:
        for key in keys[first:first + 50000]:
            write.put(struct.pack('>Q', key), pool[key % 60000:key % 60000 + 300])
store.sync()
";

/// Looks up random keys and prints the sum of one byte of each.
fn look_up(options: &str, lookups: u64) -> String {
    format!(
        "\
import lmdb, random, struct, sys
keys = int(sys.argv[1])
store = lmdb.open('store'{options})
random.seed(9)
with store.begin(buffers=True) as read:
    print(sum(read.get(struct.pack('>Q', random.randrange(keys)))[7] for _ in range({lookups})))
"
    )
}

pub(super) static LMDB: Data = Data {
    name: "lmdb",
    make: |dir, _, _| {
        store(
            dir,
            "400000",
            &look_up(", readonly=True, lock=False, readahead=False", 4000),
        )
    },
};
/// With the flags of most programs, the kernel reads around each page. The store has 500 MB.
pub(super) static LMDB_MAP: Data = Data {
    name: "lmdb-map",
    make: |dir, _, _| store(dir, "640000", &look_up("", 20_000)),
};

fn store(dir: &Path, keys: &str, look_up: &str) -> Result<()> {
    pip_install(&dir.join("site"), &["lmdb"])?;
    write(dir, "look_up.py", look_up)?;
    let mut python = Command::new(PYTHON);
    python
        .args(["-c", LMDB_FILL, keys])
        .env("PYTHONPATH", dir.join("site"))
        .current_dir(dir);
    succeed(&mut python)
}

pub(super) static SCIPY: Data = Data {
    name: "python",
    make: |dir, _, _| pip_install(&dir.join("site"), &["numpy", "pandas", "scipy"]),
};

/// Installs Python packages, compiled, into a folder that can be copied to any disk.
fn pip_install(target: &Path, packages: &[&str]) -> Result<()> {
    let mut pip = Command::new(PYTHON);
    pip.args(["-m", "pip"]);
    pip.args(["install", "--quiet", "--no-input", "--compile", "--target"])
        .arg(target)
        .args(packages);
    succeed(&mut pip)
}
