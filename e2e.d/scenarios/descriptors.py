"""Descriptors that are closed or passed on without the library, and that other processes own."""
import ctypes, fcntl, os, socket, subprocess, threading, time

from calls import C, LONG, REPORT, SHORT, c_call, outcome, scenario, words


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
