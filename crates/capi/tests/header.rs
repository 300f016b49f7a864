//! `include/foreread.h` is the header that cbindgen generates from the Rust sources.

use std::fs;
use std::path::Path;

const PREAMBLE: &str = include_str!("../preamble.h");

const TRAILER: &str = "#ifdef __cplusplus\n}\n#endif\n\n#endif /* FOREREAD_H */";

/// The header, generated from the present sources.
fn generated() -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut config = cbindgen::Config::from_file(here.join("cbindgen.toml")).expect("a good file");
    config.header = Some(PREAMBLE.trim_end().to_owned());
    config.trailer = Some(TRAILER.to_owned());
    let mut header = Vec::new();
    cbindgen::Builder::new()
        .with_config(config)
        .with_src(here.join("src/abi.rs"))
        .with_src(here.join("src/calls.rs"))
        .generate()
        .expect("sources that C can express")
        .write(&mut header);
    String::from_utf8(header).expect("text")
}

#[test]
fn the_header_is_what_the_sources_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/foreread.h");
    let now = generated();
    if std::env::var_os("FOREREAD_BLESS").is_some() {
        fs::write(&path, &now).expect("our own source");
    }
    let kept = fs::read_to_string(&path).expect("the header");
    assert!(
        kept == now,
        "include/foreread.h and the sources part: run this test with FOREREAD_BLESS=1 and look \
         at the difference"
    );
}
