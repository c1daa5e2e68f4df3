"""A program that knows nothing of Baton. Its peer obeys the commands that it receives, one per line: see main.rs."""

import array, ctypes, errno, fcntl, os, select, signal, socket, struct, sys, tempfile, termios, threading, time

PORT = int(sys.argv[2])
IN, OUT, RDHUP, HUP = select.EPOLLIN, select.EPOLLOUT, select.EPOLLRDHUP, select.EPOLLHUP
IO_URING_SETUP = 425


def listening(address="10.0.0.2"):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, PORT))
    listener.listen()
    return listener


def accepted():
    with listening() as listener:
        connection, peer = listener.accept()
    assert peer[0] == "10.0.0.1" and connection.getpeername() == peer, peer
    assert connection.getsockname() == ("10.0.0.2", PORT)
    return connection


def fails(number, call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        assert error.errno == number, error
    else:
        raise AssertionError("the call does not fail")


def unread(connection):
    count = array.array("i", [0])
    fcntl.ioctl(connection, termios.FIONREAD, count)
    return count[0]


def until_unread(connection, count):
    while unread(connection) < count:
        time.sleep(0.001)


def epoll():
    connection = accepted()
    connection.setblocking(False)
    readable, writable = os.pipe()
    with select.epoll() as waiting:
        waiting.register(connection, IN | RDHUP)
        waiting.register(readable, IN)
        fails(errno.EEXIST, waiting.register, connection, IN)
        assert waiting.poll(0) == []
        # Level-triggered: reported until the data is read. The same epoll instance contains a pipe, which only the kernel knows.
        connection.send(b"send 3\n")
        assert waiting.poll(60) == [(connection.fileno(), IN)] == waiting.poll(60)
        os.write(writable, b"x")
        assert sorted(waiting.poll(60)) == sorted([(connection.fileno(), IN), (readable, IN)])
        assert len(waiting.poll(60, 1)) == 1 and {waiting.poll(60, 1)[0][0] for _ in range(4)} == {readable, connection.fileno()}
        os.read(readable, 1)
        assert connection.recv(10) == b"xxx"
        assert waiting.poll(0) == []
        # An event of the pipe ends a wait.
        threading.Timer(0.05, os.write, [writable, b"x"]).start()
        assert waiting.poll(60) == [(readable, IN)]
        os.read(readable, 1)
        # Edge-triggered: arrived data is reported once.
        waiting.modify(connection, IN | OUT | RDHUP | select.EPOLLET)
        assert waiting.poll(60) == [(connection.fileno(), OUT)] and waiting.poll(0) == []
        connection.send(b"send 3\n")
        while not waiting.poll(60)[0][1] & IN:
            pass
        until_unread(connection, 3)
        waiting.poll(0)
        assert waiting.poll(0) == [] and connection.recv(10) == b"xxx"
        # One-shot: reported once until the connection is modified again.
        waiting.modify(connection, IN | select.EPOLLONESHOT)
        connection.send(b"send 3\n")
        assert waiting.poll(60) == [(connection.fileno(), IN)] and waiting.poll(0) == []
        waiting.modify(connection, IN | RDHUP)
        assert waiting.poll(60) == [(connection.fileno(), IN)] and connection.recv(10) == b"xxx"
        # The end of the stream is reported, and later the end of both directions.
        connection.send(b"shut\n")
        assert waiting.poll(60) == [(connection.fileno(), IN | RDHUP)] and connection.recv(10) == b""
        connection.shutdown(socket.SHUT_WR)
        assert waiting.poll(60) == [(connection.fileno(), IN | RDHUP | HUP)]
        waiting.unregister(connection)
        fails(errno.ENOENT, waiting.unregister, connection)
        assert waiting.poll(0) == []


def threads():
    """One thread waits. The other accepts a connection and adds it to the epoll instance for which the first one waits."""
    listener = listening()
    with select.epoll() as waiting:
        told = []
        thread = threading.Thread(target=lambda: told.extend(waiting.poll(60)))
        thread.start()
        connection, _ = listener.accept()
        waiting.register(connection, IN)
        connection.send(b"send 3\n")
        thread.join()
        assert told == [(connection.fileno(), IN)], told


def room():
    connection = accepted()
    connection.setblocking(False)
    connection.send(b"pause\n")
    sent = 0
    with select.epoll() as waiting:
        waiting.register(connection, OUT | select.EPOLLET)
        assert waiting.poll(60)
        # The adapter fetches sent data and sends it to the peer until all buffers are full.
        while sent < 50_000_000 and select.select([], [connection], [], 0.2)[1]:
            try:
                sent += connection.send(b"." * 100_000)
            except BlockingIOError:
                pass
        waiting.poll(0)
        os.write(int(sys.argv[3]), b"go on\n")
        while sent < 100_000_000:
            assert waiting.poll(60) == [(connection.fileno(), OUT)]
            try:
                while sent < 100_000_000:
                    sent += connection.send(b"." * min(100_000, 100_000_000 - sent))
            except BlockingIOError:
                pass
    connection.setblocking(True)
    connection.shutdown(socket.SHUT_WR)
    assert connection.recv(100) == b"100000000\n"


def options():
    connection = accepted()
    copy = socket.socket(fileno=os.dup(connection.fileno()))
    fails(errno.EAGAIN, connection.recv, 1, socket.MSG_DONTWAIT)
    connection.settimeout(None)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 20_000))
    fails(errno.EAGAIN, connection.recv, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 0))
    for name in (socket.TCP_NODELAY, socket.TCP_CORK):
        connection.setsockopt(socket.IPPROTO_TCP, name, 1)
        assert connection.getsockopt(socket.IPPROTO_TCP, name) == 1
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
    assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_STREAM
    connection.send(b"send", socket.MSG_MORE)
    connection.sendmsg([b" ", b"5", b"\n"])
    assert copy.recv(3, socket.MSG_PEEK) == b"xxx"
    until_unread(connection, 5)
    assert copy.recv(10, socket.MSG_PEEK) == b"xxxxx" and unread(connection) == 5
    assert select.select([connection], [connection], [], 60) == ([connection], [connection], [])
    connection.close()
    assert copy.recvmsg(10)[0] == b"xxxxx"
    copy.send(b"send 9\n")
    assert copy.recv(9, socket.MSG_WAITALL) == b"x" * 9
    with open(__file__, "rb") as file:
        length = os.path.getsize(file.fileno())
        copy.send(b"echo %d\n" % length)
        assert os.sendfile(copy.fileno(), file.fileno(), 0, length) == length and file.tell() == 0
        assert copy.recv(length, socket.MSG_WAITALL) == file.read()
    assert os.get_blocking(copy.fileno())
    copy.setblocking(False)
    assert not os.get_blocking(copy.fileno())
    fails(errno.EAGAIN, copy.recv, 1)


