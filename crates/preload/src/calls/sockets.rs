//! Calls that create sockets and that return their state.

use super::give;
use crate::address;
use crate::description::{Description, Side};
use crate::handoff::{self, Origin};
use crate::leaving;
use crate::limit::Limit;
use crate::listener::Listener;
use crate::options;
use crate::pointers;
use crate::reason::Reason;
use crate::session;
use crate::signals;
use crate::sys::{self, Errno, call, errno_of, outcome};
use crate::table::{self, Entry};
use crate::tcp_info;
use crate::timestamping;
use crate::unconnected;
use baton_abi::address::Family;
use baton_sockets::{TcpListener, TcpStream, Watched};
use libc::{c_int, c_void, sockaddr, socklen_t};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::BorrowedFd;
use smallvec::SmallVec;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Returns the address family of a TCP socket, or `None` if the descriptor is no TCP socket.
pub fn family(fd: c_int) -> Option<Family> {
    let is_tcp = sys::option(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL) == Ok(libc::IPPROTO_TCP);
    let family = sys::option(fd, libc::SOL_SOCKET, libc::SO_DOMAIN).ok()?;
    Family::from_number(family).filter(|_| is_tcp)
}

/// bind(2). Binds to an address of the adapter even if the kernel does not have the address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bind(fd: c_int, at: *const sockaddr, len: socklen_t) -> c_int {
    if is_connection(fd) {
        return give!(Err(libc::EINVAL));
    }
    // SAFETY: the kernel checks everything itself.
    let bind = || unsafe { outcome(call!(SYS_bind, fd, at, len)) };
    let result = bind();
    let is_not_there = result == Err(libc::EADDRNOTAVAIL);
    if !is_not_there || session::begins_in_kernel() || family(fd).is_none() {
        return give!(result);
    }
    // SAFETY: valid by the manual page.
    let wanted = unsafe { address::read(at.cast(), len) };
    if !wanted.is_some_and(is_adapters) {
        return give!(result);
    }
    let (on, len) = (1 as c_int, size_of::<c_int>());
    // SAFETY: `len` is the size of the value.
    unsafe {
        call!(
            SYS_setsockopt,
            fd,
            libc::SOL_IP,
            libc::IP_FREEBIND,
            &raw const on,
            len
        );
    }
    give!(bind())
}

/// Returns whether this is a connection of this library. While it is away, its kernel socket is unconnected and could be used for another
/// connection.
fn is_connection(fd: c_int) -> bool {
    table::socket(fd).is_some_and(|socket| socket.stream().is_some())
}

/// Returns whether the adapter can listen at this address, which is true only for its own addresses.
fn is_adapters(address: SocketAddr) -> bool {
    let _hold = signals::hold();
    session::prepare();
    let any_port = SocketAddr::new(address.ip(), 0);
    session::adapter().is_some_and(|adapter| TcpListener::bind(adapter, any_port).is_ok())
}

/// listen(2). The kernel listens. If connections do not begin in the kernel, the adapter listens as well, from the first call that waits
/// for connections.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn listen(fd: c_int, backlog: c_int) -> c_int {
    if is_connection(fd) {
        return give!(Err(libc::EINVAL));
    }
    // SAFETY: the kernel checks everything itself.
    let result = unsafe { call!(SYS_listen, fd, backlog) as c_int };
    if result != 0 || fd < 0 {
        return result;
    }
    if session::begins_in_kernel() {
        if handoff::takes_part(fd) {
            session::prepare();
            table::set(fd, Entry::Listening);
        }
    } else if table::find(fd).is_none() {
        begin(fd);
    }
    result
}

fn begin(fd: c_int) {
    let _hold = signals::hold();
    let (Some(family), Some(local)) = (family(fd), address::local(fd)) else {
        return;
    };
    if local.ip().to_canonical().is_loopback() {
        return Reason::AddressNotAvailable.count(local);
    }
    let mut addresses = vec![SocketAddr::new(local.ip().to_canonical(), local.port())];
    let only_6 = sys::option(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) != Ok(0);
    if local.ip() == IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED) && !only_6 {
        addresses.push(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), local.port()));
    }
    session::prepare();
    // SAFETY: this only changes a flag. A listener's kernel socket never waits, since the adapter may have connections, too.
    let flags = unsafe {
        let flags = call!(SYS_fcntl, fd, libc::F_GETFL) as c_int;
        call!(SYS_fcntl, fd, libc::F_SETFL, flags | libc::O_NONBLOCK);
        flags
    };
    let nonblocking = flags & libc::O_NONBLOCK != 0;
    let listener = Listener::new(addresses, sharing(fd));
    let description = Description::listener(listener, family, nonblocking);
    let nodelay = sys::option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY) == Ok(1);
    description.nodelay.store(nodelay, Ordering::Relaxed);
    description.set_timeout(Side::Read, timeout(fd, libc::SO_RCVTIMEO));
    if !table::set(fd, Entry::Socket(Arc::new(description))) {
        // SAFETY: this restores the flags.
        unsafe { call!(SYS_fcntl, fd, libc::F_SETFL, flags) };
        Reason::TooManyDescriptors.count(format_args!("descriptor {fd}"));
    }
}

