//! Offloads of an interface that would let frames unlike those on a wire reach an engine.

use super::interface::{InterfaceError, control_socket};
use super::sys::ethtool_words;
use std::io;
use std::os::fd::AsFd;

baton_named::named! {
    /// An offload that must be off on a link with a userspace engine.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Offload {
        /// Checksums of sent packets are left to hardware (`ethtool -K DEV tx off`).
        TransmitChecksum => "tx",
        /// Segments larger than the MTU are sent, for hardware to cut (`tso off`).
        Segmentation => "tso",
        /// Segments larger than the MTU are cut by the kernel just before the device (`gso off`).
        GenericSegmentation => "gso",
        /// Received segments are joined into larger ones (`gro off`).
        GenericReceive => "gro",
    }
}

impl Offload {
    /// The offloads to switch off at the kernel's end of a link, in this order: the kernel's frames must look as on a wire.
    pub const OF_PEER: [Self; 3] = [
        Self::TransmitChecksum,
        Self::Segmentation,
        Self::GenericSegmentation,
    ];
    /// The offloads to switch off at the engine's end. The engine may send large segments, which the device cuts.
    pub const OF_ENGINE: [Self; 1] = [Self::GenericReceive];

    /// Returns the command that queries the offload (ETHTOOL_G...).
    const fn get(self) -> u32 {
        match self {
            Self::TransmitChecksum => 0x16,
            Self::Segmentation => 0x1e,
            Self::GenericSegmentation => 0x23,
            Self::GenericReceive => 0x2b,
        }
    }

    /// Returns the command that sets the offload (ETHTOOL_S...).
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
    /// Selects `interface` in this thread's network namespace.
    pub const fn of(interface: &'a str) -> Self {
        Self { interface }
    }

    /// Returns whether `offload` is on. An offload that the interface does not support is off.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn is_on(&self, offload: Offload) -> Result<bool, InterfaceError> {
        match self.command(offload.get(), 0) {
            Ok(value) => Ok(value != 0),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(false),
            Err(error) => Err(self.error("query the offloads of", error)),
        }
    }

    /// Switches the given offloads off; those that cannot be switched stay as they are.
    ///
    /// # Errors
    /// The interface does not exist, or the process lacks the permission.
    pub fn switch_off(&self, offloads: &[Offload]) -> Result<(), InterfaceError> {
        offloads
            .iter()
            .try_for_each(|offload| self.switch(*offload, false))
    }

    /// Switches an offload on or off, if this is possible.
    ///
    /// # Errors
    /// The interface does not exist, or the process lacks the permission.
    pub fn switch(&self, offload: Offload, on: bool) -> Result<(), InterfaceError> {
        match self.command(offload.set(), on.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EOPNOTSUPP) => {
                Err(self.error("change the offloads of", error))
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

/// Returns the number of receive queues of the interface `name`.
///
/// # Errors
/// There is no such interface.
pub(crate) fn receive_queues(name: &str) -> Result<u32, InterfaceError> {
    // The command ETHTOOL_GCHANNELS and `struct ethtool_channels`.
    let mut words = [0x3c, 0, 0, 0, 0, 0, 0, 0, 0];
    let asked = control_socket().and_then(|socket| ethtool_words(socket.as_fd(), name, &mut words));
    let [_, _, _, _, _, only_receive, _, _, both] = words;
    match asked {
        Ok(()) => Ok((only_receive + both).max(1)),
        // The interface has a single queue, which cannot be configured.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(1),
        Err(error) => Err(InterfaceError::of("query the queues of", name, error)),
    }
}
