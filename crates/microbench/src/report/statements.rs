//! What the report says of its microbenchmarks, and whether the simulated NICs do so.
//!
//! The heights of its bars are not in its text. Where it gives no number its words are taken so: *near* is within 3 %, *substantially* more
//! than 10 %, *slightly* up to 5 %, what *improves* does so by at least 1 %, what is *equal* or *hardly changes* is within 1 %.

use super::{Partners, Results, Series};
use crate::test::Test;
use serde::Serialize;

/// Places of the NICs in the order of the report.
mod nic {
    pub(super) const SERVER: usize = 0;
    pub(super) const DESKTOP: usize = 1;
    pub(super) const ACE_OPTIMIZED: usize = 2;
    pub(super) const NETGEAR: usize = 3;
    pub(super) const THREE_COM: usize = 4;
    pub(super) const ACE: usize = 5;
    pub(super) const ALL: [usize; 6] = [SERVER, DESKTOP, ACE_OPTIMIZED, NETGEAR, THREE_COM, ACE];
}

/// Whether a statement holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All of it.
    Holds,
    /// Some of its parts.
    Partly,
    /// None of its parts.
    Fails,
}

/// A statement of the report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statement {
    /// Its number in the specification: C1 to C14.
    pub id: &'static str,
    /// What it says.
    pub says: &'static str,
    /// Whether it holds.
    pub verdict: Verdict,
    /// Its parts, with the values that decide.
    pub parts: Vec<Part>,
}

/// A part of a statement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// What it says.
    pub says: &'static str,
    /// Whether it holds.
    pub holds: bool,
    /// The values that decide.
    pub values: Vec<f64>,
}

/// Six values, one for each NIC.
type Six = [f64; 6];

/// What statements look at.
struct Evidence<'a> {
    results: &'a Results,
    partners: Partners,
}

impl Evidence<'_> {
    fn of(&self, series: Series) -> Six {
        nic::ALL.map(|nic| self.results.best(&series.point(nic, &self.partners)))
    }
}

fn is_near(value: f64, limit: f64) -> bool {
    value >= 0.97 * limit
}

fn is_equal(value: f64, other: f64) -> bool {
    (value / other - 1.0).abs() < 0.01
}

fn improves(better: f64, value: f64) -> bool {
    better >= 1.01 * value
}

fn is_substantially_below(value: f64, limit: f64) -> bool {
    value < 0.9 * limit
}

