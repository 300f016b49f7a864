//! Links the unwinder into the program. As a library of its own (libgcc_s) it is one more file that a cold start reads, and it asks the
//! processor for its features some twenty times, each of which takes about 10 µs in a virtual machine.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Before the standard library, which names the shared one.
    println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
}
