//! Conversion of option values to and from bytes.

use crate::errno::Errno;
use baton_tcp::{FastOpenKey, FastOpenKeys};
use baton_wire::Span;
use libc::c_int;

/// Bytes of a `timeval` of 64-bit systems.
const TIMEVAL_LEN: usize = 16;
/// Bytes of `struct linger`.
const LINGER_LEN: usize = 8;

const INVALID: Errno = Errno(libc::EINVAL);

/// Reads an int, the value of most options.
pub(super) fn int(bytes: &[u8]) -> Result<c_int, Errno> {
    let bytes = bytes.first_chunk::<4>().ok_or(INVALID)?;
    Ok(c_int::from_ne_bytes(*bytes))
}

/// Reads an int, or a single byte, which IP options accept.
pub(super) fn int_or_byte(bytes: &[u8]) -> Result<c_int, Errno> {
    match bytes {
        [] => Err(INVALID),
        [byte, ..] if bytes.len() < 4 => Ok((*byte).into()),
        _ => int(bytes),
    }
}

/// Reads an int within limits.
pub(super) fn int_within(bytes: &[u8], least: c_int, most: c_int) -> Result<u32, Errno> {
    let value = int(bytes)?;
    if (least..=most).contains(&value) {
        Ok(value as u32)
    } else {
        Err(INVALID)
    }
}

/// Reads a rate in bytes a second, as an int or a long; all ones mean no limit (socket(7), SO_MAX_PACING_RATE).
pub(super) fn rate(bytes: &[u8]) -> Result<Option<u64>, Errno> {
    let rate = match bytes.first_chunk::<8>() {
        Some(long) => u64::from_ne_bytes(*long),
        None => match int(bytes)? {
            -1 => u64::MAX,
            rate => (rate as u32).into(),
        },
    };
    Ok((rate != u64::MAX).then_some(rate.max(1)))
}

/// Reads one or two Fast Open keys: the current one and the previous one (tcp_fastopen_key).
pub(super) fn fast_open_keys(bytes: &[u8]) -> Result<FastOpenKeys, Errno> {
    match bytes.as_chunks::<16>() {
        (&[current], []) => Ok(FastOpenKeys {
            current: FastOpenKey(current),
            previous: None,
        }),
        (&[current, previous], []) => Ok(FastOpenKeys {
            current: FastOpenKey(current),
            previous: Some(FastOpenKey(previous)),
        }),
        _ => Err(INVALID),
    }
}

/// Writes Fast Open keys.
pub(super) fn of_fast_open_keys(keys: &FastOpenKeys) -> Vec<u8> {
    let previous = keys.previous.map(|key| key.0);
    [Some(keys.current.0), previous]
        .into_iter()
        .flatten()
        .flatten()
        .collect()
}

/// Reads a `timeval`; zero means none (socket(7)).
pub(super) fn timeout(bytes: &[u8]) -> Result<Option<Span>, Errno> {
    if bytes.len() < TIMEVAL_LEN {
        return Err(INVALID);
    }
    let part = |at: usize| i64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let (seconds, micros) = (part(0), part(8));
    if !(0..1_000_000).contains(&micros) {
        return Err(Errno(libc::EDOM));
    }
    // A negative time counts as zero.
    let seconds = seconds.clamp(0, 10_000_000) as u64;
    let span = Span::from_secs(seconds) + Span::from_us(micros as u64);
    Ok((span != Span::ZERO).then_some(span))
}

/// Writes the `timeval` of a timeout.
pub(super) fn of_timeout(timeout: Option<Span>) -> Vec<u8> {
    let micros = timeout.map_or(0, Span::as_us);
    let parts = [micros / 1_000_000, micros % 1_000_000];
    parts.iter().flat_map(|part| part.to_ne_bytes()).collect()
}

/// Reads a `struct linger`.
pub(super) fn linger(bytes: &[u8]) -> Result<Option<Span>, Errno> {
    if bytes.len() < LINGER_LEN {
        return Err(INVALID);
    }
    let (on, seconds) = (int(bytes)?, int(&bytes[4..])?);
    Ok((on != 0).then(|| Span::from_secs(seconds.max(0) as u64)))
}

/// Writes the `struct linger` of a setting.
pub(super) fn of_linger(linger: Option<Span>) -> Vec<u8> {
    let seconds = linger.map_or(0, |time| (time.as_us() / 1_000_000) as c_int);
    [c_int::from(linger.is_some()), seconds]
        .iter()
        .flat_map(|part| part.to_ne_bytes())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_round_trip() {
        let time = Some(Span::from_ms(1500));
        assert_eq!(timeout(&of_timeout(time)), Ok(time));
        assert_eq!(timeout(&of_timeout(None)), Ok(None));
        assert_eq!(timeout(&[0; 15]), Err(INVALID));
        let mut bad = of_timeout(None);
        bad[8..16].copy_from_slice(&1_000_000_i64.to_ne_bytes());
        assert_eq!(timeout(&bad), Err(Errno(libc::EDOM)));
    }

    #[test]
    fn keys_round_trip() {
        for len in [16, 32] {
            let bytes: Vec<u8> = (0..len).collect();
            let keys = fast_open_keys(&bytes).expect("keys");
            assert_eq!(of_fast_open_keys(&keys), bytes);
        }
        assert_eq!(fast_open_keys(&[0; 20]), Err(INVALID));
    }

    #[test]
    fn linger_options_round_trip() {
        for setting in [None, Some(Span::ZERO), Some(Span::from_secs(5))] {
            assert_eq!(linger(&of_linger(setting)), Ok(setting));
        }
        assert_eq!(linger(&[0; 4]), Err(INVALID));
    }

    #[test]
    fn short_values_are_refused() {
        assert_eq!(int(&[1, 0, 0]), Err(INVALID));
        assert_eq!(int_or_byte(&[7]), Ok(7));
        assert_eq!(int_or_byte(&[]), Err(INVALID));
        assert_eq!(int_within(&5_i32.to_ne_bytes(), 1, 4), Err(INVALID));
    }
}
