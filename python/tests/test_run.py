"""Runs of one experiment: their input, their results, and that the results equal those of the command."""

import json
import pickle
import subprocess
import threading
import time

import pytest

import baton


def test_is_bit_for_bit_the_run_of_the_command(small, command, tmp_path):
    text = """
profile = "handoff-2006"
workload = { kind = "fixed", bytes = 8000, requests = 4 }
clients.connections = 16
run = { warmup_packets = 1000, measured_packets = 2000 }
"""
    path = tmp_path / "x.toml"
    path.write_text(text)
    said = tmp_path / "x.json"
    subprocess.run([command, "run", path, "--json", said], check=True, capture_output=True)
    (of_command,) = json.loads(said.read_text())["runs"]
    assert baton.run(path).to_dict() == of_command
    others = [baton.run(text).to_dict(), baton.run(small).to_dict()]
    for other in others:
        other["experiment"]["name"] = "x"
        assert other == of_command


def test_values_are_set_over_all_else(small):
    import numpy

    result = baton.run(small, set={"nic.mips": numpy.int64(700), "run.seed": 5, "name": "mine"})
    experiment = result.to_dict()["experiment"]
    assert (experiment["nic"]["mips"], result.seed, result.name) == (700, 5, "mine")
    assert result.ended == "complete" and result.took_s > 0


def test_metrics_are_those_of_the_columns(small, command):
    result = baton.run(small)
    listed = subprocess.run([command, "list", "columns"], check=True, capture_output=True, text=True).stdout
    metrics = result.metrics
    assert list(metrics) == baton.metrics().to_arrow()["name"].to_pylist()
    assert all(name in listed for name in metrics)
    assert result["request_rate_per_s"] == metrics["request_rate_per_s"] > 0
    assert metrics["packets"] == result.to_dict()["packets"]
    with pytest.raises(KeyError, match="request_rate: no metric"):
        result["request_rate"]
    # The run is too short for a statement about the long run.
    assert result.not_steady == result["not_steady"]


def test_results_can_be_pickled(small):
    result = baton.run(small)
    assert pickle.loads(pickle.dumps(result)).to_json() == result.to_json()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("no-such-experiment", "no experiment, file or shorthand"),
        ("profile = 'handoff-2006'\nnic.mops = 3\n", r"(?s)experiment:2:.*did you mean `mips`"),
        ({"profile": "handoff-2006", "nic.mips": None}, "experiment: nic.mips: found None; expected a number"),
        ({"profile": "handoff-2006", "nic.mips": object()}, "expected a number, a bool"),
        ({"profile": "handoff-2006", "sweep": {"nic.mips": [1, 2]}}, "study of many runs"),
        ({"profile": "handoff-2006", "workload": {"kind": "log", "path": "-"}}, "standard input"),
        ("handoff-table1", "variants"),
    ],
)
def test_bad_input_is_refused(config, message):
    with pytest.raises(baton.InputError, match=message):
        baton.run(config)
    assert issubclass(baton.InputError, ValueError)


def test_a_key_without_effect_is_told(small):
    small["host.kernel.selection"] = {"policy": "threshold", "enqueues": 3}
    with pytest.warns(UserWarning, match="has no effect"):
        baton.run(small)


def test_other_threads_go_on(small):
    """A run does not hold the interpreter's lock: another thread counts meanwhile."""
    small["run"] = {"warmup_packets": 1000, "measured_packets": 200_000}
    counted, done = [], threading.Event()

    def count():
        while not done.is_set():
            counted.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    begun = time.perf_counter()
    baton.run(small)
    ended = time.perf_counter()
    done.set()
    thread.join()
    within = [moment for moment in counted if begun < moment < ended]
    assert len(within) > 10
    longest = max(later - earlier for earlier, later in zip(within, within[1:]))
    assert longest < (ended - begun) / 2


def test_ctrl_c_ends_a_run(small):
    import os
    import signal

    small["run"] = {"warmup_packets": 1000, "measured_packets": 4_000_000_000, "limit_s": 10**6}
    # A process that a script has started in the background ignores SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        baton.run(small)
    signal.signal(signal.SIGINT, before)


def test_settings_are_a_dict_of_keys(small):
    with pytest.raises(baton.InputError, match="set: found .*expected a dict"):
        baton.run(small, set=["nic.mips=3"])
    with pytest.raises(baton.InputError, match="set: nic.mips: found None"):
        baton.run(small, set={"nic.mips": None})
    with pytest.raises(baton.InputError, match="requests: found -1; expected"):
        baton.generate_log(requests=-1)


def test_whole_numbers_may_be_fractions_in_python(small):
    import numpy

    for mips in (700.0, numpy.linspace(100, 700, 3)[2]):
        assert baton.run(small, set={"nic.mips": mips}).to_dict()["experiment"]["nic"]["mips"] == 700


def test_notebooks_show_tables(small):
    result = baton.run({**small, "name": "a<b"})
    assert "<th>a&lt;b, seed " in result._repr_html_() and "request rate, 1/s" in result._repr_html_()
    shown = result.parts()._repr_html_()
    assert "<th>quantity</th>" in shown and "host_execute_cycles" in shown and " rows, 3 columns" in shown
