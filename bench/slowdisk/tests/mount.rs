//! Slow disks that the command really mounts, each from a process of its own.
//!
//! Without root, FUSE or loop devices each test prints the reason and is skipped.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foreread_slowdisk::{Counters, Error, Mounted, Options};
use rustix::fs::Advice;
use rustix::process::{Pid, Signal};

/// The tests measure times, so only one disk is used at a time.
static ALONE: Mutex<()> = Mutex::new(());

struct Bench {
    scratch: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Bench {
    /// `None`, with the reason on stderr, if slow disks cannot be mounted.
    fn new() -> Option<Bench> {
        let missing = if !rustix::process::geteuid().is_root() {
            Some("not root")
        } else if File::options()
            .read(true)
            .write(true)
            .open("/dev/fuse")
            .is_err()
        {
            Some("no /dev/fuse")
        } else if !Path::new("/dev/loop-control").exists() {
            Some("no loop devices")
        } else {
            None
        };
        if let Some(missing) = missing {
            eprintln!("skipped: {missing}");
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Bench {
            scratch: tempfile::tempdir().expect("scratch directory"),
            _alone: alone,
        })
    }

    fn dir(&self) -> PathBuf {
        self.scratch.path().join("slow disk")
    }

    fn mount(&self, model: &str, more: &[&str]) -> Mounted {
        let dir = self.dir();
        let mut args = vec!["mount", model, dir.to_str().unwrap(), "--size", "1G"];
        args.extend(more);
        let output = slowdisk(&args);
        assert!(output.status.success(), "{output:?}");
        Mounted::find(&dir).expect("mounted")
    }

    fn umount(&self) -> Output {
        slowdisk(&["umount", self.dir().to_str().unwrap()])
    }

    #[track_caller]
    fn assert_nothing_left(&self, mounted: &Mounted) {
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let escaped = self.dir().to_str().unwrap().replace(' ', "\\040");
        assert!(!table.contains(&escaped), "still mounted: {table}");
        assert!(
            !table.contains(mounted.backing.to_str().unwrap()),
            "FUSE still mounted"
        );
        if let Some(device) = &mounted.loop_device {
            let image = mounted.image();
            assert!(
                !attached(device, &image),
                "{} still attached",
                device.display()
            );
        }
        assert!(!mounted.is_alive(), "process {} still serves", mounted.pid);
        assert!(!self.dir().exists(), "the mount point is still there");
        assert!(!mounted.backing.exists(), "the state is still there");
        assert!(matches!(
            Mounted::find(&self.dir()),
            Err(Error::NotMounted { .. })
        ));
    }
}

impl Drop for Bench {
    /// A failed test leaves no disk behind either.
    fn drop(&mut self) {
        if let Ok(mounted) = Mounted::find(&self.dir()) {
            kill(&mounted, Signal::KILL);
            self.umount();
        }
    }
}

fn slowdisk(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_slowdisk"))
        .args(args)
        .output()
        .expect("run slowdisk")
}

fn attached(device: &Path, image: &Path) -> bool {
    let name = device.file_name().unwrap();
    let file = Path::new("/sys/block").join(name).join("loop/backing_file");
    std::fs::read_to_string(file).is_ok_and(|path| path.trim_end() == image.to_str().unwrap())
}

fn kill(mounted: &Mounted, signal: Signal) {
    let pid = Pid::from_raw(mounted.pid as i32).unwrap();
    let _ = rustix::process::kill_process(pid, signal);
    wait_for("the server's end", || !mounted.is_alive());
}

#[track_caller]
fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Writes a file whose every byte depends on its offset; returns the content.
fn fill(path: &Path, len: usize) -> Vec<u8> {
    let content: Vec<u8> = (0..len)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8 ^ (i >> 20) as u8)
        .collect();
    let file = File::create(path).unwrap();
    file.write_all_at(&content, 0).unwrap();
    file.sync_all().unwrap();
    content
}

/// Opens a file that is not in the page cache.
fn cold(path: &Path, advice: Advice) -> File {
    let file = File::open(path).unwrap();
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    rustix::fs::fadvise(&file, 0, None, advice).unwrap();
    file
}

