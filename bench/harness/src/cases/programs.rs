//! Other people's programs on their usual work: a database server's life, a key-value store, tensors, a query of columns, points of a
//! raster, a search and two backups. Each is a shell script over data that another script has made.

use std::path::Path;

use anyhow::Result;

use crate::case::{Case, Group, Job, Purpose, Size, Start, Workload};
use crate::disk::DiskKind;
use crate::process::Invocation;
use crate::tools::{Tools, shell};
use crate::tree::files_below;

/// A row of the table: the case, how its data is made and what is run, both by `sh -e` in the data's folder.
struct Row {
    name: &'static str,
    about: &'static str,
    needs: &'static [(&'static str, &'static str)],
    data: &'static str,
    make: &'static str,
    run: &'static str,
}

/// A folder that is empty before each run, as scripts know it.
const OUT: &str = "OUT";

const PYTHON: &[(&str, &str)] = &[("python3", "python3-venv")];

/// 6,000 files in 97 folders, 1.5 to 10 KiB each and some of 60 KiB.
const TREE: &str = r#"python3 - <<'END'
import os, random
noise = random.Random(1).randbytes(1 << 20)
for i in range(6000):
    folder = f'tree/{i % 97:02d}'
    os.makedirs(folder, exist_ok=True)
    size = 1500 + i * 7919 % 9000 + (60000 if i % 29 == 0 else 0)
    with open(f'{folder}/{i:05d}.h', 'wb') as f:
        f.write(noise[i:i + size])
END"#;

