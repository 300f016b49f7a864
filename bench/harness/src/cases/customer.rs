//! SQLite reading a table in the order of a secondary key, with too little memory.
//!
//! The figure of libprefetch's talk: a customer table as in TPC-C, `order by zip`, the
//! database from a quarter of the memory to four times as much. Every row is on another
//! page than the one before it, so that without foresight each costs a seek, and pages
//! that were read have left memory again before their next row is due.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::data::{Random, text};
use super::sqlite::import;
use crate::case::{Case, Group, Job, Purpose, Size, Start, Workload};
use crate::disk::DiskKind;
use crate::peer::Peer;
use crate::process::Invocation;
use crate::tools::Tools;

/// The memory the query may use, page cache included, in bytes.
pub const MEMORY: u64 = 64 << 20;
/// Rows read of the databases of the curve: with this many, and no more, plain takes a minute of a disk
/// with a moving head.
const ROWS: u64 = 10_000;
/// Bytes a customer takes, the index included.
const CUSTOMER_BYTES: u64 = 616;
const NAME: &str = "customer.db";
/// The loadable extension, as `make -C sqlite` leaves it in the checkout, and what it loads for a walk.
const EXTENSION: &str = "sqlite/foreread.so";
const LIBRARY: &str = "sqlite/libforeread.so.1";

/// `select * from customer order by zip limit` so many rows.
struct ByZip {
    /// Quarters of the memory that the database takes.
    quarters: u64,
    /// Rows asked for.
    rows: u64,
}

/// The curve, and the first row and the first 16 of the database as large as memory.
pub fn cases() -> Vec<Case> {
    const ALL: &[DiskKind] = &[DiskKind::Hdd7200, DiskKind::NetworkSsd, DiskKind::Own];
    let case = |name, about, purpose, quarters, rows, quick| Case {
        name,
        group: Group::Api,
        about,
        disks: ALL,
        quick,
        needs: &[("sqlite3", "sqlite3")],
        purpose,
        start: Start::Cold,
        work: Box::new(ByZip { quarters, rows }),
    };
    const NET: &[DiskKind] = &[DiskKind::NetworkSsd];
    const GAIN: Purpose = Purpose::Gain;
    vec![
        case(
            "sql-limit1",
            "order by zip limit 1",
            Purpose::NoHarm,
            4,
            1,
            ALL,
        ),
        case("sql-limit16", "order by zip limit 16", GAIN, 4, 16, &[]),
        case(
            "sql-x0.25",
            "10,000 rows by zip: 1/4 of the memory",
            GAIN,
            1,
            ROWS,
            &[],
        ),
        case(
            "sql-x0.5",
            "10,000 rows by zip: 1/2 of the memory",
            GAIN,
            2,
            ROWS,
            &[],
        ),
        case(
            "sql-x1",
            "10,000 rows by zip: the memory",
            GAIN,
            4,
            ROWS,
            NET,
        ),
        case(
            "sql-x2",
            "10,000 rows by zip: twice the memory",
            GAIN,
            8,
            ROWS,
            &[],
        ),
        case(
            "sql-x4",
            "10,000 rows by zip: 4 x the memory",
            GAIN,
            16,
            ROWS,
            &[],
        ),
    ]
}

/// How large the database of a curve's case is, in parts of the memory.
pub fn times_memory(case: &str) -> Option<f64> {
    case.strip_prefix("sql-x")?.parse().ok()
}

