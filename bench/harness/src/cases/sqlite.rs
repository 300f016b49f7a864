//! sqlite3 reading a table in the order of a secondary index.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

use super::data::Random;
use crate::case::{Case, Group, Job, Purpose, Size, Start, Workload};
use crate::disk::DiskKind;
use crate::process::Invocation;
use crate::tools::Tools;

/// The file's name in its folder.
const NAME: &str = "tpch.db";
/// Values of the indexed column; the query asks for 601 of them.
const PARTS: u64 = 200_000;
const QUERY: &str = "pragma cache_size=-2000; select sum(l_extendedprice*l_discount) \
     from lineitem indexed by l_pk where l_partkey between 1000 and 1600;";

struct IndexScan;

/// One case: the scan of 0.3 % of the rows.
pub fn cases() -> Vec<Case> {
    vec![Case {
        name: "sqlite",
        group: Group::Main,
        about: "sqlite3: 0.3 % of a table by a secondary index",
        disks: &[DiskKind::Hdd7200, DiskKind::NetworkSsd, DiskKind::Own],
        quick: &[DiskKind::Hdd7200, DiskKind::Own],
        needs: &[("sqlite3", "sqlite3")],
        purpose: Purpose::Gain,
        start: Start::Cold,
        work: Box::new(IndexScan),
    }]
}

impl Workload for IndexScan {
    fn data_name(&self) -> &'static str {
        "sqlite"
    }

    fn generate(&self, dir: &Path, size: Size, _: &Tools) -> Result<()> {
        generate(dir, size.pick(1_500_000, 3_000_000))
    }

    fn job(&self, dir: &Path, _: &Path, _: Size, _: &Tools) -> Result<Job> {
        Ok(Job {
            command: Invocation {
                program: "sqlite3".into(),
                args: vec![dir.join(NAME).into(), QUERY.into()],
                cwd: dir.to_owned(),
                env: Vec::new(),
            },
            files: vec![dir.join(NAME)],
            ..Job::default()
        })
    }
}

/// Bytes a row takes, its entries in both indexes included.
pub const ROW_BYTES: u64 = 136;

/// Makes the database with `rows` rows in `dir`: [`ROW_BYTES`] each.
///
/// The rows come from here and not from SQL's `random()`, so that two databases of a
/// size are the same.
pub fn generate(dir: &Path, rows: u64) -> Result<()> {
    let path = dir.join(NAME);
    let schema = "create table lineitem(l_orderkey integer, l_partkey integer, l_suppkey integer,
        l_linenumber integer, l_quantity real, l_extendedprice real, l_discount real,
        l_shipdate integer, l_comment text);";
    let finish = "create index l_pk on lineitem(l_partkey); create index l_sd on lineitem(l_shipdate); analyze;";
    let status = import(&path, schema, "lineitem", finish, |out| {
        let mut random = Random(3);
        for row in 0..rows {
            let part = random.below(PARTS);
            let rest = random.next();
            // 40 to 98 hexadecimal digits of comment.
            let comment_width = 40 + 2 * (rest % 30) as usize;
            writeln!(
                out,
                "{},{part},{},{},{},{:.4},{},{},{:0comment_width$x}",
                row / 4,
                rest % 10_000,
                row % 4,
                rest / 7 % 50,
                (rest / 11 % 100_000) as f64 / 7.0,
                (rest / 13 % 10) as f64 / 100.0,
                8000 + rest / 17 % 2500,
                random.next(),
            )?;
        }
        Ok(())
    })
    .with_context(|| format!("making {}", path.display()))?;
    if !status.success() {
        bail!("sqlite3 could not make {} ({status})", path.display());
    }
    Ok(())
}

/// Makes the database `path` with one table, whose rows `rows` writes as comma-separated values,
/// and does `finish` after that; how sqlite3 ended.
pub(super) fn import(
    path: &Path,
    schema: &str,
    table: &str,
    finish: &str,
    rows: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<ExitStatus> {
    let mut sqlite = Command::new("sqlite3")
        .arg("-csv")
        .arg(path)
        .arg(format!(
            "pragma page_size=4096; pragma journal_mode=off; pragma synchronous=off; {schema}"
        ))
        .arg(format!(".import /dev/stdin {table}"))
        .arg(finish)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .context("starting sqlite3")?;
    let pipe = sqlite.stdin.take();
    let written = pipe
        .context("sqlite3 has no standard input")
        .and_then(|pipe| {
            let mut out = BufWriter::with_capacity(1 << 20, pipe);
            rows(&mut out)?;
            Ok(out.flush()?)
        });
    let status = sqlite.wait().context("waiting for sqlite3")?;
    // A pipe closed early is sqlite3's failure, and its status says more.
    if status.success() {
        written.context("writing rows")?;
    }
    Ok(status)
}