fn is_slightly_below(value: f64, limit: f64) -> bool {
    (0.95 * limit..0.995 * limit).contains(&value)
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn at<const N: usize>(values: &Six, nics: [usize; N]) -> Vec<f64> {
    nics.map(|nic| values[nic]).to_vec()
}

fn part(says: &'static str, holds: bool, values: impl Into<Vec<f64>>) -> Part {
    Part {
        says,
        holds,
        values: values.into(),
    }
}

fn statement(id: &'static str, says: &'static str, parts: Vec<Part>) -> Statement {
    let held = parts.iter().filter(|part| part.holds).count();
    let verdict = match held {
        0 => Verdict::Fails,
        _ if held == parts.len() => Verdict::Holds,
        _ => Verdict::Partly,
    };
    Statement {
        id,
        says,
        verdict,
        parts,
    }
}

/// All statements on the microbenchmarks, C1 to C14, from the results of all [bars](super::bars) of the six NICs of the report.
///
/// # Panics
/// When a bar was not measured.
pub fn statements(results: &Results, partners: &Partners) -> Vec<Statement> {
    let evidence = Evidence {
        results,
        partners: *partners,
    };
    let mut all = large_frames(&evidence);
    all.extend(small_frames(&evidence));
    all.extend(both_ways(&evidence));
    all.push(connections(&evidence));
    all
}

fn large_frames(evidence: &Evidence<'_>) -> Vec<Statement> {
    use nic::{ACE, ACE_OPTIMIZED, DESKTOP, NETGEAR, SERVER, THREE_COM};
    let udp = Test::UdpSend1472.limit() as f64;
    let tcp = Test::TcpSend.limit() as f64;
    let [send, receive, alike] =
        [Series::LargeSend, Series::LargeReceive, Series::Tcp].map(|series| evidence.of(series));
    let [send_best, tcp_send, tcp_receive] = [
        Series::LargeSendBest,
        Series::TcpSendBest,
        Series::TcpReceiveBest,
    ]
    .map(|series| evidence.of(series));
    let others = at(&receive, [SERVER, DESKTOP, ACE_OPTIMIZED, NETGEAR, ACE]);
    let fast = at(&alike, [SERVER, DESKTOP, ACE_OPTIMIZED]);
    let slow = at(&alike, [THREE_COM, ACE]);
    let from_best = at(&tcp_receive, [NETGEAR, ACE]);
    let changes = nic::ALL.map(|nic| send_best[nic] / send[nic]);
    let improved = |nic: usize| {
        part(
            if nic == ACE {
                "TCP of ACE improves"
            } else {
                "TCP of 3Com improves"
            },
            improves(tcp_send[nic], alike[nic]),
            [alike[nic], tcp_send[nic]],
        )
    };
    vec![
        statement(
            "C1",
            "UDP send, 1472 bytes: all near 957 Mb/s, within 0.5 % of each other",
            vec![
                part("all near the limit", is_near(least(&send), udp), send),
                part(
                    "within 0.5 %",
                    most(&send) <= 1.005 * least(&send),
                    [least(&send), most(&send)],
                ),
            ],
        ),
        statement(
            "C2",
            "UDP receive, 1472 bytes: all but 3Com near 957 Mb/s, 3Com substantially lower",
            vec![
                part(
                    "all but 3Com near the limit",
                    is_near(least(&others), udp),
                    others,
                ),
                part(
                    "3Com substantially lower",
                    is_substantially_below(receive[THREE_COM], udp),
                    [receive[THREE_COM]],
                ),
            ],
        ),
        statement(
            "C3",
            "TCP, same NIC: both Intel and ACE Optimized near 949 Mb/s, Netgear slightly lower, 3Com and ACE substantially lower",
            vec![
                part(
                    "both Intel and ACE Optimized near the limit",
                    is_near(least(&fast), tcp),
                    fast,
                ),
                part(
                    "Netgear slightly lower",
                    is_slightly_below(alike[NETGEAR], tcp),
                    [alike[NETGEAR]],
                ),
                part(
                    "3Com and ACE substantially lower",
                    is_substantially_below(most(&slow), tcp),
                    slow,
                ),
            ],
        ),
        statement(
            "C4",
            "With Intel Server as receiver TCP send improves for 3Com and ACE, UDP send hardly changes",
            vec![
                part(
                    "Intel Server is the best receiver",
                    evidence.partners.large_receiver == SERVER,
                    [evidence.partners.large_receiver as f64],
                ),
                improved(THREE_COM),
                improved(ACE),
                part(
                    "UDP send hardly changes",
                    changes.iter().all(|change| is_equal(*change, 1.0)),
                    changes,
                ),
            ],
        ),
        statement(
            "C5",
            "With 3Com as sender Netgear and ACE receive near the maximum",
            vec![
                part(
                    "3Com is the best sender",
                    evidence.partners.large_sender == THREE_COM,
                    [evidence.partners.large_sender as f64],
                ),
                part(
                    "Netgear near the maximum",
                    is_near(from_best[0], tcp),
                    [from_best[0]],
                ),
                part(
                    "ACE near the maximum",
                    is_near(from_best[1], tcp),
                    [from_best[1]],
                ),
            ],
        ),
    ]
}

fn small_frames(evidence: &Evidence<'_>) -> Vec<Statement> {
    use nic::{ACE, ACE_OPTIMIZED, DESKTOP, NETGEAR, SERVER, THREE_COM};
    let limit = Test::UdpSend18.limit() as f64;
    let [send, receive, send_best, receive_best] = [
        Series::SmallSend,
        Series::SmallReceive,
        Series::SmallSendBest,
        Series::SmallReceiveBest,
    ]
    .map(|series| evidence.of(series));
    let highest = most(&[send, receive, send_best, receive_best].concat());
    let ratios = [
        most(&send_best) / least(&send_best),
        most(&receive_best) / least(&receive_best),
    ];
    let three = |values: &Six| {
        least(&at(values, [SERVER, DESKTOP, THREE_COM]))
            > most(&at(values, [ACE_OPTIMIZED, NETGEAR, ACE]))
    };
    let better_send = nic::ALL.map(|nic| send_best[nic] / send[nic]);
    let better_receive = nic::ALL.map(|nic| receive_best[nic] / receive[nic]);
    let rest = |values: &Six| {
        least(&at(values, [SERVER, DESKTOP, NETGEAR, THREE_COM]))
            > most(&at(values, [ACE_OPTIMIZED, ACE]))
    };
    let only_server = nic::ALL
        .iter()
        .all(|nic| improves(better_send[*nic], 1.0) == (*nic == SERVER));
    vec![
        statement(
            "C6",
            "UDP, 18 bytes: nobody reaches half of 214 Mb/s, sending or receiving",
            vec![part(
                "less than half of the limit",
                highest < limit / 2.0,
                [highest],
            )],
        ),
        statement(
            "C7",
            "UDP, 18 bytes: best to worst is 5 to 1",
            vec![part(
                "within a tenth",
                ratios.iter().any(|ratio| (4.5..=5.5).contains(ratio)),
                ratios,
            )],
        ),
        statement(
            "C8",
            "UDP, 18 bytes: Intel Server, Intel Desktop and 3Com are best; Server sends best, Desktop receives best",
            vec![
                part(
                    "the best three",
                    three(&send_best) && three(&receive_best),
                    [send_best, receive_best].concat(),
                ),
                part(
                    "Intel Server sends best",
                    send_best[SERVER] >= most(&send_best),
                    send_best,
                ),
                part(
                    "Intel Desktop receives best",
                    receive_best[DESKTOP] >= most(&receive_best),
                    receive_best,
                ),
            ],
        ),
        statement(
            "C9",
            "With Intel Desktop as receiver only Intel Server sends more",
            vec![
                part(
                    "Intel Desktop is the best receiver",
                    evidence.partners.small_receiver == DESKTOP,
                    [evidence.partners.small_receiver as f64],
                ),
                part("only Intel Server improves", only_server, better_send),
            ],
        ),
        statement(
            "C10",
            "With Intel Server as sender Desktop, Netgear and 3Com receive more, both ACE do not, and are the worst at both",
            vec![
                part(
                    "Intel Server is the best sender",
                    evidence.partners.small_sender == SERVER,
                    [evidence.partners.small_sender as f64],
                ),
                part(
                    "Desktop, Netgear and 3Com improve",
                    improves(
                        least(&at(&better_receive, [DESKTOP, NETGEAR, THREE_COM])),
                        1.0,
                    ),
                    better_receive,
                ),
                part(
                    "both ACE do not",
                    !improves(most(&at(&better_receive, [ACE_OPTIMIZED, ACE])), 1.0),
                    at(&better_receive, [ACE_OPTIMIZED, ACE]),
                ),
                part(
                    "both ACE are the worst",
                    rest(&send_best) && rest(&receive_best),
                    [send_best, receive_best].concat(),
                ),
            ],
        ),
    ]
}

fn both_ways(evidence: &Evidence<'_>) -> Vec<Statement> {
    use nic::{ACE, SERVER};
    let [large, small] =
        [Series::LargeThreeWay, Series::SmallThreeWay].map(|series| evidence.of(series));
    let [large_send, large_receive, small_send, small_receive] = [
        Series::LargeSendBest,
        Series::LargeReceiveBest,
        Series::SmallSendBest,
        Series::SmallReceiveBest,
    ]
    .map(|series| evidence.of(series));
    let of_sum = |both: &Six, send: &Six, receive: &Six| {
        nic::ALL.map(|nic| both[nic] / (send[nic] + receive[nic]))
    };
    let of_best = nic::ALL.map(|nic| small[nic] / small_send[nic].max(small_receive[nic]));
    let (large_sum, small_sum) = (
        of_sum(&large, &large_send, &large_receive),
        of_sum(&small, &small_send, &small_receive),
    );
    let falls = large.windows(2).all(|pair| pair[0] > pair[1]);
    let only_server = nic::ALL
        .iter()
        .all(|nic| (large_sum[*nic] > 0.99) == (*nic == SERVER));
    let (large_ratio, small_ratio) = (most(&large) / least(&large), most(&small) / least(&small));
    vec![
        statement(
            "C11",
            "UDP both ways, 1472 bytes: falls in the order of the report, only Intel Server near the sum of its parts, best to worst 1.73",
            vec![
                part("falls in the order of the report", falls, large),
                part(
                    "only Intel Server reaches 99 % of the sum",
                    only_server,
                    large_sum,
                ),
                part(
                    "best to worst within 5 % of 1.73",
                    (large_ratio / 1.73 - 1.0).abs() < 0.05,
                    [large_ratio],
                ),
            ],
        ),
        statement(
            "C12",
            "UDP both ways, 18 bytes: nobody near the sum, each slightly above one way except ACE, which is equal to it",
            vec![
                part(
                    "nobody above three quarters of the sum",
                    most(&small_sum) < 0.75,
                    small_sum,
                ),
                part(
                    "each but ACE above one way",
                    improves(least(&of_best[..ACE]), 1.0),
                    &of_best[..ACE],
                ),
                part(
                    "ACE equal to it",
                    is_equal(of_best[ACE], 1.0),
                    [of_best[ACE]],
                ),
            ],
        ),
        statement(
            "C13",
            "UDP both ways, 18 bytes: best to worst is 7 to 1",
            vec![part(
                "within a tenth",
                (6.3..=7.7).contains(&small_ratio),
                [small_ratio],
            )],
        ),
    ]
}

fn connections(evidence: &Evidence<'_>) -> Statement {
    use nic::{ACE, ACE_OPTIMIZED, DESKTOP, NETGEAR, SERVER, THREE_COM};
    let [accept, initiate] =
        [Series::AcceptBest, Series::InitiateBest].map(|series| evidence.of(series));
    let intel = least(&at(&accept, [SERVER, DESKTOP]))
        >= most(&at(&accept, [ACE_OPTIMIZED, NETGEAR, THREE_COM, ACE]));
    let initiators = least(&at(&initiate, [NETGEAR, THREE_COM]))
        >= most(&at(&initiate, [SERVER, DESKTOP, ACE_OPTIMIZED, ACE]));
    let poor = |values: &Six| {
        most(&at(values, [ACE_OPTIMIZED, ACE]))
            < least(&at(values, [SERVER, DESKTOP, NETGEAR, THREE_COM]))
    };
    statement(
        "C14",
        "Connections: Intel accept best, Desktop most; Netgear and 3Com initiate best, 3Com most; both ACE poor at both",
        vec![
            part("both Intel accept best", intel, accept),
            part(
                "Intel Desktop is the best acceptor",
                evidence.partners.acceptor == DESKTOP,
                [evidence.partners.acceptor as f64],
            ),
            part("Netgear and 3Com initiate best", initiators, initiate),
            part(
                "3Com is the best initiator",
                evidence.partners.initiator == THREE_COM,
                [evidence.partners.initiator as f64],
            ),
            part(
                "both ACE are the worst at both",
                poor(&accept) && poor(&initiate),
                [accept, initiate].concat(),
            ),
        ],
    )
}
