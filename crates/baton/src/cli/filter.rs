//! Options that choose connections to show.

use baton_inet::Cidr;
use baton_tcp::State;
use clap::{Args, ValueEnum};
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// A connection must match every option that is given; of an option given several times, it must match one value.
#[derive(Debug, Default, Args)]
pub struct FilterArgs {
    /// Only connections in this state; may be given again
    #[arg(long, value_name = "STATE")]
    pub state: Vec<StateName>,
    /// Only connections to this address or network; may be given again
    #[arg(long, value_name = "ADDR[/LEN]", value_parser = parse_network)]
    pub peer: Vec<Cidr>,
    /// Only connections with this port at either end; may be given again
    #[arg(long, value_name = "N")]
    pub port: Vec<u16>,
    /// Only connections with this port at this end; may be given again
    #[arg(long, value_name = "N")]
    pub sport: Vec<u16>,
    /// Only connections with this port at the peer's end; may be given again
    #[arg(long, value_name = "N")]
    pub dport: Vec<u16>,
}

/// One end of a connection: an address, a port or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndFilter {
    /// The address.
    pub addr: Option<IpAddr>,
    /// The port.
    pub port: Option<u16>,
}

impl FromStr for EndFilter {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "expected an address, a port or both, such as 10.9.0.1, :443, 10.9.0.1:443 or [fd00::1]:443";
        if let Ok(end) = text.parse::<SocketAddr>() {
            let (addr, port) = (Some(end.ip()), Some(end.port()));
            return Ok(Self { addr, port });
        }
        match text.strip_prefix(':').map(str::parse) {
            Some(Ok(port)) => Ok(Self {
                addr: None,
                port: Some(port),
            }),
            _ => Ok(Self {
                addr: Some(text.parse().map_err(|_| expected)?),
                port: None,
            }),
        }
    }
}

/// TCP states by the names that `ss` gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum StateName {
    #[value(alias = "listening")]
    Listen,
    SynSent,
    #[value(alias = "syn-recv")]
    SynReceived,
    #[value(alias = "estab")]
    Established,
    #[value(name = "fin-wait-1")]
    FinWait1,
    #[value(name = "fin-wait-2")]
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
}

impl StateName {
    /// Returns the state of a connection, or `None` for listeners.
    pub const fn of_connection(self) -> Option<State> {
        Some(match self {
            Self::Listen => return None,
            Self::SynSent => State::SynSent,
            Self::SynReceived => State::SynReceived,
            Self::Established => State::Established,
            Self::FinWait1 => State::FinWait1,
            Self::FinWait2 => State::FinWait2,
            Self::CloseWait => State::CloseWait,
            Self::Closing => State::Closing,
            Self::LastAck => State::LastAck,
        })
    }
}

/// Parses a network. An address alone stands for a network with only this address.
fn parse_network(text: &str) -> Result<Cidr, String> {
    let address = || text.parse::<IpAddr>().map(Cidr::from);
    let expected = "expected an address or a network, such as 10.9.0.1 or 10.9.0.0/24";
    text.parse()
        .or_else(|_| address())
        .map_err(|_| expected.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_filter_is_an_address_a_port_or_both() {
        let end = |text: &str| text.parse::<EndFilter>().map(|end| (end.addr, end.port));
        let addr: IpAddr = [10, 9, 0, 1].into();
        let wide: IpAddr = "fd00::1".parse().expect("an address");
        assert_eq!(end("10.9.0.1"), Ok((Some(addr), None)));
        assert_eq!(end(":443"), Ok((None, Some(443))));
        assert_eq!(end("10.9.0.1:443"), Ok((Some(addr), Some(443))));
        assert_eq!(end("[fd00::1]:443"), Ok((Some(wide), Some(443))));
        assert_eq!(end("fd00::1"), Ok((Some(wide), None)));
        for bad in ["", ":", ":70000", "example.org", "10.9.0.1:", "443"] {
            assert!(end(bad).is_err(), "{bad}");
        }
    }
}
