//! A host with its adapters and peers, whose parameters and operations the input draws.

use baton_cluster::{Cluster, Place};
use baton_testkit::Random;

/// Runs a cluster. What the input leaves open is drawn from a seed, so that every conversation ends.
pub fn cluster(data: &[u8]) {
    let mut random = Random::beginning_with(data);
    let place = match random.percent(50) {
        true => Place::Adapter,
        false => Place::Both,
    };
    Cluster::new(random, place).run();
}
