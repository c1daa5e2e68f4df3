//! Information that the driver of an interface provides (ethtool).

use super::interface::{InterfaceError, control_socket};
use super::sys::ethtool_words;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::AsFd;

// From linux/ethtool.h.
const GET_SETTINGS: u32 = 1;
const GET_DRIVER: u32 = 3;
const GET_STRINGS: u32 = 0x1b;
const GET_COUNTERS: u32 = 0x1d;
const COUNTER_NAMES: u32 = 1;
const NAME_BYTES: usize = 32;
/// Value of an unknown speed: all ones. The speed is split into two fields.
const UNKNOWN_SPEED: u32 = 0xffff_ffff;
/// Maximum plausible number of counters of a driver.
const MOST_COUNTERS: usize = 16_384;

/// A driver's description of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    /// Name of the driver.
    pub name: String,
    /// Version of the driver, usually that of the kernel.
    pub version: String,
    /// Version of the device's firmware; empty if it has none.
    pub firmware: String,
    /// Bus address of the device, such as a PCI address.
    pub bus: String,
    /// Speed of the link, Mb/s; `None` where it is not known.
    pub speed_mbps: Option<u32>,
}

/// A counter specific to the driver (`ethtool -S`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverCounter {
    /// Name of the counter.
    pub name: String,
    /// Value of the counter.
    pub value: u64,
}

impl Driver {
    /// Returns the description of the driver of `interface` in this thread's network namespace; empty if the driver provides none.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn of(interface: &str) -> Result<Self, InterfaceError> {
        let refuse = |error| InterfaceError::of("query the driver of", interface, error);
        let Some(answer) = words(interface, GET_DRIVER, DRIVER_WORDS).map_err(refuse)? else {
            return Ok(Self::default());
        };
        let text = |place: std::ops::Range<usize>| text(&bytes(&answer)[place]);
        let settings = words(interface, GET_SETTINGS, SETTINGS_WORDS).map_err(refuse)?;
        Ok(Self {
            name: text(4..36),
            version: text(36..68),
            firmware: text(68..100),
            bus: text(100..132),
            speed_mbps: settings.and_then(|settings| speed(&settings)),
        })
    }

    /// Returns the driver's own counters of `interface`; empty if it has none.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn counters(interface: &str) -> Result<Vec<DriverCounter>, InterfaceError> {
        let refuse = |error| InterfaceError::of("query the counters of", interface, error);
        let Some(driver) = words(interface, GET_DRIVER, DRIVER_WORDS).map_err(refuse)? else {
            return Ok(Vec::new());
        };
        let count = (driver[COUNTERS_WORD] as usize).min(MOST_COUNTERS);
        if count == 0 {
            return Ok(Vec::new());
        }
        // Allocate space for twice as many: the number of queues may have grown since the driver reported the count.
        let mut names = vec![0; 3 + 2 * count * NAME_BYTES / 4];
        names[1] = COUNTER_NAMES;
        names[2] = count as u32;
        let mut values = vec![0; 2 + 2 * 2 * count];
        values[1] = count as u32;
        let names = ask(interface, GET_STRINGS, names).map_err(refuse)?;
        let values = ask(interface, GET_COUNTERS, values).map_err(refuse)?;
        let (Some(names), Some(values)) = (names, values) else {
            return Ok(Vec::new());
        };
        let found = (names[2] as usize).min(values[1] as usize).min(count);
        let names = bytes(&names[3..]);
        let (pairs, _) = values[2..].as_chunks::<2>();
        let names = names.chunks_exact(NAME_BYTES).map(text);
        let counter = |(name, pair): (String, &[u32; 2])| DriverCounter {
            name,
            value: u64::from_ne_bytes(bytes(pair).try_into().expect("two words are eight bytes")),
        };
        Ok(names.zip(pairs).take(found).map(counter).collect())
    }
}

/// Length of `struct ethtool_drvinfo` in words, and the index of its number of counters.
const DRIVER_WORDS: usize = 49;
const COUNTERS_WORD: usize = 45;
/// Length of `struct ethtool_cmd` in words.
const SETTINGS_WORDS: usize = 11;

/// Returns the speed of the link, Mb/s.
fn speed(settings: &[u32]) -> Option<u32> {
    let settings = bytes(settings);
    let half = |at: usize| u32::from(u16::from_ne_bytes([settings[at], settings[at + 1]]));
    let speed = half(28) << 16 | half(12);
    (speed != 0 && speed != UNKNOWN_SPEED && speed != UNKNOWN_SPEED >> 16).then_some(speed)
}

/// Returns the answer to `command`, `len` words, or `None` if the driver does not support the command.
fn words(interface: &str, command: u32, len: usize) -> io::Result<Option<Vec<u32>>> {
    ask(interface, command, vec![0; len])
}

fn ask(interface: &str, command: u32, mut words: Vec<u32>) -> io::Result<Option<Vec<u32>>> {
    words[0] = command;
    match ethtool_words(control_socket()?.as_fd(), interface, &mut words) {
        Ok(()) => Ok(Some(words)),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
        Err(error) => Err(error),
    }
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Returns the text up to the first zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_answers_and_a_missing_interface_is_absent() {
        Driver::of("lo").expect("loopback answers");
        let error = Driver::of("baton-none").expect_err("there is none");
        assert!(matches!(error, InterfaceError::Absent(_)), "{error}");
    }

    #[test]
    fn speeds_are_combined_from_two_halves() {
        let mut settings = [0; SETTINGS_WORDS];
        assert_eq!(speed(&settings), None);
        settings[3] = u32::from_ne_bytes([0xa0, 0x86, 0, 0]);
        settings[7] = u32::from_ne_bytes([1, 0, 0, 0]);
        assert_eq!(speed(&settings), Some(100_000));
        settings[3] |= 0xffff;
        settings[7] |= 0xffff;
        assert_eq!(speed(&settings), None);
    }
}