/// Returns the number that listeners have in common which the kernel allows at the same address: those that processes inherit from each
/// other, and those with SO_REUSEPORT. (The kernel has compared the users of the latter, as the adapter does.) Returns 0 if the kernel does
/// not identify them.
fn sharing(fd: c_int) -> u32 {
    /// Distinguishes the two kinds of numbers.
    const OF_NAMESPACE: u32 = 1 << 31;
    let cookie = |name| sys::long_option(fd, libc::SOL_SOCKET, name).map_or(0, |it| it as u32);
    if sys::option(fd, libc::SOL_SOCKET, libc::SO_REUSEPORT) == Ok(1) {
        match cookie(libc::SO_NETNS_COOKIE) {
            0 => 0,
            namespace => namespace | OF_NAMESPACE,
        }
    } else {
        cookie(libc::SO_COOKIE) & !OF_NAMESPACE
    }
}

/// Returns SO_RCVTIMEO or SO_SNDTIMEO of the kernel's socket.
pub fn timeout(fd: c_int, name: c_int) -> Option<Duration> {
    let mut time = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    let mut len = size_of::<libc::timeval>() as socklen_t;
    let level = libc::SOL_SOCKET;
    // SAFETY: `len` is the size of the value.
    let got = unsafe { call!(SYS_getsockopt, fd, level, name, &raw mut time, &raw mut len) };
    let time = Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    (got == 0 && !time.is_zero()).then_some(time)
}

type Accept4 = unsafe extern "C-unwind" fn(c_int, *mut sockaddr, *mut socklen_t, c_int) -> c_int;

/// Returns the C library's accept4(2). Unlike the system call, it ends by unwinding when its thread is cancelled (pthreads(7)).
fn next_accept4() -> Accept4 {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    let real = sys::next(&REAL, c"accept4");
    // SAFETY: the C library's function of this name has this type.
    unsafe { std::mem::transmute::<usize, Accept4>(real) }
}

/// accept(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn accept(
    fd: c_int,
    peer: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: valid by the manual page.
    unsafe { accept4(fd, peer, len, 0) }
}

/// accept4(2): accepts a connection from the adapter, or else from the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn accept4(
    fd: c_int,
    peer: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: the kernel checks everything itself.
    let accept = || unsafe { outcome(next_accept4()(fd, peer, len, flags).into()) };
    if is_connection(fd) {
        return give!(Err(libc::EINVAL));
    }
    let socket = table::socket(fd);
    let Some((socket, listener)) = socket.and_then(|s| s.as_listener().map(|l| (s, l))) else {
        if session::begins_in_kernel() {
            // SAFETY: valid by the manual page.
            return give!(unsafe { accept_in_kernel(fd, peer, len, flags) });
        }
        return give!(accept());
    };
    let timeout = socket.timeout(Side::Read);
    let mut limit = Limit::new(timeout);
    loop {
        match accept_on_adapter(&socket, &listener, flags) {
            Ok(None) => {}
            Ok(Some((fd, address))) => {
                if !peer.is_null() {
                    // SAFETY: valid by the manual page.
                    let given = unsafe { address::give(address, socket.family, peer.cast(), len) };
                    debug_assert!(given.is_ok() || len.is_null());
                }
                return fd;
            }
            Err(errno) => return give!(Err(errno)),
        }
        let accepted = accept();
        let left = limit.left();
        let may_wait = !socket.is_nonblocking() && left != Some(Duration::ZERO);
        if accepted != Err(libc::EAGAIN) || !may_wait {
            return give!(accepted);
        }
        match wait_for_connection(fd, &listener, left) {
            Err(libc::EINTR) if timeout.is_none() && signals::restarts() => {}
            Err(errno) => return give!(Err(errno)),
            Ok(()) => {}
        }
    }
}

