"""Reading: flags, bad buffers, lengths."""
import ctypes, errno, os, select, socket, struct, termios

from calls import C, LONG, SOL, c_call, family_of, outcome, polled, scenario, unread, until


@scenario
def trunc_without_buffer(c, p):
    p.send("abcdefgh")
    unread(c, 8)
    return c_call("recv", c.fileno(), None, 4, socket.MSG_TRUNC), c.recv(9).decode()


@scenario
def trunc_writes_nothing(c, p):
    p.send("abcdefgh")
    unread(c, 8)
    room = ctypes.create_string_buffer(b"ZZZZZZ", 6)
    peeked = c_call("recv", c.fileno(), room, 5, socket.MSG_TRUNC | socket.MSG_PEEK)
    got = c_call("recv", c.fileno(), room, 4, socket.MSG_TRUNC)
    return peeked, got, room.raw.decode(), c.recv(9).decode()


@scenario
def trunc_waits(c, p):
    p.later(0.1, "send", "abc")
    got = c_call("recv", c.fileno(), None, 9, socket.MSG_TRUNC)
    c.setblocking(False)
    return got, c_call("recv", c.fileno(), None, 9, socket.MSG_TRUNC)


@scenario
def bad_buffers(c, p):
    p.send("abc")
    unread(c, 3)
    return [
        c_call("recv", c.fileno(), None, 4, 0),
        c_call("recv", c.fileno(), None, 0, 0),
        c_call("send", c.fileno(), None, 4, 0),
        c_call("send", c.fileno(), None, 0, 0),
        c.recv(9).decode(),
    ]


@scenario
def pages_that_cannot_be_accessed(c, p):
    C.mmap.restype = ctypes.c_void_p
    C.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    C.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    start = C.mmap(None, 8192, 3, 0x22, -1, 0)
    end = start + 4096
    C.mprotect(end, 4096, 0)
    at = lambda place: ctypes.c_void_p(place)
    fd, size = c.fileno(), ctypes.c_size_t
    p.send("12345678")
    until(lambda: unread(c, 8))
    results = [c_call("recv", fd, at(end - 4), size(8), 0), c_call("recv", fd, at(end), size(8), 0), c.recv(3).decode()]
    results += [c_call("recv", fd, at(end - 5), size(8), 0), c_call("send", fd, at(end - 4), size(8), 0)]
    results += [c_call("send", fd, at(end), size(1), 0), c_call("poll", at(end), 1, 0), c_call("send", fd, at(end - 4), size(4), 0)]
    return results + [len(p.recv(4))]


def tries(address):
    """Connects without waiting to a port where nobody listens, and then to one where somebody does."""
    free = socket.create_server((address, 0), family=family_of(address))
    taken = free.getsockname()
    free.close()
    server = socket.create_server((address, 0), family=family_of(address))
    results = []
    for asks in (True, False):
        with socket.socket(family_of(address)) as c:
            c.setblocking(False)
            results.append(errno.errorcode[c.connect_ex(taken)])
            polled(c.fileno(), select.POLLOUT)
            if asks:
                results.append(errno.errorcode[c.getsockopt(SOL, socket.SO_ERROR)])
            results.append(errno.errorcode.get(c.connect_ex(taken), 0))
            results.append(errno.errorcode.get(c.connect_ex(server.getsockname()), 0))
            polled(c.fileno(), select.POLLOUT)
            results.append(c.getsockopt(SOL, socket.SO_ERROR))
            c.send(b"again")
            other = server.accept()[0]
            other.settimeout(LONG)
            results.append(other.recv(5).decode())
            other.close()
    return results


@scenario
def connected_to_any_address(c, p):
    family = c.family
    any_address = "::" if family == socket.AF_INET6 else "0.0.0.0"
    server = socket.create_server((any_address, 0), family=family)
    results = []
    for waits in (True, False):
        with socket.socket(family) as c:
            c.setblocking(waits)
            outcome(c.connect, (any_address, server.getsockname()[1]))
            polled(c.fileno(), select.POLLOUT)
            c.setblocking(True)
            other = server.accept()[0]
            for text in (b"one", b"two"):
                c.sendall(text)
                results.append(other.recv(3).decode())
            results += [c.getpeername()[0], other.getsockname()[0]]
            other.close()
    return results


