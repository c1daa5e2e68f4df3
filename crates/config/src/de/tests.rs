use super::super::source::{Kind, Sources};
use super::*;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Outer {
    #[serde(default)]
    nic: Nic,
    #[serde(default)]
    load: Option<Load>,
    #[serde(default)]
    ports: BTreeMap<u16, Scheduler>,
    #[serde(default)]
    list: Vec<u8>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Nic {
    mips: u32,
    rate: f64,
    enabled: bool,
    scheduler: Option<Scheduler>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Scheduler {
    Fcfs,
    HostFirst,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum Load {
    Log { path: String },
    Fixed { size: u64 },
}

fn read(text: &str) -> Result<Outer, String> {
    let mut sources = Sources::new();
    let node = Node::parse(&mut sources, Kind::File, "x.toml", text).expect("TOML");
    Outer::deserialize(&node).map_err(|mismatch| {
        let origin = mismatch.origin.as_ref().unwrap_or(&node.origin);
        let diagnostic = sources.diagnose(origin, mismatch.to_string()).to_string();
        diagnostic.lines().next().unwrap_or_default().to_owned()
    })
}

#[test]
fn every_kind_of_value_is_read() {
    let text = "list = [1, 2]\nports.80 = 'fcfs'\n\
                [nic]\nmips = 400\nrate = 1\nenabled = true\nscheduler = 'host-first'\n\
                [load]\nkind = 'fixed'\nsize = 10";
    let expected = Outer {
        nic: Nic {
            mips: 400,
            rate: 1.0,
            enabled: true,
            scheduler: Some(Scheduler::HostFirst),
        },
        load: Some(Load::Fixed { size: 10 }),
        ports: BTreeMap::from([(80, Scheduler::Fcfs)]),
        list: vec![1, 2],
    };
    assert_eq!(read(text), Ok(expected));
}

#[test]
fn errors_say_where_and_what_was_found_and_expected() {
    let cases = [
        (
            "[nic]\nmips = 'fast'",
            "x.toml:2:8: nic.mips: found \"fast\"; expected a whole number from 0 to 4294967295",
        ),
        (
            "[nic]\nmips = -5",
            "x.toml:2:8: nic.mips: found -5; expected a whole number from 0 to 4294967295",
        ),
        (
            "[nic]\nmips = 2.5",
            "x.toml:2:8: nic.mips: found 2.5; expected a whole number from 0 to 4294967295",
        ),
        (
            "[nic]\nrate = true",
            "x.toml:2:8: nic.rate: found true; expected a number",
        ),
        (
            "nic.enabled = 1",
            "x.toml:1:15: nic.enabled: found 1; expected true or false",
        ),
        ("nic = 5", "x.toml:1:7: nic: found 5; expected a table"),
        (
            "list = [1, 300]",
            "x.toml:1:8: list: found 300; expected a whole number from 0 to 255",
        ),
        (
            "nic.scheduler = 'lifo'",
            "x.toml:1:17: nic.scheduler: found \"lifo\"; expected one of \"fcfs\", \"host-first\"",
        ),
        (
            "nic.scheduler = 5",
            "x.toml:1:17: nic.scheduler: found 5; expected one of \"fcfs\", \"host-first\"",
        ),
        (
            "[nic]\nmisp = 5",
            "x.toml:2:1: unknown key `misp` in [nic]; expected one of mips, rate, enabled, scheduler",
        ),
        (
            "cpu = 5",
            "x.toml:1:1: unknown key `cpu` in an experiment; expected one of nic, load, ports, list",
        ),
        (
            "ports.http = 'fcfs'",
            "x.toml:1:7: ports: found \"http\"; expected a whole number from 0 to 65535",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn errors_inside_a_tagged_table_have_a_place() {
    let cases = [
        (
            "[load]\nkind = 'fixed'\nsize = 'big'",
            "x.toml:3:8: load.size: found \"big\"; expected a whole number from 0 to 9223372036854775807",
        ),
        (
            "[load]\nkind = 'fixed'\nsize = -1",
            "x.toml:3:8: load.size: found -1; expected a whole number from 0 to 9223372036854775807",
        ),
        (
            "[load]\nkind = 'fixed'\nsize = 1\nsiez = 2",
            "x.toml:4:1: unknown key `siez` in [load]; expected one of size",
        ),
        (
            "[load]\nkind = 'log'",
            "x.toml:1:1: key `path` is missing in [load]",
        ),
        (
            "[load]\nkind = 'other'",
            "x.toml:2:8: load.kind: found \"other\"; expected one of \"log\", \"fixed\"",
        ),
        (
            "[load]\nsize = 1",
            "x.toml:1:1: key `kind` is missing in [load]",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), Err(expected.to_owned()), "{text}");
    }
}