const ROWS: [Row; 8] = [
    Row {
        name: "postgres",
        about: "PostgreSQL: start, 5,000 rows by an index, stop",
        needs: &[("psql", "postgresql")],
        data: "postgres",
        make: r#"
            bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
            cat > as-postgres <<'END'
exec setpriv --reuid postgres --regid postgres --init-groups "$@"
END
            mkdir db && chown postgres db
            sh as-postgres $bin/initdb -A trust -D db
            sh as-postgres $bin/pg_ctl -D db -o "-p 5999 -k $PWD/db" -w start
            sh as-postgres psql -p 5999 -h $PWD/db postgres -v ON_ERROR_STOP=1 \
                -c "create table t as select i as id, hashint4(i) as h, repeat(md5(i::text), 4) as s
                    from generate_series(1, 3000000) i" \
                -c 'create index on t(h)' -c 'vacuum analyze t' -c checkpoint
            sh as-postgres $bin/pg_ctl -D db -w stop"#,
        run: r#"
            bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
            sh as-postgres $bin/pg_ctl -D db -o "-p 5999 -k $PWD/db" -l db/log -w start > /dev/null
            sh as-postgres psql -p 5999 -h $PWD/db postgres -Atq -c 'set enable_bitmapscan = off' \
                -c 'set enable_seqscan = off' -c 'set max_parallel_workers_per_gather = 0' \
                -c 'select sum(length(s)) from (select s from t where h < -2140324280 order by h) x'
            sh as-postgres $bin/pg_ctl -D db -w -m fast stop > /dev/null"#,
    },
    Row {
        name: "rocksdb",
        about: "RocksDB: 12,000 random gets (db_bench)",
        needs: &[("db_bench", "rocksdb-tools")],
        data: "rocksdb",
        make: "db_bench --benchmarks=fillrandom,compact --num=2000000 --value_size=200 --db=db --compression_type=none --seed=7",
        run: "db_bench --benchmarks=readrandom --use_existing_db=1 --readonly=1 --num=2000000 --reads=12000 --value_size=200 --db=db \
              --compression_type=none --seed=7 2> /dev/null | grep -o '([0-9]* of [0-9]* found)'",
    },
    Row {
        name: "safetensors",
        about: "safetensors: 160 of 300 tensors by 8 threads",
        needs: PYTHON,
        data: "safetensors",
        make: r#"
            python3 -m venv python && python/bin/pip install -q safetensors numpy
            python/bin/python - <<'END'
import numpy as np
from safetensors.numpy import save_file
r = np.random.default_rng(1)
save_file({f't{i:03d}': r.integers(0, 255, (512, 4096), dtype=np.uint8) for i in range(300)}, 'model')
END
            cat > load.py <<'END'
import random
from concurrent.futures import ThreadPoolExecutor
from safetensors import safe_open
names = [f't{i:03d}' for i in range(300)]
random.Random(5).shuffle(names)
def load(part):
    with safe_open('model', 'np') as f:
        return sum(int(f.get_tensor(n)[::64, ::512].sum()) for n in part)
with ThreadPoolExecutor(8) as pool:
    print(sum(pool.map(load, [names[i:160:8] for i in range(8)])))
END"#,
        run: "exec python/bin/python load.py",
    },
    Row {
        name: "parquet",
        about: "DuckDB: a query of 24 Parquet files",
        needs: PYTHON,
        data: "parquet",
        make: r#"
            python3 -m venv python && python/bin/pip install -q duckdb
            python/bin/python - <<'END'
import duckdb
c = duckdb.connect()
c.execute('create table t as select range as id, hash(range) % 1000 as k, hash(range * 7) as a, '
          'hash(range * 11) as b, md5(range::varchar) as s from range(6000000)')
for i in range(24):
    c.execute(f"copy (select * from t where id >= {i} * 250000 and id < ({i} + 1) * 250000) "
              f"to 'p{i:02d}.parquet' (row_group_size 30000)")
END"#,
        run: r#"exec python/bin/python -c "
import duckdb
print(duckdb.connect().execute(\"select count(*), sum(a % 1000), max(s) from '*.parquet' where k = 7\").fetchall())""#,
    },
    Row {
        name: "points",
        about: "gdallocationinfo: 3,000 points of 1,000 tiles",
        needs: &[("gdallocationinfo", "gdal-bin")],
        data: "points",
        make: r#"
            mkdir tiles
            python3 - <<'END'
import random, subprocess
r = random.Random(2)
for i in range(1000):
    with open('t.raw', 'wb') as f:
        f.write(r.randbytes(256 * 256))
    with open('t.vrt', 'w') as f:
        f.write(f'<VRTDataset rasterXSize="256" rasterYSize="256">'
                f'<GeoTransform>{i % 40 * 256}, 1, 0, {i // 40 * -256}, 0, -1</GeoTransform>'
                '<VRTRasterBand dataType="Byte" band="1" subClass="VRTRawRasterBand">'
                '<SourceFilename relativeToVRT="1">t.raw</SourceFilename><ImageOffset>0</ImageOffset>'
                '<PixelOffset>1</PixelOffset><LineOffset>256</LineOffset></VRTRasterBand></VRTDataset>')
    subprocess.run(['gdal_translate', '-q', '-co', 'TILED=YES', '-co', 'COMPRESS=DEFLATE', 't.vrt', f'tiles/{i:04d}.tif'], check=True)
with open('points', 'w') as f:
    f.writelines(f'{r.randrange(40 * 256)} {r.randrange(25 * 256)}\n' for _ in range(3000))
END
            gdalbuildvrt -q all.vrt tiles/*.tif"#,
        run: "exec gdallocationinfo -valonly all.vrt < points",
    },
    Row {
        name: "ripgrep",
        about: "ripgrep: a word in 6,000 files",
        needs: &[("rg", "ripgrep")],
        data: "tree",
        make: TREE,
        run: "rg --no-config -c zzzz tree || true",
    },
    Row {
        name: "restic",
        about: "restic: the first backup of 6,000 files",
        needs: &[("restic", "restic")],
        data: "tree",
        make: TREE,
        run: "export RESTIC_PASSWORD=x; restic init -q -r $OUT/to; exec restic -q --no-cache -r $OUT/to backup tree",
    },
    Row {
        name: "borg",
        about: "borg: the first backup of 6,000 files",
        needs: &[("borg", "borgbackup")],
        data: "tree",
        make: TREE,
        run: "export BORG_BASE_DIR=$OUT/home; borg init -e none $OUT/to 2> /dev/null; exec borg create $OUT/to::a tree",
    },
];

/// All of them.
pub fn cases() -> Vec<Case> {
    let case = |row: &'static Row| Case {
        name: row.name,
        group: Group::Main,
        about: row.about,
        disks: &[DiskKind::NetworkSsd, DiskKind::Own],
        quick: &[],
        needs: row.needs,
        purpose: Purpose::Gain,
        start: Start::Cold,
        work: Box::new(row),
    };
    ROWS.iter().map(case).collect()
}

impl Workload for &'static Row {
    fn data_name(&self) -> &'static str {
        self.data
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        shell(dir, self.make)
    }

    fn job(&self, dir: &Path, scratch: &Path, _: Size, _: &Tools) -> Result<Job> {
        let out = scratch.join("out");
        Ok(Job {
            command: Invocation {
                program: "sh".into(),
                args: ["-e", "-c", self.run].map(Into::into).to_vec(),
                cwd: dir.to_owned(),
                env: vec![(OUT.into(), out.clone().into())],
            },
            files: files_below(dir)?,
            fresh_dir: Some(out),
            ..Job::default()
        })
    }
}