def files():
    """Files that the adapter reads by itself, if their file system lets it."""
    connection = accepted()
    content = os.urandom(300_000)

    def echoes(data):
        return connection.recv(len(data), socket.MSG_WAITALL) == data

    def sends(offset, count):
        return os.sendfile(connection.fileno(), file.fileno(), offset, count)

    with tempfile.NamedTemporaryFile(dir=os.path.dirname(os.path.abspath(__file__))) as file:
        file.write(content)
        file.flush()
        file.seek(0)
        connection.send(b"echo 300000\n")
        assert sends(0, 300_000) == 300_000 and os.lseek(file.fileno(), 0, os.SEEK_CUR) == 0
        assert echoes(content)
        # By the file's position, and beyond its end.
        os.lseek(file.fileno(), 100_000, os.SEEK_SET)
        connection.send(b"echo 200000\n")
        assert sends(None, 50_000) == 50_000 and sends(None, 300_000) == 150_000 and sends(None, 9) == 0
        assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == 300_000 and echoes(content[100_000:])
        fails(errno.EINVAL, sends, -1, 100_000)
        # Changes between two calls.
        os.pwrite(file.fileno(), content[::-1], 0)
        os.ftruncate(file.fileno(), 250_000)
        connection.send(b"echo 250000\n")
        assert sends(0, 300_000) == 250_000 and sends(250_000, 50_000) == 0 and echoes(content[::-1][:250_000])
        with open(file.name, "ab") as more:
            more.write(content)
        connection.send(b"echo 300000\n")
        assert sends(250_000, 1_000_000) == 300_000 and echoes(content)
        # Without waiting, and with other data around.
        connection.setblocking(False)
        connection.send(b"echo 300014\n")
        connection.send(b"header ", socket.MSG_MORE)
        sent = 0
        while sent < 300_000:
            select.select([], [connection], [], 60)
            sent += sends(250_000 + sent, 300_000 - sent)
        connection.setblocking(True)
        connection.send(b"trailer")
        assert echoes(b"header " + content + b"trailer")
        with open(file.name, "ab") as writer:
            fails(errno.EBADF, os.sendfile, connection.fileno(), writer.fileno(), 0, 1 << 20)


