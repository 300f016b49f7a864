//! From samples to a profile: pure, one rule a constant.

use crate::{Horizon, Order, Profile};

use super::{DepthSample, GapSample, LatenessSample, LeadSample, OrderSample, Samples};

/// Request sizes to choose from, in pages: 64 KiB to 4 MiB. In smaller ones hints cost more than they save; in larger ones a
/// page has too much to wait for.
pub(super) const SIZES: [u64; 4] = [16, 64, 256, 1024];
/// Share of the best throughput at which a depth or size is enough. On the models 0.9 gave the network volume half
/// the depth and an eighth of the lead; 0.975 gave the disk a quarter of the depth.
const FULL: f64 = 0.95;
/// Factor of the best time within which a threshold is enough. 1.015 and 1.06 gave the models' profiles alike, but
/// for four times the lateness on the network volume by 1.015.
const NEAR: f64 = 1.03;
/// Factor within which two times are alike: programs and places in the file differ from trial to trial. On the
/// modelled disk gaps of 32 pages are alike by 1.1 and 1.2, of 16 by 1.05; its largest lead is by all three.
const ALIKE: f64 = 1.1;
/// Factor from which on a gap clearly costs more read along than skipped: under load, gaps of one cost came out apart
/// by a fifth. 1.15 and 1.6 gave the models' profiles alike.
const CLEAR: f64 = 1.3;
/// A page that takes no longer, in ns, keeps this machine busy and not the device: requesting a page and checking its arrival take 10 µs.
/// The models' profiles were the same with 10 µs and with 40 µs.
const HOST_NS: f64 = 20_000.0;
/// The lateness allowed is this many times the least that sufficed. T is a mean over programs and neighbours of a device,
/// and entries dropped as too late are lost for good.
const MARGIN: u64 = 4;
/// Order by position must take at most this share of the time in random order, because it makes the program wait for entries later in the
/// plan. The modelled disk takes 0.29, the network volume 0.83 because of its gaps alone, the file server 0.99.
const ORDER_PAYS: f64 = 2.0 / 3.0;
/// Computing time, in ns, during which as much as possible of a program's next burst is fetched. It matters for the file server only: the
/// lead there is 2,048 reads; half the time gives 1,024 and twice the time 4,096.
const BURST_NS: f64 = 100e6;

/// The profile that these samples support. Unmeasured parts come from the built-in profile of the kind that is most similar.
pub fn decide(samples: &Samples) -> Profile {
    let order = order_of(&samples.order);
    let built_in = match order {
        Order::Position => Profile::rotational(),
        Order::Program => Profile::solid_state(),
    };
    let depth = depth_of(&samples.scattered).map(|scattered| match order {
        Order::Position => ordered_depth_of(&samples.ordered, scattered),
        Order::Program => scattered,
    });
    let infill_pages = infill_of(&samples.gaps);
    Profile {
        order,
        depth: depth.unwrap_or(built_in.depth),
        horizon: Horizon {
            time_threshold: time_threshold_of(&samples.lateness)
                .unwrap_or(built_in.horizon.time_threshold),
            queue_threshold: queue_threshold_of(samples)
                .unwrap_or(built_in.horizon.queue_threshold),
        },
        infill_pages,
        request_pages: request_of(samples).unwrap_or(built_in.request_pages),
        service_ns: samples.service_ns,
    }
}

/// The least depth that gives nearly the best throughput.
pub(super) fn depth_of(samples: &[DepthSample]) -> Option<usize> {
    let best = least(samples.iter().map(|sample| sample.page_ns))?;
    samples
        .iter()
        .filter(|sample| sample.page_ns * FULL <= best)
        .map(|sample| sample.depth)
        .min()
}

/// The largest depth, no larger than needed for scattered pages, that does not make a program's own reads wait longer. Scattered pages
/// matter because a pass over a sparse plan consists of them.
fn ordered_depth_of(samples: &[DepthSample], scattered: usize) -> usize {
    let within = || samples.iter().filter(|sample| sample.depth <= scattered);
    let best = least(within().map(|sample| sample.page_ns)).unwrap_or(f64::INFINITY);
    within()
        .filter(|sample| sample.page_ns * FULL <= best)
        .map(|sample| sample.depth)
        .max()
        .unwrap_or(scattered)
}

