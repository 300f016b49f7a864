//! The durable format. See docs/format.md for the byte layout.
