//! Real programs over generated data: NetCDF, BAM, LMDB, Python.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::data::{Random, fill};
use crate::case::{Case, Group, Job, Purpose, Size, Start, Workload};
use crate::disk::DiskKind;
use crate::process::Invocation;
use crate::tools::{Tools, shell, succeed};
use crate::tree::files_below;

/// Debian's own: a wrapper that picks a version would be measured along.
pub(super) const PYTHON: &str = "/usr/bin/python3";

/// `ncks`: one column of a NetCDF variable through all times and levels.
pub(super) struct NetcdfSeries;

impl NetcdfSeries {
    /// The file in its folder.
    pub(super) const FILE: &str = "series.nc";
}

/// `samtools view`: reads in random regions of an indexed BAM file.
struct BamRegions;
/// Python's lmdb: random lookups through a memory map.
pub(super) struct LmdbLookups {
    /// The data's name.
    pub(super) data: &'static str,
    /// Values in the store, of 300 bytes each.
    pub(super) keys: u64,
    /// How many are looked up.
    pub(super) lookups: u64,
    /// What `lmdb.open` is told beside the store's path.
    pub(super) options: &'static str,
}
/// Python importing numpy, pandas and scipy.
pub(super) struct PythonImport;

/// The four of them.
pub fn cases() -> Vec<Case> {
    let case = |name, about, needs, work| Case {
        name,
        group: Group::Main,
        about,
        disks: &[DiskKind::Hdd7200, DiskKind::NetworkSsd, DiskKind::Own],
        quick: &[],
        needs,
        purpose: Purpose::Gain,
        start: Start::Cold,
        work,
    };
    const NEEDS_PYTHON: &[(&str, &str)] = &[(PYTHON, "python3"), ("/usr/bin/pip3", "python3-pip")];
    vec![
        case(
            "netcdf",
            "ncks: a time series out of a NetCDF file",
            &[("ncks", "nco"), ("ncgen", "netcdf-bin")],
            Box::new(NetcdfSeries) as Box<dyn Workload>,
        ),
        case(
            "bam",
            "samtools: 2,000 regions of a BAM file",
            &[
                ("samtools", "samtools"),
                ("bwa", "bwa"),
                ("wgsim", "samtools"),
            ],
            Box::new(BamRegions),
        ),
        case(
            "lmdb",
            "LMDB: 4,000 lookups through mmap",
            NEEDS_PYTHON,
            Box::new(LmdbLookups {
                data: "lmdb",
                keys: 400_000,
                lookups: 4000,
                options: ", readonly=True, lock=False, readahead=False",
            }),
        ),
        case(
            "python",
            "python3: import numpy, pandas, scipy",
            NEEDS_PYTHON,
            Box::new(PythonImport),
        ),
    ]
}

impl Workload for NetcdfSeries {
    fn data_name(&self) -> &'static str {
        "netcdf"
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        let times = 50;
        let header = format!(
            "netcdf t {{ dimensions: time={times}; lev=20; lat=360; lon=360; variables: float T(time,lev,lat,lon); }}"
        );
        fs::write(dir.join("t.cdl"), header).context("writing t.cdl")?;
        shell(dir, "ncgen -k 64-bit-offset -o header.nc t.cdl")?;
        // ncgen leaves the variable's values, the file's tail, unwritten or filled: put ours there.
        let (header, data) = (dir.join("header.nc"), dir.join("values"));
        let values = times * 20 * 360 * 360 * 4;
        let length = fs::metadata(&header).context("looking at header.nc")?.len();
        let head = if length > values {
            length - values
        } else {
            length
        };
        fill(&data, values, 11)?;
        shell(
            dir,
            &format!(
                "head -c {head} header.nc > series.nc; cat values >> series.nc; rm header.nc values t.cdl"
            ),
        )
    }

    fn job(&self, dir: &Path, scratch: &Path, _: Size, _: &Tools) -> Result<Job> {
        let file = dir.join(Self::FILE);
        let out = scratch.join("out.nc");
        // -h: no history attribute, which would hold the date.
        let mut args: Vec<_> = ["-O", "-h", "-d", "lat,100,260,40", "-d", "lon,180"]
            .map(Into::into)
            .to_vec();
        args.extend([file.clone().into(), out.clone().into()]);
        Ok(Job {
            command: Invocation {
                program: "ncks".into(),
                args,
                cwd: dir.to_owned(),
                env: Vec::new(),
            },
            files: vec![file],
            outputs: vec![out],
            ..Job::default()
        })
    }
}

