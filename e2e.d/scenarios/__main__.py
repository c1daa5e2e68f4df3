#!/usr/bin/env python3
"""Scenarios of socket calls, which must print the same lines in the kernel and with `baton live run`.

    scenarios peer PATH                                   the other end, which takes commands from a Unix socket
    scenarios run listen|connect ADDRESS PATH [NAME...]   prints a line for each scenario: its name and its results

A scenario is a function of the tested connection `c` and its peer `p`, whose methods are those of `Connection`. Its return value is compared. It runs
in its own process, after some bytes were sent back and forth, so that a policy may have moved the connection.
"""
import json, os, signal, socket, sys, time, traceback

import descriptors, ending, files, information, readiness, reading
from calls import REPORT, SCENARIOS, family_of
from peer import Peer, be_peer

AT_ONCE = 12  # scenarios
LONGEST = 10  # seconds for a scenario


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
        lines = [f"{os.path.basename(frame.filename)}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__) if os.path.dirname(frame.filename) == os.path.dirname(__file__)]
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
