//! The description of an impaired link, for the command line.

use super::profile::FaultProfile;
use baton_wire::Span;
use baton_wire::impairment::{BurstLoss, Share};
use std::str::FromStr;

/// The impairments of both directions of a link, as seen by the engine.
///
/// As text: `rx:loss=1%,reorder=2%;tx:duplicate=1%,delay=10ms`. Settings without `rx:` or `tx:` apply to both directions.
/// Settings: `loss`, `duplicate`, `reorder`, `corrupt` (shares: `1%` or `0.01`), `burst=ENTER/LEAVE` or
/// `burst=ENTER/LEAVE/LOSS` (shares), `reorder-by` (frames), `delay`, `jitter` (`10ms`, `200us`, `1s`),
/// `rate` (`100mbit`, `1gbit`, `64kbit`), `queue` (frames).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultSpec {
    /// Faults of frames before the engine receives them.
    pub receive: FaultProfile,
    /// Faults of frames after the engine has sent them.
    pub transmit: FaultProfile,
}

/// The error of a wrong description, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {place:?} (character {at}): {reason}")]
pub struct FaultSpecError {
    /// The part that is wrong.
    pub place: String,
    /// Position at which the part starts, counted from 1.
    pub at: usize,
    /// What is wrong with it, and what was expected.
    pub reason: String,
}

const SETTINGS: &str =
    "loss, burst, duplicate, reorder, reorder-by, corrupt, delay, jitter, rate or queue";

impl FromStr for FaultSpec {
    type Err = FaultSpecError;

    fn from_str(text: &str) -> Result<Self, FaultSpecError> {
        let mut spec = Self::default();
        for section in pieces(text, ';') {
            let (body, targets) = match section.text.split_once(':') {
                None => (section, [true, true]),
                Some((name, rest)) => {
                    let targets = match name.trim() {
                        "rx" => [true, false],
                        "tx" => [false, true],
                        "both" => [true, true],
                        _ => {
                            let name = Piece {
                                text: name,
                                ..section
                            };
                            return Err(name.refuse("expected rx, tx or both".to_owned()));
                        }
                    };
                    let at = section.at + name.len() + 1;
                    (Piece { text: rest, at }, targets)
                }
            };
            for setting in pieces(body.text, ',') {
                let setting = Piece {
                    at: body.at + setting.at,
                    ..setting
                };
                let profiles = [&mut spec.receive, &mut spec.transmit];
                for (profile, _) in profiles.into_iter().zip(targets).filter(|(_, on)| *on) {
                    set(profile, setting)?;
                }
            }
        }
        Ok(spec)
    }
}

/// A part of the text and its position, counted from 0.
#[derive(Clone, Copy)]
struct Piece<'a> {
    text: &'a str,
    at: usize,
}

impl Piece<'_> {
    fn refuse(self, reason: String) -> FaultSpecError {
        let blanks = self.text.len() - self.text.trim_start().len();
        FaultSpecError {
            place: self.text.trim().to_owned(),
            at: self.at + blanks + 1,
            reason,
        }
    }
}

fn pieces(text: &str, separator: char) -> impl Iterator<Item = Piece<'_>> {
    let mut at = 0;
    text.split(separator).map(move |piece| {
        let start = at;
        at += piece.len() + 1;
        Piece {
            text: piece,
            at: start,
        }
    })
}

fn set(profile: &mut FaultProfile, setting: Piece<'_>) -> Result<(), FaultSpecError> {
    let Some((name, text)) = setting.text.split_once('=') else {
        return Err(setting.refuse(format!("expected NAME=VALUE with one of {SETTINGS}")));
    };
    let value = Piece {
        text,
        at: setting.at + name.len() + 1,
    };
    let impairment = &mut profile.impairment;
    match name.trim() {
        "loss" => impairment.loss = share(value)?,
        "duplicate" => impairment.duplicate = share(value)?,
        "reorder" => impairment.reorder = share(value)?,
        "corrupt" => impairment.corrupt = share(value)?,
        "burst" => impairment.burst = Some(burst(value)?),
        "reorder-by" => profile.reorder_frames = count(value)?,
        "queue" => profile.queue_frames = count(value)?,
        "delay" => profile.delay = span(value)?,
        "jitter" => impairment.jitter = span(value)?,
        "rate" => profile.rate_bps = Some(rate(value)?),
        _ => {
            let name = Piece {
                text: name,
                ..setting
            };
            return Err(name.refuse(format!("no such fault; expected {SETTINGS}")));
        }
    }
    Ok(())
}

fn share(value: Piece<'_>) -> Result<Share, FaultSpecError> {
    let text = value.text.trim();
    let (number, decimals) = match text.strip_suffix('%') {
        Some(percent) => (percent, 7),
        None => (text, 9),
    };
    decimal(number.trim(), decimals)
        .and_then(|ppb| u32::try_from(ppb).ok())
        .and_then(Share::from_ppb)
        .ok_or_else(|| value.refuse("expected a share such as 1% or 0.01".to_owned()))
}

fn burst(value: Piece<'_>) -> Result<BurstLoss, FaultSpecError> {
    let shares: Vec<Share> = pieces(value.text, '/')
        .map(|piece| {
            share(Piece {
                at: value.at + piece.at,
                ..piece
            })
        })
        .collect::<Result<_, _>>()?;
    let (enter, leave, loss) = match shares[..] {
        [enter, leave] => (enter, leave, Share::ALL),
        [enter, leave, loss] => (enter, leave, loss),
        _ => {
            let expected = "expected ENTER/LEAVE or ENTER/LEAVE/LOSS, as in 1%/25%";
            return Err(value.refuse(expected.to_owned()));
        }
    };
    Ok(BurstLoss { enter, leave, loss })
}

fn count(value: Piece<'_>) -> Result<u32, FaultSpecError> {
    let number = value.text.trim().parse().ok();
    number
        .filter(|&number| number > 0)
        .ok_or_else(|| value.refuse("expected a number of frames, at least 1".to_owned()))
}

/// Maximum of a time: an hour.
const LONGEST_PS: u64 = 3600 * 1_000_000_000_000;

fn span(value: Piece<'_>) -> Result<Span, FaultSpecError> {
    let units = [("ns", 3), ("us", 6), ("ms", 9), ("s", 12)];
    quantity(value.text, &units)
        .filter(|&ps| ps <= LONGEST_PS)
        .map(Span::from_ps)
        .ok_or_else(|| value.refuse("expected a time such as 10ms, 200us or 1s".to_owned()))
}

fn rate(value: Piece<'_>) -> Result<u64, FaultSpecError> {
    let units = [("kbit", 3), ("mbit", 6), ("gbit", 9), ("bit", 0)];
    quantity(value.text, &units)
        .filter(|&bps| bps > 0)
        .ok_or_else(|| value.refuse("expected a rate such as 100mbit or 1gbit".to_owned()))
}

/// Parses a number followed by one of `units`, each a power of ten.
fn quantity(text: &str, units: &[(&str, u32)]) -> Option<u64> {
    let text = text.trim();
    let (number, power) = units
        .iter()
        .find_map(|&(unit, power)| Some((text.strip_suffix(unit)?, power)))?;
    decimal(number.trim(), power)
}

/// Parses a decimal number and multiplies it by 10^`power`, exactly; returns `None` if it has too many digits, or for any other text.
fn decimal(text: &str, power: u32) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let missing = power.checked_sub(u32::try_from(fraction.len()).ok()?)?;
    let number: u64 = format!("{whole}{fraction}").parse().ok()?;
    number.checked_mul(10_u64.checked_pow(missing)?)
}
