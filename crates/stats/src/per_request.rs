//! A quantity for each request, where the mean size of responses is known.

use crate::batches::Batch;
use crate::estimate::{Estimate, student};

/// What a byte costs in responses larger than those that were served may differ by so much from what it cost in these: TCP's windows grow.
/// With less than a tenth, a third of the intervals of short runs of heavy-tailed logs miss the long run.
const UNLIKE: f64 = 0.15;

/// A quantity for each request in the long run.
#[derive(Clone, Debug, PartialEq)]
pub struct PerRequest {
    /// The estimate.
    pub mean: Estimate,
    /// How much of it there is for each byte more.
    pub per_byte: f64,
    /// What each batch has more than it should, divided by the root of its requests, so that all vary alike.
    pub residuals: Vec<f64>,
}

/// Sums over the batches, each weighted by its requests.
struct Sums {
    requests: f64,
    bytes: f64,
    value: f64,
    /// Bytes beyond what this many requests have in the mean; their squares; their products with the value.
    excess: f64,
    excess_squares: f64,
    excess_value: f64,
    bytes_squares: f64,
}

/// Estimates the quantity for each request from batches, at least three: the workload's mean response has `mean_bytes`, and the mean of
/// those that happened to be delivered is a control variate (Law, 11.4). A short part of a heavy-tailed workload has few of the giants of
/// which most of its bytes are; what its bytes cost is known well all the same, and the mean size says how many there are in the long run.
///
/// The cost of a request without bytes, and of a byte, is not negative. The interval allows for bytes that cost more or less beyond the
/// sizes that were served; the more of them are missing, the wider it is.
pub fn per_request(batches: &[Batch], mean_bytes: f64) -> Option<PerRequest> {
    let sums = Sums::of(batches, mean_bytes);
    if batches.len() < 3 || sums.requests <= 0.0 {
        return None;
    }
    let plain = sums.value / sums.requests;
    let determinant = sums.requests * sums.excess_squares - sums.excess.powi(2);
    // Sizes that do not differ say nothing of what a byte costs.
    let differ = determinant > 1e-9 * (sums.requests * mean_bytes).powi(2).max(f64::MIN_POSITIVE);
    let per_byte = match differ {
        true => (sums.requests * sums.excess_value - sums.excess * sums.value) / determinant,
        false => 0.0,
    };
    let mean = plain - per_byte * sums.excess / sums.requests;
    let by_bytes = sums.value / sums.bytes;
    // Squared error of the mean for each unit of the residuals' variance.
    let (mean, per_byte, fitted, error) = if per_byte <= 0.0 {
        (plain, 0.0, 1, 1.0 / sums.requests)
    } else if mean < per_byte * mean_bytes && sums.bytes > 0.0 {
        let error = mean_bytes.powi(2) / sums.bytes_squares;
        (by_bytes * mean_bytes, by_bytes, 1, error)
    } else {
        (mean, per_byte, 2, sums.excess_squares / determinant)
    };
    let residuals: Vec<f64> = batches
        .iter()
        .map(|batch| {
            let excess = batch.bytes - mean_bytes * batch.requests;
            (batch.value - mean * batch.requests - per_byte * excess) / batch.requests.sqrt()
        })
        .collect();
    let freedom = (batches.len() - fitted) as f64;
    let variance = residuals.iter().map(|rest| rest * rest).sum::<f64>() / freedom;
    let by_chance = student(freedom) * (variance * error).sqrt();
    let beyond = UNLIKE * per_byte * sums.excess / sums.requests;
    Some(PerRequest {
        mean: Estimate {
            mean,
            half_width: Some((by_chance.powi(2) + beyond.powi(2)).sqrt()),
        },
        per_byte,
        residuals,
    })
}

impl Sums {
    fn of(batches: &[Batch], mean_bytes: f64) -> Self {
        let sum = |of: &dyn Fn(&Batch) -> f64| batches.iter().map(of).sum::<f64>();
        let excess = |batch: &Batch| batch.bytes - mean_bytes * batch.requests;
        Self {
            requests: sum(&|batch| batch.requests),
            bytes: sum(&|batch| batch.bytes),
            value: sum(&|batch| batch.value),
            excess: sum(&excess),
            excess_squares: sum(&|batch| excess(batch).powi(2) / batch.requests),
            excess_value: sum(&|batch| excess(batch) * batch.value / batch.requests),
            bytes_squares: sum(&|batch| batch.bytes.powi(2) / batch.requests),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(requests: f64, bytes: f64, value: f64) -> Batch {
        Batch {
            requests,
            bytes,
            value,
        }
    }

    /// Ten batches whose value is `each` for a request and `byte` for a byte.
    fn linear(each: f64, byte: f64) -> Vec<Batch> {
        let one = |n: u32| {
            let bytes = 1000.0 + f64::from(n * 7 % 10) * 300.0;
            batch(10.0, bytes, 10.0 * each + byte * bytes)
        };
        (0..10).map(one).collect()
    }

    #[test]
    fn what_depends_on_bytes_is_told_for_the_mean_size() {
        let fitted = per_request(&linear(2.0, 0.5), 5000.0).unwrap();
        assert!((fitted.mean.mean - 2502.0).abs() < 1e-6, "{fitted:?}");
        assert!((fitted.per_byte - 0.5).abs() < 1e-9);
        // Batches have 235 bytes a request.
        let beyond = UNLIKE * 0.5 * (5000.0 - 235.0);
        assert!((fitted.mean.half_width.unwrap() - beyond).abs() < 1e-6);
        let fitted = per_request(&linear(2.0, 0.5), 235.0).unwrap();
        assert!(fitted.mean.half_width.unwrap() < 1e-6);
    }

    #[test]
    fn what_does_not_is_the_plain_mean() {
        let fitted = per_request(&linear(2.0, 0.0), 5000.0).unwrap();
        assert!((fitted.mean.mean - 2.0).abs() < 1e-9);
        let alike = [
            batch(10.0, 100.0, 3.0),
            batch(10.0, 100.0, 5.0),
            batch(10.0, 100.0, 4.0),
        ];
        let fitted = per_request(&alike, 10.0).unwrap();
        assert!((fitted.mean.mean - 0.4).abs() < 1e-12);
        assert!((fitted.mean.half_width.unwrap() - 4.302_653 * 0.1 / 3_f64.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn no_request_and_no_byte_costs_less_than_nothing() {
        let fitted = per_request(&linear(-2.0, 0.5), 50.0).unwrap();
        assert!(fitted.mean.mean > 0.0);
        let fitted = per_request(&linear(2.0, -0.001), 50_000.0).unwrap();
        assert_eq!(fitted.per_byte, 0.0);
    }

    #[test]
    fn without_bytes_or_requests_nothing_breaks() {
        let nothing = [Batch::default(); 9];
        assert_eq!(per_request(&nothing, 0.0), None);
        let empty = [batch(5.0, 0.0, 1.0); 9];
        let fitted = per_request(&empty, 0.0).unwrap();
        assert!((fitted.mean.mean - 0.2).abs() < 1e-12);
    }
}