def leaves():
    """Data that a program has written arrives after the program has ended."""
    connection = accepted()
    connection.send(b"pause\n" + b"." * 200_000)
    os.write(int(sys.argv[3]), b"go on\n")


def signals():
    connection = accepted()

    def ring(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, ring)
    for wait in (lambda: connection.recv(1), lambda: select.select([connection], [], [])):
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            wait()
        except TimeoutError:
            continue
        raise AssertionError("the signal does not interrupt the call")
    connection.send(b"shut\n")
    assert connection.recv(1) == b""


def kernel():
    """One listener accepts connections from the kernel and from the adapter."""
    listener = listening("0.0.0.0")
    listener.setblocking(False)
    with select.epoll() as waiting:
        waiting.register(listener, 0)
        # A waiting connection is reported only once the program asks for the event.
        assert select.select([listener], [], [], 60)[0] and waiting.poll(0) == []
        waiting.modify(listener, IN)
        client = socket.create_connection(("127.0.0.1", PORT))
        peers = []
        while len(peers) < 2:
            assert waiting.poll(60)[0][0] == listener.fileno()
            try:
                connection, peer = listener.accept()
            except BlockingIOError:
                continue
            peers.append(peer[0])
            connection.send(b"send 1\n")
            if peer[0] == "127.0.0.1":
                client.send(client.recv(100))
            assert connection.recv(1)
    assert sorted(peers) == ["10.0.0.1", "127.0.0.1"]


def fork():
    """A server listens in one process and accepts in another. A connection belongs to the process that accepted it."""
    listener = listening()
    child = os.fork()
    if child == 0:
        connection, _ = listener.accept()
        grandchild = os.fork()
        if grandchild == 0:
            fails(errno.ENOTCONN, connection.recv, 1)
            os._exit(0)
        assert os.waitpid(grandchild, 0)[1] == 0
        connection.send(b"send 4\n")
        assert connection.recv(4, socket.MSG_WAITALL) == b"xxxx"
        connection.send(b"quit\n")
        assert connection.recv(1) == b""
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def passed():
    connection = accepted()
    left, right = socket.socketpair()
    fails(errno.EOPNOTSUPP, socket.send_fds, left, [b"x"], [connection.fileno()])
    socket.send_fds(left, [b"x"], [right.fileno()])


def refused():
    """The adapter refuses urgent data, which only the kernel supports, and connections continue."""
    connection = accepted()
    copy = socket.socket(fileno=os.dup(connection.fileno()))
    for end in (connection, copy):
        fails(errno.EOPNOTSUPP, end.send, b"!", socket.MSG_OOB)
        fails(errno.EOPNOTSUPP, end.sendmsg, [b"!"], [], socket.MSG_OOB)
        fails(errno.EINVAL, end.recv, 1, socket.MSG_OOB)
        fails(errno.EINVAL, end.recvmsg, 1, 0, socket.MSG_OOB)
    connection.send(b"send 4\n")
    assert connection.recv(4, socket.MSG_WAITALL) == b"xxxx"
    # io_uring is reported as missing, so that programs use other calls.
    library = ctypes.CDLL(None, use_errno=True)
    assert library.syscall(IO_URING_SETUP, 8, 0) == -1 and ctypes.get_errno() == errno.ENOSYS


TIMESTAMP, TIMESTAMPNS, TIMESTAMPING, TIMESTAMPING_NEW = 29, 35, 37, 65
TX, RX, SOFTWARE, ID, SCHED, ACK, TSONLY, BIND_PHC, ID_TCP = (1 << bit for bit in (1, 3, 4, 7, 8, 9, 11, 15, 16))


def just_now(at, since):
    """Returns whether a time lies between `since` and now, give or take the 2 ms by which clocks may differ."""
    return since - 0.002 <= at <= time.time() + 0.002


def timespec(data):
    seconds, ns = struct.unpack_from("qq", data)
    return seconds + ns / 1e9


