//! Filters connections.

use crate::cli::FilterArgs;
use baton_live::Snapshot;
use baton_tcp::State;
use baton_wire::Endpoint;

/// Keeps only the requested connections and listeners in the snapshot.
pub fn apply(filter: &FilterArgs, snapshot: &mut Snapshot) {
    snapshot.connections.retain(|row| {
        is_in(filter, Some(row.info.state)) && is_between(filter, row.local, Some(row.remote))
    });
    snapshot
        .listeners
        .retain(|row| is_in(filter, None) && is_between(filter, row.local, None));
    snapshot
        .places
        .retain(|row| is_between(filter, row.local, Some(row.remote)));
}

/// Returns whether the filter has any condition.
pub fn is_given(filter: &FilterArgs) -> bool {
    let FilterArgs {
        state,
        peer,
        port,
        sport,
        dport,
    } = filter;
    let ports = [port, sport, dport];
    !state.is_empty() || !peer.is_empty() || ports.iter().any(|ports| !ports.is_empty())
}

/// Returns whether the filter accepts a connection in this state; `None` stands for a listener.
pub fn is_in(filter: &FilterArgs, state: Option<State>) -> bool {
    let mut states = filter.state.iter();
    filter.state.is_empty() || states.any(|name| name.of_connection() == state)
}

/// Returns whether the filter accepts a connection between these endpoints; a listener has no peer.
pub fn is_between(filter: &FilterArgs, local: Endpoint, remote: Option<Endpoint>) -> bool {
    let FilterArgs {
        peer,
        port,
        sport,
        dport,
        ..
    } = filter;
    let is_remote = |is: &dyn Fn(Endpoint) -> bool| remote.is_some_and(is);
    (peer.is_empty() || is_remote(&|end| peer.iter().any(|net| net.contains(&end.addr))))
        && (sport.is_empty() || sport.contains(&local.port))
        && (dport.is_empty() || is_remote(&|end| dport.contains(&end.port)))
        && (port.is_empty()
            || port.contains(&local.port)
            || is_remote(&|end| port.contains(&end.port)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command, LiveCommand};
    use clap::Parser;

    fn filter(line: &str) -> FilterArgs {
        let words = "baton live stat".split(' ').chain(line.split_whitespace());
        let Command::Live(command) = Cli::try_parse_from(words).expect("a command").command else {
            panic!("it is a live command");
        };
        match *command {
            LiveCommand::Stat(arguments) => arguments.filter,
            _ => panic!("it is `stat`"),
        }
    }

    fn end(text: &str) -> Endpoint {
        let address: std::net::SocketAddr = text.parse().expect("an endpoint");
        Endpoint::new(address.ip(), address.port())
    }

    #[test]
    fn a_connection_matches_if_one_value_of_every_condition_holds() {
        let (local, remote) = (end("10.9.0.2:80"), end("10.9.0.1:5000"));
        for (line, state, is_shown) in [
            ("", State::Established, true),
            ("--state established", State::Established, true),
            ("--state estab --state syn-recv", State::SynReceived, true),
            ("--state established", State::SynReceived, false),
            ("--peer 10.9.0.1", State::Established, true),
            ("--peer 10.9.0.2", State::Established, false),
            (
                "--peer 10.8.0.0/16 --peer 10.9.0.0/16",
                State::Closing,
                true,
            ),
            ("--port 5000", State::Established, true),
            ("--port 80", State::Established, true),
            ("--port 81", State::Established, false),
            ("--sport 80 --dport 5000", State::Established, true),
            ("--sport 5000", State::Established, false),
            ("--dport 80", State::Established, false),
            ("--peer 10.9.0.1 --sport 81", State::Established, false),
        ] {
            let filter = filter(line);
            let shown = is_in(&filter, Some(state)) && is_between(&filter, local, Some(remote));
            assert_eq!(shown, is_shown, "{line}");
            assert_eq!(is_given(&filter), !line.is_empty(), "{line}");
        }
    }

    #[test]
    fn a_listener_has_a_port_and_no_peer() {
        let local = end("0.0.0.0:80");
        for (line, is_shown) in [
            ("", true),
            ("--state listen", true),
            ("--state established", false),
            ("--port 80", true),
            ("--sport 80", true),
            ("--dport 80", false),
            ("--peer 10.9.0.1", false),
        ] {
            let filter = filter(line);
            let shown = is_in(&filter, None) && is_between(&filter, local, None);
            assert_eq!(shown, is_shown, "{line}");
        }
    }
}
