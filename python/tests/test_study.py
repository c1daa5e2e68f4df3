"""Studies give the same tables with every executor, do no run twice, and can be continued after workers have died."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

import baton
from conftest import STUDY

TABLES = [f"small{table}.{form}" for table in ("", ".parts", ".series") for form in ("csv", "parquet")]


def tables(folder):
    return {name: Path(folder, name).read_bytes() for name in TABLES}


@pytest.fixture(scope="module")
def expected(command, tmp_path_factory):
    """Tables that the command writes with one thread."""
    folder = tmp_path_factory.mktemp("command")
    study = folder / "small.toml"
    study.write_text(STUDY)
    out = folder / "out"
    subprocess.run([command, "sweep", study, "--out", out, "--threads", "1"], check=True, capture_output=True)
    return tables(out)


def times_of_runs(folder):
    """Returns when each result was written. The time shows whether a run was repeated."""
    return {path: path.stat().st_mtime_ns for path in Path(folder, "runs").rglob("*.jsonl")}


@pytest.mark.parametrize(
    "executor",
    [
        None,
        ThreadPoolExecutor,
        lambda: ProcessPoolExecutor(2),
        lambda: ProcessPoolExecutor(2, mp_context=__import__("multiprocessing").get_context("spawn")),
    ],
    ids=["threads of Rust", "threads", "processes forked", "processes spawned"],
)
def test_tables_are_those_of_the_command(executor, study_file, expected, tmp_path):
    out = tmp_path / "out"
    done = baton.sweep(study_file, out=out, executor=executor, batch=2)
    assert (len(done), done.computed, done.failed, done.name) == (12, 12, 0, "small")
    assert tables(out) == expected
    assert {Path(file).name for file in done.files} == set(TABLES)
    before = times_of_runs(out)
    again = baton.sweep(study_file, out=out, executor=executor)
    assert again.computed == 0 and times_of_runs(out) == before
    assert tables(out) == expected


def test_an_executor_may_be_given_as_it_is(study_file, expected, tmp_path):
    with ThreadPoolExecutor(2) as pool:
        baton.sweep(STUDY, out=tmp_path / "out", executor=pool)
    assert tables(tmp_path / "out") == expected


def test_shards_of_the_command_are_gone_on_with(study_file, expected, command, tmp_path):
    out = tmp_path / "out"
    part = [command, "sweep", study_file, "--out", out, "--shard", "1/3"]
    subprocess.run(part, check=True, capture_output=True)
    before = times_of_runs(out)
    done = baton.sweep(study_file, out=out)
    assert (len(before), done.computed) == (4, 8)
    after = times_of_runs(out)
    assert {path: after[path] for path in before} == before
    assert tables(out) == expected


def test_two_at_once_share_the_runs(study_file, expected, tmp_path):
    """Two processes start at the same time in one folder, and each run is done by only one of them."""
    out = tmp_path / "out"
    script = (
        "import sys, baton\n"
        "from baton import _baton, _config\n"
        "plan = _baton.Study(_config.ask(sys.argv[1], 'study', None, None, None, []), sys.argv[2])\n"
        "print(plan.carry_out(1))\n"
    )
    command = [sys.executable, "-c", script, str(study_file), str(out)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    done = [int(process.communicate()[0]) for process in both]
    assert sum(done) == 12
    baton.sweep(study_file, out=out)
    assert tables(out) == expected


SLOW = STUDY.replace("measured_packets = 2000", "measured_packets = 60000")


def kill_when_results_come(pool, out):
    """Kills a worker of the pool once the first result has been written."""

    def wait():
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            workers = list((pool._processes or {}).values())
            if len(times_of_runs(out)) >= 1 and workers:
                os.kill(workers[0].pid, signal.SIGKILL)
                return
            time.sleep(0.005)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_a_killed_worker_is_told_and_the_rest_is_resumed(tmp_path):
    out = tmp_path / "out"
    with ProcessPoolExecutor(2) as pool:
        killer = kill_when_results_come(pool, out)
        with pytest.raises(baton.WorkersLost, match="runs are kept"):
            baton.sweep(SLOW, out=out, executor=pool)
        killer.join()
    before = times_of_runs(out)
    done = baton.sweep(SLOW, out=out)
    assert 1 <= len(before) < 12 and done.computed == 12 - len(before)
    assert {path: times_of_runs(out)[path] for path in before} == before
    whole = tmp_path / "whole"
    baton.sweep(SLOW, out=whole)
    assert tables(out) == tables(whole)


def test_a_function_makes_another_pool_when_workers_die(tmp_path):
    out, killers, pools = tmp_path / "out", [], []

    def make():
        pool = ProcessPoolExecutor(2)
        pools.append(pool)
        if len(pools) == 1:
            killers.append(kill_when_results_come(pool, out))
        return pool

    done = baton.sweep(SLOW, out=out, executor=make)
    killers[0].join()
    assert len(pools) == 2 and done.failed == 0 and len(done) == 12


def test_tables_in_memory_are_those_in_files(study_file, tmp_path):
    import pyarrow.parquet

    out = tmp_path / "out"
    done = baton.sweep(study_file, out=out)
    for table, name in ((done.table(), "small"), (done.parts(), "small.parts"), (done.series(), "small.series")):
        assert table.to_arrow().equals(pyarrow.parquet.read_table(out / f"{name}.parquet"))
    opened = baton.open_study(out / "small")
    assert opened.table().to_arrow().equals(done.table().to_arrow())
    with pytest.raises(baton.InputError, match="no such study"):
        baton.open_study(out / "large")


def test_a_study_may_be_a_dict(small, tmp_path):
    small["sweep"] = {"nic.mips": {"from": 200, "to": 400, "step": 100}, "seeds": 2}
    done = baton.sweep(small, out=tmp_path, set={"clients.connections": 8})
    frame = done.table().to_pandas()
    assert sorted(set(frame["config.nic.mips"])) == [200, 300, 400] and len(frame) == 6
    assert set(frame["config.clients.connections"]) == {8}


def test_a_worker_of_another_version_is_refused(tmp_path):
    from baton import _baton

    with pytest.raises(baton.InputError, match="another version"):
        _baton.work(str(tmp_path), "0", [])


def test_bad_studies_are_refused(small, tmp_path):
    with pytest.raises(baton.InputError, match="did you mean"):
        baton.sweep({**small, "sweep": {"nic.mops": [1]}}, out=tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(baton.InputError, match="has no results of `baton sweep`"):
        baton.sweep({**small, "sweep": {"nic.mips": [1]}}, out=tmp_path)
