//! Finding a device's profile by measurement.
//!
//! AASFP found its thresholds by experiment, once per machine (long paper, §5.2), and suggests
//! reading a file backward as the experiment. Here the same is done per device, and for the
//! other constants of a [`Profile`](crate::Profile) too.
//!
//! Data flow: [`measure`] works through a programme of experiments on a [`Probe`], real or in
//! virtual time, each as short as its share of the time allows → [`Samples`] → [`decide`]. The
//! deciding is pure, so that stored samples can be judged anew and made-up ones test the rules.

mod decide;
mod measure;

use serde::{Deserialize, Serialize};

pub use decide::decide;
pub use measure::{Probe, Stage, Trial, measure};

/// Measurements of a device. Times in ns, pages of 4 KiB.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// T: the median time of one scattered read with nothing else under way.
    pub service_ns: u64,
    /// Scattered single pages, by how many are under way.
    pub scattered: Vec<DepthSample>,
    /// Neighbouring pages, by the size of a request.
    pub requests: Vec<RequestSample>,
    /// Single pages at regular distances, by the gap between them.
    pub gaps: Vec<GapSample>,
    /// The same pages in random order and by position.
    pub order: OrderSample,
    /// The engine ahead of a program that reads in random order, asking by position, by how many
    /// requests are under way; empty where position does not pay.
    pub ordered: Vec<DepthSample>,
    /// The engine ahead of a program, by the largest lead.
    pub leads: Vec<LeadSample>,
    /// The engine ahead of a program, by the lateness allowed.
    pub lateness: Vec<LatenessSample>,
}

impl Samples {
    /// The most that was read a second in order, in bytes; 0 if nothing was measured.
    pub fn sequential_bytes_per_s(&self) -> u64 {
        let least = self.requests.iter().map(|sample| sample.page_ns);
        match least.fold(f64::INFINITY, f64::min) {
            page_ns if page_ns.is_finite() && page_ns > 0.0 => {
                (foreread_plan::PAGE as f64 * 1e9 / page_ns) as u64
            }
            _ => 0,
        }
    }
}

/// Mean time a page at one depth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DepthSample {
    /// Requests under way.
    pub depth: usize,
    /// Wall-clock time divided by pages.
    pub page_ns: f64,
}

/// Mean time a page with requests of one size, one after the other in the file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestSample {
    /// Pages a request.
    pub pages: u64,
    /// Wall-clock time divided by pages.
    pub page_ns: f64,
}

/// Cost of a wanted page if the pages up to the next wanted one are a gap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GapSample {
    /// Pages between.
    pub pages: u64,
    /// Time a wanted page when the gaps are skipped.
    pub skipped_ns: f64,
    /// Time a wanted page when the gaps are read along.
    pub along_ns: f64,
}

/// Cost of a wanted page if one page in 16 is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OrderSample {
    /// Asked for in random order, page by page.
    pub random_ns: f64,
    /// Asked for by position, small gaps read along.
    pub ordered_ns: f64,
}

/// Cost of a program's read if the engine may lead by this much.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeadSample {
    /// The queue threshold, in accesses.
    pub queue_threshold: u64,
    /// Time a read of a program that reads backward (the paper's Backward 1).
    pub backward_ns: f64,
    /// Time a read of a program that reads in random order.
    pub random_ns: f64,
}

/// Cost of a program's read if the engine requests pages that will be this late.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatenessSample {
    /// The negated time threshold, in ns; `None` for none.
    pub lateness_ns: Option<u64>,
    /// Time a read of a program that reads in random order.
    pub read_ns: f64,
}
