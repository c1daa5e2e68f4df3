"""Readiness: sets of epoll, edges, poll and select."""
import select

from calls import ET, LONG, RDHUP, SHORT, polled, scenario, unread, waited


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
