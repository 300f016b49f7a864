//! Tests of the durable format from outside: fidelity, size, resistance to damage.

mod contents;
mod forge;
mod hostile;
mod outline;
mod record_file;
mod size;
mod support;
