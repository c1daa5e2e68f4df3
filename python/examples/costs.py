"""Measure the overhead of the installed package: `python python/examples/costs.py`.

Prints how much longer `baton.run` takes than the simulation (for planning, and for conversion to and from Python; the median of 200 runs), and how
long it takes to read a log of a million requests into an Arrow table (the minimum of 5 times).
"""

import statistics
import tempfile
import time
import warnings
from pathlib import Path

import baton

RUN = {
    "profile": "handoff-2006",
    "workload": {"kind": "fixed", "bytes": 8000, "requests": 4},
    "clients.connections": 16,
    "run": {"warmup_packets": 1000, "measured_packets": 2000},
}


def timed(once):
    begun = time.perf_counter()
    result = once()
    return time.perf_counter() - begun, result


def beyond_simulation():
    took, result = timed(lambda: baton.run(RUN))
    return took - result.took_s


def main():
    warnings.simplefilter("ignore")
    median = statistics.median(beyond_simulation() for _ in range(200))
    print(f"baton.run takes {1000 * median:.2f} ms more than the simulation")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "million.log"
        baton.generate_log("worldcup", requests=1_000_000).write(path)
        least = min(timed(lambda: baton.read_log(path))[0] for _ in range(5))
        print(f"a million requests, {path.stat().st_size >> 20} MiB, to an Arrow table: {least:.2f} s")


if __name__ == "__main__":
    main()