# Numbers of system calls on x86-64.
NUMBERS = {"read": 0, "write": 1, "poll": 7, "ioctl": 16, "connect": 42, "sendto": 44, "recvfrom": 45, "shutdown": 48, "getsockopt": 55}


@scenario
def calls_by_number(c, p):
    if os.uname().machine != "x86_64":
        return "other numbers"
    number = lambda name, *arguments: c_call("syscall", ctypes.c_long(NUMBERS[name]), *(ctypes.c_long(it) if isinstance(it, int) else it for it in arguments))
    fd, buffer, value, size = c.fileno(), ctypes.create_string_buffer(16), ctypes.c_int(-1), ctypes.c_int(4)
    p.send("abcdef")
    until(lambda: unread(c, 6))
    results = [number("ioctl", fd, termios.FIONREAD, ctypes.byref(value)), value.value]
    results += [number("read", fd, buffer, 2), number("recvfrom", fd, buffer, 16, 0, 0, 0), buffer.raw[:4].decode()]
    results += [number("write", fd, b"12", 2), number("sendto", fd, b"3456", 4, 0, 0, 0), p.recv(6)]
    results += [number("poll", ctypes.byref((ctypes.c_short * 4)(fd, 0, 4, 0)), 1, 0), number("connect", fd, 0, 0)]
    results += [number("getsockopt", fd, SOL, socket.SO_ERROR, ctypes.byref(value), ctypes.byref(size)), value.value]
    return results + [number("shutdown", fd, socket.SHUT_WR), p.drain()]


@scenario
def connected_again(c, p):
    return tries(c.getsockname()[0])


@scenario
def waitall(c, p):
    p.later(0.05, "send", "ab")
    p.later(0.2, "send", "cde")
    seen = [c.recv(5, socket.MSG_WAITALL | socket.MSG_PEEK).decode(), c.recv(5, socket.MSG_WAITALL).decode()]
    p.send("xy")
    p.shutdown()
    return seen + [c.recv(5, socket.MSG_WAITALL | socket.MSG_PEEK).decode(), c.recv(5, socket.MSG_WAITALL).decode()]


@scenario
def waitall_ends_by_time(c, p):
    c.setsockopt(SOL, socket.SO_RCVTIMEO, struct.pack("ll", 0, 200_000))
    p.send("ab")
    seen = [outcome(c.recv, 5, flags).decode() for flags in (socket.MSG_WAITALL | socket.MSG_PEEK, socket.MSG_WAITALL)]
    return seen, outcome(c.recv, 5)


@scenario
def peek_into_parts(c, p):
    p.send("abcdef")
    unread(c, 6)
    rooms = [bytearray(2), bytearray(3), bytearray(4)]
    seen = [c.recvmsg_into(rooms, 0, socket.MSG_PEEK)[0], *(room.decode() for room in rooms)]
    return seen + [c.recvmsg_into(rooms)[0], *(room.decode() for room in rooms)]


@scenario
def unread_grows(c, p):
    seen = []
    for count in range(1, 5):
        p.send("abcde")
        seen.append(unread(c, 5 * count))
    return seen, c.recv(99).decode()


@scenario
def many_parts(c, p):
    class Part(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]

    class Message(ctypes.Structure):
        _fields_ = [("name", ctypes.c_void_p), ("namelen", ctypes.c_uint), ("parts", ctypes.c_void_p), ("count", ctypes.c_size_t)] + [
            (field, ctypes.c_size_t) for field in ("control", "controllen", "flags")
        ]

    p.send("abc")
    unread(c, 3)
    room = ctypes.create_string_buffer(8)
    parts = (Part * 1025)(*[Part(ctypes.addressof(room), 1)] * 1025)
    message = Message(parts=ctypes.addressof(parts), count=1025)
    fd = c.fileno()
    seen = [c_call(call, fd, ctypes.byref(message), 0) for call in ("recvmsg", "sendmsg")]
    seen += [c_call(call, fd, parts, count) for call in ("readv", "writev") for count in (1025, -1)]
    return seen, c.recv(9).decode()
