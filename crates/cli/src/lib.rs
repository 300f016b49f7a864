//! What `foreread` and `foreread-tools` share: the plain command lines of a run, and how programs end.

#![forbid(unsafe_code)]

mod ending;
pub mod words;

pub use ending::{REFUSED, end_as, ended, ended_by};
