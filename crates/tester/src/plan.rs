//! Distributes the tasks of a trial.

use crate::task::{FROM_NIC, Sending, StreamEnds, TO_NIC, Task, TcpRole, TcpTask, Work};
use baton_microbench::frame::Ends;
use baton_microbench::{Load, Request, Test};

/// IP addresses of the three roles, from the network that RFC 2544 C.2.2 reserves for tests.
const IP: [[u8; 4]; 3] = [[198, 18, 0, 1], [198, 18, 0, 2], [198, 18, 0, 3]];
/// Ports of datagrams (RFC 863: a host that receives them by mistake discards them).
const PORTS: [u16; 2] = [9, 9];
/// Time after which a burst is given up.
const LONGEST_BURST_NS: u64 = 30_000_000_000;

/// A role in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The NIC under test.
    UnderTest,
    /// The partner that sends to the NIC under test, or the only partner.
    Partner,
    /// The partner that the NIC under test sends to, in tests with two.
    Receiver,
}

/// Destination Ethernet addresses of frames: those of the roles, or of a router in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Address of each role.
    pub own: [[u8; 6]; 3],
    /// Routers to which the NIC under test and its partner send, if any.
    pub gateways: [Option<[u8; 6]>; 2],
}

/// Returns the task of each role that takes part, for trial number `trial`.
pub fn tasks(
    request: &Request,
    addresses: &Addresses,
    has_receiver: bool,
    trial: u8,
    same_clock: bool,
) -> Vec<(Role, Task)> {
    let works = match request.test.unit() {
        _ if is_of_datagrams(request.test) => datagrams(request, addresses, has_receiver),
        _ => tcp(request),
    };
    let task = |(role, work)| {
        let task = Task {
            trial,
            same_clock,
            work,
        };
        (role, task)
    };
    works.into_iter().map(task).collect()
}

/// Returns whether the test counts datagrams, not TCP data or connections.
pub fn is_of_datagrams(test: Test) -> bool {
    test.sends_datagrams() || test.receives_datagrams()
}

/// Returns how much a sender of the test sends.
fn sending(request: &Request) -> Sending {
    let duration_ns = request.duration.as_ps() / 1_000;
    match request.load {
        Load::Rate(rate) => Sending {
            rate: Some(rate),
            frames: ((rate * request.duration.as_secs_f64()) as u64).max(1),
            duration_ns,
        },
        Load::Burst(frames) => Sending {
            rate: None,
            frames,
            duration_ns: LONGEST_BURST_NS,
        },
        Load::Connections(_) => unreachable!("datagrams have no connections"),
    }
}

fn datagrams(request: &Request, addresses: &Addresses, has_receiver: bool) -> Vec<(Role, Work)> {
    let test = request.test;
    let payload_len = test.carried().payload_len() as u16;
    let stream = |stream, from: Role, to: Role, gateway: Option<[u8; 6]>| StreamEnds {
        stream,
        ends: Ends {
            ethernet: [
                addresses.own[from as usize],
                gateway.unwrap_or(addresses.own[to as usize]),
            ],
            ip: [IP[from as usize], IP[to as usize]],
            ports: PORTS,
        },
    };
    let third = match test.is_three_way() && has_receiver {
        true => Role::Receiver,
        false => Role::Partner,
    };
    let [gateway, partner_gateway] = addresses.gateways;
    let sent = stream(FROM_NIC, Role::UnderTest, third, gateway);
    let received = stream(TO_NIC, Role::Partner, Role::UnderTest, partner_gateway);
    let (sends, receives) = (test.sends_datagrams(), test.receives_datagrams());
    let sending = sending(request);
    let work = |send: Option<StreamEnds>, receive: Option<StreamEnds>| Work::Datagrams {
        payload_len,
        send: send.map(|stream| (stream, sending)),
        receive,
    };
    let mut works = vec![(
        Role::UnderTest,
        work(sends.then_some(sent), receives.then_some(received)),
    )];
    let at_partner = sends && third == Role::Partner;
    works.push((
        Role::Partner,
        work(receives.then_some(received), at_partner.then_some(sent)),
    ));
    if sends && third == Role::Receiver {
        works.push((Role::Receiver, work(None, Some(sent))));
    }
    works
}

