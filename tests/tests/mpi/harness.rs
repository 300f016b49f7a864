//! The two MPIs, programs built with them, and the contents of their ranks' records.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

use foreread_plan::format::Reader;
use foreread_plan::{Kind, Rank};
use foreread_tests::{
    Lab, check, check_not_held_up, compiled, finish, foreread, root, start, text,
};
use rustix::process::Signal;

/// An MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mpi {
    Mpich,
    OpenMpi,
}

/// The accesses that a rank requested from MPI, in order: kind, offset and length in bytes.
pub type Asked = Vec<(Kind, u64, u64)>;

impl Mpi {
    pub const ALL: [Self; 2] = [Self::Mpich, Self::OpenMpi];

    pub fn name(self) -> &'static str {
        match self {
            Self::Mpich => "mpich",
            Self::OpenMpi => "openmpi",
        }
    }

    /// The unmet requirement of tests with this MPI; `None` if there is none.
    pub fn missing(self, fortran: bool) -> Option<String> {
        let library = foreread().with_file_name(format!("libforeread_{}.so", self.name()));
        let tools = ["mpicc", "mpirun"]
            .into_iter()
            .chain(fortran.then_some("mpif90"));
        for tool in tools {
            let tool = format!("{tool}.{}", self.name());
            let mut paths = std::env::split_paths(&std::env::var_os("PATH")?).collect::<Vec<_>>();
            paths.retain(|folder| folder.join(&tool).is_file());
            if paths.is_empty() {
                return Some(format!("no {tool}"));
            }
        }
        (!library.is_file()).then(|| format!("no {}", library.display()))
    }

    /// Builds one of the tests' programs as `./NAME`, without the extension.
    pub fn build(self, lab: &Lab, source: &str) {
        self.build_as(lab, source, &[]);
    }

    /// As [`Self::build`], with these options, which may name another output.
    pub fn build_as(self, lab: &Lab, source: &str, options: &[&str]) {
        let tool = if source.ends_with(".c") {
            "mpicc"
        } else {
            "mpif90"
        };
        self.build_by(lab, &format!("{tool}.{}", self.name()), source, options);
    }

    /// As [`Self::build_as`], with this compiler.
    pub fn build_by(self, lab: &Lab, compiler: &str, source: &str, options: &[&str]) {
        let path = root().join("tests/mpi").join(source);
        let name = Path::new(source).file_stem().expect("a name");
        // Options that name files belong to this test alone.
        let names_files = |option: &&str| *option == "-o" || option.ends_with(".so");
        if !options.iter().any(names_files) {
            let options = [&["-O1"][..], options].concat();
            return compiled(compiler, &options, &path, &lab.path("").join(name));
        }
        let output = Command::new(compiler)
            .args(["-O1", "-o"])
            .arg(lab.path("").join(name))
            .arg(path)
            .args(options)
            .current_dir(lab.path(""))
            .output()
            .expect("a compiler");
        assert!(output.status.success(), "{}", text(&output.stderr));
    }

    /// Runs a command with this number of ranks.
    pub fn launch(self, lab: &Lab, ranks: u32, words: &[&str]) -> Output {
        let mut command = lab.command(format!("mpirun.{}", self.name()));
        if self == Self::OpenMpi {
            command.args(["--oversubscribe", "--allow-run-as-root"]);
            command.args(["--mca", "mpi_yield_when_idle", "1"]);
        }
        finish_launcher(command.arg("-n").arg(ranks.to_string()).args(words))
    }

    /// As [`Self::launch`], under foreread: `options` begins with `run` or `record`.
    pub fn foreread(self, lab: &Lab, ranks: u32, options: &[&str], words: &[&str]) -> Output {
        let path = foreread();
        let foreread = [path.to_str().expect("a path")];
        let all = [&foreread[..], options, &["--"], words].concat();
        let output = self.launch(lab, ranks, &all);
        check_not_held_up(&output);
        output
    }
}

/// The end of a launcher. MPICH's writes to ranks that may have ended: of 200 starts of `hostname`, eight at once and without foreread,
/// one was killed by SIGPIPE. Then the test is repeated.
pub fn finish_launcher(command: &mut Command) -> Output {
    let output = finish(start(command));
    check!(
        output.status.signal() != Some(Signal::PIPE.as_raw()),
        "{command:?}: {output:?}"
    );
    output
}

/// The sorted lines of standard output, because ranks write in any order.
pub fn lines(output: &Output) -> Vec<String> {
    let mut lines: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// The accesses of each rank to the file of this name, by the records in the lab's store.
pub fn asked(lab: &Lab, ranks: u32, name: &str) -> Vec<Asked> {
    let mut all = vec![Asked::new(); ranks as usize];
    for path in lab.records() {
        let mut reader = Reader::open(&path).expect("a record");
        let Some(Rank { rank, of }) = reader.meta().identity.rank else {
            panic!("{}: the record of no rank", path.display());
        };
        assert_eq!(of, ranks);
        let files = reader.files().clone();
        let accesses: Vec<_> = reader
            .accesses()
            .map(|one| one.expect("an access"))
            .collect();
        let asked = accesses.into_iter().filter(|one| {
            let meta = &files[&one.file];
            one.kind.asks() && meta.path.ends_with(name)
        });
        all[rank as usize] = asked
            .map(|one| (one.kind, one.extent.offset, one.extent.len))
            .collect();
    }
    all
}