/// The least size that gives nearly the best throughput, has room for a few gaps, and keeps the
/// device for as long as a read of the program's own interrupts it.
pub(super) fn request_of(samples: &Samples) -> Option<u64> {
    let page_ns = least(samples.requests.iter().map(|sample| sample.page_ns))?;
    let enough = samples
        .requests
        .iter()
        .filter(|sample| sample.page_ns * FULL <= page_ns)
        .map(|sample| sample.pages)
        .min()?;
    let interrupted = (samples.service_ns as f64 / page_ns) as u64;
    let pages = enough
        .max(4 * infill_of(&samples.gaps))
        .max(interrupted)
        .clamp(SIZES[0], SIZES[SIZES.len() - 1]);
    Some(pages.next_power_of_two())
}

/// The largest gap that is as well read along, short of the first that clearly is not, on a device slow enough for that
/// to be worth the memory.
pub(super) fn infill_of(samples: &[GapSample]) -> u64 {
    samples
        .iter()
        .take_while(|sample| {
            sample.skipped_ns > HOST_NS && sample.along_ns <= sample.skipped_ns * CLEAR
        })
        .filter(|sample| sample.along_ns <= sample.skipped_ns * ALIKE)
        .last()
        .map_or(0, |sample| sample.pages)
}

/// The order that the sample supports: by position if that pays.
pub(super) fn order_of(sample: &OrderSample) -> Order {
    if sample.ordered_ns < sample.random_ns * ORDER_PAYS {
        Order::Position
    } else {
        Order::Program
    }
}

/// The least lead that is nearly the best for both programs, and that lets a program which has computed for [`BURST_NS`] find the pages
/// that the device could fetch meanwhile. In order of position each additional entry improves the pass over the device, so there is no
/// limit unless the largest lead was worse.
pub(super) fn queue_threshold_of(samples: &Samples) -> Option<u64> {
    let leads = &samples.leads;
    let within = |share: f64, time: fn(&LeadSample) -> f64| {
        let best = least(leads.iter().map(time))?;
        Some(move |sample: &&LeadSample| time(sample) <= best * share)
    };
    let backward = |share| within(share, |sample| sample.backward_ns);
    let random = |share| within(share, |sample| sample.random_ns);
    let largest = leads.iter().max_by_key(|sample| sample.queue_threshold)?;
    if order_of(&samples.order) == Order::Position
        && backward(ALIKE)?(&largest)
        && random(ALIKE)?(&largest)
    {
        return Some(u64::MAX);
    }
    let enough = |lead: Option<&LeadSample>| lead.map_or(0, |lead| lead.queue_threshold);
    let page_ns = least(samples.scattered.iter().map(|sample| sample.page_ns))?;
    let burst = (BURST_NS / page_ns) as u64;
    // Leads are tried from the least.
    let threshold = enough(leads.iter().find(backward(NEAR)?))
        .max(enough(leads.iter().find(random(NEAR)?)))
        .max(burst);
    Some(threshold.next_power_of_two())
}

/// The strictest time threshold that is nearly the best, with a margin.
pub(super) fn time_threshold_of(samples: &[LatenessSample]) -> Option<i64> {
    let best = least(samples.iter().map(|sample| sample.read_ns))?;
    samples
        .iter()
        .filter(|sample| sample.read_ns <= best * NEAR)
        .map(|sample| match sample.lateness_ns {
            Some(ns) => i64::try_from(ns.saturating_mul(MARGIN)).map_or(i64::MIN, |ns| -ns),
            None => i64::MIN,
        })
        .max()
}

