//! Real programs at their usual work: a database server's life, a key-value store, tensors, a query of columns, points of a
//! raster, a search and two backups. Each is a shell script over data that another script has made.

use crate::case::Data;
use crate::tools::shell;

pub(super) static POSTGRES: Data = Data {
    name: "postgres",
    make: |dir, _, _| shell(dir, MAKE_POSTGRES),
};
const MAKE_POSTGRES: &str = r#"
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
            sh as-postgres $bin/pg_ctl -D db -w stop"#;
pub(super) const RUN_POSTGRES: &str = r#"
            bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
            sh as-postgres $bin/pg_ctl -D db -o "-p 5999 -k $PWD/db" -l db/log -w start > /dev/null
            sh as-postgres psql -p 5999 -h $PWD/db postgres -Atq -c 'set enable_bitmapscan = off' \
                -c 'set enable_seqscan = off' -c 'set max_parallel_workers_per_gather = 0' \
                -c 'select sum(length(s)) from (select s from t where h < -2140324280 order by h) x'
            sh as-postgres $bin/pg_ctl -D db -w -m fast stop > /dev/null"#;

pub(super) static ROCKSDB: Data = Data {
    name: "rocksdb",
    make: |dir, _, _| shell(dir, MAKE_ROCKSDB),
};
const MAKE_ROCKSDB: &str = "db_bench --benchmarks=fillrandom,compact --num=2000000 --value_size=200 --db=db --compression_type=none --seed=7";
pub(super) const RUN_ROCKSDB: &str = "db_bench --benchmarks=readrandom --use_existing_db=1 --readonly=1 --num=2000000 --reads=12000 --value_size=200 --db=db \
              --compression_type=none --seed=7 2> /dev/null | grep -o '([0-9]* of [0-9]* found)'";

pub(super) static SAFETENSORS: Data = Data {
    name: "safetensors",
    make: |dir, _, _| shell(dir, MAKE_SAFETENSORS),
};
const MAKE_SAFETENSORS: &str = r#"
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
END"#;
pub(super) const RUN_SAFETENSORS: &str = "exec python/bin/python load.py";

pub(super) static PARQUET: Data = Data {
    name: "parquet",
    make: |dir, _, _| shell(dir, MAKE_PARQUET),
};
const MAKE_PARQUET: &str = r#"
            python3 -m venv python && python/bin/pip install -q duckdb
            python/bin/python - <<'END'
import duckdb
c = duckdb.connect()
c.execute('create table t as select range as id, hash(range) % 1000 as k, hash(range * 7) as a, '
          'hash(range * 11) as b, md5(range::varchar) as s from range(6000000)')
for i in range(24):
    c.execute(f"copy (select * from t where id >= {i} * 250000 and id < ({i} + 1) * 250000) "
              f"to 'p{i:02d}.parquet' (row_group_size 30000)")
END"#;
pub(super) const RUN_PARQUET: &str = r#"exec python/bin/python -c "
import duckdb
print(duckdb.connect().execute(\"select count(*), sum(a % 1000), max(s) from '*.parquet' where k = 7\").fetchall())""#;

pub(super) static POINTS: Data = Data {
    name: "points",
    make: |dir, _, _| shell(dir, MAKE_POINTS),
};
const MAKE_POINTS: &str = r#"
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
            gdalbuildvrt -q all.vrt tiles/*.tif"#;
pub(super) const RUN_POINTS: &str = "exec gdallocationinfo -valonly all.vrt < points";

pub(super) static HEADERS: Data = Data {
    name: "headers",
    make: |dir, _, _| shell(dir, TREE),
};
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
