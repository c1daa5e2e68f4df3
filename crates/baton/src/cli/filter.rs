//! Options that choose connections to show.

use baton_inet::Cidr;
use baton_tcp::State;
use clap::{Args, ValueEnum};
use std::net::IpAddr;

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

/// States by the names that `ss` gives them.
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
