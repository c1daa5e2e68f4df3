"""Policies written in Python give the same results as those written in Rust, and their errors end the run."""

import pytest

import baton


@pytest.fixture
def small(small):
    return {**small, "nic.firmware": {"hard_limit": 16}}


class Threshold:
    """The policy Tn of the handoff-policies paper."""

    def __init__(self, enqueues):
        self.enqueues = enqueues

    def on_send(self, connection):
        return connection.enqueues_before < self.enqueues <= connection.enqueues


def body(result):
    """Returns the results without the experiment, which names the policy."""
    results = result.to_dict()
    del results["experiment"]
    return results


def test_selection_is_that_in_rust(small):
    key = "host.kernel.selection"
    in_rust = baton.run(small, set={key: {"policy": "threshold", "enqueues": 3}})
    in_python = baton.run(small, selection=Threshold(3))
    assert in_rust["accepted_handoffs"] > 0
    assert body(in_python) == body(in_rust)


def test_selection_is_told_what_there_is(small):
    seen, closed = [], []

    class Watch:
        def on_established(self, connection):
            seen.append(("established", connection.requests, connection.nic_soft_limit))
            return False

        def on_receive(self, connection):
            seen.append(("receive", connection.receives, connection.bytes_sent))

        def on_closed(self, connection):
            closed.append((connection.remote, connection.bytes_sent))

    baton.run(small, selection=Watch())
    assert {name for name, _, _ in seen} == {"established", "receive"}
    assert closed and all(":" in remote for remote, _ in closed)


class Lru:
    def __init__(self, blocks):
        self.slots = {}

    def inserted(self, slot, key, bytes):
        self.slots[slot] = None

    def used(self, slot):
        self.slots[slot] = self.slots.pop(slot)

    def removed(self, slot):
        del self.slots[slot]

    def victim(self):
        slot = next(iter(self.slots))
        del self.slots[slot]
        return slot


@pytest.fixture
def cached():
    return {
        "profile": "dcache-2002",
        "workload": {"kind": "generated", "preset": "demo", "requests": 2000},
        "nic.firmware.cache.kib": 256,
        "host.kernel.nic_cache": {"enabled": True},
        "run": {"warmup_packets": 2000, "measured_packets": 8000},
    }


def test_replacement_is_that_in_rust(cached):
    in_rust = baton.run(cached, set={"host.kernel.nic_cache.replacement": "lru"})
    in_python = baton.run(cached, replacement=Lru)
    assert in_rust["nic_cache_evictions"] > 0
    assert body(in_python) == body(in_rust)


@pytest.mark.parametrize("answer", [None, -1, 10**6, "first"])
def test_a_victim_that_is_none_ends_the_run(cached, answer):
    class Wrong(Lru):
        def victim(self):
            return answer

    with pytest.raises(ValueError, match="expected the number of a slot that is in use"):
        baton.run(cached, replacement=Wrong)


def test_load_control_limits_connections(small):
    small["host.kernel.selection"] = {"policy": "fcfs"}
    loads = []
    on_nic = lambda result: result.series().to_arrow()["nic_connections"].to_pylist()  # noqa: E731

    def rule(hard_limit):
        assert hard_limit == 16

        def limit(load, connections):
            loads.append((load.now_s, load.qlen, connections))
            return 2

        return limit

    free, limited = baton.run(small), baton.run(small, load_control=rule)
    assert max(on_nic(limited)) <= 3 < max(on_nic(free))
    assert loads == sorted(loads, key=lambda load: load[0])


def test_an_exception_of_a_policy_ends_the_run(small):
    class Broken:
        def on_send(self, connection):
            raise LookupError("no idea")

    small["run"] = {"warmup_packets": 1000, "measured_packets": 400_000_000, "limit_s": 10**6}
    with pytest.raises(LookupError, match="no idea"):
        baton.run(small, selection=Broken())
    with pytest.raises(TypeError, match="on_established, on_send or on_receive"):
        baton.run(small, selection=object())
    with pytest.raises(TypeError):
        baton.run(small, load_control=lambda hard_limit: lambda load, connections: "many")


def test_studies_keep_results_by_policy(small, tmp_path):
    import functools

    study = {**small, "sweep": {"seeds": 2}}
    first = baton.sweep(study, out=tmp_path, selection=functools.partial(Threshold, 3))
    again = baton.sweep(study, out=tmp_path, selection=functools.partial(Threshold, 3))
    other = baton.sweep(study, out=tmp_path, selection=functools.partial(Threshold, 4))
    assert (first.computed, again.computed, other.computed) == (2, 0, 2)
    assert first.name == "study+Threshold-3" and other.name == "study+Threshold-4"
    key = {"host.kernel.selection": {"policy": "threshold", "enqueues": 3}}
    in_rust = baton.sweep(study, out=tmp_path, set=key)
    column = "accepted_handoffs"
    accepted = [tables.table().to_arrow()[column].to_pylist() for tables in (first, in_rust)]
    assert accepted[0] == accepted[1] and sum(accepted[0]) > 0


def test_exceptions_of_policies_end_studies(small, tmp_path):
    class Bad:
        def on_send(self, connection):
            raise LookupError("no such thing")

    study = {**small, "sweep": {"seeds": 2}}
    with pytest.raises(LookupError, match="no such thing"):
        baton.sweep(study, out=tmp_path, selection=Bad)
    with pytest.raises(baton.InputError, match="selection: found .*expected a class"):
        baton.sweep(study, out=tmp_path, selection=Bad())