/// The median time of cold 4 KiB reads all over a file of `len` bytes, and the median of the fastest tenth. Other processes on
/// the machine may delay many reads, but cannot speed one up.
fn random_read(file: &File, len: u64, reads: usize) -> (Duration, Duration) {
    let mut page = [0; 4096];
    let mut times = Vec::new();
    // Random offsets, because a steady stride could synchronise with the platter's rotation.
    let mut dice = fastrand::Rng::with_seed(1);
    for _ in 0..reads {
        let block = dice.u64(..len / 4096);
        let start = Instant::now();
        file.read_exact_at(&mut page, block * 4096).unwrap();
        times.push(start.elapsed());
    }
    times.sort_unstable();
    (times[reads / 2], times[reads / 20])
}

fn served(mounted: &Mounted) -> Counters {
    mounted.counters().unwrap()
}

#[test]
fn data_comes_back_byte_exact_from_the_disk() {
    let Some(bench) = Bench::new() else { return };
    let mounted = bench.mount("network-ssd", &[]);
    let path = bench.dir().join("file");
    let len = 24 << 20;
    let content = fill(&path, len);
    let before = served(&mounted);
    let mut back = Vec::new();
    cold(&path, Advice::Sequential)
        .read_to_end(&mut back)
        .unwrap();
    assert!(back == content, "the bytes differ");
    let read = served(&mounted).read_bytes - before.read_bytes;
    assert!(read >= len as u64, "only {read} bytes came from the disk");
    assert!(bench.umount().status.success());
    bench.assert_nothing_left(&mounted);
}

#[test]
fn cold_reads_of_a_disk_take_rotation_and_short_seeks_and_sequential_ones_the_transfer() {
    let Some(bench) = Bench::new() else { return };
    let mounted = bench.mount("hdd-7200", &[]);
    let path = bench.dir().join("file");
    let len = 128 << 20;
    fill(&path, len);
    mounted.forget().unwrap();
    let (median, fast) = random_read(&cold(&path, Advice::Random), len as u64, 200);
    assert!(median > Duration::from_micros(4_400), "{median:?}");
    assert!(fast < Duration::from_micros(7_500), "{fast:?}");

    mounted.forget().unwrap();
    let mut file = cold(&path, Advice::Normal);
    let start = Instant::now();
    std::io::copy(&mut file, &mut std::io::sink()).unwrap();
    let took = start.elapsed();
    let mb_s = len as f64 / 1e6 / took.as_secs_f64();
    assert!(mb_s < 112.0, "{mb_s} MB/s in order");
    // In order, all pages except a few need no seek.
    let page = took / (len / 4096) as u32;
    assert!(page < median / 10, "{page:?} a page, {median:?} alone");
}

#[test]
fn a_read_of_a_network_volume_takes_its_latency() {
    let Some(bench) = Bench::new() else { return };
    bench.mount("network-ssd", &[]);
    let path = bench.dir().join("file");
    let len = 64 << 20;
    fill(&path, len);
    let (median, fast) = random_read(&cold(&path, Advice::Random), len as u64, 400);
    assert!(median > Duration::from_micros(630), "{median:?}");
    assert!(fast < Duration::from_micros(1_000), "{fast:?}");
}

#[test]
fn slow_writes_take_time_and_others_do_not() {
    let Some(bench) = Bench::new() else { return };
    let write = |more: &[&str]| {
        bench.mount("hdd-7200", more);
        let file = File::create(bench.dir().join("file")).unwrap();
        let start = Instant::now();
        for i in 0..30 {
            file.write_all_at(&[7; 4096], i << 20).unwrap();
            file.sync_all().unwrap();
        }
        drop(file);
        let taken = start.elapsed();
        assert!(bench.umount().status.success());
        taken
    };
    // Each write waits for the platter at least twice: once for the data, once for the journal.
    let (slow, fast) = (write(&["--slow-writes"]), write(&[]));
    assert!(slow > Duration::from_millis(200), "slow: {slow:?}");
    assert!(fast < slow / 2, "fast: {fast:?}, slow: {slow:?}");
}

