//! Controls of the page. The definitions of the keys provide their meanings and minimums.

use crate::config::keys::{self, Allowed, Key};
use crate::config::shipped::first_sentence;
use crate::failure::Failure;
use baton_report::page::explorer::{Control, Group, Kind};
use baton_sim::config::Experiment;
use serde_json::Value;
use std::collections::BTreeSet;

/// A control without the information from the key's definition.
struct Wanted {
    key: &'static str,
    label: &'static str,
    kind: WantedKind,
}

enum WantedKind {
    /// A number whose slider has these stops. `Under` is shown only for the named selection policies, and starts at its last value.
    Number(&'static [u64]),
    Under(&'static str, &'static [u64], u64),
    /// A choice between some of the key's names, with their labels on the page.
    Choice(&'static [(&'static str, &'static str)]),
    Switch,
}

use WantedKind::{Choice, Number, Switch, Under};

const POLICY: &str = "host.kernel.selection.policy";
const CACHE: &str = "nic.firmware.cache.kib";
/// The key that switches on the host's half of the cache.
const CACHE_ENABLED: &str = "host.kernel.nic_cache.enabled";

const COUNTS: &[u64] = &[
    0, 16, 64, 128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192,
];
const FEW: &[u64] = &[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64];
const SIZES: &[u64] = &[
    0, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 262_144,
];

const CLIENTS: Wanted = Wanted {
    key: "clients.connections",
    label: "Clients",
    kind: Number(&[
        16, 64, 128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192,
    ]),
};
const NIC: &[Wanted] = &[
    Wanted {
        key: "nic.mips",
        label: "NIC processor, MIPS",
        kind: Number(&[
            50, 100, 150, 200, 300, 400, 500, 600, 800, 1000, 1200, 1600, 2000, 3000, 4000,
        ]),
    },
    Wanted {
        key: "nic.firmware.hard_limit",
        label: "Connections that the NIC may hold",
        kind: Number(COUNTS),
    },
    Wanted {
        key: "nic.firmware.scheduler",
        label: "Scheduler",
        kind: Choice(&[
            ("fcfs", "first come, first served"),
            ("host-first", "host packets first"),
        ]),
    },
    Wanted {
        key: "nic.firmware.load_control.enabled",
        label: "Load control",
        kind: Switch,
    },
    Wanted {
        key: CACHE,
        label: "Data cache on the NIC, KiB",
        kind: Number(SIZES),
    },
];
const HOST: &[Wanted] = &[
    Wanted {
        key: POLICY,
        label: "Connections to hand off",
        kind: Choice(&[
            ("never", "none"),
            ("fcfs", "each, first come, first served"),
            ("threshold", "at the n-th enqueue (Tn)"),
            ("rate", "those that send fast"),
            ("benefit", "those with much left to send"),
        ]),
    },
    Wanted {
        key: "host.kernel.selection.enqueues",
        label: "Enqueues n",
        kind: Under("threshold alternate benefit oracle", FEW, 4),
    },
    Wanted {
        key: "host.kernel.selection.percent",
        label: "Rate, % of the mean",
        kind: Under("rate", &[25, 50, 75, 100, 150, 200, 300, 500], 100),
    },
    Wanted {
        key: "host.l2.size_kib",
        label: "L2 cache, KiB",
        kind: Number(&[128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768]),
    },
];
const RUN: &[Wanted] = &[
    Wanted {
        key: "run.measured_packets",
        label: "Packets measured",
        kind: Number(&[
            10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000,
        ]),
    },
    Wanted {
        key: "run.warmup_packets",
        label: "Packets of warm-up",
        kind: Number(&[
            0, 10_000, 20_000, 50_000, 100_000, 200_000, 400_000, 1_000_000,
        ]),
    },
    Wanted {
        key: "run.seed",
        label: "Seed",
        kind: Number(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
    },
];

/// Loads of the handoff-policies paper, and further generated logs.
const WORKLOADS: [(&str, &str); 6] = [
    (
        r#"{ kind = "generated", preset = "worldcup-lifetimes" }"#,
        "W: like the World Cup log",
    ),
    (
        r#"{ kind = "generated", preset = "ibm" }"#,
        "I: like the IBM log",
    ),
    (
        r#"{ kind = "specweb", clients = 4096, dynamic_percent = 0 }"#,
        "S: like SPECweb99, static content",
    ),
    (
        r#"{ kind = "specweb", clients = 4096, dynamic_percent = 30 }"#,
        "D: like SPECweb99, 30 % dynamic",
    ),
    (
        r#"{ kind = "generated", preset = "nasa", requests = 60000 }"#,
        "like the NASA log",
    ),
    (
        r#"{ kind = "fixed", bytes = 8192, requests = 1 }"#,
        "one file of 8 KiB a connection",
    ),
];

/// Returns a key in words, with its unit, if the page has a control for it or figures have it on an axis.
pub fn label(key: &str) -> Option<&'static str> {
    const OTHERS: [(&str, &str); 3] = [
        ("load.rate", "Offered load, requests/s"),
        ("workload.bytes", "Size of a response, bytes"),
        ("wire.rate_mbps", "Link rate, Mb/s"),
    ];
    let wanted = NIC.iter().chain(HOST).chain(RUN).chain([&CLIENTS]);
    let mut all = wanted
        .map(|wanted| (wanted.key, wanted.label))
        .chain(OTHERS);
    all.find(|(known, _)| *known == key).map(|(_, label)| label)
}

/// Returns all controls, with the values of this experiment.
///
/// # Errors
/// Fails if the experiment cannot be read.
pub fn of(experiment: &Experiment) -> Result<Vec<Group>, Failure> {
    let values = serde_json::to_value(experiment);
    let values =
        values.map_err(|error| Failure::Failed(format!("cannot read the experiment: {error}")))?;
    let group = |title: &str, wanted: &[Wanted]| Group {
        title: title.to_owned(),
        controls: wanted
            .iter()
            .map(|wanted| wanted.control(&values))
            .collect(),
    };
    let load = [workload(), CLIENTS.control(&values)];
    Ok(vec![
        Group {
            title: "Load".to_owned(),
            controls: load.into(),
        },
        group("Network interface", NIC),
        group("Host", HOST),
        group("Run", RUN),
    ])
}

fn workload() -> Control {
    let own = |(value, text): (&str, &str)| (value.to_owned(), text.to_owned());
    let options = [("", "as in the experiment")].into_iter().chain(WORKLOADS);
    Control {
        key: "workload".to_owned(),
        label: "Workload".to_owned(),
        meaning: "What the clients request. Logs are not part of Baton: those named here are generated with similar properties.".to_owned(),
        value: String::new(),
        kind: Kind::Choice(options.map(own).collect()),
        only_where: None,
        with: None,
    }
}

impl Wanted {
    fn control(&self, values: &Value) -> Control {
        let known = keys::all().iter().find(|key| key.path == self.key);
        let value = match values.pointer(&format!("/{}", self.key.replace('.', "/"))) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(value) => value.to_string(),
        };
        let (value, kind, only_where) = match self.kind {
            Number(stops) => (value.clone(), number(stops, &value, known), None),
            Under(policies, stops, usual) => {
                let value = Some(value).filter(|value| !value.is_empty());
                let where_is = (POLICY.to_owned(), policies.to_owned());
                let value = value.unwrap_or_else(|| usual.to_string());
                (value.clone(), number(stops, &value, known), Some(where_is))
            }
            Choice(options) => {
                let mut options: Vec<(String, String)> = options
                    .iter()
                    .map(|(value, text)| ((*value).to_owned(), (*text).to_owned()))
                    .collect();
                if !options.iter().any(|(option, _)| *option == value) {
                    options.push((value.clone(), value.clone()));
                }
                (value, Kind::Choice(options), None)
            }
            Switch => (value, Kind::Switch, None),
        };
        Control {
            key: self.key.to_owned(),
            label: self.label.to_owned(),
            meaning: known.map_or(String::new(), |key| {
                first_sentence(&key.meaning).to_owned() + "."
            }),
            value,
            kind,
            only_where,
            with: (self.key == CACHE).then(|| (CACHE_ENABLED.to_owned(), "true".to_owned())),
        }
    }
}

/// Returns the control of a number. The present value is one of the stops.
fn number(stops: &[u64], value: &str, known: Option<&Key>) -> Kind {
    let stops: BTreeSet<u64> = stops.iter().copied().chain(value.parse()).collect();
    let least = match known.map(|key| &key.value) {
        Some(Allowed::Number(range)) => range.least.map_or(0, |least| least as u64),
        _ => 0,
    };
    Kind::Number {
        least,
        stops: stops.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_sets_an_existing_key_to_allowed_values() {
        let wanted = NIC.iter().chain(HOST).chain(RUN);
        for wanted in wanted {
            let key = keys::all().iter().find(|key| key.path == wanted.key);
            let key = key.unwrap_or_else(|| panic!("{} is no key", wanted.key));
            assert!(!key.meaning.is_empty());
            if let (Choice(options), Allowed::OneOf(names)) = (&wanted.kind, &key.value) {
                for (value, _) in *options {
                    assert!(
                        names.iter().any(|name| name.name == *value),
                        "{}: {value}",
                        wanted.key
                    );
                }
            }
        }
        assert!(keys::all().iter().any(|key| key.path == CACHE_ENABLED));
    }
}
