#!/usr/bin/env python3
"""Scenarios of socket calls, which must print the same lines in the kernel and with `baton live run`.

    scenarios.py peer PATH                                   the other end, which takes commands from a Unix socket
    scenarios.py run listen|connect ADDRESS PATH [NAME...]   prints a line for each scenario: its name and its results

A scenario is a function of the tested connection `c` and its peer `p`, whose methods are those of `Connection`. Its return value is compared. It runs
in its own process, after some bytes were sent back and forth, so that a policy may have moved the connection.
"""
import array, ctypes, errno, fcntl, json, os, select, signal, socket, struct, subprocess, sys, termios, threading, time, traceback

C = ctypes.CDLL(None, use_errno=True)
for name, result in {"fdopen": ctypes.c_void_p, "freopen": ctypes.c_void_p}.items():
    getattr(C, name).restype = result
AT_ONCE = 12  # scenarios
LONGEST = 10  # seconds for a scenario
LONG = 3  # seconds to wait for an event that must happen
SHORT = 0.25  # seconds to wait for an event that must not happen
RDHUP = 0x2000
NAMES = {1: "IN", 2: "PRI", 4: "OUT", 8: "ERR", 16: "HUP", 32: "NVAL", RDHUP: "RDHUP"}
TCP, SOL, ET = socket.IPPROTO_TCP, socket.SOL_SOCKET, select.EPOLLET


# --- the peer ---


