"""Information about a connection: options, addresses, queues."""
import ctypes, fcntl, os, socket, struct, termios, time

from calls import CLOSED, LONG, RDHUP, SHORT, SOL, TCP, c_call, int_option, ioctl, outcome, polled, scenario, tcp_state, unread, until, words
from peer import Peer


@scenario
def names_with_short_lengths(c, p):
    def name(call, length):
        room, given = ctypes.create_string_buffer(b"Z" * 32, 32), ctypes.c_int(length)
        result = c_call(call, c.fileno(), room, ctypes.byref(given))
        return result, given.value, room.raw[:2].hex(), room.raw[30:].hex()

    seen = [name(call, length) for call in ("getsockname", "getpeername") for length in (0, 2, 4, -1, 28)]
    return seen, [c_call(call, c.fileno(), None, None) for call in ("getsockname", "getpeername")]


@scenario
def unsent_bytes(c, p):
    def counts():
        return [ioctl(c, request) for request in (termios.TIOCOUTQ, 0x894B, termios.FIONREAD)]

    until(lambda: counts()[0] == 0)
    seen = [counts()]
    c.send(b"x" * 1000)
    seen.append(until(lambda: counts()[:2] == [0, 0]))
    c.sendall(b"y" * 60_000)
    seen.append(until(lambda: counts()[:2] == [0, 0]))
    c.setblocking(False)
    p.later(0.5, "recv", 100)
    sent = 0
    while not isinstance(more := outcome(c.send, b"z" * 65536), str):
        sent += more
    found = counts()[0]
    return seen + [more, 0 < found <= sent + 60_000 or (found, sent)]


TCP_INFO = "BBBBBBBB24I4Q6I5Q8I"


def tcp_info(c):
    data = c.getsockopt(TCP, socket.TCP_INFO, struct.calcsize("8B24I4Q6I"))
    first = struct.unpack_from("8B24I4Q6I", data)
    return first[:8], first[8:32], first[32:36], first[36:]


@scenario
def tcp_info_tells(c, p):
    p.send("abcde")
    unread(c, 5)
    (state, _, retransmits, _, _, options, shifts, _), words, longs, _ = tcp_info(c)
    rto, ato, snd_mss, rcv_mss, unacked, sacked, lost, retrans = words[:8]
    pmtu, _, rtt, rttvar, ssthresh, cwnd, advmss = words[13:20]
    seen = [state, retransmits, options & 7, unacked <= 1, sacked, lost, retrans]
    seen += [200_000 <= rto < 3_000_000, 500 < snd_mss <= 1500, 20 <= rcv_mss <= 1500, pmtu, advmss]
    seen += [0 < rtt < 1_000_000, rttvar > 0, ssthresh > 0, cwnd >= 2, words[23], longs[2] > 0, longs[3] >= 5]
    seen += [len(c.getsockopt(TCP, socket.TCP_INFO, 1)), len(c.getsockopt(TCP, socket.TCP_INFO, 92))]
    p.shutdown()
    polled(c, RDHUP)
    seen.append(tcp_info(c)[0][0])
    c.shutdown(socket.SHUT_WR)
    p.drain()
    return seen + [until(lambda: tcp_state(c) == CLOSED)]


