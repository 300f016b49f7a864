//! The figures published in papers, from the tables in bench/tables.

use serde::Serialize;

/// A paper's figures for a case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Paper {
    /// Improvement over plain, in percent.
    pub improvement_pct: f64,
    /// Masked I/O, in percent, by the paper's own definition.
    pub masked_pct: f64,
    /// Share of computing in the plain time, if the table has it.
    pub computing: Option<f64>,
    /// Cost of synchronization, in percent, if the table has it.
    pub synchronization_pct: Option<f64>,
    /// Time to translate the program, in percent of a run of the translated program, if the table has it.
    pub compile_pct: Option<f64>,
}

/// The published figures for `case`.
pub fn paper(case: &str) -> Option<Paper> {
    let tables = [
        include_str!("../../tables/aasfp.csv"),
        include_str!("../../tables/epcm.csv"),
    ];
    tables.iter().find_map(|table| row(table, case))
}

/// The row of `case` in a table of `cases,plain,prefetched,masked,improvement` and, where the paper has them,
/// `computing,synchronization,compile`, in seconds and percent. Several cases here may share one row of the paper.
fn row(table: &str, case: &str) -> Option<Paper> {
    let line = table.lines().find(|line| {
        let cases = line.split(',').next().unwrap_or_default();
        cases.split(' ').any(|one| one == case)
    })?;
    let figures: Option<Vec<f64>> = line.split(',').skip(1).map(|f| f.parse().ok()).collect();
    let figures = figures?;
    let (&[plain_s, _, masked_pct, improvement_pct], rest) = figures.split_first_chunk()?;
    Some(Paper {
        masked_pct,
        improvement_pct,
        computing: rest.first().map(|computing_s| computing_s / plain_s),
        synchronization_pct: rest.get(1).copied(),
        compile_pct: rest.get(2).copied(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_without_a_published_figure_has_none() {
        assert_eq!(paper("sqlite"), None);
        assert_eq!(paper("case"), None);
        assert_eq!(paper("link").unwrap().masked_pct, 33.0);
        assert_eq!(paper("link").unwrap().computing, None);
        assert_eq!(paper("video-bwd-1"), paper("backward-1"));
        assert!((paper("vol-vis-1").unwrap().computing.unwrap() - 0.355).abs() < 0.001);
        assert_eq!(paper("vol-vis-4").unwrap().synchronization_pct, Some(2.04));
        assert_eq!(paper("fft-512k").unwrap().compile_pct, Some(0.06));
    }
}
