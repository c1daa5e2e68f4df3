//! SYN cookies (RFC 4987 3.6): the SYN-ACK encodes everything that a listener would have to remember of a SYN.
//!
//! The initial sequence number combines a keyed hash that outsiders cannot compute, a counter of minutes, so that cookies expire, and
//! an index into a table of MSS values. As in Linux, the low bits of the timestamp hold the other options, which are off without
//! timestamps.

use crate::connection::LARGEST_SHIFT;
use crate::isn::Secret;
use baton_wire::{Flags, Flow, Header, Options, SeqNr, Span, Time};
use std::net::IpAddr;

/// Period of the counter.
const TICK: Span = Span::from_secs(60);

/// Ticks for which a cookie is valid.
const LIFETIME_TICKS: u32 = 2;

/// Time after the last cookie was sent during which an answer may still arrive.
pub(crate) const LIFETIME: Span = Span::from_secs(120);

/// MSS values that a cookie can hold: the most common ones.
const MSS_V4: [u16; 4] = [536, 1300, 1440, 1460];
const MSS_V6: [u16; 4] = [1220, 1420, 1440, 8940];

/// Bits of a timestamp that hold options.
const OPTION_BITS: u32 = 0x3f;
const SHIFT_BITS: u32 = 0x0f;
const NO_SHIFT: u32 = 0x0f;
const SACK_BIT: u32 = 0x10;
const ECN_BIT: u32 = 0x20;

/// Bits below the counter.
const INDEX_BITS: u32 = 24;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;

fn mss_table(flow: &Flow) -> &'static [u16; 4] {
    match flow.remote.addr {
        IpAddr::V4(_) => &MSS_V4,
        IpAddr::V6(_) => &MSS_V6,
    }
}

fn ticks(now: Time) -> u32 {
    (now.as_ps() / TICK.as_ps()) as u32
}

/// Returns the initial sequence number that answers a SYN with number `irs` and this MSS.
pub(crate) fn sequence(secret: &Secret, now: Time, flow: &Flow, irs: SeqNr, mss: u16) -> SeqNr {
    let table = mss_table(flow);
    let index = table.iter().rposition(|&known| known <= mss).unwrap_or(0);
    let count = ticks(now);
    let low = secret
        .cookie(flow, Some((count, irs)))
        .wrapping_add(index as u32)
        & INDEX_MASK;
    irs + secret
        .cookie(flow, None)
        .wrapping_add(count << INDEX_BITS)
        .wrapping_add(low)
}

/// Returns the MSS in a cookie that came back, or `None` if the cookie is not ours or too old.
pub(crate) fn mss(
    secret: &Secret,
    now: Time,
    flow: &Flow,
    irs: SeqNr,
    cookie: SeqNr,
) -> Option<u16> {
    let value = (cookie - irs).wrapping_sub(secret.cookie(flow, None));
    let age = ticks(now).wrapping_sub(value >> INDEX_BITS) & (u32::MAX >> INDEX_BITS);
    if age >= LIFETIME_TICKS {
        return None;
    }
    let count = ticks(now).wrapping_sub(age);
    let hash = secret.cookie(flow, Some((count, irs)));
    let index = value.wrapping_sub(hash) & INDEX_MASK;
    mss_table(flow).get(index as usize).copied()
}

/// Negotiated options besides the MSS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// Shift of the peer's windows, when windows are scaled.
    pub(crate) shift: Option<u8>,
    pub(crate) sack: bool,
    pub(crate) ecn: bool,
}

/// Returns the latest timestamp not after `clock` that holds `agreed`.
pub(crate) fn timestamp(clock: u32, agreed: Agreed) -> u32 {
    let shift = agreed
        .shift
        .map_or(NO_SHIFT, |shift| shift.min(LARGEST_SHIFT).into());
    let sack = if agreed.sack { SACK_BIT } else { 0 };
    let ecn = if agreed.ecn { ECN_BIT } else { 0 };
    let bits = shift | sack | ecn;
    let value = (clock & !OPTION_BITS) | bits;
    if bits > clock & OPTION_BITS {
        value.wrapping_sub(OPTION_BITS + 1)
    } else {
        value
    }
}

/// Returns the options in a timestamp that came back.
pub(crate) fn agreed(echo: u32) -> Agreed {
    let shift = echo & SHIFT_BITS;
    Agreed {
        shift: (shift != NO_SHIFT).then_some(shift as u8),
        sack: echo & SACK_BIT != 0,
        ecn: echo & ECN_BIT != 0,
    }
}

/// The flags of the SYN that `ack` completes.
pub(crate) fn syn_flags(ack: &Header) -> Flags {
    let held = ack
        .options
        .timestamps
        .map(|timestamps| agreed(timestamps.echo));
    match held.is_some_and(|held| held.ecn) {
        true => Flags::SYN | Flags::ECE | Flags::CWR,
        false => Flags::SYN,
    }
}

/// The options of the SYN that `ack` completes, as far as the cookie holds them.
pub(crate) fn syn_options(ack: &Header, mss: u16) -> Options {
    let held = ack
        .options
        .timestamps
        .map(|timestamps| agreed(timestamps.echo));
    Options {
        mss: Some(mss),
        window_scale: held.and_then(|held| held.shift),
        sack_permitted: held.is_some_and(|held| held.sack),
        timestamps: ack.options.timestamps,
        ..Options::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_wire::Endpoint;
    use std::net::Ipv4Addr;

    fn flow(port: u16) -> Flow {
        let end = |host, port| Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), port);
        Flow {
            local: end(1, 80),
            remote: end(2, port),
        }
    }

    #[test]
    fn a_cookie_gives_back_the_mss_for_up_to_two_minutes() {
        let secret = Secret::new(5);
        let start = Time::ZERO + Span::from_secs(60 * 255);
        for (offered, held) in [
            (100, 536),
            (536, 536),
            (1400, 1300),
            (1460, 1460),
            (9000, 1460),
        ] {
            let irs = SeqNr(u32::MAX - 3);
            let cookie = sequence(&secret, start, &flow(1), irs, offered);
            let read = |seconds, port, irs| {
                let now = start + Span::from_secs(seconds);
                mss(&secret, now, &flow(port), irs, cookie)
            };
            assert_eq!(read(0, 1, irs), Some(held));
            assert_eq!(read(119, 1, irs), Some(held));
            assert_eq!(read(120, 1, irs), None, "too old");
            assert_eq!(read(0, 2, irs), None, "of another connection");
            assert_eq!(read(0, 1, irs + 1), None, "of another SYN");
        }
    }

    #[test]
    fn random_numbers_are_rarely_cookies() {
        let secret = Secret::new(5);
        let taken = (0..1_000_000_u32)
            .filter(|n| {
                let cookie = SeqNr(n.wrapping_mul(2_654_435_761));
                mss(&secret, Time::ZERO, &flow(1), SeqNr(0), cookie).is_some()
            })
            .count();
        assert!(taken <= 3, "{taken} of a million");
    }

    #[test]
    fn a_timestamp_gives_back_the_other_options_and_is_never_early() {
        for shift in [None, Some(0), Some(7), Some(14)] {
            for (sack, ecn) in [(false, false), (true, false), (false, true), (true, true)] {
                let wanted = Agreed { shift, sack, ecn };
                for clock in [0, 1, 63, 64, 1000, u32::MAX] {
                    let value = timestamp(clock, wanted);
                    assert_eq!(agreed(value), wanted);
                    assert!(clock.wrapping_sub(value) <= 64, "{clock} {value}");
                }
            }
        }
    }
}