def report(connection, number=TIMESTAMPING):
    """Returns the stage, the byte and the time of the next report of the error queue."""
    events = select.poll()
    events.register(connection, 0)
    assert events.poll(60_000) == [(connection.fileno(), select.POLLERR)]
    data, controls, flags, _ = connection.recvmsg(100, 200, socket.MSG_ERRQUEUE)
    assert data == b"" and flags == socket.MSG_ERRQUEUE, (data, flags)
    (_, kind, times), (level, error_kind, error) = controls
    assert kind == number and len(times) == 48 and times[16:] == bytes(32), controls
    assert (level, error_kind) == (socket.SOL_IP, 11) and len(error) == 32, controls  # IP_RECVERR
    error_number, origin, _, _, _, stage, byte = struct.unpack_from("=IBBBBII", error)
    assert (error_number, origin) == (errno.ENOMSG, 4), controls
    return stage, byte, timespec(times)


def times():
    """Reads when bytes were scheduled (1), sent (0), acknowledged (2) and received."""
    listener = listening()
    select.select([listener], [], [], 0)
    option = (socket.SOL_SOCKET, TIMESTAMPING)
    listener.setsockopt(*option, RX | SOFTWARE)
    fails(errno.EINVAL, listener.setsockopt, *option, RX | SOFTWARE | ID)
    connection, _ = listener.accept()
    assert connection.getsockopt(*option) == RX | SOFTWARE
    for value, number in ((1 << 30, errno.EINVAL), (ID_TCP, errno.EINVAL), (BIND_PHC, errno.EOPNOTSUPP)):
        fails(number, connection.setsockopt, *option, value)
    # Times of received data.
    since = time.time()
    connection.send(b"send 5\n")
    data, [(level, kind, value)], _, _ = connection.recvmsg(10, 200)
    assert data == b"xxxxx" and (level, kind, len(value)) == (socket.SOL_SOCKET, TIMESTAMPING, 48)
    assert just_now(timespec(value), since) and value[16:] == bytes(32)
    fails(errno.EAGAIN, connection.recvmsg, 1, 200, socket.MSG_ERRQUEUE)
    connection.setsockopt(*option, 0)
    for name, unit in ((TIMESTAMP, 1e6), (TIMESTAMPNS, 1e9)):
        connection.setsockopt(socket.SOL_SOCKET, name, 1)
        assert connection.getsockopt(socket.SOL_SOCKET, name) == 1
        since = time.time()
        connection.send(b"send 5\n")
        _, [(_, kind, value)], _, _ = connection.recvmsg(10, 200)
        seconds, fraction = struct.unpack("qq", value)
        assert kind == name and just_now(seconds + fraction / unit, since)
    connection.setsockopt(socket.SOL_SOCKET, TIMESTAMPNS, 0)
    connection.send(b"send 5\n")
    assert connection.recvmsg(10, 200)[:2] == (b"xxxxx", [])
    # Times of sent data: one for the last byte of each call. Bytes are counted from the first one that is written after the option is set.
    everything = TX | SOFTWARE | ID | SCHED | ACK | TSONLY | ID_TCP
    connection.setsockopt(*option, everything)
    assert connection.getsockopt(*option) == everything
    end, since = -1, time.time()
    for data in (b"send 2\n", b"echo 400000\n", b"." * 400_000):
        connection.sendall(data)
        end += len(data)
        told = [report(connection) for _ in range(3)]
        assert [(stage, byte) for stage, byte, _ in told] == [(stage, end) for stage in (1, 0, 2)], told
        scheduled, sent, acknowledged = (at for _, _, at in told)
        assert just_now(scheduled, since) and scheduled <= sent <= acknowledged and just_now(acknowledged, since), told
        since = sent
    assert connection.recv(400_002, socket.MSG_WAITALL) == b"xx" + b"." * 400_000
    # A single call requests times by a control message.
    connection.sendmsg([b"send", b" 1\n"], [(*option, struct.pack("I", TX))])
    assert report(connection)[:2] == (0, end + 7)
    assert connection.recvmsg(10, 200)[:2] == (b"x", [])
    fails(errno.EINVAL, connection.sendmsg, [b"."], [(*option, struct.pack("I", RX))])
    # Epoll reports the error queue, and the option also works under its other number.
    connection.setsockopt(socket.SOL_SOCKET, TIMESTAMPING_NEW, everything)
    with select.epoll() as waiting:
        waiting.register(connection, 0)
        assert waiting.poll(0) == []
        connection.send(b"shut\n")
        assert waiting.poll(60)[0][1] & select.EPOLLERR
        assert report(connection, TIMESTAMPING_NEW)[:2] == (1, end + 12)


globals()[sys.argv[1]]()
