//! A quantity per request, where properties of the requests of the long run are known.

use crate::batches::Batch;
use crate::estimate::{Estimate, student};
use crate::least_squares::{Fit, fit};

/// Assumed relative difference between the cost of a byte in responses that were served and in larger ones, because TCP's windows grow. The same
/// difference is assumed for connections. With less than a tenth, a third of the intervals of short runs of heavy-tailed logs miss the long run.
const UNLIKE: f64 = 0.15;

/// Mean properties of a request in the long run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mix {
    /// Bytes of the response.
    pub bytes: f64,
    /// Connections per request; requests on the same connection share it.
    pub connections: f64,
}

/// Estimate of a quantity per request in the long run.
#[derive(Clone, Debug, PartialEq)]
pub struct PerRequest {
    /// The estimate.
    pub mean: Estimate,
    /// Difference of each batch from the fit, divided by the square root of its requests so that all have the same variance.
    pub residuals: Vec<f64>,
    mix: Mix,
    fit: Fit<3>,
}

impl PerRequest {
    /// Returns the quantity per request of a part of the run, corrected to the long run's mix of requests.
    pub fn as_in_the_long_run(&self, part: &Batch) -> f64 {
        (part.value - self.fit.at(columns(part))) / part.requests + self.mean.mean
    }

    /// Returns the uncertainty that comes from the difference between the served mix and that of the long run.
    fn beyond(&self, served: Mix) -> f64 {
        let [_, per_byte, per_connection] = self.fit.coefficients;
        let bytes = per_byte * (self.mix.bytes - served.bytes);
        let connections = per_connection * (self.mix.connections - served.connections);
        UNLIKE * (bytes.powi(2) + connections.powi(2)).sqrt()
    }
}

/// Estimates the quantity per request from at least four batches. The mix of the long run is known, and the mix of the requests that
/// happened to be served is a control variate (Law, 11.4). A short part of a heavy-tailed workload has few of the giant responses that make
/// up most of its bytes, and more short connections than long ones. It nevertheless determines the cost of a byte and of a connection
/// well, and the mix determines how many of them there are in the long run.
///
/// No request, byte or connection has a negative cost. The interval allows for a different cost of bytes and connections that were not
/// observed; the more of them are missing, the wider it is.
pub fn per_request(batches: &[Batch], mix: Mix) -> Option<PerRequest> {
    let all = Batch::sum(batches);
    if batches.len() < 4 || batches.iter().any(|batch| batch.requests <= 0.0) {
        return None;
    }
    // The weight of each batch is its number of requests.
    let rows: Vec<([f64; 3], f64)> = batches
        .iter()
        .map(|batch| {
            let root = batch.requests.sqrt();
            (
                columns(batch).map(|column| column / root),
                batch.value / root,
            )
        })
        .collect();
    let fit = fit(&rows)?;
    let residuals: Vec<f64> = rows
        .iter()
        .map(|(row, value)| value - fit.at(*row))
        .collect();
    let freedom = (batches.len() - fit.used) as f64;
    let variance = residuals.iter().map(|rest| rest * rest).sum::<f64>() / freedom;
    let long_run = [1.0, mix.bytes, mix.connections];
    let by_chance = student(freedom) * (variance * fit.error(long_run)).sqrt();
    let mut found = PerRequest {
        mean: Estimate::of_one(fit.at(long_run)),
        residuals,
        mix,
        fit,
    };
    let beyond = found.beyond(Mix {
        bytes: all.bytes / all.requests,
        connections: all.connections / all.requests,
    });
    found.mean.half_width = Some((by_chance.powi(2) + beyond.powi(2)).sqrt());
    Some(found)
}

fn columns(batch: &Batch) -> [f64; 3] {
    [batch.requests, batch.bytes, batch.connections]
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn mix(bytes: f64, connections: f64) -> Mix {
        Mix { bytes, connections }
    }

    const fn batch(requests: f64, bytes: f64, value: f64) -> Batch {
        Batch {
            requests,
            bytes,
            connections: 0.0,
            value,
        }
    }

    /// Creates ten batches whose value is `each` per request, plus `byte` per byte, plus `connection` per connection.
    fn linear(each: f64, byte: f64, connection: f64) -> Vec<Batch> {
        let one = |n: u32| {
            let bytes = 1000.0 + f64::from(n * 7 % 10) * 300.0;
            let connections = 2.0 + f64::from(n * n % 5);
            Batch {
                connections,
                ..batch(
                    10.0,
                    bytes,
                    10.0 * each + byte * bytes + connection * connections,
                )
            }
        };
        (0..10).map(one).collect()
    }

    #[test]
    fn costs_that_depend_on_bytes_and_connections_are_estimated_for_the_long_run() {
        let fitted = per_request(&linear(2.0, 0.5, 3.0), mix(5000.0, 0.1)).unwrap();
        assert!((fitted.mean.mean - 2502.3).abs() < 1e-6, "{fitted:?}");
        // Batches have 235 bytes and 0.4 connections per request.
        let bytes: f64 = 0.5 * (5000.0 - 235.0);
        let beyond = UNLIKE * bytes.hypot(3.0 * (0.1 - 0.4));
        assert!(
            (fitted.mean.half_width.unwrap() - beyond).abs() < 1e-6,
            "{fitted:?}"
        );
        let same = per_request(&linear(2.0, 0.5, 3.0), mix(235.0, 0.4)).unwrap();
        assert!(same.mean.half_width.unwrap() < 1e-6);
        for part in linear(2.0, 0.5, 3.0) {
            assert!((fitted.as_in_the_long_run(&part) - 2502.3).abs() < 1e-6);
        }
    }

    #[test]
    fn independent_costs_are_estimated_by_the_mean() {
        let fitted = per_request(&linear(2.0, 0.0, 0.0), mix(5000.0, 0.5)).unwrap();
        assert!((fitted.mean.mean - 2.0).abs() < 1e-6);
        let alike = [3.0, 5.0, 4.0, 4.0].map(|value| batch(10.0, 100.0, value));
        let fitted = per_request(&alike, mix(10.0, 0.0)).unwrap();
        assert!((fitted.mean.mean - 0.4).abs() < 1e-12);
        // Student's t with three degrees of freedom, and the deviation of four values.
        let half_width = 3.182_446 * (2.0_f64 / 3.0).sqrt() / 2.0 / 10.0;
        assert!((fitted.mean.half_width.unwrap() - half_width).abs() < 1e-6);
    }

    #[test]
    fn no_cost_is_negative() {
        let fitted = per_request(&linear(-2.0, 0.5, 0.0), mix(50.0, 0.4)).unwrap();
        assert!(fitted.mean.mean > 0.0);
        let fitted = per_request(&linear(2.0, -0.001, -0.1), mix(50_000.0, 0.1)).unwrap();
        assert_eq!(fitted.fit.coefficients[1..], [0.0, 0.0]);
    }

    #[test]
    fn without_bytes_or_requests_nothing_breaks() {
        let nothing = [Batch::default(); 9];
        assert_eq!(per_request(&nothing, Mix::default()), None);
        let empty = [batch(5.0, 0.0, 1.0); 9];
        let fitted = per_request(&empty, Mix::default()).unwrap();
        assert!((fitted.mean.mean - 0.2).abs() < 1e-12);
    }
}