/// Lines of 80 bases in the reference genome.
const REFERENCE_LINES: u64 = 100_000;

impl Workload for BamRegions {
    fn data_name(&self) -> &'static str {
        "bam"
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
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
        let reads = 4 * REFERENCE_LINES;
        shell(
            dir,
            &format!(
                "wgsim -N {reads} -1 100 -2 100 -r 0.001 -S 7 ref.fa r1.fq r2.fq > wgsim.log; bwa index ref.fa; \
                 bwa mem -t 2 ref.fa r1.fq r2.fq > a.sam; samtools sort -m 512M -o a.bam a.sam; \
                 samtools index a.bam; rm r1.fq r2.fq a.sam wgsim.log ref.fa*"
            ),
        )
    }

    fn job(&self, dir: &Path, _: &Path, _: Size, _: &Tools) -> Result<Job> {
        let mut random = Random(8);
        let bases = REFERENCE_LINES * 80;
        let mut args = vec!["view".into(), "-c".into(), dir.join("a.bam").into()];
        args.extend((0..2000).map(|_| {
            let at = 1 + random.below(bases - 100);
            format!("chr1:{at}-{}", at + 50).into()
        }));
        Ok(Job {
            command: Invocation {
                program: "samtools".into(),
                args,
                cwd: dir.to_owned(),
                env: Vec::new(),
            },
            files: files_below(dir)?,
            ..Job::default()
        })
    }
}

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

impl LmdbLookups {
    /// Looks up random keys and prints the sum of one byte of each.
    fn script(&self) -> String {
        let Self {
            options, lookups, ..
        } = self;
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
}

impl Workload for LmdbLookups {
    fn data_name(&self) -> &'static str {
        self.data
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        pip_install(&dir.join("site"), &["lmdb"])?;
        fs::write(dir.join("look_up.py"), self.script()).context("writing look_up.py")?;
        let mut python = Command::new(PYTHON);
        python
            .args(["-c", LMDB_FILL, &self.keys.to_string()])
            .env("PYTHONPATH", dir.join("site"))
            .current_dir(dir);
        succeed(&mut python)
    }

    fn job(&self, dir: &Path, _: &Path, _: Size, _: &Tools) -> Result<Job> {
        Ok(Job {
            command: python(dir, vec!["look_up.py".into(), self.keys.to_string().into()]),
            files: files_below(dir)?,
            ..Job::default()
        })
    }
}

impl Workload for PythonImport {
    fn data_name(&self) -> &'static str {
        "python"
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        pip_install(&dir.join("site"), &["numpy", "pandas", "scipy"])
    }

    fn job(&self, dir: &Path, _: &Path, _: Size, _: &Tools) -> Result<Job> {
        let program = "import numpy, pandas, scipy.stats; print(numpy.arange(10).sum())";
        Ok(Job {
            command: python(dir, vec!["-c".into(), program.into()]),
            files: files_below(dir)?,
            ..Job::default()
        })
    }
}

/// Installs Python packages, compiled, into a folder that can be copied to any disk.
pub(super) fn pip_install(target: &Path, packages: &[&str]) -> Result<()> {
    let mut pip = Command::new(PYTHON);
    pip.args(["-m", "pip"]);
    pip.args(["install", "--quiet", "--no-input", "--compile", "--target"])
        .arg(target)
        .args(packages);
    succeed(&mut pip)
}

/// python3 with the case's packages, writing nothing beside them.
pub(super) fn python(dir: &Path, args: Vec<std::ffi::OsString>) -> Invocation {
    Invocation {
        program: PYTHON.into(),
        args,
        cwd: dir.to_owned(),
        env: vec![
            ("PYTHONPATH".into(), dir.join("site").into()),
            ("PYTHONDONTWRITEBYTECODE".into(), "1".into()),
        ],
    }
}
