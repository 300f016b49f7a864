//! Paths lead where the kernel says that they lead, in one step and name by name.

use std::os::unix::fs::symlink;

use std::os::fd::AsRawFd;

use foreread_sys::way::{self, Links};

#[test]
fn a_file_without_a_name_is_found_by_its_descriptor() {
    let file = tempfile::tempfile().unwrap();
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    assert!(way::find(link.as_ref(), Links::Followed).is_ok());
    assert!(way::by_names(link.as_ref(), Links::Followed).is_ok());
    assert!(foreread_sys::file::open_regular(link.as_ref()).is_ok());
}

#[test]
fn paths_lead_where_the_kernel_says_they_lead() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("a/b")).unwrap();
    std::fs::write(root.join("a/b/file"), b"x").unwrap();
    symlink("b", root.join("a/near")).unwrap();
    symlink(root.join("a/near"), root.join("far")).unwrap();
    symlink("../far/../b/file", root.join("a/dots")).unwrap();
    symlink("round", root.join("round")).unwrap();
    for path in [
        "far/file",
        "a/dots",
        "a/./near/..//b/file",
        "a/none",
        "a/b/file/x",
        "round",
        "far",
        "a/near/",
    ] {
        let path = root.join(path);
        // As if nothing were in the kernel's cache of names.
        let by_names = way::by_names(&path, Links::Followed);
        let (found, kernel) = (way::real(&path), path.canonicalize());
        assert_eq!(by_names.is_ok(), kernel.is_ok(), "{}", path.display());
        match (found, kernel) {
            (Ok(found), Ok(kernel)) => assert_eq!(found, kernel),
            (found, kernel) => assert_eq!(
                found.unwrap_err().raw_os_error(),
                kernel.unwrap_err().raw_os_error(),
                "{}",
                path.display()
            ),
        }
    }
}
