//! The list of all cases.

mod build;
mod customer;
mod data;
mod hot;
mod library;
mod mpi;
mod noharm;
mod packages;
mod predicted;
mod predicted_sources;
mod programs;
mod random;
mod signature;
mod signature_programs;
mod slice;
mod sqlite;
mod start;
mod stride;

use crate::case::Case;

pub use customer::times_memory as sql_times_memory;
pub use data::Random;
pub use hot::LOOP as HOT_LOOP;
pub use random::RandomFile;
pub use signature::OTHER_INPUT;
pub use sqlite::{ROW_BYTES as SQLITE_ROW_BYTES, generate as generate_sqlite};

/// Every case, in the order of the report.
pub fn all() -> Vec<Case> {
    let mut cases = stride::cases();
    cases.extend(random::cases());
    cases.extend(sqlite::cases());
    cases.extend(packages::cases());
    cases.extend(build::cases());
    cases.extend(programs::cases());
    cases.extend(start::cases());
    cases.extend(noharm::cases());
    cases.extend(hot::cases());
    cases.extend(customer::cases());
    cases.extend(library::cases());
    cases.extend(slice::cases());
    cases.extend(signature::cases());
    cases.extend(signature_programs::cases());
    cases.extend(predicted::cases());
    cases.extend(mpi::cases());
    cases
}