#[test]
fn the_block_device_is_set_up_like_the_disk_it_stands_for() {
    let Some(bench) = Bench::new() else { return };
    for (model, rotational) in [("hdd-7200", "1"), ("nfs", "0")] {
        let mounted = bench.mount(model, &[]);
        assert_eq!(mounted.notes, Vec::<String>::new());
        let device = mounted.loop_device.clone().expect("a loop device");
        let queue = Path::new("/sys/block")
            .join(device.file_name().unwrap())
            .join("queue");
        let get = |setting: &str| std::fs::read_to_string(queue.join(setting)).unwrap();
        assert_eq!(get("rotational").trim(), rotational);
        assert_eq!(get("read_ahead_kb").trim(), "128");
        assert!(
            get("scheduler").contains("[mq-deadline]"),
            "{}",
            get("scheduler")
        );
        assert!(bench.umount().status.success());
    }
}

#[test]
fn a_killed_server_means_errors_until_unmount_or_the_next_mount_cleans_up() {
    let Some(bench) = Bench::new() else { return };
    let first = bench.mount("nfs", &[]);
    let path = bench.dir().join("file");
    fill(&path, 8 << 20);
    let file = cold(&path, Advice::Random);
    kill(&first, Signal::KILL);
    let error = file
        .read_exact_at(&mut [0; 4096], 4 << 20)
        .expect_err("nobody serves");
    assert_eq!(
        error.raw_os_error(),
        Some(rustix::io::Errno::IO.raw_os_error())
    );
    drop(file);

    let second = bench.mount("hdd-7200", &[]);
    assert!(!path.exists(), "the disk is a new one");
    fill(&path, 1 << 20);

    kill(&second, Signal::KILL);
    let output = bench.umount();
    assert!(output.status.success(), "{output:?}");
    bench.assert_nothing_left(&second);
}

#[test]
fn a_terminated_server_takes_its_disk_down() {
    let Some(bench) = Bench::new() else { return };
    let mounted = bench.mount("network-ssd", &[]);
    kill(&mounted, Signal::TERM);
    bench.assert_nothing_left(&mounted);
}

#[test]
fn a_disk_in_use_is_not_unmounted() {
    let Some(bench) = Bench::new() else { return };
    let mounted = bench.mount("network-ssd", &[]);
    let path = bench.dir().join("file");
    let content = fill(&path, 1 << 20);
    let file = cold(&path, Advice::Random);
    let output = bench.umount();
    assert!(!output.status.success());
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("still in use"), "{message}");
    let mut page = [0; 4096];
    file.read_exact_at(&mut page, 8192).unwrap();
    assert_eq!(page, content[8192..12288]);
    drop(file);
    assert!(bench.umount().status.success());
    bench.assert_nothing_left(&mounted);
}

