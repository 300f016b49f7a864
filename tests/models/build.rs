//! Has the sources that lie elsewhere compiled with loom's atomics and locks.

fn main() {
    println!("cargo::rustc-cfg=loom");
    println!("cargo::rerun-if-changed=../build.rs");
}
