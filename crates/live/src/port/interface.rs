//! Queries the kernel about an interface.

use super::LinkInfo;
use super::sys::{interface_ioctl, request_for};
use rustix::net::{AddressFamily, SocketType, socket};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};

/// The reason why an interface cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// No interface has this name.
    #[error("there is no interface {0}; `ip link` lists the existing ones")]
    Absent(String),
    /// An interface that was to be created exists already.
    #[error("the interface {0} already exists; {1}")]
    Present(String, &'static str),
    /// The name is not a valid interface name.
    #[error(
        "{0:?} cannot be the name of an interface: expected 1 to 15 characters without spaces and slashes"
    )]
    BadName(String),
    /// The process lacks the permission.
    #[error("no permission to {what} {name}; run as root, or with CAP_NET_ADMIN and CAP_NET_RAW")]
    Permission {
        /// The operation.
        what: &'static str,
        /// Name of the interface.
        name: String,
    },
    /// Another program uses the interface.
    #[error("{0} is busy: another program is attached to it; end it or give another name")]
    Busy(String),
    /// A TAP device cannot be created: the kernel has no driver for it.
    #[error("/dev/net/tun does not exist; load the driver with `modprobe tun`")]
    NoTunDriver,
    /// Not an Ethernet interface.
    #[error("{0} is not an Ethernet interface; expected one such as veth0 or eth0")]
    NotEthernet(String),
    /// Any other error.
    #[error("cannot {what} {name}: {error}")]
    Other {
        /// The operation.
        what: &'static str,
        /// Name of the interface.
        name: String,
        /// The error that the system reported.
        error: io::Error,
    },
}

impl InterfaceError {
    /// Creates the error of an operation on the interface `name`.
    pub(super) fn of(what: &'static str, name: &str, error: io::Error) -> Self {
        let name = name.to_owned();
        match error.raw_os_error() {
            Some(libc::ENODEV) => Self::Absent(name),
            Some(libc::EPERM | libc::EACCES) => Self::Permission { what, name },
            Some(libc::EBUSY) => Self::Busy(name),
            _ if error.kind() == io::ErrorKind::InvalidInput && error.raw_os_error().is_none() => {
                Self::BadName(name)
            }
            _ => Self::Other { what, name, error },
        }
    }
}

/// Opens a socket for queries about interfaces.
pub(super) fn control_socket() -> io::Result<OwnedFd> {
    Ok(socket(AddressFamily::INET, SocketType::DGRAM, None)?)
}

/// Returns whether the interface `name` exists in this thread's network namespace.
pub fn interface_exists(name: &str) -> bool {
    index(name).is_ok()
}

/// Returns the index of the interface `name`.
pub(crate) fn index(name: &str) -> Result<u32, InterfaceError> {
    let socket = control_socket().map_err(|error| InterfaceError::of("query", name, error))?;
    rustix::net::netdevice::name_to_index(socket, name)
        .map_err(|error| InterfaceError::of("query", name, error.into()))
}

/// Returns the maximum length of an IP packet on the interface `name`, bytes.
#[allow(unsafe_code)]
pub(super) fn mtu(name: &str) -> Result<u16, InterfaceError> {
    let what = "query the MTU of";
    let ask = || {
        let mut request = request_for(name)?;
        interface_ioctl(
            control_socket()?.as_fd(),
            libc::SIOCGIFMTU as libc::Ioctl,
            &mut request,
        )?;
        // SAFETY: the call has filled this member.
        Ok(unsafe { request.ifr_ifru.ifru_mtu })
    };
    let mtu = ask().map_err(|error| InterfaceError::of(what, name, error))?;
    // The MTU of loopback is 65536, one more than an IPv4 packet can have.
    Ok(u16::try_from(mtu).unwrap_or(u16::MAX))
}

/// Returns the kernel's first IPv4 address on the interface `name`.
///
/// # Errors
/// There is no such interface.
#[allow(unsafe_code)]
pub fn ipv4_address(name: &str) -> Result<Option<Ipv4Addr>, InterfaceError> {
    let ask = || {
        let mut request = request_for(name)?;
        interface_ioctl(
            control_socket()?.as_fd(),
            libc::SIOCGIFADDR as libc::Ioctl,
            &mut request,
        )?;
        // SAFETY: the call has filled this member.
        let [_, _, address @ ..] = unsafe { request.ifr_ifru.ifru_addr }.sa_data;
        let [a, b, c, d, ..] = address.map(|byte| byte as u8);
        Ok(Ipv4Addr::new(a, b, c, d))
    };
    match ask() {
        Ok(address) => Ok(Some(address)),
        Err(error) if io::Error::raw_os_error(&error) == Some(libc::EADDRNOTAVAIL) => Ok(None),
        Err(error) => Err(InterfaceError::of("query the address of", name, error)),
    }
}

/// Switches the interface `name` on (`up`) or off.
///
/// # Errors
/// The interface does not exist, or the process lacks the permission.
#[allow(unsafe_code)]
pub fn bring(name: &str, up: bool) -> Result<(), InterfaceError> {
    let set = || {
        let mut request = request_for(name)?;
        let socket = control_socket()?;
        interface_ioctl(
            socket.as_fd(),
            libc::SIOCGIFFLAGS as libc::Ioctl,
            &mut request,
        )?;
        // SAFETY: the call has filled this member.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        let switch = libc::IFF_UP as libc::c_short;
        request.ifr_ifru.ifru_flags = if up { flags | switch } else { flags & !switch };
        interface_ioctl(
            socket.as_fd(),
            libc::SIOCSIFFLAGS as libc::Ioctl,
            &mut request,
        )
    };
    let what = if up { "switch on" } else { "switch off" };
    set().map_err(|error| InterfaceError::of(what, name, error))
}

/// Returns the Ethernet address and MTU of an Ethernet interface.
pub(crate) fn link_info(name: &str) -> Result<LinkInfo, InterfaceError> {
    match link_info_or_loopback(name)? {
        (_, true) => Err(InterfaceError::NotEthernet(name.to_owned())),
        (link, false) => Ok(link),
    }
}

/// Returns the address and MTU of an Ethernet or loopback interface, and whether it is loopback, whose frames have the address zero.
#[allow(unsafe_code)]
pub(crate) fn link_info_or_loopback(name: &str) -> Result<(LinkInfo, bool), InterfaceError> {
    let what = "query the Ethernet address of";
    let ask = || {
        let mut request = request_for(name)?;
        interface_ioctl(
            control_socket()?.as_fd(),
            libc::SIOCGIFHWADDR as libc::Ioctl,
            &mut request,
        )?;
        // SAFETY: the call has filled this member.
        Ok(unsafe { request.ifr_ifru.ifru_hwaddr })
    };
    let address = ask().map_err(|error| InterfaceError::of(what, name, error))?;
    let is_loopback = match address.sa_family {
        libc::ARPHRD_ETHER => false,
        libc::ARPHRD_LOOPBACK => true,
        _ => return Err(InterfaceError::NotEthernet(name.to_owned())),
    };
    let mut mac = [0; 6];
    for (target, byte) in mac.iter_mut().zip(address.sa_data) {
        *target = byte as u8;
    }
    let link = LinkInfo {
        name: name.to_owned(),
        mac,
        mtu: mtu(name)?,
    };
    Ok((link, is_loopback))
}
