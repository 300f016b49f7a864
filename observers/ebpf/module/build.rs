//! Compiles the kernel's side, and sees to it that the Rust types of its records are those of its headers.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The compiler, and where its library is that reads the records' definitions.
const CLANG: &str = "clang-19";
const LIBCLANG: &str = "/usr/lib/llvm-19/lib";

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=FOREREAD_CLANG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo's folder"));
    compile(&out, "observe");
    compile(&out, "system");
    bind(&out, "record", "../src/decode/record.rs");
    bind(&out, "system", "../src/system/record.rs");
}

fn compile(out: &Path, name: &str) {
    let clang = env::var("FOREREAD_CLANG").unwrap_or_else(|_| CLANG.to_owned());
    let headers = env::var("DEP_BPF_INCLUDE").expect("libbpf's headers");
    let arch = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "x86",
        Ok("aarch64") => "arm64",
        other => panic!("no system calls known of {other:?}"),
    };
    let status = Command::new(&clang)
        .args([
            "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror",
        ])
        .arg(format!("-D__TARGET_ARCH_{arch}"))
        .arg(format!("-I{headers}"))
        .args(["-c", &format!("bpf/{name}.bpf.c"), "-o"])
        .arg(out.join(format!("{name}.bpf.o")))
        .status();
    assert!(
        status.as_ref().is_ok_and(|status| status.success()),
        "{clang}: {status:?}"
    );
}

/// Fails where the types in `kept`, which are compiled without clang, are not those of the header.
fn bind(out: &Path, name: &str, kept: &str) {
    if env::var_os("LIBCLANG_PATH").is_none() && Path::new(LIBCLANG).is_dir() {
        // SAFETY: a build script's main thread, before there are others.
        unsafe { env::set_var("LIBCLANG_PATH", LIBCLANG) };
    }
    println!("cargo::rerun-if-changed={kept}");
    let made = out.join(format!("{name}.rs"));
    bindgen::builder()
        .header(format!("bpf/{name}.h"))
        .default_enum_style(bindgen::EnumVariation::Consts)
        .prepend_enum_name(false)
        .derive_default(true)
        .generate_comments(false)
        .disable_header_comment()
        .raw_line(format!("// Made of observers/ebpf/module/bpf/{name}.h by bindgen; the module's build script checks it."))
        .formatter(bindgen::Formatter::Prettyplease)
        .generate()
        .expect("the records' Rust types")
        .write_to_file(&made)
        .expect("a file in cargo's folder");
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    assert!(
        read(&made) == read(Path::new(kept)),
        "bpf/{name}.h has changed: cp {} observers/ebpf/module/{kept}",
        made.display()
    );
}
