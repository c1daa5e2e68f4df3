//! Meanings of the counters' names.

/// The text for people, with a line for each counter that begins with its name.
pub const TEXT: &str = include_str!("glossary.txt");

/// Returns the line of a counter or of a pattern: the name in the glossary, where `*` stands for any one part, and the meaning.
pub fn entry_of(counter: &str) -> Option<(&'static str, &'static str)> {
    let entries = TEXT.lines().filter_map(|line| line.split_once("  "));
    let mut entries = entries.map(|(name, meaning)| (name, meaning.trim_start()));
    entries.find(|(name, _)| {
        let parts = name.split('.').zip(counter.split('.'));
        let is_as_long = name.split('.').count() == counter.split('.').count();
        is_as_long && parts.clone().all(|(part, is)| part == "*" || part == is)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_inet::{Host, InterfaceConfig};
    use baton_live::adapter::{AdapterService, AdapterServiceConfig, Listeners, Siblings};
    use baton_live::http::HttpConfig;
    use baton_live::port::{Counted, FaultSpec, Faults, MemoryPort, memory_pair};
    use baton_live::{Clock, Engine, ServiceConfig, Snapshot, SnapshotSource, WebService};
    use baton_nic::Config;
    use baton_tcp::Config as TcpConfig;

    const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

    /// Returns the names in the glossary.
    fn names() -> Vec<&'static str> {
        let entries = TEXT.lines().filter(|line| line.contains("  "));
        entries.filter_map(|line| line.split("  ").next()).collect()
    }

    fn is_explained(counter: &str) -> bool {
        entry_of(counter).is_some()
    }

    fn engine() -> Engine<Counted<Faults<MemoryPort>>> {
        let (port, _) = memory_pair(MACS, 1500);
        let interface =
            InterfaceConfig::new(MACS[0], vec!["10.9.0.2/24".parse().expect("an address")]);
        let host = Host::new(interface, TcpConfig::default(), 1).expect("a host");
        let port = Counted::new(Faults::new(port, &FaultSpec::default(), 1));
        Engine::new(host, port, Clock::start())
    }

    fn check(engine: &Engine<Counted<Faults<MemoryPort>>>, source: &impl SnapshotSource) {
        for counter in Snapshot::take(engine, source).counters.keys() {
            assert!(is_explained(counter), "{counter} is not in the glossary");
        }
    }

    #[test]
    fn the_counters_of_a_server_and_of_an_adapter_are_explained() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut engine = engine();
        let config = ServiceConfig::new(HttpConfig::new(folder.path()));
        let service = WebService::start(&config, engine.host_mut()).expect("a folder");
        check(&engine, &service);

        let config = AdapterServiceConfig {
            firmware: Some(Config::default()),
            ..AdapterServiceConfig::default()
        };
        let path = folder.path().join("adapter.sock");
        let listeners = Listeners::open(&path, None, config.limits).expect("a socket");
        let service = AdapterService::new(config, Some(listeners), engine.host_mut());
        let mut service = service.expect("parameters that work");
        let siblings = Siblings::of(1).expect("descriptors").pop();
        service
            .set_siblings(siblings.expect("one engine"))
            .expect("descriptors");
        check(&engine, &service);
    }

    #[test]
    fn each_counter_is_explained_once() {
        let mut seen = std::collections::BTreeSet::new();
        for name in names() {
            assert!(seen.insert(name), "{name} is explained twice");
        }
        assert!(seen.len() > 150, "{}", seen.len());
        assert!(!is_explained("engine"), "whole names only");
        assert!(!is_explained("tcp.refused.bad_ack.more"));
    }
}
