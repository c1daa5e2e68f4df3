//! The state and counters of an interface in the kernel (rtnetlink).

use super::interface::{self, InterfaceError};
use crate::netlink::{self, HEADER_BYTES};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Buffer size, bytes: an answer with all attributes takes a few kilobytes.
const ANSWER_BYTES: usize = 64 * 1024;
/// Maximum wait for an answer, which the kernel sends immediately.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

// From linux/rtnetlink.h and linux/if_link.h.
const INFO_BYTES: usize = 16;
const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const ATTRIBUTE_MTU: u16 = 4;
const ATTRIBUTE_COUNTERS: u16 = 23;
const FLAG_UP: u32 = 1;
const FLAG_LOWER_UP: u32 = 1 << 16;

/// The kernel's counters, in the order of `struct rtnl_link_stats64`.
macro_rules! counters {
    ($($name:ident)*) => {
        /// The kernel's counters of an interface since its creation, or since some point in time.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[allow(missing_docs, reason = "the names are the kernel's")]
        pub struct LinkCounters {
            $(pub $name: u64,)*
        }

        impl LinkCounters {
            fn of(bytes: &[u8]) -> Option<Self> {
                let (words, _) = bytes.as_chunks::<8>();
                let mut words = words.iter().map(|word| u64::from_ne_bytes(*word));
                Some(Self { $($name: words.next()?,)* })
            }

            /// Returns the differences to `before`.
            #[must_use]
            pub fn since(&self, before: &Self) -> Self {
                Self { $($name: self.$name.wrapping_sub(before.$name),)* }
            }
        }
    };
}

counters! {
    rx_packets
    tx_packets
    rx_bytes
    tx_bytes
    rx_errors
    tx_errors
    rx_dropped
    tx_dropped
    multicast
    collisions
    rx_length_errors
    rx_over_errors
    rx_crc_errors
    rx_frame_errors
    rx_fifo_errors
    rx_missed_errors
    tx_aborted_errors
    tx_carrier_errors
    tx_fifo_errors
}

/// The state of an interface at one point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// Whether the interface is switched on.
    pub is_up: bool,
    /// Whether a peer is connected at the other end of the wire.
    pub has_carrier: bool,
    /// Maximum length of an IP packet, bytes.
    pub mtu: u32,
    /// Counters of the interface.
    pub counters: LinkCounters,
}

/// Queries one interface repeatedly, from any namespace.
#[derive(Debug)]
pub struct LinkWatch {
    socket: OwnedFd,
    index: u32,
    name: String,
    answer: Vec<u8>,
}

impl LinkWatch {
    /// Watches the interface `name` in this thread's network namespace.
    ///
    /// # Errors
    /// The interface does not exist.
    pub fn of(name: &str) -> Result<Self, InterfaceError> {
        let index = interface::index(name)?;
        let socket = netlink::socket().map_err(|error| InterfaceError::of("query", name, error))?;
        Ok(Self {
            socket,
            index,
            name: name.to_owned(),
            answer: vec![0; ANSWER_BYTES],
        })
    }

    /// Returns the current state.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn state(&mut self) -> Result<LinkState, InterfaceError> {
        self.ask()
            .map_err(|error| InterfaceError::of("query", &self.name, error))
    }

    /// Returns the current state, or the system's own error.
    pub(super) fn ask(&mut self) -> io::Result<LinkState> {
        let mut info = [0; INFO_BYTES];
        info[4..8].copy_from_slice(&self.index.to_ne_bytes());
        let request = netlink::request(GET_LINK, 0, &info);
        send(&self.socket, &request, SendFlags::empty())?;
        let start = Instant::now();
        while start.elapsed() < LONGEST_WAIT {
            let (len, _) = recv(&self.socket, self.answer.as_mut_slice(), RecvFlags::empty())?;
            if let Some(state) = state_of(&self.answer[..len])? {
                return Ok(state);
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

/// Returns the state that a message reports, or `None` if the message is not about a link.
fn state_of(message: &[u8]) -> io::Result<Option<LinkState>> {
    let word = |at: usize| {
        let bytes = message.get(at..at + 4);
        bytes.map(|bytes| u32::from_ne_bytes(bytes.try_into().expect("four bytes")))
    };
    let cut_off = || io::Error::new(io::ErrorKind::InvalidData, "the answer is cut off");
    if let Some(outcome) = netlink::outcome(message) {
        return outcome.map(|()| None);
    }
    if netlink::kind(message).ok_or_else(cut_off)? != NEW_LINK {
        return Ok(None);
    }
    let flags = word(HEADER_BYTES + 8).ok_or_else(cut_off)?;
    let attributes = message
        .get(HEADER_BYTES + INFO_BYTES..)
        .ok_or_else(cut_off)?;
    let mtu = netlink::attribute(attributes, ATTRIBUTE_MTU).and_then(|value| value.first_chunk());
    let counters = netlink::attribute(attributes, ATTRIBUTE_COUNTERS).ok_or_else(cut_off)?;
    Ok(Some(LinkState {
        is_up: flags & FLAG_UP != 0,
        has_carrier: flags & FLAG_LOWER_UP != 0,
        mtu: u32::from_ne_bytes(*mtu.ok_or_else(cut_off)?),
        counters: LinkCounters::of(counters).ok_or_else(cut_off)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_described_and_counts() {
        let mut watch = LinkWatch::of("lo").expect("everybody has one");
        let before = watch.state().expect("an answer");
        assert!(before.mtu >= 1_500, "{before:?}");
        // Loopback has no useful Ethernet address, but it has counters.
        assert_eq!(before.counters.rx_packets, before.counters.tx_packets);
    }

    #[test]
    fn a_missing_interface_is_reported_as_absent() {
        let error = LinkWatch::of("baton-none").expect_err("there is none");
        assert!(matches!(error, InterfaceError::Absent(_)), "{error}");
    }

    #[test]
    fn truncated_answers_are_refused() {
        let mut message = vec![0; HEADER_BYTES + INFO_BYTES];
        message[4..6].copy_from_slice(&NEW_LINK.to_ne_bytes());
        for len in 0..message.len() {
            assert!(state_of(&message[..len]).is_err(), "{len} bytes");
        }
        assert!(state_of(&message).is_err(), "without attributes");
    }
}
