"""The other end of the tested connection, in a process of its own that takes commands from a Unix socket."""
import errno, hashlib, json, socket, struct, threading, time

from calls import family_of


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

    def collect(self):
        """Begins to read to the end."""
        self.count, self.digest, self.how = 0, hashlib.sha256(), "end"

        def read():
            try:
                while more := self.end.recv(1 << 16):
                    self.digest.update(more)
                    self.count += len(more)
            except OSError as error:
                self.how = errno.errorcode.get(error.errno, str(error))

        self.threads.append(threading.Thread(target=read, daemon=True))
        self.threads[-1].start()

    def arrived(self, count):
        """Waits until this many bytes have been read."""
        while self.count < count:
            time.sleep(0.005)

    def collected(self):
        """Returns the number of bytes up to the end, their digest, and how the stream ended."""
        self.threads[-1].join()
        return [self.count, self.digest.hexdigest(), self.how]

    def shutdown(self):
        self.end.shutdown(socket.SHUT_WR)

    def close(self):
        self.end.close()

    def reset(self):
        self.end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
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
