//! Nothing: this package names features of dependencies (its Cargo.toml says why).

#![no_std]
