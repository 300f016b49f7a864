//! Files on file systems whose files have other device numbers, or none: btrfs and overlays. Needs root.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use foreread_sys::file::open_exactly;
use foreread_sys::mounts::Mount;

/// A mounted folder, unmounted with its guard.
struct Mounted(PathBuf);

impl Mounted {
    /// A failed mount is reported.
    fn new(arguments: &[&str], point: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        let output = mount.args(arguments).arg(point).output().ok()?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            println!("skipped: {}", why.trim());
            return None;
        }
        Some(Self(point.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Only the test's own folder is left behind otherwise.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// A file there is opened by its inode and its file system's number in the table of mounts, and by no other number.
fn is_found_by_its_file_system(point: &Path) {
    let path = point.join("file");
    let mounts = Mount::all().expect("a table of mounts");
    let mount = mounts.iter().find(|mount| mount.point == point);
    let dev = mount.expect("the mount").dev;
    let inode = path.metadata().expect("a file").ino();
    assert!(open_exactly(&path, dev, inode).is_ok());
    let other = mounts.iter().find(|mount| mount.dev != dev);
    let other = other.expect("another mount").dev;
    assert!(open_exactly(&path, other, inode).is_err());
    assert!(open_exactly(&path, dev, inode + 1).is_err());
}

#[test]
fn files_of_btrfs_are_found_by_the_number_of_their_file_system() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: not root");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (image, point) = (folder.path().join("image"), folder.path().join("point"));
    std::fs::create_dir(&point).expect("made");
    let file = std::fs::File::create(&image).expect("made");
    file.set_len(128 << 20).expect("of a length");
    let made = Command::new("mkfs.btrfs").arg("-q").arg(&image).output();
    if !made.is_ok_and(|output| output.status.success()) {
        println!("skipped: mkfs.btrfs (package btrfs-progs) makes no file system");
        return;
    }
    let source = image.display().to_string();
    let Some(_mounted) = Mounted::new(&["-t", "btrfs", "-o", "loop", &source], &point) else {
        return;
    };
    std::fs::write(point.join("file"), "text").expect("written");
    is_found_by_its_file_system(&point);
}

#[test]
fn files_of_an_overlay_are_found_by_the_number_of_their_file_system() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: not root");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let [lower, upper, work, point] = ["lower", "upper", "work", "point"].map(|name| {
        let path = folder.path().join(name);
        std::fs::create_dir(&path).expect("made");
        path
    });
    std::fs::write(lower.join("file"), "text").expect("written");
    let [lower, upper, work] = [lower, upper, work].map(|path| path.display().to_string());
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    let arguments = ["-t", "overlay", "-o", &options, "overlay"];
    let Some(_mounted) = Mounted::new(&arguments, &point) else {
        return;
    };
    is_found_by_its_file_system(&point);
}
