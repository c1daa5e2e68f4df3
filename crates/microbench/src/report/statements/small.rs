//! Statements about small frames and connections: C6 to C10 and C12 to C14.

use super::nic::{ACE, ACE_OPTIMIZED, ALL, DESKTOP, NETGEAR, SERVER, THREE_COM};
use super::{
    Evidence, Six, Statement, at, improves, is_equal, least, most, number, only, part, ratios,
    statement,
};
use crate::frame::LinkRate;
use crate::report::Series;
use crate::test::Test;

/// Returns the results of sending to and receiving from the best partner.
fn best(evidence: &Evidence<'_>) -> [Six; 2] {
    [Series::SmallSendBest, Series::SmallReceiveBest].map(|series| evidence.of(series))
}

pub(super) fn c6(evidence: &Evidence<'_>) -> Statement {
    let of = |series| most(&evidence.of(series));
    let highest = most(&[
        of(Series::SmallSend),
        of(Series::SmallReceive),
        of(Series::SmallSendBest),
        of(Series::SmallReceiveBest),
    ]);
    let half = Test::UdpSend18.limit(LinkRate::GIGABIT) as f64 / 2.0;
    let parts = vec![part(
        "less than half of the limit",
        highest < half,
        [highest],
    )];
    let says = "UDP, 18 bytes: nobody reaches half of 214 Mb/s, sending or receiving";
    statement("C6", says, parts)
}

pub(super) fn c7(evidence: &Evidence<'_>) -> Statement {
    let ratios = best(evidence).map(|values| most(&values) / least(&values));
    let within = ratios.iter().all(|ratio| (4.5..=5.5).contains(ratio));
    let parts = vec![part("within a tenth, both", within, ratios)];
    statement("C7", "UDP, 18 bytes: best to worst is 5 to 1", parts)
}

pub(super) fn c8(evidence: &Evidence<'_>) -> Statement {
    let [send, receive] = best(evidence);
    let three = |values: &Six| {
        let others = at(values, [ACE_OPTIMIZED, NETGEAR, ACE]);
        least(&at(values, [SERVER, DESKTOP, THREE_COM])) > most(&others)
    };
    let all = [send, receive].concat();
    let parts = vec![
        part("the best three", three(&send) && three(&receive), all),
        part("Intel Server sends best", send[SERVER] >= most(&send), send),
        part(
            "Intel Desktop receives best",
            receive[DESKTOP] >= most(&receive),
            receive,
        ),
    ];
    let says = "UDP, 18 bytes: Intel Server, Intel Desktop and 3Com are best; Server sends best, Desktop receives best";
    statement("C8", says, parts)
}

pub(super) fn c9(evidence: &Evidence<'_>) -> Statement {
    let [send, _] = best(evidence);
    let better = ratios(&send, &evidence.of(Series::SmallSend));
    let receiver = evidence.partners.small_receiver;
    let parts = vec![
        part(
            "NIC 2, Intel Desktop, is the best receiver",
            receiver == DESKTOP,
            [number(receiver)],
        ),
        part(
            "only Intel Server improves",
            only(SERVER, |nic| improves(better[nic], 1.0)),
            better,
        ),
    ];
    let says = "With Intel Desktop as receiver only Intel Server sends more";
    statement("C9", says, parts)
}

pub(super) fn c10(evidence: &Evidence<'_>) -> Statement {
    let [send, receive] = best(evidence);
    let better = ratios(&receive, &evidence.of(Series::SmallReceive));
    let sender = evidence.partners.small_sender;
    let improved = at(&better, [DESKTOP, NETGEAR, THREE_COM]);
    let ace = at(&better, [ACE_OPTIMIZED, ACE]);
    let worst = |values: &Six| {
        let others = at(values, [SERVER, DESKTOP, NETGEAR, THREE_COM]);
        most(&at(values, [ACE_OPTIMIZED, ACE])) < least(&others)
    };
    let all = [send, receive].concat();
    let parts = vec![
        part(
            "NIC 1, Intel Server, is the best sender",
            sender == SERVER,
            [number(sender)],
        ),
        part(
            "Desktop, Netgear and 3Com improve",
            improves(least(&improved), 1.0),
            improved,
        ),
        part("both ACE do not", !improves(most(&ace), 1.0), ace),
        part(
            "both ACE are the worst",
            worst(&send) && worst(&receive),
            all,
        ),
    ];
    let says = "With Intel Server as sender Desktop, Netgear and 3Com receive more, both ACE do not, and are the worst at both";
    statement("C10", says, parts)
}

pub(super) fn c12(evidence: &Evidence<'_>) -> Statement {
    let both = evidence.of(Series::SmallThreeWay);
    let [send, receive] = best(evidence);
    let of_sum = ratios(&both, &ALL.map(|nic| send[nic] + receive[nic]));
    let of_best = ratios(&both, &ALL.map(|nic| send[nic].max(receive[nic])));
    let others = &of_best[..ACE];
    let parts = vec![
        part(
            "nobody above three quarters of the sum",
            most(&of_sum) < 0.75,
            of_sum,
        ),
        part(
            "each but ACE above one way",
            improves(least(others), 1.0),
            others,
        ),
        part(
            "ACE equal to it",
            is_equal(of_best[ACE], 1.0),
            [of_best[ACE]],
        ),
    ];
    let says = "UDP both ways, 18 bytes: nobody near the sum, each slightly above one way except ACE, which is equal to it";
    statement("C12", says, parts)
}

pub(super) fn c13(evidence: &Evidence<'_>) -> Statement {
    let both = evidence.of(Series::SmallThreeWay);
    let ratio = most(&both) / least(&both);
    let within = (6.3..=7.7).contains(&ratio);
    let says = "UDP both ways, 18 bytes: best to worst is 7 to 1";
    statement("C13", says, vec![part("within a tenth", within, [ratio])])
}

pub(super) fn c14(evidence: &Evidence<'_>) -> Statement {
    let (accept, initiate) = (
        evidence.of(Series::AcceptBest),
        evidence.of(Series::InitiateBest),
    );
    let lead = |values: &Six, first: [usize; 2], rest: [usize; 4]| {
        least(&at(values, first)) >= most(&at(values, rest))
    };
    let intel = lead(
        &accept,
        [SERVER, DESKTOP],
        [ACE_OPTIMIZED, NETGEAR, THREE_COM, ACE],
    );
    let initiators = lead(
        &initiate,
        [NETGEAR, THREE_COM],
        [SERVER, DESKTOP, ACE_OPTIMIZED, ACE],
    );
    let poor = |values: &Six| {
        let others = at(values, [SERVER, DESKTOP, NETGEAR, THREE_COM]);
        most(&at(values, [ACE_OPTIMIZED, ACE])) < least(&others)
    };
    let all = [accept, initiate].concat();
    let (acceptor, initiator) = (evidence.partners.acceptor, evidence.partners.initiator);
    let parts = vec![
        part("both Intel accept best", intel, accept),
        part(
            "NIC 2, Intel Desktop, is the best acceptor",
            acceptor == DESKTOP,
            [number(acceptor)],
        ),
        part("Netgear and 3Com initiate best", initiators, initiate),
        part(
            "NIC 5, 3Com, is the best initiator",
            initiator == THREE_COM,
            [number(initiator)],
        ),
        part(
            "both ACE are the worst at both",
            poor(&accept) && poor(&initiate),
            all,
        ),
    ];
    let says = "Connections: Intel accept best, Desktop most; Netgear and 3Com initiate best, 3Com most; both ACE poor at both";
    statement("C14", says, parts)
}