/// accept4(2) of a kernel connection that may move.
unsafe fn accept_in_kernel(
    fd: c_int,
    peer: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> Result<usize, Errno> {
    // SAFETY: all zeros are a valid address of no family.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let mut room = size_of_val(&storage) as socklen_t;
    let is_wanted = !peer.is_null() && !len.is_null();
    // SAFETY: the kernel checks the program's pointers; if the address did not fit, only the bytes that are there are read.
    unsafe {
        let (at, len) = match peer.is_null() {
            true => ((&raw mut storage).cast(), &raw mut room),
            false => (peer, len),
        };
        let given = if is_wanted { *len } else { room };
        let accepted = outcome(next_accept4()(fd, at, len, flags).into())?;
        let from = address::read(at.cast(), given.min(*len));
        let takes_part = matches!(table::find(fd), Some(Entry::Listening));
        if let Some(Entry::KernelOnly(reason)) = table::find(fd) {
            reason.count(format_args!("accepted at descriptor {fd}"));
            table::remove(accepted as c_int);
            return Ok(accepted);
        }
        let origin = Origin::Accepted(from, takes_part);
        handoff::begin(accepted as c_int, flags & libc::SOCK_NONBLOCK != 0, origin);
        Ok(accepted)
    }
}

fn wait_for_connection(
    fd: c_int,
    listener: &Listener,
    left: Option<Duration>,
) -> Result<(), Errno> {
    let mut fds = [libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    }];
    let Some(adapter) = session::adapter() else {
        return crate::polling::poll(&mut fds, left, None)
            .unwrap_or(Ok(0))
            .map(drop);
    };
    let listening = listener.listening();
    let watched: SmallVec<[Watched<'_>; 2]> =
        listening.iter().map(|one| Watched::Listener(one)).collect();
    // SAFETY: the program keeps its descriptor open while it waits.
    let kernels = unsafe { BorrowedFd::borrow_raw(fd) };
    let others = [PollFd::from_borrowed_fd(kernels, PollFlags::IN)];
    let most = [left, listener.longest_wait()].into_iter().flatten().min();
    signals::wait_beside(adapter, &watched, &others, most, None)
}

/// Accepts a connection from the adapter. Returns its new descriptor and its peer.
fn accept_on_adapter(
    socket: &Description,
    listener: &Listener,
    flags: c_int,
) -> Result<Option<(c_int, SocketAddr)>, Errno> {
    for one in listener.listening() {
        if !one.is_acceptable() {
            continue;
        }
        // Without a descriptor, the connection stays in the backlog.
        // SAFETY: this only creates a socket.
        let made = unsafe {
            call!(
                SYS_socket,
                socket.family.number(),
                libc::SOCK_STREAM | flags,
                0
            )
        };
        let fd = outcome(made)? as c_int;
        // The connection was lost with the adapter, or another thread has accepted it.
        let Ok((stream, peer)) = one.accept() else {
            sys::close(fd)?;
            continue;
        };
        if adopt(fd, socket, stream, flags & libc::SOCK_NONBLOCK != 0) {
            return Ok(Some((fd, peer)));
        }
        sys::close(fd)?;
        Reason::TooManyDescriptors.count(format_args!("descriptor {fd}"));
        return Err(libc::EMFILE);
    }
    Ok(None)
}

/// Adds a connection to the table, with the options of its listener. Returns `false` if the descriptor does not fit into the table.
fn adopt(fd: c_int, listener: &Description, stream: TcpStream, nonblocking: bool) -> bool {
    let description = Description::connection(stream, listener.family, nonblocking);
    if listener.nodelay.load(Ordering::Relaxed) {
        options::set_nodelay(&description, true);
    }
    for side in [Side::Read, Side::Write] {
        description.set_timeout(side, listener.timeout(side));
    }
    timestamping::inherit(&description, listener);
    table::set(fd, Entry::Socket(Arc::new(description)))
}

/// shutdown(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shutdown(fd: c_int, how: c_int) -> c_int {
    let socket = table::socket(fd);
    let Some(stream) = socket.as_ref().and_then(|socket| socket.stream()) else {
        // SAFETY: the kernel checks everything itself.
        return unsafe { call!(SYS_shutdown, fd, how) as c_int };
    };
    let number = how;
    let how = match how {
        libc::SHUT_RD => Shutdown::Read,
        libc::SHUT_WR => Shutdown::Write,
        libc::SHUT_RDWR => Shutdown::Both,
        _ => return give!(Err(libc::EINVAL)),
    };
    if session::begins_in_kernel()
        && ends_both(stream, how)
        && leaving::leave(fd, Reason::ShutDown, format_args!("descriptor {fd}"))
    {
        // SAFETY: this takes no pointers.
        return unsafe { call!(SYS_shutdown, fd, number) as c_int };
    }
    let done = stream.shutdown(how);
    give!(done.map(|()| 0).map_err(|error| errno_of(&error)))
}

