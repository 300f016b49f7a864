//! The rank of this process in a parallel program, from its launcher's environment.
//!
//! Launchers say so in the environment, each in variables of its own. A pair counts only whole: the rank, and how many there are.

use foreread_plan::Rank;

/// The variables of each launcher: the rank, and the number of ranks. Open MPI's own come before those that mean the same to
/// any MPI. Slurm gives a batch script `SLURM_PROCID` as well, but the number of a step's tasks only to those tasks.
const VARIABLES: [(&str, &str); 5] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
];

/// The rank of this process, if it was started as one.
pub fn rank() -> Option<Rank> {
    of_launcher(|name| std::env::var(name).ok())
}

/// The rank in the environment; `None` if no launcher has put one there.
fn of_launcher(variable: impl Fn(&str) -> Option<String>) -> Option<Rank> {
    let number = |name: &str| variable(name)?.parse::<u32>().ok();
    VARIABLES.iter().find_map(|(rank, of)| {
        let (rank, of) = (number(rank)?, number(of)?);
        (rank < of).then_some(Rank { rank, of })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(variables: &[(&str, &str)]) -> Option<(u32, u32)> {
        let found = of_launcher(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        });
        found.map(|one| (one.rank, one.of))
    }

    #[test]
    fn each_launcher_is_understood() {
        for (rank_name, of_name) in VARIABLES {
            assert_eq!(rank(&[(rank_name, "3"), (of_name, "16")]), Some((3, 16)));
            assert_eq!(
                rank(&[(rank_name, "3")]),
                None,
                "a rank of nobody knows how many"
            );
        }
        let slurm = [
            ("PMIX_RANK", "1"),
            ("SLURM_PROCID", "1"),
            ("SLURM_STEP_NUM_TASKS", "4"),
        ];
        assert_eq!(rank(&slurm), Some((1, 4)));
        assert_eq!(
            rank(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")]),
            None,
            "a batch script"
        );
    }

    #[test]
    fn nonsense_is_no_rank() {
        for (one, of) in [
            ("4", "4"),
            ("-1", "4"),
            ("", ""),
            ("x", "4"),
            ("0", "99999999999"),
        ] {
            assert_eq!(
                rank(&[("PMI_RANK", one), ("PMI_SIZE", of)]),
                None,
                "{one} of {of}"
            );
        }
    }
}