@scenario
def zero_copy(c, p):
    seen = [outcome(c.setsockopt, SOL, 60, 1), c.getsockopt(SOL, 60)]
    # The peer does not read yet: both sends must fit a small window.
    data = b"z" * 2_500
    seen += [outcome(c.send, data, 0x4000000), outcome(c.send, data, 0x4000000)]
    if seen[-2:] != [2_500, 2_500]:
        return seen
    seen.append(len(p.recv(5_000)))
    until(lambda: polled(c, 0, 0))
    seen.append(polled(c, 0, 0))
    ids, last = [], time.monotonic() + LONG
    while (not ids or ids[-1] < 1) and time.monotonic() < last:
        got = outcome(c.recvmsg, 64, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
        if not isinstance(got, str):
            data = got[1][0][2]
            first, last_one = struct.unpack("II", data[8:16])
            ids += range(first, last_one + 1)
    return seen, data[4], ids


OPTIONS = [
    # level, name, value
    (SOL, socket.SO_KEEPALIVE, 1), (SOL, socket.SO_REUSEADDR, 1), (SOL, socket.SO_REUSEPORT, 1), (SOL, socket.SO_OOBINLINE, 1), (SOL, socket.SO_PRIORITY, 4),
    (SOL, socket.SO_RCVBUF, 50_000), (SOL, socket.SO_SNDBUF, 50_000), (SOL, socket.SO_BROADCAST, 1), (SOL, socket.SO_MARK, 3),
    (SOL, socket.SO_DONTROUTE, 1), (SOL, 47, 1_000_000), (SOL, 29, 1), (SOL, socket.SO_BINDTODEVICE, 0), (SOL, socket.SO_ERROR, 1),
    (SOL, socket.SO_TYPE, 1), (SOL, socket.SO_ACCEPTCONN, 1), (SOL, socket.SO_DOMAIN, 1), (SOL, socket.SO_PROTOCOL, 1), (SOL, 9999, 1), (SOL, 46, 20),
    (TCP, socket.TCP_NODELAY, 1), (TCP, socket.TCP_CORK, 1), (TCP, socket.TCP_CORK, 0), (TCP, socket.TCP_MAXSEG, 1000), (TCP, socket.TCP_KEEPIDLE, 77),
    (TCP, socket.TCP_KEEPINTVL, 7), (TCP, socket.TCP_KEEPCNT, 3), (TCP, socket.TCP_SYNCNT, 4), (TCP, socket.TCP_LINGER2, 9), (TCP, socket.TCP_WINDOW_CLAMP, 30_000),
    (TCP, socket.TCP_QUICKACK, 1), (TCP, socket.TCP_USER_TIMEOUT, 9000), (TCP, socket.TCP_NOTSENT_LOWAT, 16_384), (TCP, socket.TCP_DEFER_ACCEPT, 3), (TCP, 9999, 1),
    (TCP, socket.TCP_FASTOPEN, 5), (socket.IPPROTO_IP, socket.IP_TOS, 16), (socket.IPPROTO_IP, socket.IP_TTL, 44), (socket.IPPROTO_IP, 10, 2), (socket.IPPROTO_IP, 21, 7),
    (socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 44), (socket.IPPROTO_IPV6, 67, 8), (77, 1, 1),
]  # fmt: skip


def each_option(c, use):
    return [[level, name, outcome(c.setsockopt, level, name, value), int_option(c, level, name), use()] for level, name, value in OPTIONS]


@scenario
def options_read_back(c, p):
    def use():
        c.send(b"x")
        p.send("y")
        return c.recv(1).decode()

    return each_option(c, use)


@scenario
def options_before(c, p):
    """Values of options that were never set."""
    quick = {(TCP, socket.TCP_QUICKACK), (SOL, socket.SO_RCVBUF), (SOL, socket.SO_SNDBUF), (TCP, socket.TCP_WINDOW_CLAMP)}
    return [[level, name, int_option(c, level, name)] for level, name, _ in OPTIONS if (level, name) not in quick]


@scenario
def option_lengths(c, p):
    def ask(level, name, length, value=None):
        room, given = ctypes.create_string_buffer(b"Z" * 8, 8), ctypes.c_int(length)
        return c_call("getsockopt", c.fileno(), level, name, room, ctypes.byref(given)), given.value, room.raw.hex()

    def tell(level, name, value):
        room = ctypes.create_string_buffer(value, 8)
        return c_call("setsockopt", c.fileno(), level, name, room, len(value))

    pairs = ((TCP, socket.TCP_NODELAY), (TCP, socket.TCP_CORK), (SOL, socket.SO_ERROR), (SOL, socket.SO_KEEPALIVE))
    seen = [ask(level, name, length) for level, name in pairs for length in (0, 1, 2, 4, 8, -1)]
    return seen + [tell(level, name, value) for level, name in pairs for value in (b"", b"\1", b"\1\0\0\0", b"\0\0\0\0\0\0\0\0")]


@scenario
def congestion_control(c, p):
    before = c.getsockopt(TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
    seen = [outcome(c.setsockopt, TCP, socket.TCP_CONGESTION, b"reno"), outcome(c.setsockopt, TCP, socket.TCP_CONGESTION, b"none")]
    c.send(b"x")
    return before, seen, p.recv(1), c.getsockopt(TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()


@scenario
def low_water_mark(c, p):
    seen = [outcome(c.setsockopt, SOL, socket.SO_RCVLOWAT, 5), int_option(c, SOL, socket.SO_RCVLOWAT)]
    p.send("abc")
    unread(c, 3)
    seen.append(polled(c, seconds=SHORT))
    p.later(0.1, "send", "de")
    return seen + [polled(c), c.recv(9).decode()]


@scenario
def end_of_one_left_to_the_kernel(c, p):
    """The end of a connection in the kernel is not reported for another connection."""
    c.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 16)
    other, address = Peer(p.path), c.getpeername()[0]
    d = socket.create_connection((address, other.listen(address)))
    other.accept()
    d.sendall(b"x")
    seen = [other.recv(1), polled(d, seconds=0)]
    p.shutdown()
    seen += [polled(c), polled(d, seconds=SHORT)]
    other.send("y")
    return seen + [polled(d), d.recv(9).decode()]


@scenario
def urgent(c, p):
    seen = [outcome(c.send, b"!", socket.MSG_OOB), outcome(c.recv, 1, socket.MSG_OOB), c.send(b"x")]
    return seen, p.recv(1)


@scenario
def flags_of_descriptors(c, p):
    seen = [fcntl.fcntl(c, command) for command in (fcntl.F_GETFD, fcntl.F_GETFL)]
    c.setblocking(False)
    seen += [fcntl.fcntl(c, fcntl.F_GETFL), outcome(c.recv, 1)]
    fcntl.ioctl(c, termios.FIONBIO, struct.pack("i", 0))
    seen += [fcntl.fcntl(c, fcntl.F_GETFL), outcome(fcntl.ioctl, c, 0x5452, struct.pack("i", 1)), outcome(fcntl.ioctl, c, 0x1234)]
    seen += [outcome(fcntl.fcntl, c, fcntl.F_SETOWN, os.getpid()), fcntl.fcntl(c, fcntl.F_GETOWN) == os.getpid(), outcome(fcntl.fcntl, c, 999)]
    seen += [outcome(fcntl.ioctl, c, termios.SIOCATMARK, struct.pack("i", 9)) if hasattr(termios, "SIOCATMARK") else None]
    return [str(one) for one in seen]


@scenario
def wrong_calls(c, p):
    c.setblocking(False)
    fd = c.fileno()
    address = ctypes.create_string_buffer(bytes(28), 28)
    calls = [("listen", fd, 1), ("accept", fd, None, None), ("bind", fd, address, 16), ("lseek", fd, 0, 0), ("fsync", fd), ("ftruncate", fd, 0)]
    calls += [("recv", fd, address, 4, 0x2000), ("read", fd, address, 0), ("pread", fd, address, 4, 0), ("connect", fd, address, 1)]
    return [[call[0], c_call(*call)] for call in calls]


@scenario
def spliced(c, p):
    p.send("abc")
    unread(c, 3)
    ends = os.pipe()
    seen = [outcome(os.splice, c.fileno(), ends[1], 9), os.read(ends[0], 9).decode()] if hasattr(os, "splice") else []
    return seen, c.send(b"x"), p.recv(1)