class Connection:
    """A peer, whose methods are called by messages of its tester."""

    def __init__(self):
        self.end = self.listener = None
        self.threads = []

    def connect(self, address, port):
        self.end = socket.create_connection((address, port), 10)

    def listen(self, address):
        self.listener = socket.create_server((address, 0), family=family_of(address), backlog=8)
        return self.listener.getsockname()[1]

    def accept(self):
        self.end = self.listener.accept()[0]

    def send(self, text):
        self.end.sendall(text.encode())

    def recv(self, count):
        data = b""
        while len(data) < count and (more := self.end.recv(count - len(data))):
            data += more
        return data.decode()

    def drain(self):
        """Reads to the end. Returns the number of bytes and how the stream ended."""
        count = 0
        try:
            while more := self.end.recv(1 << 16):
                count += len(more)
            return [count, "end"]
        except OSError as error:
            return [count, errno.errorcode.get(error.errno, str(error))]

    def shutdown(self):
        self.end.shutdown(socket.SHUT_WR)

    def close(self):
        self.end.close()

    def reset(self):
        self.end.setsockopt(SOL, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.end.close()

    def later(self, delay, method, *arguments):
        def act():
            time.sleep(delay)
            getattr(self, method)(*arguments)

        self.threads.append(threading.Thread(target=act, daemon=True))
        self.threads[-1].start()


def obey(told):
    connection = Connection()
    for line in told.makefile("r"):
        method, *arguments = json.loads(line)
        try:
            answer = getattr(connection, method)(*arguments)
        except OSError as error:
            answer = "E:" + errno.errorcode.get(error.errno, str(error))
        told.sendall((json.dumps(answer) + "\n").encode())


def be_peer(path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    while True:
        threading.Thread(target=obey, args=(listener.accept()[0],), daemon=True).start()


class Peer:
    """The other end: `p.send("x")` makes it send, `p.later(0.2, "send", "x")` makes it send later."""

    def __init__(self, path):
        self.path = path
        self.told = socket.socket(socket.AF_UNIX)
        self.told.connect(path)
        self.answers = self.told.makefile("r")

    def __getattr__(self, method):
        def ask(*arguments):
            self.told.sendall((json.dumps([method, *arguments]) + "\n").encode())
            return json.loads(self.answers.readline())

        return ask


# --- helpers ---


def family_of(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def outcome(call, *arguments, **named):
    """Returns the result of a call, or the name of its error."""
    try:
        return call(*arguments, **named)
    except OSError as error:
        return "E:" + errno.errorcode.get(error.errno, str(error.errno))


def c_call(name, *arguments):
    """Returns the result of a function of the C library, or the name of its error."""
    ctypes.set_errno(0)
    result = getattr(C, name)(*arguments)
    return result if result >= 0 else "E:" + errno.errorcode[ctypes.get_errno()]


def words(bits):
    return "+".join(name for bit, name in NAMES.items() if bits & bit)


def polled(fd, mask=select.POLLIN | RDHUP, seconds=LONG):
    poll = select.poll()
    poll.register(fd, mask)
    return [words(bits) for _, bits in poll.poll(seconds * 1000)]


def waited(epoll, seconds=LONG):
    return sorted(words(bits) for _, bits in epoll.poll(seconds))


def ioctl(fd, request):
    value = array.array("i", [-1])
    fcntl.ioctl(fd, request, value)
    return value[0]


def until(holds, seconds=LONG):
    """Waits until the condition holds. Returns whether it does."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def unread(c, count):
    return until(lambda: ioctl(c, termios.FIONREAD) >= count) or ioctl(c, termios.FIONREAD)


def is_over(c):
    """Waits until the connection has failed or both ends have closed it."""
    return until(lambda: any("HUP" in one.split("+") for one in polled(c, 0, 0)))


def int_option(c, level, name):
    return outcome(c.getsockopt, level, name)


SCENARIOS = {}
# Descriptor to which the process of a scenario writes its results.
REPORT = []


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


# --- reading ---


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


# --- ends of connections ---


@scenario
def reset_told_once(c, p):
    p.reset()
    return is_over(c), outcome(c.recv, 9), outcome(c.recv, 9), outcome(c.recv, 9), outcome(c.send, b"x")


@scenario
def reset_told_once_without_waiting(c, p):
    c.setblocking(False)
    p.reset()
    return is_over(c), outcome(c.recv, 9), outcome(c.recv, 9), outcome(c.send, b"x"), c.getsockopt(SOL, socket.SO_ERROR)


@scenario
def reset_while_reading(c, p):
    p.later(0.1, "reset")
    return outcome(c.recv, 9), outcome(c.recv, 9)


@scenario
def reset_after_data(c, p):
    p.send("abc")
    unread(c, 3)
    p.reset()
    return is_over(c), c.recv(2).decode(), c.recv(2).decode(), outcome(c.recv, 2), outcome(c.recv, 2)


def read_to_end(c):
    read = 0
    while isinstance(part := outcome(c.recv, 30_000), bytes) and part:
        read += len(part)
    return read, part


@scenario
def end_behind_much_data(c, p):
    p.send("x" * 40_000)
    seen = [unread(c, 40_000)]
    p.shutdown()
    return seen, polled(c, RDHUP), polled(c, 5 | RDHUP), ioctl(c, termios.FIONREAD), read_to_end(c)


@scenario
def reset_behind_much_data(c, p):
    p.send("x" * 40_000)
    seen = [unread(c, 40_000)]
    p.reset()
    seen += [is_over(c), polled(c, 5 | RDHUP), outcome(c.send, b"x"), polled(c, 5 | RDHUP)]
    return seen, read_to_end(c), outcome(c.send, b"x")


@scenario
def reset_behind_much_data_told_once(c, p):
    p.send("x" * 40_000)
    p.later(0.1, "reset")
    seen = [is_over(c), c.getsockopt(SOL, socket.SO_ERROR), polled(c, 5 | RDHUP)]
    return seen, read_to_end(c)


@scenario
def reset_told_to_writer(c, p):
    p.reset()
    is_over(c)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    return outcome(c.send, b"x"), outcome(c.send, b"x"), outcome(c.recv, 9)


@scenario
def reset_after_end(c, p):
    p.shutdown()
    seen = [polled(c), c.recv(9).decode()]
    p.reset()
    return seen, is_over(c), polled(c, 5), outcome(c.recv, 9), c.getsockopt(SOL, socket.SO_ERROR), polled(c, 5), outcome(c.recv, 9)


@scenario
def reset_readiness(c, p):
    epoll = select.epoll()
    epoll.register(c, select.EPOLLIN | select.EPOLLOUT | RDHUP)
    p.reset()
    is_over(c)
    seen = [waited(epoll), polled(c, 5 | RDHUP), c.getsockopt(SOL, socket.SO_ERROR)]
    return seen + [waited(epoll), polled(c, 5 | RDHUP), c.getsockopt(SOL, socket.SO_ERROR), outcome(c.recv, 9)]


@scenario
def reset_in_select(c, p):
    p.reset()
    is_over(c)
    return [len(ready) for ready in select.select([c], [c], [c], LONG)]


@scenario
def ends_by_edges(c, p):
    epoll = select.epoll()
    epoll.register(c, select.EPOLLIN | RDHUP | ET)
    p.shutdown()
    seen = [waited(epoll), waited(epoll, SHORT)]
    c.shutdown(socket.SHUT_WR)
    return seen + [waited(epoll), waited(epoll, SHORT), c.recv(9).decode(), polled(c, 5 | RDHUP)]


@scenario
def half_closed(c, p):
    c.shutdown(socket.SHUT_WR)
    p.later(0.1, "send", "abc")
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    return p.drain()[1] == "end", c.recv(9).decode(), outcome(c.send, b"x"), polled(c, 5 | RDHUP), outcome(c.shutdown, socket.SHUT_WR)


@scenario
def shut_twice_both_closed(c, p):
    p.shutdown()
    polled(c)
    seen = [outcome(c.shutdown, socket.SHUT_WR)]
    p.drain()
    seen.append(is_over(c))
    until(lambda: outcome(c.shutdown, socket.SHUT_WR))
    return seen + [outcome(c.shutdown, how) for how in (socket.SHUT_WR, socket.SHUT_RD, socket.SHUT_RDWR, 7)]


@scenario
def shut_for_reading(c, p):
    p.send("early")
    unread(c, 5)
    c.shutdown(socket.SHUT_RD)
    seen = [polled(c, 5 | RDHUP), c.recv(9).decode(), c.recv(9).decode()]
    p.send("late")
    return seen + [unread(c, 4), c.recv(9).decode(), c.recv(9).decode(), c.send(b"x"), p.recv(1)]


@scenario
def shut_for_reading_download(c, p):
    c.shutdown(socket.SHUT_RD)
    p.send("extra")
    unread(c, 5)
    sent = []
    thread = threading.Thread(target=lambda: (c.sendall(b"d" * 3_000_000), c.recv(9), c.shutdown(socket.SHUT_WR)))
    thread.start()
    sent.append(p.drain())
    thread.join()
    return sent


@scenario
def closed_with_unread_data(c, p):
    p.send("unread")
    unread(c, 6)
    c.close()
    return p.drain()


@scenario
def linger_nothing(c, p):
    c.setsockopt(SOL, socket.SO_LINGER, struct.pack("ii", 1, 0))
    seen = c.getsockopt(SOL, socket.SO_LINGER, 8).hex()
    c.close()
    return seen, p.drain()


# --- readiness ---


@scenario
def nested_set(c, p):
    inner, outer = select.epoll(), select.epoll()
    outer.register(inner, select.EPOLLIN)
    inner.register(c, select.EPOLLIN)
    seen = [waited(outer, SHORT)]
    p.later(0.1, "send", "abc")
    seen += [waited(outer), waited(outer), waited(inner), c.recv(9).decode(), waited(outer, SHORT), waited(inner, 0)]
    p.later(0.1, "send", "de")
    return seen + [waited(outer), waited(inner), c.recv(9).decode()]


@scenario
def nested_set_filled_first(c, p):
    inner, outer = select.epoll(), select.epoll()
    inner.register(c, select.EPOLLIN)
    outer.register(inner, select.EPOLLIN)
    p.later(0.1, "send", "abc")
    return waited(outer), waited(inner), polled(inner), c.recv(9).decode(), polled(inner, seconds=SHORT), polled(outer, seconds=SHORT)


@scenario
def nested_set_without_waiting(c, p):
    c.setblocking(False)
    inner, outer = select.epoll(), select.epoll()
    inner.register(c, select.EPOLLIN | ET)
    outer.register(inner, select.EPOLLIN | ET)
    seen = []
    for text in ("abc", "de", "f"):
        p.send(text)
        seen += [waited(outer), waited(inner), c.recv(9).decode(), waited(outer, SHORT)]
    return seen


@scenario
def nested_sets_deeply(c, p):
    sets = [select.epoll() for _ in range(4)]
    for outer, inner in zip(sets, sets[1:]):
        outer.register(inner, select.EPOLLIN)
    sets[-1].register(c, select.EPOLLIN)
    p.later(0.1, "send", "abc")
    seen = [waited(sets[0]), polled(sets[1]), waited(sets[2]), len(select.select([sets[0]], [], [], LONG)[0]), waited(sets[3])]
    return seen + [c.recv(9).decode(), waited(sets[0], SHORT), polled(sets[1], seconds=SHORT)]


@scenario
def nested_set_by_edges(c, p):
    inner, outer = select.epoll(), select.epoll()
    outer.register(inner, select.EPOLLIN | ET)
    inner.register(c, select.EPOLLIN)
    seen = []
    for text in ("abc", "de"):
        p.later(0.05, "send", text)
        seen += [waited(outer), waited(outer, SHORT)]
    return seen + [waited(inner), c.recv(9).decode()]


@scenario
def nested_set_loses_a_member(c, p):
    inner, outer = select.epoll(), select.epoll()
    inner.register(c, select.EPOLLIN)
    outer.register(inner, select.EPOLLIN)
    p.send("abc")
    seen = [waited(outer)]
    inner.unregister(c)
    seen.append(waited(outer, SHORT))
    inner.register(c, select.EPOLLIN)
    seen.append(waited(outer))
    outer.unregister(inner)
    return seen + [waited(outer, SHORT), waited(inner)]


@scenario
def set_in_poll_and_select(c, p):
    epoll = select.epoll()
    epoll.register(c, select.EPOLLIN)
    seen = [polled(epoll, seconds=0), len(select.select([epoll], [], [], 0)[0])]
    p.later(0.1, "send", "abc")
    seen += [polled(epoll), len(select.select([epoll], [], [], LONG)[0]), waited(epoll), c.recv(9).decode()]
    return seen + [polled(epoll, seconds=SHORT), len(select.select([epoll], [], [], 0)[0])]


@scenario
def edges_after_partial_reads(c, p):
    c.setblocking(False)
    epoll = select.epoll()
    epoll.register(c, select.EPOLLIN | ET)
    seen = []
    for _ in range(4):
        p.send("abcde")
        seen += [waited(epoll), c.recv(2).decode(), waited(epoll, 0.05)]
    return seen, c.recv(99).decode()


@scenario
def edges_without_reads(c, p):
    epoll = select.epoll()
    epoll.register(c, select.EPOLLIN | select.EPOLLOUT | ET)
    seen = [waited(epoll), waited(epoll, 0.05)]
    for _ in range(4):
        p.send("abcde")
        seen += [waited(epoll), waited(epoll, 0.05)]
    return seen, c.recv(99).decode()


@scenario
def edges_of_both_kinds_modified(c, p):
    c.setblocking(False)
    epoll = select.epoll()
    epoll.register(c, select.EPOLLIN | ET)
    p.send("abc")
    seen = [waited(epoll)]
    epoll.modify(c, select.EPOLLIN | select.EPOLLOUT | ET)
    seen += [waited(epoll), waited(epoll, 0.05), c.recv(2).decode()]
    epoll.modify(c, select.EPOLLIN | select.EPOLLONESHOT)
    seen += [waited(epoll), waited(epoll, 0.05)]
    epoll.modify(c, select.EPOLLIN | select.EPOLLONESHOT)
    return seen + [waited(epoll), c.recv(9).decode()]


@scenario
def edges_of_many_unread_pieces(c, p):
    epoll = select.epoll()
    epoll.register(c, select.EPOLLIN | RDHUP | ET)
    seen = []
    for _ in range(20):
        p.send("abcde")
        seen.append(waited(epoll))
    seen.append(unread(c, 100))
    p.shutdown()
    return seen, waited(epoll), len(c.recv(999)), c.recv(9).decode()


# --- descriptors closed without the library, and other owners ---


@scenario
def stream_closed(c, p):
    c.sendall(b"hello")
    seen = [C.fclose(ctypes.c_void_p(C.fdopen(c.detach(), b"r+")))]
    return seen + [p.recv(5), p.drain()]


@scenario
def stream_reads_and_writes(c, p):
    stream = ctypes.c_void_p(C.fdopen(c.detach(), b"r+"))
    C.fputs(b"question\n", stream)
    C.fflush(stream)
    seen = [p.recv(9)]
    p.send("answer\n")
    room = ctypes.create_string_buffer(64)
    C.fgets(room, 64, stream)
    return seen + [room.value.decode(), C.fclose(stream), p.drain()]


@scenario
def stream_of_a_copy(c, p):
    out, into = (ctypes.c_void_p(C.fdopen(os.dup(c.fileno()), mode)) for mode in (b"w", b"r"))
    C.fputs(b"hello\n", out)
    seen = [C.fclose(out), p.recv(6)]
    C.fclose(into)
    c.send(b"x")
    seen.append(p.recv(1))
    c.close()
    return seen + [p.drain()]


@scenario
def stream_reopened(c, p):
    stream = ctypes.c_void_p(C.fdopen(c.detach(), b"w"))
    C.fputs(b"hello", stream)
    stream = C.freopen(b"/dev/null", b"w", stream)
    return bool(stream), p.drain()


@scenario
def standard_output(c, p):
    saved = os.dup(1)
    os.dup2(c.fileno(), 1)
    C.puts(b"hello")
    C.fflush(None)
    seen = p.recv(6)
    c.close()
    os.dup2(saved, 1)
    return seen, p.drain()


@scenario
def child_holds_it(c, p):
    ends = os.pipe()
    if (child := os.fork()) == 0:
        os.close(ends[1])
        os.read(ends[0], 1)
        os._exit(c.send(b"child") != 5)
    c.close()
    seen = []
    p.later(0, "drain")
    time.sleep(SHORT)
    os.write(ends[1], b"x")
    seen.append(os.waitpid(child, 0)[1])
    return seen + [p.drain()[1]]


@scenario
def child_and_parent_use_it(c, p):
    c.send(b"before ")
    if (child := os.fork()) == 0:
        os._exit(c.send(b"child ") != 6)
    seen = [os.waitpid(child, 0)[1], c.send(b"parent"), p.recv(19)]
    c.close()
    return seen + [p.drain()]


@scenario
def spawned_holds_it(c, p):
    os.set_inheritable(c.fileno(), True)
    child = os.posix_spawn("/bin/sh", ["sh", "-c", "sleep 0.3; echo child"], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, c.fileno(), 1)])
    c.close()
    return p.recv(6), os.waitpid(child, 0)[1], p.drain()


@scenario
def child_of_vfork_has_it(c, p):
    """Python starts programs by vfork, and gives them descriptors by dup2."""
    p.later(0.1, "send", "abc\n")
    return subprocess.run(["sh", "-c", "read x; echo hello $x"], stdin=c, stdout=c, timeout=LONG).returncode, p.recv(10)


@scenario
def becomes_another_program(c, p):
    for fd in (c.fileno(), REPORT[0]):
        os.set_inheritable(fd, True)
    p.later(0.1, "send", "abc\n")
    words = [b"bash", b"-c", f"read x <&{c.fileno()}; echo hello $x >&{c.fileno()}; printf '\"%s\"' $x >&{REPORT[0]}".encode()]
    return c_call("execl", b"/bin/bash", *words, None)


@scenario
def small_stack(c, p):
    def use():
        for number in range(6):
            c.sendall(b"%d" % number)
            seen.append(p.recv(1))
            p.send("x" * 5000)
            seen.append(len(c.recv(5000, socket.MSG_WAITALL)))

    seen = []
    threading.stack_size(32 << 10)
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    return seen


@scenario
def passed_on(c, p):
    ours, theirs = socket.socketpair()
    socket.send_fds(ours, [b"x"], [c.fileno()])
    c.close()
    fds = socket.recv_fds(theirs, 1, 1)[1]
    again = socket.socket(fileno=fds[0])
    seen = [again.send(b"hello"), p.recv(5)]
    p.send("abc")
    seen.append(again.recv(9).decode())
    again.close()
    return seen + [p.drain()]


@scenario
def closed_in_ranges(c, p):
    copy = fcntl.fcntl(c, fcntl.F_DUPFD_CLOEXEC, 700)
    c.send(b"x")
    C.close_range(700, 800, 4)
    seen = [outcome(os.write, copy, b"y"), p.recv(2)]
    c.close()
    C.close_range(700, 800, 0)
    return seen + [p.drain()]


@scenario
def closed_by_copies(c, p):
    copy = os.dup(c.fileno())
    c.close()
    os.write(copy, b"x")
    seen = [p.recv(1)]
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, copy)
    return seen + [p.drain()]


# --- information about a connection ---


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
    polled(c)
    seen.append(tcp_info(c)[0][0])
    c.shutdown(socket.SHUT_WR)
    p.drain()
    return seen + [until(lambda: tcp_info(c)[0][0] == 7)]


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


# --- running them ---


def play(name, role, address, path, report):
    """Runs a scenario in its own process."""
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(RuntimeError("the scenario hangs")))
    signal.alarm(LONGEST)
    REPORT.append(report)
    try:
        p = Peer(path)
        if role == "listen":
            listener = socket.create_server((address, 0), family=family_of(address), backlog=8)
            p.told.sendall((json.dumps(["connect", address, listener.getsockname()[1]]) + "\n").encode())
            c = listener.accept()[0]
            p.answers.readline()
        else:
            port = p.listen(PEERS[address])
            c = socket.create_connection((PEERS[address], port))
            p.accept()
        for _ in range(4):
            c.sendall(b"w")
            p.recv(1)
            p.send("w")
            c.recv(1)
            time.sleep(0.01)
        seen = SCENARIOS[name](c, p)
    except BaseException as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == __file__]
        seen = f"{type(error).__name__}: {error}, by way of lines {lines}"
    os.write(report, json.dumps(seen, default=repr).encode())
    os._exit(0)


PEERS = {"10.7.0.2": "10.7.0.1", "fd00:7::2": "fd00:7::1"}


def run(role, address, path, names):
    results, running, waiting = {}, {}, list(names or SCENARIOS)
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            name = waiting.pop(0)
            mine, theirs = os.pipe()
            if (child := os.fork()) == 0:
                play(name, role, address, path, theirs)
            os.close(theirs)
            running[child] = (name, mine, time.monotonic() + 2 * LONGEST)
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            for late in [child for child, one in running.items() if one[2] < time.monotonic()]:
                os.kill(late, signal.SIGKILL)
            time.sleep(0.005)
            continue
        name, mine, _ = running.pop(child)
        with open(mine) as told:
            results[name] = told.read() or f"status {status}"
    for name in names or SCENARIOS:
        print(name, results[name])


if __name__ == "__main__":
    if sys.argv[1] == "peer":
        be_peer(sys.argv[2])
    run(*sys.argv[2:5], sys.argv[5:])
