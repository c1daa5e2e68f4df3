"""Types of tables, and that libraries read them without copying them."""

import pandas
import polars
import pyarrow
import pytest

import baton


@pytest.fixture(scope="module")
def result():
    config = {
        "profile": "handoff-2006",
        "workload": {"kind": "fixed", "bytes": 8000, "requests": 4},
        "clients.connections": 16,
        "run": {"warmup_packets": 1000, "measured_packets": 2000},
    }
    return baton.run(config)


def test_tables_of_a_run(result):
    table = result.table().to_arrow()
    assert table.num_rows == 1 and table.column_names[:4] == ["name", "seed", "ended", "not_steady"]
    assert table["packets"].type == pyarrow.int64()
    assert table["request_rate_per_s"].to_pylist() == [result["request_rate_per_s"]]
    parts = result.parts()
    assert parts.column_names == ["quantity", "part", "value"] and len(parts) > 10
    series = result.series()
    samples = result.to_dict()["series"]
    assert series.to_arrow()["time_us"].to_pylist() == [sample["time_us"] for sample in samples]


def test_memory_is_shared(result):
    parts = result.parts()
    address = lambda table: table["value"].chunk(0).buffers()[1].address  # noqa: E731
    first, second = pyarrow.table(parts), pyarrow.table(parts)
    assert address(first) == address(second)
    frame = polars.DataFrame(parts)
    assert frame["value"].to_arrow().buffers()[1].address == address(first)
    shared = parts.to_pandas()["value"].array._pa_array
    assert shared.chunk(0).buffers()[1].address == address(first)


def test_a_table_outlives_what_made_it(result):
    arrow = pyarrow.table(result.parts())
    total = sum(result.parts().to_arrow()["value"].to_pylist())
    import gc

    gc.collect()
    assert sum(arrow["value"].to_pylist()) == total


def test_frames_say_the_same(result):
    parts = result.parts()
    rows = parts.to_arrow().to_pylist()
    assert parts.to_polars().to_dicts() == rows
    assert isinstance(parts.to_pandas(), pandas.DataFrame)
    assert parts.to_pandas().to_dict("records") == rows
    assert parts.to_arrow().schema == pyarrow.schema(parts)
