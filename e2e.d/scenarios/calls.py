"""Socket calls whose results can be compared, and helpers of the scenarios."""
import array, ctypes, errno, fcntl, select, socket, termios, time


C = ctypes.CDLL(None, use_errno=True)
for name, result in {"fdopen": ctypes.c_void_p, "freopen": ctypes.c_void_p}.items():
    getattr(C, name).restype = result
LONG = 3  # seconds to wait for an event that must happen
SHORT = 0.25  # seconds to wait for an event that must not happen
RDHUP = 0x2000
NAMES = {1: "IN", 2: "PRI", 4: "OUT", 8: "ERR", 16: "HUP", 32: "NVAL", RDHUP: "RDHUP"}
CLOSED = 7  # TCP_CLOSE in the kernel's <net/tcp_states.h>
TCP, SOL, ET = socket.IPPROTO_TCP, socket.SOL_SOCKET, select.EPOLLET


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


def tcp_state(c):
    return c.getsockopt(TCP, socket.TCP_INFO, 1)[0]


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