fn tcp(request: &Request) -> Vec<(Role, Work)> {
    let (connections, rate) = match request.load {
        Load::Connections(connections) => (connections, 0.0),
        Load::Rate(rate) => (0, rate),
        Load::Burst(_) => unreachable!("bursts are of datagrams"),
    };
    let [under_test, partner] = match request.test {
        Test::TcpSend => [TcpRole::Send { connections }, TcpRole::Read],
        Test::TcpReceive => [TcpRole::Read, TcpRole::Send { connections }],
        Test::Initiate => [TcpRole::Open { rate }, TcpRole::Accept],
        _ => [TcpRole::Accept, TcpRole::Open { rate }],
    };
    let work = |own: Role, other: Role, role| {
        Work::Tcp(TcpTask {
            own: IP[own as usize],
            other: IP[other as usize],
            role,
            warm_up_ns: request.warm_up.as_ps() / 1_000,
            duration_ns: request.duration.as_ps() / 1_000,
        })
    };
    vec![
        (
            Role::UnderTest,
            work(Role::UnderTest, Role::Partner, under_test),
        ),
        (Role::Partner, work(Role::Partner, Role::UnderTest, partner)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_wire::Span;

    fn roles(test: Test, load: Load, has_receiver: bool) -> Vec<(Role, Work)> {
        let request = Request {
            test,
            load,
            warm_up: Span::ZERO,
            duration: Span::from_ms(100),
        };
        let addresses = Addresses {
            own: [[2; 6], [4; 6], [6; 6]],
            gateways: [Some([8; 6]), None],
        };
        let tasks = tasks(&request, &addresses, has_receiver, 7, true);
        tasks
            .into_iter()
            .map(|(role, task)| (role, task.work))
            .collect()
    }

    #[test]
    fn three_ways_take_two_or_three_interfaces() {
        for (has_receiver, expected) in [(false, 2), (true, 3)] {
            let works = roles(Test::UdpThreeWay18, Load::Rate(1e4), has_receiver);
            assert_eq!(works.len(), expected);
            let ends = |work: &Work| match work {
                Work::Datagrams { send, receive, .. } => {
                    let sent = send.map(|(stream, sending)| (stream, sending.frames));
                    (sent, *receive)
                }
                Work::Tcp(_) => panic!("datagrams"),
            };
            let (sent, received) = ends(&works[0].1);
            let (stream, frames) = sent.expect("it sends");
            assert_eq!((stream.stream, frames), (FROM_NIC, 1_000));
            assert_eq!(stream.ends.ethernet, [[2; 6], [8; 6]], "by the gateway");
            let partner = ends(&works[1].1);
            assert_eq!(partner.0.map(|(stream, _)| stream), received);
            let last = ends(&works[expected - 1].1);
            assert_eq!(last.1, Some(stream), "who receives what it sends");
        }
    }

    #[test]
    fn connections_are_opened_by_the_end_that_the_test_names() {
        let role = |test, load| match &roles(test, load, false)[..] {
            [(_, Work::Tcp(first)), (_, Work::Tcp(second))] => {
                assert_eq!((first.own, first.other), (second.other, second.own));
                (first.role, second.role)
            }
            other => panic!("two hosts with TCP, not {other:?}"),
        };
        let four = TcpRole::Send { connections: 4 };
        let connections = Load::Connections(4);
        assert_eq!(role(Test::TcpSend, connections), (four, TcpRole::Read));
        assert_eq!(role(Test::TcpReceive, connections), (TcpRole::Read, four));
        let open = TcpRole::Open { rate: 1e3 };
        let rate = Load::Rate(1e3);
        assert_eq!(role(Test::Accept, rate), (TcpRole::Accept, open));
        assert_eq!(role(Test::Initiate, rate), (open, TcpRole::Accept));
    }
}
