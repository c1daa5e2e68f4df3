"""Ends of connections: resets, half-closes, lingering."""
import select, signal, socket, struct, termios, threading

from calls import CLOSED, ET, LONG, RDHUP, SHORT, SOL, ioctl, is_over, outcome, polled, scenario, tcp_state, unread, until, waited


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
    unread(c, 40_000)
    p.reset()
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
    # The peer's acknowledgment is another event if it arrives after the call above.
    until(lambda: tcp_state(c) == CLOSED)
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