fn least(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::RequestSample;

    fn depths(page_ns: &[f64]) -> Vec<DepthSample> {
        (0..)
            .map(|power| 1 << power)
            .zip(page_ns)
            .map(|(depth, &page_ns)| DepthSample { depth, page_ns })
            .collect()
    }

    #[test]
    fn the_least_depth_within_five_percent_of_the_best_throughput_is_taken() {
        assert_eq!(depth_of(&depths(&[100.0, 50.0, 26.0, 25.0, 25.0])), Some(4));
        assert_eq!(depth_of(&depths(&[100.0, 50.0, 27.0, 25.0, 25.0])), Some(8));
        assert_eq!(depth_of(&[]), None);
    }

    #[test]
    fn by_position_the_depth_is_the_largest_that_does_not_get_in_the_programs_way() {
        let samples = depths(&[10.0, 9.9, 10.1, 14.0, 9.0]);
        assert_eq!(ordered_depth_of(&samples, 8), 4);
        assert_eq!(ordered_depth_of(&samples, 16), 16);
        assert_eq!(ordered_depth_of(&[], 16), 16);
    }

    #[test]
    fn infill_ends_before_the_first_gap_that_is_clearly_cheaper_to_skip() {
        let mut gaps: Vec<GapSample> = [(1, 2.0), (2, 3.0), (4, 5.0), (8, 9.0), (16, 4.0)]
            .into_iter()
            .map(|(pages, along_ns)| GapSample {
                pages,
                skipped_ns: 50_000.0,
                along_ns: along_ns * 10_000.0,
            })
            .collect();
        assert_eq!(
            infill_of(&gaps),
            4,
            "a lucky sample further out does not count"
        );
        gaps[0].along_ns = 60_000.0;
        assert_eq!(infill_of(&gaps), 4, "nor does an unlucky one nearer");
        let quick = GapSample {
            pages: 1,
            skipped_ns: 11_000.0,
            along_ns: 4_000.0,
        };
        assert_eq!(infill_of(&[quick]), 0, "not worth the memory");
        assert_eq!(infill_of(&[]), 0);
    }

    #[test]
    fn position_must_pay_well_to_be_preferred_to_the_programs_order() {
        let sample = |ordered_ns| OrderSample {
            random_ns: 10.0,
            ordered_ns,
        };
        assert_eq!(order_of(&sample(4.0)), Order::Position);
        assert_eq!(order_of(&sample(7.0)), Order::Program);
        assert_eq!(order_of(&OrderSample::default()), Order::Program);
    }

    /// Leads of 16, 64, 256, 1024 for two programs, on a device that needs `page_ns` a page.
    fn leads(order: OrderSample, page_ns: f64, times: [(f64, f64); 4]) -> Samples {
        Samples {
            order,
            scattered: depths(&[page_ns]),
            leads: [16, 64, 256, 1024]
                .into_iter()
                .zip(times)
                .map(|(queue_threshold, (backward_ns, random_ns))| LeadSample {
                    queue_threshold,
                    backward_ns,
                    random_ns,
                })
                .collect(),
            ..Samples::default()
        }
    }

    const BY_POSITION: OrderSample = OrderSample {
        random_ns: 10.0,
        ordered_ns: 1.0,
    };

    #[test]
    fn the_least_lead_that_serves_both_programs_is_taken() {
        let times = [(50.0, 90.0), (10.1, 40.0), (10.0, 20.2), (10.0, 20.0)];
        let samples = leads(OrderSample::default(), 1e6, times);
        assert_eq!(queue_threshold_of(&samples), Some(256));
    }

    #[test]
    fn a_lead_covers_a_burst_after_computing() {
        let samples = leads(OrderSample::default(), 10_000.0, [(10.0, 10.0); 4]);
        assert_eq!(queue_threshold_of(&samples), Some(16_384));
    }

    #[test]
    fn by_position_the_lead_has_a_bound_only_where_a_large_one_did_worse() {
        let mut times = [(50.0, 90.0), (10.1, 20.1), (10.0, 20.2), (10.0, 20.0)];
        let samples = leads(BY_POSITION, 1e7, times);
        assert_eq!(queue_threshold_of(&samples), Some(u64::MAX));
        times[3].0 = 12.0;
        let samples = leads(BY_POSITION, 1e7, times);
        assert_eq!(queue_threshold_of(&samples), Some(64));
    }

    #[test]
    fn the_strictest_lateness_near_the_best_is_taken_with_a_margin() {
        let sample = |lateness_ns, read_ns| LatenessSample {
            lateness_ns,
            read_ns,
        };
        let some = [
            sample(Some(0), 80.0),
            sample(Some(500), 10.2),
            sample(None, 10.0),
        ];
        assert_eq!(time_threshold_of(&some), Some(-2000));
        assert_eq!(time_threshold_of(&[some[0], some[2]]), Some(i64::MIN));
    }

    #[test]
    fn a_request_has_room_for_gaps_and_outlasts_an_interruption() {
        let mut samples = Samples {
            requests: [(16, 50.0), (64, 40.0), (256, 39.0)]
                .into_iter()
                .map(|(pages, page_ns)| RequestSample { pages, page_ns })
                .collect(),
            service_ns: 39 * 20,
            ..Samples::default()
        };
        assert_eq!(request_of(&samples), Some(64));
        samples.service_ns = 39 * 200;
        assert_eq!(request_of(&samples), Some(256));
        samples.gaps = vec![GapSample {
            pages: 128,
            skipped_ns: 90_000.0,
            along_ns: 50_000.0,
        }];
        assert_eq!(request_of(&samples), Some(512));
    }

    #[test]
    fn a_sequential_rate_is_the_best_of_the_sizes() {
        let samples = Samples {
            requests: vec![RequestSample {
                pages: 256,
                page_ns: 4096.0,
            }],
            ..Samples::default()
        };
        assert_eq!(samples.sequential_bytes_per_s(), 1_000_000_000);
        assert_eq!(Samples::default().sequential_bytes_per_s(), 0);
    }
}
