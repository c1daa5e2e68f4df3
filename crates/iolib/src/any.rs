//! Links whose kind is only known at run time.

use crate::application::Application;
use crate::connect::ConnectError;
use crate::counters::LinkCounters;
use crate::handshake::Geometry;
use crate::live_link::LiveLink;
use crate::shm::{ShmAdapter, ShmHost};
use crate::stream::{TcpAdapter, TcpHost};
use baton_bus::Descriptor;
use baton_bus::link::{AdapterLink, Dma, DmaId, HostLink, LinkError, Violation};
use baton_wire::Time;
use bytes::Bytes;
use rustix::event::PollFlags;
use rustix::fs::Stat;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::str::FromStr;

/// Address at which an adapter listens: the path of a Unix socket, or `tcp://HOST:PORT`.
///
/// ```
/// use baton_iolib::AdapterAddress;
///
/// let local: AdapterAddress = "/run/baton/adapter.sock".parse()?;
/// let remote: AdapterAddress = "tcp://adapter:7000".parse()?;
/// assert_eq!(remote, AdapterAddress::Tcp("adapter:7000".to_owned()));
/// # Ok::<(), baton_iolib::AddressError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdapterAddress {
    /// A Unix socket on this machine.
    Unix(PathBuf),
    /// The host and port of any machine.
    Tcp(String),
}

/// A text that is not the address of an adapter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?}: expected a path such as /run/baton/adapter.sock, or tcp://HOST:PORT")]
pub struct AddressError(String);

impl FromStr for AdapterAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError(text.to_owned());
        match text.split_once("://") {
            Some(("tcp", address)) => {
                let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
                let _: u16 = port.parse().map_err(|_| wrong())?;
                if host.is_empty() {
                    return Err(wrong());
                }
                Ok(Self::Tcp(address.to_owned()))
            }
            Some(_) => Err(wrong()),
            None if text.is_empty() => Err(wrong()),
            None => Ok(Self::Unix(text.into())),
        }
    }
}

impl fmt::Display for AdapterAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
        }
    }
}

/// The host's end of any live link.
#[derive(Debug)]
pub enum AnyHostLink {
    /// Shared memory.
    Shm(Box<ShmHost>),
    /// TCP.
    Tcp(Box<TcpHost>),
}

/// The adapter's end of any live link.
#[derive(Debug)]
pub enum AnyAdapterLink {
    /// Shared memory.
    Shm(Box<ShmAdapter>),
    /// TCP.
    Tcp(Box<TcpAdapter>),
}

/// Calls a method of the link, whichever kind it has.
macro_rules! either {
    ($link:expr, $name:ident => $call:expr) => {
        match $link {
            Self::Shm($name) => $call,
            Self::Tcp($name) => $call,
        }
    };
}

impl AnyHostLink {
    /// Attaches to the adapter at `address`.
    ///
    /// # Errors
    /// The error explains the reason and what to do about it.
    pub fn connect(address: &AdapterAddress, wishes: &Geometry) -> Result<Self, ConnectError> {
        match address {
            AdapterAddress::Unix(path) => Ok(ShmHost::connect(path, wishes)?.into()),
            AdapterAddress::Tcp(address) => Ok(TcpHost::connect(address, wishes)?.into()),
        }
    }

    /// Returns the sizes of rings and buffers.
    pub fn geometry(&self) -> &Geometry {
        either!(self, link => link.geometry())
    }

    /// Begins a use of a file: see [`ShmHost::lend`].
    pub fn lend(&mut self, file: BorrowedFd<'_>, about: &Stat) -> Option<u64> {
        match self {
            Self::Shm(link) => link.lend(file, about),
            Self::Tcp(_) => None,
        }
    }
}

impl AnyAdapterLink {
    /// Returns the application at the other end.
    pub fn application(&self) -> &Application {
        either!(self, link => link.application())
    }

    /// Returns the sizes of rings and buffers.
    pub fn geometry(&self) -> &Geometry {
        either!(self, link => link.geometry())
    }

    /// Returns whether the application runs on this machine.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Shm(_))
    }

    /// Returns the name of the link's kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Shm(_) => "shared memory",
            Self::Tcp(_) => "TCP",
        }
    }
}

impl From<ShmHost> for AnyHostLink {
    fn from(link: ShmHost) -> Self {
        Self::Shm(Box::new(link))
    }
}

impl From<TcpHost> for AnyHostLink {
    fn from(link: TcpHost) -> Self {
        Self::Tcp(Box::new(link))
    }
}

