//! The constants of a profile that are fitted. All others have sources, or are assumed.

use crate::config::Setting;
use baton_sim::config::Experiment;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// A scale outside these would say that the instruction counts themselves are wrong.
pub const SCALE_LIMITS: RangeInclusive<u32> = 10..=1000;

/// Few cycles go into the bypass, so that the request rate says little about it: it is kept closer to the counts.
pub const BYPASS_LIMITS: RangeInclusive<u32> = 20..=400;

/// What `nic.firmware.arrival_queue_packets` is chosen from.
pub const ARRIVAL_QUEUES: [u32; 7] = [32, 40, 48, 56, 64, 80, 96];

/// What `nic.firmware.transmit_burst_segments` is chosen from.
pub const TRANSMIT_BURSTS: [u32; 5] = [1, 2, 4, 8, 16];

/// Between what a constant is kept.
pub fn limits(key: &str) -> RangeInclusive<u32> {
    match key {
        "host.scale.bypass" => BYPASS_LIMITS,
        "nic.firmware.arrival_queue_packets" => bounds(&ARRIVAL_QUEUES),
        "nic.firmware.transmit_burst_segments" => bounds(&TRANSMIT_BURSTS),
        _ => SCALE_LIMITS,
    }
}

/// First to last of values in ascending order.
fn bounds(values: &[u32]) -> RangeInclusive<u32> {
    match values {
        [least, .., most] => *least..=*most,
        _ => 0..=u32::MAX,
    }
}

/// The fitted constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// `host.scale.network_stack`, per cent.
    pub network_stack: u32,
    /// `host.scale.application`, per cent.
    pub application: u32,
    /// `host.scale.bypass`, per cent.
    pub bypass: u32,
    /// `nic.scale.host`, per cent.
    pub nic_host: u32,
    /// `nic.scale.offload`, per cent.
    pub nic_offload: u32,
    /// `nic.firmware.arrival_queue_packets`.
    pub arrival_queue_packets: u32,
    /// `nic.firmware.transmit_burst_segments`.
    pub transmit_burst_segments: u32,
}

impl Constants {
    /// Where every calibration starts, so that its outcome owes nothing to an earlier one: instruction counts as they
    /// stand, and the middle of what is chosen from.
    pub const NEUTRAL: Self = Self {
        network_stack: 100,
        application: 100,
        bypass: 100,
        nic_host: 100,
        nic_offload: 100,
        arrival_queue_packets: ARRIVAL_QUEUES[ARRIVAL_QUEUES.len() / 2],
        transmit_burst_segments: TRANSMIT_BURSTS[TRANSMIT_BURSTS.len() / 2],
    };

    /// Those that an experiment has.
    pub fn of(experiment: &Experiment) -> Self {
        let Experiment { host, nic, .. } = experiment;
        Self {
            network_stack: host.scale.network_stack,
            application: host.scale.application,
            bypass: host.scale.bypass,
            nic_host: nic.scale.host,
            nic_offload: nic.scale.offload,
            arrival_queue_packets: nic.firmware.arrival_queue_packets,
            transmit_burst_segments: nic.firmware.transmit_burst_segments,
        }
    }

    /// Each by its key in a profile, the keys of one section together.
    pub const fn by_key(&self) -> [(&'static str, u32); 7] {
        [
            (
                "nic.firmware.arrival_queue_packets",
                self.arrival_queue_packets,
            ),
            (
                "nic.firmware.transmit_burst_segments",
                self.transmit_burst_segments,
            ),
            ("host.scale.network_stack", self.network_stack),
            ("host.scale.bypass", self.bypass),
            ("host.scale.application", self.application),
            ("nic.scale.host", self.nic_host),
            ("nic.scale.offload", self.nic_offload),
        ]
    }

    /// For JSON.
    pub fn to_map(self) -> BTreeMap<&'static str, u32> {
        self.by_key().into_iter().collect()
    }

    /// The flags that put them into an experiment.
    pub fn settings(&self) -> impl Iterator<Item = Setting> {
        self.by_key().into_iter().map(|(key, value)| {
            format!("{key}={value}")
                .parse()
                .expect("a key, an equals sign and a value are a setting")
        })
    }

    /// Sections and lines as a profile has them.
    pub fn to_toml(self) -> String {
        let mut text = String::new();
        let mut last = "";
        for (key, value) in self.by_key() {
            let (section, name) = key.rsplit_once('.').expect("every key is in a section");
            if section != last {
                let gap = if last.is_empty() { "" } else { "\n" };
                text.push_str(&format!("{gap}[{section}]\n"));
                last = section;
            }
            text.push_str(&format!("{name} = {value}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, Request};

    #[test]
    fn settings_put_every_constant_into_an_experiment() {
        let constants = Constants {
            network_stack: 11,
            application: 12,
            bypass: 13,
            nic_host: 14,
            nic_offload: 15,
            arrival_queue_packets: 16,
            transmit_burst_segments: 17,
        };
        let request = Request {
            experiment: "W-0-N-N-FCFS-400".to_owned(),
            settings: constants.settings().collect(),
            ..Request::default()
        };
        let experiment = config::plan_one(&request).expect("an experiment");
        assert_eq!(Constants::of(&experiment), constants);
    }

    #[test]
    fn the_lines_are_toml_of_the_same_keys() {
        let table: toml::Table = Constants::NEUTRAL.to_toml().parse().expect("TOML");
        for (key, value) in Constants::NEUTRAL.by_key() {
            let found = key
                .split('.')
                .try_fold(&toml::Value::Table(table.clone()), |at, name| at.get(name))
                .and_then(toml::Value::as_integer);
            assert_eq!(found, Some(i64::from(value)), "{key}");
        }
    }
}
