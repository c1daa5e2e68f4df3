//! Numbers of what is one of several.

use crate::cache::CacheReference;
use crate::descriptor::{Control, PartFlags, Refusal};
use baton_bus::descriptor::Malformed;
use baton_tcp::{CloseReason, PathError};

const CONTROLS: [Control; 7] = [
    Control::Shutdown,
    Control::Close,
    Control::Abort,
    Control::NoDelay(false),
    Control::NoDelay(true),
    Control::Cork(false),
    Control::Cork(true),
];

const REFUSALS: [Refusal; 5] = [
    Refusal::SoftLimit,
    Refusal::HardLimit,
    Refusal::Memory,
    Refusal::State,
    Refusal::Duplicate,
];

/// The MTU of the one that has one stands elsewhere.
const REASONS: [CloseReason; 13] = [
    CloseReason::Normal,
    CloseReason::Reset,
    CloseReason::Refused,
    CloseReason::TimedOut,
    CloseReason::Aborted,
    CloseReason::Unreachable(PathError::FragmentationNeeded { mtu: 0 }),
    CloseReason::Unreachable(PathError::HostUnreachable),
    CloseReason::Unreachable(PathError::NetUnreachable),
    CloseReason::Unreachable(PathError::PortUnreachable),
    CloseReason::Unreachable(PathError::ProtocolUnreachable),
    CloseReason::Unreachable(PathError::AdminProhibited),
    CloseReason::Unreachable(PathError::TimeExceeded),
    CloseReason::Unreachable(PathError::ParameterProblem),
];

/// The number of one of `all`.
fn number<T: PartialEq>(all: &[T], one: &T) -> u16 {
    let index = all.iter().position(|other| other == one);
    index.expect("all are listed") as u16
}

/// The one of `all` that has this number.
fn named<T: Copy>(all: &[T], number: u16) -> Result<T, Malformed> {
    let one = all.get(usize::from(number)).copied();
    one.ok_or(Malformed::Count(number))
}

pub(super) fn control(control: Control) -> u16 {
    number(&CONTROLS, &control)
}

pub(super) fn read_control(kind: u16) -> Result<Control, Malformed> {
    named(&CONTROLS, kind)
}

/// The answer to a handoff: 0 if the NIC took the connection.
pub(super) fn refusal(refusal: Option<Refusal>) -> u16 {
    refusal.map_or(0, |refusal| 1 + number(&REFUSALS, &refusal))
}

pub(super) fn read_refusal(kind: u16) -> Result<Option<Refusal>, Malformed> {
    match kind {
        0 => Ok(None),
        _ => match named(&REFUSALS, kind - 1) {
            Ok(refusal) => Ok(Some(refusal)),
            Err(_) => Err(Malformed::Count(kind)),
        },
    }
}

/// The number of a reason, and an MTU.
pub(super) fn reason(reason: CloseReason) -> (u16, u32) {
    match reason {
        CloseReason::Unreachable(PathError::FragmentationNeeded { mtu }) => {
            let any = PathError::FragmentationNeeded { mtu: 0 };
            (number(&REASONS, &CloseReason::Unreachable(any)), mtu.into())
        }
        other => (number(&REASONS, &other), 0),
    }
}

pub(super) fn read_reason(kind: u16, mtu: u32) -> Result<CloseReason, Malformed> {
    Ok(match named(&REASONS, kind)? {
        CloseReason::Unreachable(PathError::FragmentationNeeded { .. }) => {
            let mtu = u16::try_from(mtu).map_err(|_| Malformed::Count(kind))?;
            CloseReason::Unreachable(PathError::FragmentationNeeded { mtu })
        }
        other => other,
    })
}

const FIRST: u16 = 1;
const LAST: u16 = 2;
/// Of a part in host memory: it is the headers.
pub(super) const HEADERS: u16 = 4;

pub(super) fn part(flags: PartFlags) -> u16 {
    (u16::from(flags.first) * FIRST) | (u16::from(flags.last) * LAST)
}

/// The place of a part; of `kind`, only `others` may be set beside it.
pub(super) fn read_part(kind: u16, others: u16) -> Result<PartFlags, Malformed> {
    if kind & !(FIRST | LAST | others) != 0 {
        return Err(Malformed::Count(kind));
    }
    Ok(PartFlags {
        first: kind & FIRST != 0,
        last: kind & LAST != 0,
    })
}

/// Whether there is a reference, and what it is.
pub(super) fn reference(reference: Option<CacheReference>) -> (u16, u64) {
    match reference {
        None => (0, 0),
        Some(CacheReference { offset, generation }) => {
            (1, u64::from(offset) | u64::from(generation) << 32)
        }
    }
}

pub(super) fn read_reference(kind: u16, value: u64) -> Result<Option<CacheReference>, Malformed> {
    match kind {
        0 => Ok(None),
        1 => Ok(Some(CacheReference {
            offset: value as u32,
            generation: (value >> 32) as u32,
        })),
        _ => Err(Malformed::Count(kind)),
    }
}
