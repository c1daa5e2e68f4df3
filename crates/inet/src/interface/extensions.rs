//! IPv6 extension headers (RFC 8200 4), as far as a host that accepts no fragments must understand them.

use crate::stats::Refusal;
use etherparse::icmpv6::{ParameterProblemCode, ParameterProblemHeader};
use etherparse::{IpNumber, Ipv6FragmentHeaderSlice, Ipv6Header, Ipv6RawExtHeaderSlice};

/// Maximum number of extension headers of a packet (RFC 8504 5.3 allows a host to have such limits).
const MOST_HEADERS: usize = 8;

/// The padding option of one byte (RFC 8200 4.2).
const PAD_1: u8 = 0;

/// The content of a packet after its extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Carried {
    pub(super) protocol: IpNumber,
    /// Position in the packet of the field that names the protocol.
    pub(super) named_at: usize,
    /// Position in the packet where the content starts.
    pub(super) start: usize,
}

/// Why a packet's extension headers are refused, and the ICMP error for its sender, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) refusal: Refusal,
    pub(super) answer: Option<ParameterProblemHeader>,
}

impl Problem {
    fn silent(refusal: Refusal) -> Self {
        Self {
            refusal,
            answer: None,
        }
    }

    fn told(refusal: Refusal, code: ParameterProblemCode, pointer: usize) -> Self {
        let pointer = pointer as u32;
        Self {
            refusal,
            answer: Some(ParameterProblemHeader { code, pointer }),
        }
    }
}

/// Walks the extension headers of a packet, which starts with an IPv6 header and is no longer than that header says.
pub(super) fn walk(packet: &[u8], first: IpNumber, to_group: bool) -> Result<Carried, Problem> {
    /// Position of the next-header field in an IPv6 header (RFC 8200 3).
    const NAMED_AT: usize = 6;
    let mut carried = Carried {
        protocol: first,
        named_at: NAMED_AT,
        start: Ipv6Header::LEN,
    };
    let bad = || Problem::silent(Refusal::BadExtension);
    for _ in 0..MOST_HEADERS {
        let Carried {
            protocol,
            start,
            named_at,
        } = carried;
        let bytes = &packet[start..];
        let (next, len) = match protocol {
            IpNumber::IPV6_HEADER_HOP_BY_HOP if start != Ipv6Header::LEN => {
                // Hop-by-hop options must come first (RFC 8200 4.1).
                let code = ParameterProblemCode::UnrecognizedNextHeader;
                return Err(Problem::told(Refusal::BadExtension, code, named_at));
            }
            IpNumber::IPV6_HEADER_HOP_BY_HOP | IpNumber::IPV6_DESTINATION_OPTIONS => {
                let header = Ipv6RawExtHeaderSlice::from_slice(bytes).map_err(|_| bad())?;
                check_options(header.payload(), start + 2, to_group)?;
                (header.next_header(), header.slice().len())
            }
            IpNumber::IPV6_ROUTE_HEADER => {
                let header = Ipv6RawExtHeaderSlice::from_slice(bytes).map_err(|_| bad())?;
                if let [_, segments_left, ..] = header.payload()
                    && *segments_left > 0
                {
                    // No routing type is supported, certainly not type 0 (RFC 8200 4.4, RFC 5095 3).
                    let code = ParameterProblemCode::ErroneousHeaderField;
                    return Err(Problem::told(Refusal::SourceRoute, code, start + 2));
                }
                (header.next_header(), header.slice().len())
            }
            IpNumber::IPV6_FRAGMENTATION_HEADER => {
                let header = Ipv6FragmentHeaderSlice::from_slice(bytes).map_err(|_| bad())?;
                // A fragment that is the whole packet is no fragment (RFC 6946).
                if header.is_fragmenting_payload() {
                    return Err(Problem::silent(Refusal::Fragment));
                }
                (header.next_header(), header.slice().len())
            }
            _ => return Ok(carried),
        };
        carried = Carried {
            protocol: next,
            named_at: start,
            start: start + len,
        };
    }
    Err(bad())
}

/// Checks options, which start at `start` in the packet. The first two bits of an unknown option say what to do (RFC 8200 4.2);
/// only padding is known.
fn check_options(options: &[u8], start: usize, to_group: bool) -> Result<(), Problem> {
    let mut at = 0;
    while let Some(&kind) = options.get(at) {
        if kind == PAD_1 {
            at += 1;
            continue;
        }
        let code = ParameterProblemCode::UnrecognizedIpv6Option;
        match kind >> 6 {
            0 => {}
            1 => return Err(Problem::silent(Refusal::UnknownOption)),
            3 if to_group => return Err(Problem::silent(Refusal::UnknownOption)),
            _ => return Err(Problem::told(Refusal::UnknownOption, code, start + at)),
        }
        let Some(&len) = options.get(at + 1) else {
            return Err(Problem::silent(Refusal::BadExtension));
        };
        at += 2 + usize::from(len);
    }
    match at == options.len() {
        true => Ok(()),
        false => Err(Problem::silent(Refusal::BadExtension)),
    }
}
