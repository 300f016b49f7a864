//! Paths lead where they lead, whatever a process has as its working directory: one that lies on no device, too.

use std::path::Path;

use foreread_sys::way::{self, Links};

#[test]
fn a_working_directory_without_a_device_keeps_no_path_from_being_found() {
    std::env::set_current_dir("/proc").expect("proc");
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    for path in [&whole, Path::new("/"), Path::new("version"), Path::new(".")] {
        for links in [Links::Followed, Links::Refused] {
            let found = way::by_names(path, links);
            assert!(found.is_ok(), "{}: {found:?}", path.display());
        }
    }
}