/// Returns whether this call leaves both directions shut down. The kernel then answers arriving data with a reset.
fn ends_both(stream: &TcpStream, how: Shutdown) -> bool {
    match how {
        Shutdown::Both => true,
        Shutdown::Read => stream.readiness().shut,
        Shutdown::Write => stream.is_shut_for_reading(),
    }
}

/// Writes the address of one end of a connection for a caller; `None` leaves the call to the kernel.
unsafe fn name(
    fd: c_int,
    which: impl Fn(&TcpStream) -> std::io::Result<SocketAddr>,
    to: *mut sockaddr,
    len: *mut socklen_t,
) -> Option<Result<usize, Errno>> {
    let socket = table::socket(fd)?;
    let address = which(socket.stream()?).map_err(|error| errno_of(&error));
    // SAFETY: valid by the manual page.
    let given = address.and_then(|it| unsafe { address::give(it, socket.family, to.cast(), len) });
    Some(given.map(|()| 0))
}

/// getsockname(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockname(fd: c_int, to: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: valid by the manual page, and the kernel checks everything itself.
    unsafe {
        match name(fd, TcpStream::local_addr, to, len) {
            Some(given) => give!(given),
            None => call!(SYS_getsockname, fd, to, len) as c_int,
        }
    }
}

/// Returns the address of the peer of a connection that is open.
fn peer(stream: &TcpStream) -> std::io::Result<SocketAddr> {
    let has_peer = stream.is_direct() || {
        let now = stream.readiness();
        !now.opening && !now.failed
    };
    match has_peer {
        true => stream.peer_addr(),
        false => Err(ErrorKind::NotConnected.into()),
    }
}

/// getpeername(2). Before the connection is open, and after it is lost, it has no peer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpeername(fd: c_int, to: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the kernel checks everything itself.
    let ask = || outcome(unsafe { call!(SYS_getpeername, fd, to, len) });
    let socket = table::socket(fd);
    let direct = socket.as_ref().and_then(|socket| socket.stream());
    if let Some(told) = direct.and_then(|stream| stream.directly(ask)) {
        return give!(told);
    }
    // The kernel knows a connection that is in the kernel or has ended there.
    if direct.is_some_and(|stream| !stream.is_away()) {
        return give!(ask());
    }
    // SAFETY: valid by the manual page.
    match unsafe { name(fd, peer, to, len) } {
        Some(given) => give!(given),
        None => give!(ask()),
    }
}

/// setsockopt(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    let mut socket = table::socket(fd);
    // SAFETY: valid by the manual page.
    let done = socket
        .as_ref()
        .and_then(|socket| unsafe { options::set_times(socket, level, option, value, len) });
    if let Some(done) = done {
        return give!(done);
    }
    // SAFETY: valid by the manual page.
    let is_refused = (socket.as_ref())
        .is_some_and(|it| unsafe { options::is_refused(it, level, option, value, len) });
    if is_refused {
        let is_bad =
            len as usize >= size_of::<c_int>() && pointers::check(value.cast::<c_int>()).is_err();
        return give!(Err(if is_bad { libc::EFAULT } else { libc::EINVAL }));
    }
    // SAFETY: valid by the manual page.
    let needs_kernel = session::begins_in_kernel()
        && unsafe { options::needs_kernel(fd, level, option, value, len) };
    let needs_kernel = needs_kernel.then(|| options::reason(level, option));
    if let Some(reason) = needs_kernel {
        let about = format_args!("descriptor {fd}, option {option} of level {level}");
        if !leaving::leave(fd, reason, about) {
            // On an ended connection the option has no effect, so the kernel's answer stands.
            let is_over = socket
                .as_ref()
                .and_then(|it| it.stream())
                .is_none_or(TcpStream::is_over);
            // SAFETY: the kernel checks everything itself.
            let done = unsafe { outcome(call!(SYS_setsockopt, fd, level, option, value, len)) };
            return give!(done.and_then(|done| if is_over {
                Ok(done)
            } else {
                Err(libc::EOPNOTSUPP)
            }));
        }
        socket = None;
    }
    let is_here = socket
        .as_ref()
        .is_some_and(|socket| options::is_here(socket, level, option));
    let result = match is_here {
        true if (len as usize) < size_of::<c_int>() => return give!(Err(libc::EINVAL)),
        true if pointers::check(value.cast::<c_int>()).is_err() => return give!(Err(libc::EFAULT)),
        true => 0,
        false => {
            let _descriptors = socket.as_ref().map(|socket| socket.descriptors.list());
            // SAFETY: the kernel checks everything itself.
            unsafe { call!(SYS_setsockopt, fd, level, option, value, len) as c_int }
        }
    };
    if let Some(reason) = needs_kernel.filter(|_| result == 0 && is_to_be_connected(fd)) {
        session::prepare();
        table::set(fd, Entry::KernelOnly(reason));
    }
    if result == 0
        && let Some(socket) = socket
    {
        // SAFETY: valid by the manual page; the kernel has read the value, too.
        unsafe { options::set(fd, &socket, level, option, value, len) };
    }
    result
}

