//! A TAP device as virtual machines use it: in both directions, frames may leave checksums and segmentation to hardware.
#![allow(unsafe_code)]

use crate::application::StopOnDrop;
use crate::wire::{FAR, NEAR, apart, run};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// One end of a veth pair, whose other end belongs to the guest's kernel.
const RELAY: &str = "vr";
/// Maximum length of a frame with its virtio-net header, bytes.
const LONGEST: usize = 70_000;
const LONGEST_WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// Runs `work` in a network namespace whose near interface is a TAP device. The guest's interface is one end of a veth pair. Threads relay frames
/// with their virtio-net headers unchanged between the TAP device and the other end.
pub fn on_tap(mtu: u16, work: impl FnOnce() + Send) {
    apart(|| {
        let pair = ["link", "add", RELAY, "type", "veth", "peer", "name", FAR];
        run("ip", &pair);
        let mtu = mtu.to_string();
        run(
            "ip",
            &["link", "set", RELAY, "mtu", &mtu, "promisc", "on", "up"],
        );
        let (tap, guest) = (
            open_tap().expect("a TAP"),
            packet_socket().expect("a socket"),
        );
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let _stop = StopOnDrop(&stop);
            scope.spawn(|| relay(tap.as_fd(), guest.as_fd(), &stop));
            scope.spawn(|| relay(guest.as_fd(), tap.as_fd(), &stop));
            work();
        });
    });
}

/// Relays frames. Frames that the receiver does not accept are lost, as on a wire.
fn relay(from: BorrowedFd<'_>, to: BorrowedFd<'_>, stop: &AtomicBool) {
    let mut buffer = vec![0; LONGEST];
    while !stop.load(Ordering::Relaxed) {
        let _ = poll(
            &mut [PollFd::from_borrowed_fd(from, PollFlags::IN)],
            Some(&LONGEST_WAIT),
        );
        while let Ok(len) = rustix::io::read(from, &mut buffer[..]) {
            let _ = rustix::io::write(to, &buffer[..len]);
        }
    }
}

fn check(result: i32) -> io::Result<i32> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

/// Opens the guest's end of the near interface, to which the kernel may leave checksums and segmentation.
fn open_tap() -> io::Result<OwnedFd> {
    // TUN_F_CSUM, TUN_F_TSO4, TUN_F_TSO6, TUN_F_TSO_ECN.
    const OFFLOADS: libc::c_ulong = 0xf;
    let path = c"/dev/net/tun";
    // SAFETY: the path ends with a zero. The arguments are alive during the calls, and `ifreq` is plain data.
    unsafe {
        let fd = check(libc::open(
            path.as_ptr(),
            libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC,
        ))?;
        let fd = OwnedFd::from_raw_fd(fd);
        let mut request: libc::ifreq = std::mem::zeroed();
        for (target, byte) in request.ifr_name.iter_mut().zip(NEAR.bytes()) {
            *target = byte as libc::c_char;
        }
        let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        check(libc::ioctl(
            fd.as_raw_fd(),
            libc::TUNSETIFF as libc::Ioctl,
            &raw mut request,
        ))?;
        check(libc::ioctl(
            fd.as_raw_fd(),
            libc::TUNSETOFFLOAD as libc::Ioctl,
            OFFLOADS,
        ))?;
        Ok(fd)
    }
}

/// Opens a packet socket at the relay's end of the veth pair, with virtio-net headers in both directions.
fn packet_socket() -> io::Result<OwnedFd> {
    const PACKET_IGNORE_OUTGOING: i32 = 23;
    let everything = (libc::ETH_P_ALL as u16).to_be();
    let name = CString::new(RELAY)?;
    // SAFETY: the arguments are alive during the calls and have the given lengths, and `sockaddr_ll` is plain data.
    unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        let fd = OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, kind, 0))?);
        for option in [libc::PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING] {
            let (on, len) = (1_i32, size_of::<i32>() as libc::socklen_t);
            let value = (&raw const on).cast();
            check(libc::setsockopt(
                fd.as_raw_fd(),
                libc::SOL_PACKET,
                option,
                value,
                len,
            ))?;
        }
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = everything;
        address.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as i32;
        let len = size_of_val(&address) as libc::socklen_t;
        check(libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len))?;
        Ok(fd)
    }
}
