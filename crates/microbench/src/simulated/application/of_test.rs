//! The applications of the machines in a test.

use super::connections::{Acceptor, Initiator};
use super::tcp::{Sink, Source, Tcp};
use super::{Application, Datagrams, Sending, Share, What, hashes};
use crate::frame::LinkRate;
use crate::port::{Load, Request};
use crate::test::Test;

/// The machine with the NIC under test, its partner, and the receiver in tests with three machines.
pub(in crate::simulated) const UNDER_TEST: u8 = 0;
pub(in crate::simulated) const PARTNER: u8 = 1;
pub(in crate::simulated) const RECEIVER: u8 = 2;

/// Parameters of senders of datagrams.
#[derive(Clone, Copy, Debug)]
pub(in crate::simulated) struct Senders {
    /// Number of flows of a sender.
    pub(in crate::simulated) flows: u16,
    /// Number of frames that a sender gives to its driver back to back.
    pub(in crate::simulated) burst: u32,
}

/// Returns the applications of a machine in a test, one for each of its processors.
pub(in crate::simulated) fn of_test(
    request: &Request,
    link: LinkRate,
    senders: Senders,
    (machine, cores): (u8, u8),
) -> Vec<Application> {
    let part = |core| of_core(request, link, senders, machine, Share { core, cores });
    (0..cores).map(part).collect()
}

fn of_core(
    request: &Request,
    link: LinkRate,
    Senders { flows, burst }: Senders,
    machine: u8,
    share: Share,
) -> Application {
    let test = request.test;
    let line_rate = test.line_rate(link);
    let rate = match request.load {
        Load::Rate(rate) => rate,
        Load::Burst(_) | Load::Connections(_) => line_rate,
    };
    let connections = match request.load {
        Load::Connections(connections) => connections,
        Load::Rate(_) | Load::Burst(_) => 1,
    };
    let is_under_test = machine == UNDER_TEST;
    let partner = if is_under_test { PARTNER } else { UNDER_TEST };
    let mut tcp = Tcp::new(machine, share);
    match test {
        Test::TcpSend | Test::TcpReceive if is_under_test == (test == Test::TcpSend) => {
            let source = Source::new(&mut tcp, partner, connections);
            Application::on(tcp, source)
        }
        Test::Accept | Test::Initiate if is_under_test == (test == Test::Initiate) => {
            Application::on(tcp, Initiator::new(partner, share, rate))
        }
        Test::TcpSend | Test::TcpReceive => {
            tcp.listen();
            Application::on(tcp, Sink::default())
        }
        Test::Accept | Test::Initiate => {
            tcp.listen();
            Application::on(tcp, Acceptor)
        }
        _ => {
            let to = match machine {
                UNDER_TEST if test.is_three_way() => Some(RECEIVER),
                UNDER_TEST if test.sends_datagrams() => Some(PARTNER),
                PARTNER if test.receives_datagrams() => Some(UNDER_TEST),
                _ => None,
            };
            let sending = |to| Sending {
                what: What::Alike(test.carried().frame_len() as u16),
                to,
                hashes: hashes([machine, to], flows),
                rate: rate / f64::from(share.cores),
                burst,
                phase: f64::from(share.core) / f64::from(share.cores),
                most: match request.load {
                    Load::Burst(frames) => share.of(frames),
                    Load::Rate(_) | Load::Connections(_) => u64::MAX,
                },
            };
            let to = to.map(sending);
            Application::Datagrams(to.map_or_else(Datagrams::default, Datagrams::sending))
        }
    }
}