/// Writes the address of a connection's peer for SO_PEERNAME, which fails if the caller asks for more bytes than the address has.
///
/// # Safety
/// `to` is valid for `*len` bytes, or one of the pointers is [bad](pointers::is_bad).
unsafe fn peer_name(
    stream: &TcpStream,
    family: Family,
    to: *mut c_void,
    len: *mut socklen_t,
) -> Result<usize, Errno> {
    pointers::check(len)?;
    let address = stream.peer_addr().map_err(|error| errno_of(&error))?;
    // SAFETY: all zeros are a valid address of no family.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let mut full = size_of_val(&storage) as socklen_t;
    // SAFETY: the storage has that length, and `len` was checked.
    let wanted = unsafe {
        address::give(address, family, (&raw mut storage).cast(), &raw mut full)?;
        *len
    };
    if wanted > full {
        return Err(libc::EINVAL);
    }
    if pointers::is_bad_mut(to, wanted as usize) {
        return Err(libc::EFAULT);
    }
    // SAFETY: the storage has more bytes than that, and so has the caller's buffer.
    unsafe { std::ptr::copy_nonoverlapping((&raw const storage).cast(), to, wanted as usize) };
    Ok(0)
}

/// Leaves a connection to the kernel because the program asks for signals about it, which only the kernel sends. Returns false if the
/// kernel does not have the connection in time.
pub(super) fn leave_for_signals(fd: c_int) -> bool {
    if !session::begins_in_kernel() {
        return true;
    }
    // The kernel sends no signals about a connection that has ended.
    let has_ended = |stream: &TcpStream| stream.is_over() || stream.readiness().failed;
    leaving::leave(fd, Reason::Signals, format_args!("descriptor {fd}"))
        || table::socket(fd).is_none_or(|socket| socket.stream().is_none_or(has_ended))
}

/// Makes connections of a socket that is not connected yet stay in the kernel, because the program has asked for signals about the socket.
pub(super) fn keep_for_signals(fd: c_int) {
    if session::begins_in_kernel() && unconnected::is_unconnected(fd) {
        session::prepare();
        table::set(fd, Entry::KernelOnly(Reason::Signals));
    }
}

/// Returns whether a kernel socket can still produce connections.
fn is_to_be_connected(fd: c_int) -> bool {
    let is_listening = matches!(table::find(fd), Some(Entry::Listening));
    is_listening || unconnected::is_unconnected(fd)
}

/// getsockopt(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    let socket = table::socket(fd);
    if (level, option) == (libc::IPPROTO_TCP, libc::TCP_INFO)
        && let Some(told) = socket.as_ref().and_then(|it| options::told(it))
    {
        // SAFETY: valid by the manual page.
        return give!(unsafe { tcp_info::give(fd, &told, value, len) });
    }
    if (level, option) == (libc::SOL_SOCKET, libc::SO_PEERNAME)
        && let Some(socket) = &socket
        && let Some(stream) = socket.stream().filter(|stream| stream.is_away())
    {
        // SAFETY: valid by the manual page.
        return give!(unsafe { peer_name(stream, socket.family, value, len) });
    }
    // The kernel, too, looks at the length before it fetches an error, which it reports only once.
    if socket.is_some() && pointers::check(len).is_err() {
        return give!(Err(libc::EFAULT));
    }
    let told = socket.and_then(|socket| options::get(&socket, level, option));
    // SAFETY: valid by the manual page, and the kernel checks everything itself.
    unsafe {
        let Some(told) = told else {
            return call!(SYS_getsockopt, fd, level, option, value, len) as c_int;
        };
        let Ok(room) = usize::try_from((*len).cast_signed()) else {
            return give!(Err(libc::EINVAL));
        };
        let told = told.to_ne_bytes();
        let given = room.min(told.len());
        if pointers::is_bad_mut(value, given) || pointers::check_mut(len).is_err() {
            return give!(Err(libc::EFAULT));
        }
        std::ptr::copy_nonoverlapping(told.as_ptr(), value.cast(), given);
        *len = given as socklen_t;
        0
    }
}
