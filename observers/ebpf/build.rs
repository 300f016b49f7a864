//! Compiles the kernel's side and makes the Rust types of its record, if the feature `kernel` is on.

fn main() {
    println!("cargo::rerun-if-changed=src/bpf");
    #[cfg(feature = "kernel")]
    kernel::build();
}

#[cfg(feature = "kernel")]
mod kernel {
    use std::env;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// The compiler, and where its library is that reads the record's definition.
    const CLANG: &str = "clang-19";
    const LIBCLANG: &str = "/usr/lib/llvm-19/lib";

    pub(super) fn build() {
        println!("cargo::rerun-if-env-changed=FOREREAD_CLANG");
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo's folder"));
        compile(&out, "observe");
        compile(&out, "system");
        bind(&out, "record");
        bind(&out, "system");
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
            .args(["-c", &format!("src/bpf/{name}.bpf.c"), "-o"])
            .arg(out.join(format!("{name}.bpf.o")))
            .status();
        assert!(
            status.as_ref().is_ok_and(|status| status.success()),
            "{clang}: {status:?}"
        );
    }

    fn bind(out: &Path, name: &str) {
        if env::var_os("LIBCLANG_PATH").is_none() && Path::new(LIBCLANG).is_dir() {
            // SAFETY: a build script's main thread, before there are others.
            unsafe { env::set_var("LIBCLANG_PATH", LIBCLANG) };
        }
        bindgen::builder()
            .header(format!("src/bpf/{name}.h"))
            .default_enum_style(bindgen::EnumVariation::Consts)
            .prepend_enum_name(false)
            .derive_default(true)
            .generate_comments(false)
            .generate()
            .expect("the record's Rust types")
            .write_to_file(out.join(format!("{name}.rs")))
            .expect("a file in cargo's folder");
    }
}