#[test]
fn without_a_block_device_the_image_itself_is_there() {
    let Some(bench) = Bench::new() else { return };
    let mounted = bench.mount("network-ssd", &["--file-only"]);
    assert_eq!(mounted.loop_device, None);
    let image = bench.dir().join("disk.img");
    assert_eq!(mounted.image(), image);
    assert_eq!(image.metadata().unwrap().len(), 1 << 30);
    assert_eq!(
        image.metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
    let file = File::options().write(true).open(&image).unwrap();
    file.write_all_at(b"there and back", 5000).unwrap();
    file.sync_all().unwrap();
    drop(file);
    let mut back = [0; 14];
    cold(&image, Advice::Random)
        .read_exact_at(&mut back, 5000)
        .unwrap();
    assert_eq!(&back, b"there and back");
    assert!(bench.umount().status.success());
    bench.assert_nothing_left(&mounted);
}

#[test]
fn a_disk_served_by_this_process_goes_when_it_is_dropped() {
    let Some(bench) = Bench::new() else { return };
    let model = "hdd-7200".parse().unwrap();
    let options = Options {
        size: 64 << 20,
        ..Options::new(model, bench.dir())
    };
    let disk = foreread_slowdisk::mount(&options).unwrap();
    assert!(disk.is_served());
    assert!(disk.counters().written_bytes > 0, "ext4 was made on it");
    let mounted = disk.mounted().clone();
    drop(disk);
    assert!(!mounted.backing.exists());
    assert!(!bench.dir().exists());
    assert!(!attached(
        mounted.loop_device.as_ref().unwrap(),
        &mounted.image()
    ));
}

#[test]
fn what_cannot_be_done_is_refused_with_the_value_named() {
    let Some(bench) = Bench::new() else { return };
    let dir = bench.dir();
    let dir = dir.to_str().unwrap();
    let refused = |args: &[&str], wanted: &str| {
        let output = slowdisk(args);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{args:?}");
        assert!(message.contains(wanted), "{args:?}: {message}");
    };
    refused(&["mount", "floppy", dir], "floppy");
    refused(&["mount", "nfs", dir, "--size", "1M"], "\"1M\"");
    refused(
        &["mount", "striped", dir, "--file-only"],
        "striped is a file system: there is no image file",
    );
    refused(&["umount", dir], "holds no slow disk");
    let full = bench.scratch.path().join("full");
    std::fs::create_dir(&full).unwrap();
    File::create(full.join("file")).unwrap();
    refused(&["mount", "nfs", full.to_str().unwrap()], "is not empty");
    let file = full.join("file");
    refused(
        &["mount", "nfs", file.to_str().unwrap()],
        "file: cannot make: File exists (os error 17)\n",
    );
    bench.mount("nfs", &[]);
    refused(&["mount", "nfs", dir], "already holds a slow disk");
}

#[test]
fn of_two_mounts_at_once_on_one_directory_one_succeeds() {
    let Some(bench) = Bench::new() else { return };
    let dir = bench.dir();
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_slowdisk"));
        command.args(["mount", "nfs", dir.to_str().unwrap(), "--size", "64M"]);
        command
            .stderr(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    let outputs = [start(), start()].map(|child| child.wait_with_output().unwrap());
    let winners = outputs
        .iter()
        .filter(|output| output.status.success())
        .count();
    assert_eq!(winners, 1, "{outputs:?}");
    let mounted = Mounted::find(&dir).unwrap();
    assert!(mounted.is_alive());
    File::create(dir.join("file")).unwrap();
    assert!(bench.umount().status.success());
    bench.assert_nothing_left(&mounted);
}

#[test]
fn files_of_a_parallel_file_system_come_back_byte_exact_and_no_page_of_them_is_kept() {
    let Some(bench) = Bench::new() else { return };
    for model in ["striped", "striped-2008"] {
        let mounted = bench.mount(model, &[]);
        assert_eq!(mounted.loop_device, None);
        let path = bench.dir().join("file");
        let content = fill(&path, (3 << 20) + 5);
        for _ in 0..2 {
            let before = served(&mounted);
            assert!(std::fs::read(&path).unwrap() == content, "the bytes differ");
            let read = served(&mounted).read_bytes - before.read_bytes;
            assert!(
                read >= content.len() as u64,
                "{read} bytes came from the servers"
            );
        }
        mounted.forget().unwrap();
        assert!(bench.umount().status.success());
        bench.assert_nothing_left(&mounted);
    }
}

#[test]
fn a_parallel_file_system_keeps_names_links_rights_and_sizes() {
    let Some(bench) = Bench::new() else { return };
    let mounted = bench.mount("striped", &[]);
    let dir = bench.dir();
    let at = |name: &str| dir.join(name);
    let names = |dir: &Path| -> Vec<_> {
        let entries = std::fs::read_dir(dir).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(
        names(&dir),
        Vec::<String>::new(),
        "nothing of the disk's own is listed"
    );
    std::fs::create_dir(at("a")).unwrap();
    std::fs::write(at("a/file"), "0123456789").unwrap();
    std::os::unix::fs::symlink("a/file", at("link")).unwrap();
    std::fs::hard_link(at("a/file"), at("second")).unwrap();
    assert_eq!(at("second").metadata().unwrap().nlink(), 2);
    std::fs::rename(at("a/file"), at("a/moved")).unwrap();
    assert!(!at("link").exists(), "the link leads to the old name");
    assert_eq!(std::fs::read_link(at("link")).unwrap(), Path::new("a/file"));
    let file = File::options().append(true).open(at("second")).unwrap();
    std::io::Write::write_all(&mut &file, b"abc").unwrap();
    assert_eq!(std::fs::read(at("a/moved")).unwrap(), b"0123456789abc");
    file.set_len(4).unwrap();
    assert_eq!(std::fs::read(at("a/moved")).unwrap(), b"0123");
    let mode = std::fs::Permissions::from_mode(0o604);
    std::fs::set_permissions(at("second"), mode).unwrap();
    assert_eq!(at("a/moved").metadata().unwrap().mode() & 0o7777, 0o604);
    assert_eq!(names(&dir), ["a", "link", "second"]);

    // A removed file exists as long as it is open.
    let open = File::open(at("second")).unwrap();
    std::fs::remove_file(at("second")).unwrap();
    std::fs::remove_file(at("a/moved")).unwrap();
    let mut rest = [0; 4];
    open.read_exact_at(&mut rest, 0).unwrap();
    assert_eq!(&rest, b"0123");
    drop(open);

    // Enough files that listing them needs several calls; all of them are removed.
    for i in 0..3000 {
        File::create(at(&format!("a/{i}"))).unwrap();
    }
    assert_eq!(names(&at("a")).len(), 3000);
    std::fs::remove_dir_all(at("a")).unwrap();
    assert_eq!(names(&dir), ["link"]);
    let full = File::create(at("full")).unwrap();
    let error = full
        .write_all_at(&[1; 4096], 2 << 40)
        .and_then(|()| fill_up(&full));
    assert_eq!(
        error.unwrap_err().raw_os_error(),
        Some(rustix::io::Errno::NOSPC.raw_os_error())
    );
    drop((full, file));
    assert!(bench.umount().status.success());
    bench.assert_nothing_left(&mounted);
}

/// Writes until the file system (1 GiB) is full.
fn fill_up(file: &File) -> std::io::Result<()> {
    let piece = vec![1; 16 << 20];
    (0..80).try_for_each(|i| file.write_all_at(&piece, i * piece.len() as u64))
}

#[test]
fn concurrent_reads_of_one_server_wait_for_each_other() {
    let Some(bench) = Bench::new() else { return };
    bench.mount("striped-2008", &[]);
    let path = bench.dir().join("file");
    fill(&path, 64 << 20);
    let file = File::open(&path).unwrap();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for reader in 0..8u64 {
            let file = &file;
            scope.spawn(move || {
                let mut stripe = vec![0; 64 << 10];
                for turn in 0..8 {
                    let at = turn * (8 << 20) + reader * (512 << 10);
                    file.read_exact_at(&mut stripe, at).unwrap();
                }
            });
        }
    });
    // 4 MiB over one link of 11.8 MB/s. A test in virtual time shows that reads of different servers overlap.
    let taken = start.elapsed();
    assert!(taken > Duration::from_millis(350), "{taken:?}");
}

/// The processes are like ranks on one host: they share the page cache of a server's file system, but nothing of a parallel file
/// system.
#[test]
fn what_one_process_has_read_another_finds_on_nfs_alone() {
    let Some(bench) = Bench::new() else { return };
    for (model, shared) in [("nfs", true), ("striped", false)] {
        let mounted = bench.mount(model, &[]);
        let path = bench.dir().join("file");
        let len = fill(&path, 4 << 20).len() as u64;
        drop(cold(&path, Advice::Normal));
        let process_reads = || {
            let before = served(&mounted).read_bytes;
            let status = Command::new("cat")
                .arg(&path)
                .stdout(std::process::Stdio::null())
                .status();
            assert!(status.unwrap().success());
            served(&mounted).read_bytes - before
        };
        assert!(process_reads() >= len, "{model}: the first reads it all");
        let again = process_reads();
        assert_eq!(again < len / 2, shared, "{model}: {again} bytes of {len}");
        assert!(bench.umount().status.success());
    }
}
