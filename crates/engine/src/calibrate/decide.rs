//! From samples to a profile: pure, one rule a constant.

use crate::{Horizon, Order, Profile};

use super::{
    DepthSample, GapSample, LatenessSample, LeadSample, OrderSample, RequestSample, Samples,
};

/// A depth or size is enough when it gives this share of the best throughput.
const FULL: f64 = 0.95;
/// A threshold is enough when it is within this of the best time.
const NEAR: f64 = 1.03;
/// Reading a gap along may cost this much more than skipping it: it saves requests, and samples
/// of two equal costs are never equal.
const EVEN: f64 = 1.05;
/// Order by position must halve the time, because it lets the program wait for what comes later in the plan.
const ORDER_PAYS: f64 = 0.5;
/// The smallest and largest request worth making, in pages: below, hints cost more than they
/// save; above, a page has too much to wait for.
const REQUEST: std::ops::RangeInclusive<u64> = 16..=1024;

/// The profile these samples speak for. What was not measured is as in the built-in profile of
/// the kind the samples are nearest to.
pub fn decide(samples: &Samples) -> Profile {
    let order = order_of(&samples.order);
    let built_in = match order {
        Order::Position => Profile::rotational(),
        Order::Program => Profile::solid_state(),
    };
    let depths = match order {
        Order::Position => &samples.ordered,
        Order::Program => &samples.scattered,
    };
    let infill_pages = infill_of(&samples.gaps);
    Profile {
        order,
        depth: depth_of(depths).unwrap_or(built_in.depth),
        horizon: Horizon {
            time_threshold: time_threshold_of(&samples.lateness)
                .unwrap_or(built_in.horizon.time_threshold),
            queue_threshold: queue_threshold_of(&samples.leads, order)
                .unwrap_or(built_in.horizon.queue_threshold),
        },
        infill_pages,
        request_pages: request_of(&samples.requests, infill_pages)
            .unwrap_or(built_in.request_pages),
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

/// The least size that gives nearly the best throughput, with room for two pages and a gap.
pub(super) fn request_of(samples: &[RequestSample], infill_pages: u64) -> Option<u64> {
    let best = least(samples.iter().map(|sample| sample.page_ns))?;
    let enough = samples
        .iter()
        .filter(|sample| sample.page_ns * FULL <= best)
        .map(|sample| sample.pages)
        .min()?;
    Some(
        enough
            .max(4 * infill_pages)
            .clamp(*REQUEST.start(), *REQUEST.end()),
    )
}

/// The largest gap up to which every gap is as well read along.
pub(super) fn infill_of(samples: &[GapSample]) -> u64 {
    samples
        .iter()
        .take_while(|sample| sample.along_ns <= sample.skipped_ns * EVEN)
        .last()
        .map_or(0, |sample| sample.pages)
}

/// Whether position pays.
pub(super) fn order_of(sample: &OrderSample) -> Order {
    if sample.ordered_ns < sample.random_ns * ORDER_PAYS {
        Order::Position
    } else {
        Order::Program
    }
}

/// The least lead that is nearly the best for both programs. By position the largest one tried
/// stands for any: each entry known makes the pass over the device better.
pub(super) fn queue_threshold_of(samples: &[LeadSample], order: Order) -> Option<u64> {
    let enough = |time: fn(&LeadSample) -> f64| {
        let best = least(samples.iter().map(time))?;
        samples
            .iter()
            .filter(|sample| time(sample) <= best * NEAR)
            .map(|sample| sample.queue_threshold)
            .min()
    };
    let threshold = enough(|sample| sample.backward_ns)?.max(enough(|sample| sample.random_ns)?);
    let largest = samples.iter().map(|sample| sample.queue_threshold).max();
    if order == Order::Position && Some(threshold) == largest {
        return Some(u64::MAX);
    }
    Some(threshold)
}

/// The strictest time threshold that is nearly the best.
pub(super) fn time_threshold_of(samples: &[LatenessSample]) -> Option<i64> {
    let best = least(samples.iter().map(|sample| sample.read_ns))?;
    samples
        .iter()
        .filter(|sample| sample.read_ns <= best * NEAR)
        .map(|sample| match sample.lateness_ns {
            Some(ns) => i64::try_from(ns).map_or(i64::MIN, |ns| -ns),
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
    fn infill_ends_at_the_first_gap_that_is_cheaper_to_skip() {
        let gaps: Vec<GapSample> = [(1, 2.0), (2, 3.0), (4, 5.0), (8, 9.0), (16, 4.0)]
            .into_iter()
            .map(|(pages, along_ns)| GapSample {
                pages,
                skipped_ns: 5.0,
                along_ns,
            })
            .collect();
        assert_eq!(
            infill_of(&gaps),
            4,
            "a lucky sample further out does not count"
        );
        assert_eq!(infill_of(&[]), 0);
    }

    #[test]
    fn position_must_pay_well_to_be_preferred_to_the_programs_order() {
        let sample = |ordered_ns| OrderSample {
            random_ns: 10.0,
            ordered_ns,
        };
        assert_eq!(order_of(&sample(4.0)), Order::Position);
        assert_eq!(order_of(&sample(6.0)), Order::Program);
        assert_eq!(order_of(&OrderSample::default()), Order::Program);
    }

    #[test]
    fn the_least_lead_that_serves_both_programs_is_taken() {
        let leads: Vec<LeadSample> = [
            (16, 50.0, 90.0),
            (64, 10.1, 40.0),
            (256, 10.0, 20.2),
            (1024, 10.0, 20.0),
        ]
        .into_iter()
        .map(|(queue_threshold, backward_ns, random_ns)| LeadSample {
            queue_threshold,
            backward_ns,
            random_ns,
        })
        .collect();
        assert_eq!(queue_threshold_of(&leads, Order::Program), Some(256));
        assert_eq!(
            queue_threshold_of(&leads[..3], Order::Position),
            Some(u64::MAX),
            "the largest tried stands for any"
        );
    }

    #[test]
    fn the_strictest_lateness_near_the_best_is_taken() {
        let sample = |lateness_ns, read_ns| LatenessSample {
            lateness_ns,
            read_ns,
        };
        let some = [
            sample(Some(0), 80.0),
            sample(Some(500), 10.2),
            sample(None, 10.0),
        ];
        assert_eq!(time_threshold_of(&some), Some(-500));
        assert_eq!(time_threshold_of(&[some[0], some[2]]), Some(i64::MIN));
    }

    #[test]
    fn a_request_has_room_for_its_gaps() {
        let sizes: Vec<RequestSample> = [(16, 50.0), (64, 40.0), (256, 39.0)]
            .into_iter()
            .map(|(pages, page_ns)| RequestSample { pages, page_ns })
            .collect();
        assert_eq!(request_of(&sizes, 0), Some(64));
        assert_eq!(request_of(&sizes, 128), Some(512));
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
