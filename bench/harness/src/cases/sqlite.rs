//! sqlite3 reading tables in the order of a secondary key.
//!
//! `lineitem` is TPC-H's: 0.3 % of it by an index. `customer` is TPC-C's, as in the figure of libprefetch's talk: `order by zip`
//! in too little memory, with a database from a quarter of the memory to four times as much. Every row is on another page than
//! the one before. Without foresight each row costs a seek, and pages that were read have left memory again before their next row
//! is read.

use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::data::{Random, text};
use super::words::command;
use crate::case::{Data, Job, Size, Workload};
use crate::peer::Peer;
use crate::tools::Tools;

/// The databases' names in their folders.
const LINEITEM: &str = "tpch.db";
const CUSTOMER: &str = "customer.db";
/// Values of the indexed column of `lineitem`; the query asks for 601 of them.
const PARTS: u64 = 200_000;
pub(super) const QUERY: &str = "pragma cache_size=-2000; select sum(l_extendedprice*l_discount) \
     from lineitem indexed by l_pk where l_partkey between 1000 and 1600;";
/// Memory for the queries of `customer`, page cache included, in bytes.
const MEMORY: u64 = 64 << 20;
/// Bytes per customer, the index included.
const CUSTOMER_BYTES: u64 = 616;
/// The loadable extension, as built by `make -C sqlite`, and the library that it loads for a walk.
const EXTENSION: &str = "sqlite/foreread.so";
const LIBRARY: &str = "sqlite/libforeread.so.1";

pub(super) static LINEITEMS: Data = Data {
    name: "sqlite",
    make: |dir, size, _| generate(dir, size.pick(1_500_000, 3_000_000)),
};
pub(super) static QUARTER: Data = Data {
    name: "customer-quarter",
    make: |dir, _, _| customers(dir, 1),
};
pub(super) static HALF: Data = Data {
    name: "customer-half",
    make: |dir, _, _| customers(dir, 2),
};
pub(super) static ONE: Data = Data {
    name: "customer-one",
    make: |dir, _, _| customers(dir, 4),
};
pub(super) static TWO: Data = Data {
    name: "customer-two",
    make: |dir, _, _| customers(dir, 8),
};
pub(super) static FOUR: Data = Data {
    name: "customer-four",
    make: |dir, _, _| customers(dir, 16),
};

/// A database of customers whose size is this many quarters of the memory.
fn customers(dir: &Path, quarters: u64) -> Result<()> {
    generate_customers(&dir.join(CUSTOMER), quarters * MEMORY / 4 / CUSTOMER_BYTES)
}

/// `select * from customer order by zip limit` with this many rows.
pub(super) struct ByZip {
    pub rows: u64,
    /// Compared with other means. If the file does not fit, it is not in memory when it is read, and they wait as long.
    pub peers: bool,
}

/// Size of the database of a curve's case, in parts of the memory.
pub fn times_memory(case: &str) -> Option<f64> {
    case.strip_prefix("sql-x")?.parse().ok()
}

impl Workload for ByZip {
    fn job(&self, dir: &Path, _: &Path, _: Size, tools: &Tools) -> Result<Job> {
        let query = format!("select * from customer order by zip limit {}", self.rows);
        reading(dir, tools, &query, self.peers)
    }
}

/// `select * from customer`: the table from its first row to its last, in the order of the file.
pub(super) struct Scan;

impl Workload for Scan {
    fn job(&self, dir: &Path, _: &Path, _: Size, tools: &Tools) -> Result<Job> {
        reading(dir, tools, "select * from customer", false)
    }
}

/// sqlite3 with a query over the customers, alone and with the extension.
fn reading(dir: &Path, tools: &Tools, query: &str, peers: bool) -> Result<Job> {
    let database = dir.join(CUSTOMER);
    let extension = tools.checkout(EXTENSION)?;
    let load = format!(".load {}", extension.display());
    // The output is as large as the input: in a file in memory it would use up the limit.
    let sqlite = |options: &[&str]| {
        let script = ["-c", "set -o pipefail; sqlite3 \"$@\" | cksum", "sqlite3"];
        let args = script.iter().chain(options).map(OsString::from);
        let over = [OsString::from(&database), OsString::from(query)];
        command("bash", args.chain(over), dir)
    };
    Ok(Job {
        command: sqlite(&[]),
        aware: Some(sqlite(&["-cmd", &load])),
        files: vec![database.clone()],
        peers: if peers { Peer::ALL } else { &[] },
        memory_limit: Some(MEMORY),
        code: vec![extension, tools.checkout(LIBRARY)?],
        ..Job::default()
    })
}

/// Bytes per row, with its entries in both indexes.
pub const ROW_BYTES: u64 = 136;

/// Makes the database with `rows` rows in `dir`: [`ROW_BYTES`] each.
///
/// The rows are generated here and not by SQL's `random()`, so that two databases with the same size are equal.
pub fn generate(dir: &Path, rows: u64) -> Result<()> {
    let path = dir.join(LINEITEM);
    let schema = "create table lineitem(l_orderkey integer, l_partkey integer, l_suppkey integer,
        l_linenumber integer, l_quantity real, l_extendedprice real, l_discount real,
        l_shipdate integer, l_comment text);";
    let finish = "create index l_pk on lineitem(l_partkey); create index l_sd on lineitem(l_shipdate); analyze;";
    import(&path, schema, "lineitem", finish, |out| {
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
}

/// Makes the database `path` with `customers` rows and an index by zip.
fn generate_customers(path: &Path, customers: u64) -> Result<()> {
    let schema = "create table customer(id integer, d_id integer, w_id integer, first text,
        middle text, last text, street_1 text, street_2 text, city text, state text, zip text,
        phone text, since text, credit text, credit_lim real, discount real, balance real,
        ytd_payment real, payment_cnt integer, delivery_cnt integer, data text);";
    let finish = "create index customer_zip on customer(zip); analyze;";
    import(path, schema, "customer", finish, |out| {
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
}

/// Makes the database `path` with one table, whose rows `rows` writes as comma-separated values, and then executes `finish`.
fn import(
    path: &Path,
    schema: &str,
    table: &str,
    finish: &str,
    rows: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
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
    // A pipe that is closed early means that sqlite3 failed; its status says more.
    if !status.success() {
        bail!("sqlite3 could not make {} ({status})", path.display());
    }
    written.with_context(|| format!("making {}", path.display()))
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
        let path = dir.path().join(CUSTOMER);
        let wanted = 4 << 20;
        generate_customers(&path, wanted / CUSTOMER_BYTES).unwrap();
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
}
