"""Files sent by sendfile(2)."""
import hashlib, os, select, socket, tempfile

from calls import LONG, outcome, scenario

SIZE = 300_000


def content(size=SIZE, first=0):
    return b"".join(b"%09d\n" % at for at in range(first, first + size // 10 + 1))[:size]


def digest(*parts):
    whole = b"".join(parts)
    return [len(whole), hashlib.sha256(whole).hexdigest(), "end"]


class Sent:
    """A file that is sent on a connection whose peer reads all the time."""

    def __init__(self, c, p, data=content(), folder="/var/tmp"):
        self.c, self.p = c, p
        self.file = tempfile.NamedTemporaryFile(dir=folder, prefix="baton-e2e-")
        self.write(data)
        p.collect()

    def write(self, data):
        self.file.seek(0)
        self.file.write(data)
        self.file.truncate()
        self.file.flush()
        self.file.seek(0)

    def send(self, offset, count, file=None):
        return outcome(os.sendfile, self.c.fileno(), (file or self.file).fileno(), offset, count)

    def send_all(self, offset, count, file=None):
        """Sends the whole range, and waits for buffer space if the connection is non-blocking."""
        end = offset + count
        while offset < end:
            sent = self.send(offset, end - offset, file)
            if sent == "E:EAGAIN":
                select.select([], [self.c], [], LONG)
            elif isinstance(sent, int) and sent > 0:
                offset += sent
            else:
                return sent
        return offset

    def ended(self):
        """Ends the stream. Returns how much has arrived, its digest, and how the stream has ended."""
        self.c.shutdown(socket.SHUT_WR)
        return self.p.collected()


@scenario
def file_by_offset(c, p):
    sent = Sent(c, p)
    return sent.send_all(0, SIZE), sent.file.tell(), sent.ended() == digest(content())


@scenario
def file_by_position(c, p):
    sent = Sent(c, p)
    sent.file.seek(50_000)
    first, at = sent.send(None, 100_000), os.lseek(sent.file.fileno(), 0, os.SEEK_CUR)
    rest, end = sent.send(None, SIZE), os.lseek(sent.file.fileno(), 0, os.SEEK_CUR)
    return first, at, rest, end, sent.ended() == digest(content()[50_000:])


@scenario
def file_without_waiting(c, p):
    c.setblocking(False)
    sent = Sent(c, p, content(1_500_000))
    return sent.send_all(0, 1_500_000), sent.ended() == digest(content(1_500_000))


@scenario
def file_between_other_data(c, p):
    sent = Sent(c, p)
    c.send(b"head", socket.MSG_MORE)
    seen = [sent.send_all(0, 100_000)]
    c.sendall(b"middle")
    seen.append(sent.send_all(100_000, 200_000))
    c.sendall(b"tail")
    return seen, sent.ended() == digest(b"head", content()[:100_000], b"middle", content()[100_000:], b"tail")


@scenario
def file_and_close(c, p):
    sent = Sent(c, p, content(1_000_000))
    seen = sent.send_all(0, 1_000_000)
    c.close()
    return seen, p.collected() == digest(content(1_000_000))


@scenario
def file_edited_between_sends(c, p):
    sent = Sent(c, p)
    seen = [sent.send_all(0, SIZE)]
    # What has not left the queue would be sent as changed.
    p.arrived(SIZE)
    sent.write(content(first=77))
    seen.append(sent.send_all(0, SIZE))
    return seen, sent.ended() == digest(content(), content(first=77))


@scenario
def file_replaced_between_sends(c, p):
    sent = Sent(c, p)
    seen = [sent.send_all(0, SIZE)]
    with open(sent.file.name + ".new", "wb") as new:
        new.write(content(200_000, first=5))
    os.rename(sent.file.name + ".new", sent.file.name)
    with open(sent.file.name, "rb") as new:
        seen.append(sent.send_all(0, 200_000, new))
        seen.append(sent.send_all(0, SIZE))
    return seen, sent.ended() == digest(content(), content(200_000, first=5), content())


@scenario
def file_cut_between_sends(c, p):
    sent = Sent(c, p)
    seen = [sent.send_all(0, 100_000)]
    p.arrived(100_000)
    os.ftruncate(sent.file.fileno(), 150_000)
    seen += [sent.send(100_000, 200_000), sent.send(150_000, 1), sent.send(200_000, 100)]
    c.sendall(b"tail")
    return seen, sent.ended() == digest(content()[:150_000], b"tail")


@scenario
def file_grows_between_sends(c, p):
    sent = Sent(c, p, content(100_000))
    seen = [sent.send(0, SIZE), sent.send(100_000, SIZE)]
    with open(sent.file.name, "ab") as more:
        more.write(b"x" * 100_000)
    seen += [sent.send(100_000, SIZE), sent.send(200_000, SIZE)]
    return seen, sent.ended() == digest(content(100_000), b"x" * 100_000)


@scenario
def file_deleted(c, p):
    sent = Sent(c, p)
    with open(sent.file.name, "rb") as file:
        sent.file.close()
        return sent.send_all(0, SIZE, file), sent.ended() == digest(content())


@scenario
def file_not_in_memory(c, p):
    sent = Sent(c, p, content(2_000_000))
    os.fsync(sent.file.fileno())
    os.posix_fadvise(sent.file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    seen = sent.send_all(0, 2_000_000)
    c.sendall(b"tail")
    return seen, sent.ended() == digest(content(2_000_000), b"tail")


@scenario
def file_in_memory_only(c, p):
    sent = Sent(c, p, folder="/dev/shm")
    return sent.send_all(0, SIZE), sent.ended() == digest(content())


@scenario
def many_files(c, p):
    sent = Sent(c, p)
    parts = []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        for round in range(3):
            for number in range(100):
                path = f"{folder}/{number}"
                if round == 0:
                    with open(path, "wb") as new:
                        new.write(content(20_000, first=number))
                with open(path, "rb") as file:
                    parts.append(sent.send_all(0, 20_000, file))
    expected = [content(20_000, first=number) for number in range(100)] * 3
    return parts == [20_000] * 300, sent.ended() == digest(*expected)


@scenario
def file_errors(c, p):
    sent = Sent(c, p)
    with open(sent.file.name, "ab") as writer:
        seen = [sent.send(0, SIZE, writer)]
    seen += [sent.send(-1, SIZE), sent.send(SIZE, SIZE), sent.send(0, 0), outcome(os.sendfile, c.fileno(), 999, 0, SIZE)]
    p.reset()
    return seen
