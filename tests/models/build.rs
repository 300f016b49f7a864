//! Compiles the sources of other crates with loom's atomics and locks.

fn main() {
    println!("cargo::rustc-cfg=loom");
    println!("cargo::rerun-if-changed=../build.rs");
}
