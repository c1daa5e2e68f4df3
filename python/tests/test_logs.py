"""Reading, generating and analysing access logs."""

import json
import subprocess

import pyarrow
import pytest

import baton


@pytest.fixture(scope="module")
def log():
    return baton.generate_log("demo", requests=5000)


def test_a_log_is_a_table(log, tmp_path):
    path = tmp_path / "access.log"
    log.write(path)
    read = baton.read_log(path)
    table = pyarrow.table(read)
    assert table.column_names == ["time", "client", "method", "url", "status", "bytes"]
    assert table.num_rows == len(read) == 5000
    assert table.to_pylist() == pyarrow.table(log).to_pylist()
    first = table.slice(0, 1).to_pylist()[0]
    line = path.read_text().splitlines()[0]
    assert line.startswith(f"{first['client']} ") and f'"GET {first["url"]} ' in line
    assert line.endswith(f" {first['status']} {first['bytes'] or '-'}") or line.endswith(f" {first['status']} 0")
    assert f"{first['time']:%d/%b/%Y:%H:%M:%S}" in line
    frame = read.to_polars()
    assert frame["bytes"].sum() == sum(table["bytes"].to_pylist())
    assert len(read.to_pandas()) == 5000
    sizes = dict(zip(*read.files().to_arrow().to_pydict().values()))
    assert all(row["bytes"] <= sizes[row["url"]] for row in table.to_pylist())


def test_locality_and_analysis_are_the_commands(log, command, tmp_path):
    path = tmp_path / "access.log"
    log.write(path)
    said = tmp_path / "curves.json"
    sizes, policies = [1 << 16, 1 << 20, 1 << 22], ["lru", "sieve", "min", "bound"]
    words = ["--sizes", ",".join(map(str, sizes)), "--policies", ",".join(policies), "--caches", "2", "--json", said]
    subprocess.run([command, "trace", "locality", path, *words], check=True, capture_output=True)
    of_command = [
        (curve["policy"], point["cache_bytes"], point["share"])
        for curve in json.loads(said.read_text())["curves"]
        for point in curve["points"]
    ]
    curves = baton.locality(baton.read_log(path), policies, sizes=sizes, caches=2).to_arrow()
    ours = [(row["policy"], row["cache_bytes"], row["hit_share"]) for row in curves.to_pylist()]
    assert ours == of_command and len(ours) == 12
    subprocess.run([command, "trace", path, "--json", said], check=True, capture_output=True)
    of_command = json.loads(said.read_text())
    del of_command["log"]
    assert baton.read_log(path).analysis() == of_command


def test_a_fitted_generator_makes_a_log_like_it(log):
    like = baton.generate_log(log.fit(), requests=5000, seed=2)
    shares = [
        baton.locality(one, sizes=[1 << 20]).to_arrow()["hit_share"].to_pylist()[0] for one in (log, like)
    ]
    assert abs(shares[0] - shares[1]) < 0.1
    assert baton.generate_log("demo", requests=100).to_arrow().equals(
        baton.generate_log("demo", requests=100).to_arrow()
    )


def test_bad_logs_are_refused(log, tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(baton.InputError, match=str(path)):
            baton.read_log(path)
    with pytest.raises(baton.InputError, match="no such preset"):
        baton.generate_log("demos")
    with pytest.raises(baton.InputError, match="no such policy"):
        baton.locality(log, ["lfru"])
    with pytest.raises(baton.InputError, match="at least a block"):
        baton.locality(log, sizes=[100])
    assert "worldcup" in baton.presets()


def test_a_million_requests_are_read(tmp_path):
    path = tmp_path / "million.log"
    baton.generate_log("worldcup", requests=1_000_000).write(path)
    table = pyarrow.table(baton.read_log(path))
    assert table.num_rows == 1_000_000
