//! Offloads of an interface that would hand an engine what no wire carries.

use super::interface::{InterfaceError, control_socket};
use super::sys::ethtool_words;
use std::io;
use std::os::fd::AsFd;

/// An offload that must be off on a link with a userspace engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Checksums of sent packets are left to hardware (`ethtool -K DEV tx off`).
    TransmitChecksum,
    /// Segments larger than the link are sent, for hardware to cut (`tso off`).
    Segmentation,
    /// The same, by the kernel just before the device (`gso off`).
    GenericSegmentation,
    /// Received segments are joined to larger ones (`gro off`).
    GenericReceive,
}

impl Offload {
    /// Those of the kernel's end of a link, in the order in which they are to be switched off: what it sends must be as on
    /// a wire.
    pub const OF_PEER: [Self; 3] = [
        Self::TransmitChecksum,
        Self::Segmentation,
        Self::GenericSegmentation,
    ];
    /// Those of the engine's end. What the engine sends may pass whole, to be cut by the device.
    pub const OF_ENGINE: [Self; 1] = [Self::GenericReceive];

    /// Its name for `ethtool -K`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TransmitChecksum => "tx",
            Self::Segmentation => "tso",
            Self::GenericSegmentation => "gso",
            Self::GenericReceive => "gro",
        }
    }

    /// ETHTOOL_G..., which asks.
    const fn get(self) -> u32 {
        match self {
            Self::TransmitChecksum => 0x16,
            Self::Segmentation => 0x1e,
            Self::GenericSegmentation => 0x23,
            Self::GenericReceive => 0x2b,
        }
    }

    /// ETHTOOL_S..., which sets.
    const fn set(self) -> u32 {
        self.get() + 1
    }
}

/// The offloads of one interface.
#[derive(Debug)]
pub struct Offloads<'a> {
    interface: &'a str,
}

impl<'a> Offloads<'a> {
    /// Those of `interface` in this thread's network namespace.
    pub const fn of(interface: &'a str) -> Self {
        Self { interface }
    }

    /// Whether `offload` is on. An interface that knows nothing of it has it off.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn is_on(&self, offload: Offload) -> Result<bool, InterfaceError> {
        match self.command(offload.get(), 0) {
            Ok(value) => Ok(value != 0),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(false),
            Err(error) => Err(self.error("ask for offloads of", error)),
        }
    }

    /// Switches these off; those that cannot be are left.
    ///
    /// # Errors
    /// There is no such interface, or no permission.
    pub fn switch_off(&self, offloads: &[Offload]) -> Result<(), InterfaceError> {
        offloads
            .iter()
            .try_for_each(|offload| self.switch(*offload, false))
    }

    /// Switches one on or off, if it can be.
    ///
    /// # Errors
    /// There is no such interface, or no permission.
    pub fn switch(&self, offload: Offload, on: bool) -> Result<(), InterfaceError> {
        match self.command(offload.set(), on.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EOPNOTSUPP) => {
                Err(self.error("switch offloads of", error))
            }
            _ => Ok(()),
        }
    }

    fn command(&self, command: u32, data: u32) -> io::Result<u32> {
        // `struct ethtool_value`.
        let mut words = [command, data];
        ethtool_words(control_socket()?.as_fd(), self.interface, &mut words)?;
        Ok(words[1])
    }

    fn error(&self, what: &'static str, error: io::Error) -> InterfaceError {
        InterfaceError::of(what, self.interface, error)
    }
}

/// How many queues the interface `name` receives on.
///
/// # Errors
/// There is no such interface.
pub(crate) fn receive_queues(name: &str) -> Result<u32, InterfaceError> {
    // ETHTOOL_GCHANNELS, and `struct ethtool_channels`.
    let mut words = [0x3c, 0, 0, 0, 0, 0, 0, 0, 0];
    let asked = control_socket().and_then(|socket| ethtool_words(socket.as_fd(), name, &mut words));
    let [_, _, _, _, _, only_receive, _, _, both] = words;
    match asked {
        Ok(()) => Ok((only_receive + both).max(1)),
        // It has one, and no choice.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(1),
        Err(error) => Err(InterfaceError::of("ask for the queues of", name, error)),
    }
}