impl From<ShmAdapter> for AnyAdapterLink {
    fn from(link: ShmAdapter) -> Self {
        Self::Shm(Box::new(link))
    }
}

impl From<TcpAdapter> for AnyAdapterLink {
    fn from(link: TcpAdapter) -> Self {
        Self::Tcp(Box::new(link))
    }
}

impl HostLink for AnyHostLink {
    type Data = Bytes;

    fn put(&mut self, now: Time, requests: &[Descriptor]) -> Result<usize, LinkError> {
        either!(self, link => link.put(now, requests))
    }
    fn mask_lazy(&mut self, masked: bool) {
        either!(self, link => link.mask_lazy(masked));
    }
    fn get(&mut self, now: Time, responses: &mut Vec<Descriptor>) -> Result<(), LinkError> {
        either!(self, link => link.get(now, responses))
    }
    fn buffer_bytes(&self) -> u32 {
        either!(self, link => link.buffer_bytes())
    }
    fn free_buffers(&self) -> usize {
        either!(self, link => link.free_buffers())
    }
    fn place(&mut self, data: Bytes) -> Result<u64, Bytes> {
        either!(self, link => link.place(data))
    }
    fn append(&mut self, address: u64, used: u32, data: &Bytes) -> bool {
        either!(self, link => link.append(address, used, data))
    }
    fn reserve(&mut self) -> Option<u64> {
        either!(self, link => link.reserve())
    }
    fn take(&mut self, address: u64, len: u32) -> Result<Bytes, Violation> {
        either!(self, link => link.take(address, len))
    }
    fn free(&mut self, address: u64) {
        either!(self, link => link.free(address));
    }
}

impl AdapterLink for AnyAdapterLink {
    type Data = Bytes;

    fn get(
        &mut self,
        now: Time,
        most: usize,
        requests: &mut Vec<Descriptor>,
    ) -> Result<(), LinkError> {
        either!(self, link => link.get(now, most, requests))
    }
    fn put(&mut self, now: Time, responses: &[Descriptor]) -> Result<usize, LinkError> {
        either!(self, link => link.put(now, responses))
    }
    fn put_lazily(&mut self, now: Time, responses: &[Descriptor]) -> Result<usize, LinkError> {
        either!(self, link => link.put_lazily(now, responses))
    }
    fn read(&mut self, now: Time, id: DmaId, address: u64, len: u32) -> Result<(), LinkError> {
        either!(self, link => link.read(now, id, address, len))
    }
    fn write(&mut self, now: Time, id: DmaId, address: u64, data: Bytes) -> Result<(), LinkError> {
        either!(self, link => link.write(now, id, address, data))
    }
    fn poll_dma(&mut self, now: Time) -> Result<Option<Dma<Bytes>>, LinkError> {
        either!(self, link => link.poll_dma(now))
    }
}

/// Forwards the traits that both enums implement.
macro_rules! pass_on {
    ($name:ty) => {
        impl LiveLink for $name {
            fn has_news(&mut self) -> Result<bool, LinkError> {
                either!(self, link => link.has_news())
            }
            fn prepare_to_sleep(&mut self) -> Result<bool, LinkError> {
                either!(self, link => link.prepare_to_sleep())
            }
            fn prepare_to_sleep_for_room(&mut self) -> Result<bool, LinkError> {
                either!(self, link => link.prepare_to_sleep_for_room())
            }
            fn interest(&self) -> PollFlags {
                either!(self, link => link.interest())
            }
            fn other_fd(&self) -> Option<BorrowedFd<'_>> {
                either!(self, link => link.other_fd())
            }
            fn counters(&self) -> &LinkCounters {
                either!(self, link => link.counters())
            }
        }

        impl AsFd for $name {
            fn as_fd(&self) -> BorrowedFd<'_> {
                either!(self, link => link.as_fd())
            }
        }
    };
}

pass_on!(AnyHostLink);
pass_on!(AnyAdapterLink);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_paths_or_tcp() {
        for good in [
            "/run/baton/adapter.sock",
            "baton.sock",
            "tcp://10.0.0.1:7000",
            "tcp://[::1]:7000",
        ] {
            let address: AdapterAddress = good.parse().expect(good);
            assert_eq!(address.to_string(), good);
        }
        for bad in [
            "",
            "tcp://host",
            "tcp://:80",
            "tcp://host:70000",
            "udp://host:80",
        ] {
            assert!(bad.parse::<AdapterAddress>().is_err(), "{bad}");
        }
    }
}
