//! The durable format, tested from outside: what it keeps, how small it is, what it
//! withstands.

mod contents;
mod forge;
mod hostile;
mod outline;
mod record_file;
mod size;
mod support;
