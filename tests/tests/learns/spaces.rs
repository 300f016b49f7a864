//! Programs in mount namespaces of their own, as in containers: the daemon fetches the file that they read, or nothing.

use super::*;

/// Number of files in a folder.
const FILES: u64 = 30;

/// A folder of files, with programs that read all of them or only the first.
struct Folder {
    name: &'static str,
    files: Vec<File>,
}

impl Folder {
    fn new(lab: &Lab, name: &'static str) -> Self {
        std::fs::create_dir_all(lab.path(name)).expect("a folder");
        let names = (0..FILES).map(|number| format!("{name}/file-{}", number * 17 % FILES));
        let files = names.map(|name| {
            let content: Vec<u8> = (0..SIZE).map(|at| (at * 31 / 7) as u8).collect();
            File::open(lab.write(&name, content)).expect("our own file")
        });
        Self {
            name,
            files: files.collect(),
        }
    }

    fn cached(&self) -> u64 {
        self.files.iter().map(cached).sum()
    }
}

/// Reads files of a folder by these paths in a mount namespace after the command `mount`.
fn read(lab: &Lab, folder: &str, mount: &str, count: u64) {
    let list = (0..count).map(|number| format!("{folder}/file-{}", number * 17 % FILES));
    let list = list.collect::<Vec<_>>().join(" ");
    let python = "import sys\nfor name in sys.argv[1:]:\n    open(name, 'rb').read()\n";
    lab.write("read.py", python);
    let script = format!("{mount}\nexec python3 read.py {list}");
    let output = lab.plain(&["unshare", "--mount", "sh", "-ec", &script]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

pub(super) fn of_other_namespaces() {
    let lab = Lab::new();
    let [own, hidden, bound, below] =
        ["own", "hidden", "bound", "below"].map(|name| Folder::new(&lab, name));
    for name in ["upper", "work"] {
        std::fs::create_dir(lab.path(name)).expect("a folder");
    }
    let overlay = "mount -t overlay overlay -o lowerdir=below,upperdir=upper,workdir=work below";
    let cases = [
        // A namespace with the daemon's mounts.
        (own.name, "true"),
        // A namespace in which other files have the same paths.
        (hidden.name, "mount --bind bound hidden"),
        // A namespace with a file system of another device at that path.
        (below.name, overlay),
    ];
    let all = [&own, &hidden, &bound, &below];
    let daemon = Daemon::start(&lab, "own");
    let rounds = |count: u64| {
        for folder in all {
            evict(&folder.files);
        }
        std::thread::sleep(PAUSE);
        for (folder, mount) in cases.iter().rev() {
            read(&lab, folder, mount, count);
        }
    };
    for _ in 0..8 {
        rounds(FILES);
    }
    // The files that can be fetched are fetched, although others cannot. A daemon that gets no processor time predicts nothing, so
    // several runs may be needed.
    eventually("files that follow are fetched for a namespace", || {
        rounds(1);
        let until = Instant::now() + SOON;
        while own.cached() < 3 * SIZE as u64 {
            if Instant::now() > until {
                rounds(FILES);
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    });
    assert_eq!(hidden.cached(), 0, "nobody has read those");
    let status = daemon.status();
    assert!(
        status["problems"].as_array().is_some_and(Vec::is_empty),
        "{status}"
    );
}
