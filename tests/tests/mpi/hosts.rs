//! Ranks on several hosts: network namespaces joined by a virtual wire, each with a host name of its own. The MPIs' own launchers enter
//! them by a script in place of `ssh`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};

use foreread_plan::Rank;
use foreread_plan::format::Reader;
use foreread_tests::{Lab, Need, foreread, text};

use super::harness::{Mpi, finish_launcher, lines};
use super::{Needs, Test};
use foreread_tests::suite::ALL;

pub const TESTS: &[Test] = &[(
    "ranks_of_two_hosts_have_their_records_and_a_line_for_each_host",
    ALL.alone(),
    Needs::Hosts,
    two_hosts,
)];

const RANKS: u32 = 4;
/// Their addresses, which exist only in the namespaces.
const ADDRESSES: [&str; 2] = ["10.91.0.1", "10.91.0.2"];

/// The unmet requirement for making hosts; `None` if there is none.
pub fn missing() -> Option<String> {
    let needs = [
        Need::Root,
        Need::Command("ip"),
        Need::Command("nsenter"),
        Need::Command("unshare"),
    ];
    needs
        .into_iter()
        .find_map(Need::missing)
        .or_else(|| Hosts::make(&Lab::new()).err())
}

/// Two hosts, which are removed on drop.
struct Hosts {
    names: [String; 2],
    /// The script that enters a host; its arguments are those of `ssh`.
    enter: PathBuf,
}

impl Hosts {
    fn make(lab: &Lab) -> Result<Self, String> {
        let names = ["a", "b"].map(|end| format!("fr{}{end}", std::process::id()));
        let cases: String = ADDRESSES
            .iter()
            .zip(&names)
            .map(|(address, name)| format!("{address}) host={name};;\n"))
            .collect();
        let enter = lab.script(
            "enter",
            &format!(
                "#!/bin/sh\n\
                 while :; do case $1 in -*) shift;; *) break;; esac; done\n\
                 case $1 in\n{cases}*) echo \"no host $1\" >&2; exit 255;;\nesac\n\
                 shift\n\
                 exec nsenter --net=/run/netns/$host unshare --uts sh -c \"hostname $host && $*\"\n"
            ),
        );
        let hosts = Self { names, enter };
        let [a, b] = &hosts.names;
        ip(&["netns", "add", a])?;
        ip(&["netns", "add", b])?;
        ip(&[
            "link", "add", a, "netns", a, "type", "veth", "peer", "name", b, "netns", b,
        ])?;
        for (name, address) in hosts.names.iter().zip(ADDRESSES) {
            let address = format!("{address}/24");
            ip(&["-n", name, "addr", "add", &address, "dev", name])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
            ip(&["-n", name, "link", "set", name, "up"])?;
        }
        Ok(hosts)
    }

    /// Starts a command from the first host, with ranks that alternate between the hosts.
    fn launch(&self, lab: &Lab, mpi: Mpi, words: &[&str]) -> Output {
        let ranks = RANKS.to_string();
        let each = RANKS / 2;
        let slots = ADDRESSES
            .map(|address| format!("{address}:{each}"))
            .join(",");
        let mut command = lab.command(&self.enter);
        command.args([ADDRESSES[0], "exec", &format!("mpirun.{}", mpi.name())]);
        match mpi {
            Mpi::Mpich => command
                .args(["-launcher", "ssh", "-launcher-exec"])
                .arg(&self.enter)
                .args(["-localhost", ADDRESSES[0], "-hosts", &slots]),
            Mpi::OpenMpi => command
                .args(["--allow-run-as-root", "--bind-to", "none"])
                .args([
                    "--mca",
                    "mpi_yield_when_idle",
                    "1",
                    "--mca",
                    "plm_rsh_agent",
                ])
                .arg(&self.enter)
                .args(["--host", &slots, "--map-by", "node"])
                .args(["--mca", "oob_tcp_if_include", "10.91.0.0/24"])
                .args(["--mca", "btl_tcp_if_include", "10.91.0.0/24"]),
        };
        finish_launcher(command.args(["-n", &ranks]).args(words))
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            // A host may never have been created.
            let _ = ip(&["netns", "del", name]);
        }
    }
}

fn ip(words: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(words).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {}: {}", words.join(" "), text(&output.stderr))),
    }
}

fn two_hosts(mpi: Mpi) {
    let lab = Lab::new();
    lab.data("data", 8);
    mpi.build(&lab, "strided.c");
    let hosts = Hosts::make(&lab).expect("two hosts");
    let named = hosts.launch(&lab, mpi, &["hostname"]);
    let where_they_are: BTreeSet<_> = lines(&named).into_iter().collect();
    assert_eq!(
        where_they_are,
        hosts.names.iter().cloned().collect(),
        "{named:?}"
    );
    let plain = hosts.launch(&lab, mpi, &["./strided", "data"]);
    assert!(plain.status.success(), "{plain:?}");
    let path = foreread();
    let path = path.to_str().expect("a path");
    for _ in ["first", "second"] {
        lab.cold(&["data"]);
        let output = hosts.launch(&lab, mpi, &[path, "run", "--", "./strided", "data"]);
        assert_eq!(lines(&output), lines(&plain), "{output:?}");
        assert_eq!(output.status, plain.status);
        let said = text(&output.stderr);
        let ours = said.matches("foreread: 2 of 4 ranks of strided: ").count();
        assert_eq!(ours, 2, "{said}");
    }
    let ranks: BTreeSet<_> = lab
        .records()
        .iter()
        .filter_map(|path| Reader::open(path).expect("a record").meta().identity.rank)
        .map(|Rank { rank, of }| (rank, of))
        .collect();
    assert_eq!(ranks, (0..RANKS).map(|rank| (rank, RANKS)).collect());
}