impl Workload for ByZip {
    fn data_name(&self) -> &'static str {
        match self.quarters {
            1 => "customer-quarter",
            2 => "customer-half",
            4 => "customer-one",
            8 => "customer-two",
            _ => "customer-four",
        }
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        generate(&dir.join(NAME), self.quarters * MEMORY / 4 / CUSTOMER_BYTES)
    }

    fn job(&self, dir: &Path, _: &Path, _: Size, tools: &Tools) -> Result<Job> {
        let database = dir.join(NAME);
        let extension = tools.checkout(EXTENSION)?;
        let query = format!("select * from customer order by zip limit {}", self.rows);
        let load = format!(".load {}", extension.display());
        // As many bytes come out as go in: in a file in memory they would take up the limit.
        let sqlite = |args: Vec<std::ffi::OsString>| Invocation {
            program: "bash".into(),
            args: ["-c", "set -o pipefail; sqlite3 \"$@\" | cksum", "sqlite3"]
                .map(Into::into)
                .into_iter()
                .chain(args)
                .collect(),
            cwd: dir.to_owned(),
            env: Vec::new(),
        };
        Ok(Job {
            command: sqlite(vec![database.clone().into(), query.clone().into()]),
            aware: Some(sqlite(vec![
                "-cmd".into(),
                load.into(),
                database.clone().into(),
                query.into(),
            ])),
            files: vec![database],
            // A file that does not fit is not there when it is read, and the wait is the same again.
            peers: if self.quarters <= 4 { Peer::ALL } else { &[] },
            memory_limit: Some(MEMORY),
            code: vec![extension, tools.checkout(LIBRARY)?],
            ..Job::default()
        })
    }
}

/// Makes the database `path` with `customers` rows and an index by zip.
fn generate(path: &Path, customers: u64) -> Result<()> {
    let schema = "create table customer(id integer, d_id integer, w_id integer, first text,
        middle text, last text, street_1 text, street_2 text, city text, state text, zip text,
        phone text, since text, credit text, credit_lim real, discount real, balance real,
        ytd_payment real, payment_cnt integer, delivery_cnt integer, data text);";
    let finish = "create index customer_zip on customer(zip); analyze;";
    let status = import(path, schema, "customer", finish, |out| {
        let mut random = Random(31);
        for index in 0..customers {
            let word = |random: &mut Random, least: u64, most: u64| {
                let length = (least + random.below(most - least + 1)) as usize;
                let mut word = text(random, length).replace('\n', " ");
                word.truncate(length);
                word.trim_end().to_owned()
            };
            let (last, first) = (word(&mut random, 6, 16), word(&mut random, 8, 16));
            let streets = [word(&mut random, 10, 20), word(&mut random, 10, 20)];
            let city = word(&mut random, 10, 20);
            let (zip, phone) = (random.below(10_000), random.next());
            let discount = random.below(5000) as f64 / 10_000.0;
            let data = word(&mut random, 300, 500);
            writeln!(
                out,
                "{},{},{},{first},OE,{last},{},{},{city},KA,{zip:04}11111,{phone:020},2026-01-01,\
                 GC,50000,{discount},-10,10,1,0,{data}",
                index % 3000 + 1,
                index / 3000 % 10 + 1,
                index / 30_000 + 1,
                streets[0],
                streets[1],
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_has_the_size_asked_for_and_the_query_walks_the_index() {
        if !crate::tools::in_path("sqlite3") {
            eprintln!("skipped: sqlite3 is missing");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        let wanted = 4 << 20;
        generate(&path, wanted / CUSTOMER_BYTES).unwrap();
        let size = path.metadata().unwrap().len();
        assert!(size.abs_diff(wanted) < wanted / 20, "{size} bytes");
        let plan = std::process::Command::new("sqlite3")
            .arg(&path)
            .arg("explain query plan select * from customer order by zip")
            .output()
            .unwrap();
        let plan = String::from_utf8_lossy(&plan.stdout).into_owned();
        assert!(plan.contains("USING INDEX customer_zip"), "{plan}");
    }

    #[test]
    fn the_curve_knows_its_sizes() {
        let curve: Vec<f64> = cases()
            .iter()
            .filter_map(|c| times_memory(c.name))
            .collect();
        assert_eq!(curve, [0.25, 0.5, 1.0, 2.0, 4.0]);
    }
}
