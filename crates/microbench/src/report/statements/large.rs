//! Statements about large frames: C1 to C5 and C11.

use super::nic::{ACE, ACE_OPTIMIZED, ALL, DESKTOP, NETGEAR, SERVER, THREE_COM};
use super::{
    Evidence, Statement, at, improves, is_equal, is_near, is_slightly_below,
    is_substantially_below, least, most, number, only, part, ratios, statement,
};
use crate::frame::LinkRate;
use crate::report::Series;
use crate::test::Test;

fn udp_limit() -> f64 {
    Test::UdpSend1472.limit(LinkRate::GIGABIT) as f64
}

fn tcp_limit() -> f64 {
    Test::TcpSend.limit(LinkRate::GIGABIT) as f64
}

pub(super) fn c1(evidence: &Evidence<'_>) -> Statement {
    let send = evidence.of(Series::LargeSend);
    let ends = [least(&send), most(&send)];
    let parts = vec![
        part("all near the limit", is_near(ends[0], udp_limit()), send),
        part("within 0.5 %", ends[1] <= 1.005 * ends[0], ends),
    ];
    let says = "UDP send, 1472 bytes: all near 957 Mb/s, within 0.5 % of each other";
    statement("C1", says, parts)
}

pub(super) fn c2(evidence: &Evidence<'_>) -> Statement {
    let receive = evidence.of(Series::LargeReceive);
    let others = at(&receive, [SERVER, DESKTOP, ACE_OPTIMIZED, NETGEAR, ACE]);
    let lower = is_substantially_below(receive[THREE_COM], udp_limit());
    let parts = vec![
        part(
            "all but 3Com near the limit",
            is_near(least(&others), udp_limit()),
            others,
        ),
        part("3Com substantially lower", lower, [receive[THREE_COM]]),
    ];
    let says = "UDP receive, 1472 bytes: all but 3Com near 957 Mb/s, 3Com substantially lower";
    statement("C2", says, parts)
}

pub(super) fn c3(evidence: &Evidence<'_>) -> Statement {
    let alike = evidence.of(Series::Tcp);
    let fast = at(&alike, [SERVER, DESKTOP, ACE_OPTIMIZED]);
    let slow = at(&alike, [THREE_COM, ACE]);
    let (near, lower) = (
        is_near(least(&fast), tcp_limit()),
        is_substantially_below(most(&slow), tcp_limit()),
    );
    let slightly = is_slightly_below(alike[NETGEAR], tcp_limit());
    let parts = vec![
        part("both Intel and ACE Optimized near the limit", near, fast),
        part("Netgear slightly lower", slightly, [alike[NETGEAR]]),
        part("3Com and ACE substantially lower", lower, slow),
    ];
    let says = "TCP, same NIC: both Intel and ACE Optimized near 949 Mb/s, Netgear slightly lower, 3Com and ACE substantially lower";
    statement("C3", says, parts)
}

pub(super) fn c4(evidence: &Evidence<'_>) -> Statement {
    let (alike, best) = (evidence.of(Series::Tcp), evidence.of(Series::TcpSendBest));
    let changes = ratios(
        &evidence.of(Series::LargeSendBest),
        &evidence.of(Series::LargeSend),
    );
    let receiver = evidence.partners.large_receiver;
    let improved = |says, nic: usize| {
        let values = [alike[nic], best[nic]];
        part(says, improves(best[nic], alike[nic]), values)
    };
    let same = changes.iter().all(|change| is_equal(*change, 1.0));
    let parts = vec![
        part(
            "NIC 1, Intel Server, is the best receiver",
            receiver == SERVER,
            [number(receiver)],
        ),
        improved("TCP of 3Com improves", THREE_COM),
        improved("TCP of ACE improves", ACE),
        part("UDP send hardly changes", same, changes),
    ];
    let says =
        "With Intel Server as receiver TCP send improves for 3Com and ACE, UDP send hardly changes";
    statement("C4", says, parts)
}

pub(super) fn c5(evidence: &Evidence<'_>) -> Statement {
    let receive = evidence.of(Series::TcpReceiveBest);
    let sender = evidence.partners.large_sender;
    let near = |says, nic: usize| {
        let value = receive[nic];
        part(says, is_near(value, tcp_limit()), [value])
    };
    let parts = vec![
        part(
            "NIC 5, 3Com, is the best sender",
            sender == THREE_COM,
            [number(sender)],
        ),
        near("Netgear near the maximum", NETGEAR),
        near("ACE near the maximum", ACE),
    ];
    let says = "With 3Com as sender Netgear and ACE receive near the maximum";
    statement("C5", says, parts)
}

pub(super) fn c11(evidence: &Evidence<'_>) -> Statement {
    let both = evidence.of(Series::LargeThreeWay);
    let (send, receive) = (
        evidence.of(Series::LargeSendBest),
        evidence.of(Series::LargeReceiveBest),
    );
    let of_sum = ratios(&both, &ALL.map(|nic| send[nic] + receive[nic]));
    let falls = both.windows(2).all(|pair| pair[0] > pair[1]);
    let ratio = most(&both) / least(&both);
    let parts = vec![
        part("falls in the order of the report", falls, both),
        part(
            "only Intel Server reaches 99 % of the sum",
            only(SERVER, |nic| of_sum[nic] > 0.99),
            of_sum,
        ),
        part(
            "best to worst within 5 % of 1.73",
            (ratio / 1.73 - 1.0).abs() < 0.05,
            [ratio],
        ),
    ];
    let says = "UDP both ways, 1472 bytes: falls in the order of the report, only Intel Server near the sum of its parts, best to worst 1.73";
    statement("C11", says, parts)
}
