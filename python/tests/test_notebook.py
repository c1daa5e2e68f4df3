"""Runs the notebook, which makes a figure from a log."""

import importlib.util
from pathlib import Path

NOTEBOOK = Path(__file__).parents[1] / "examples/log_to_figure.py"


def test_the_notebook_makes_its_figure(tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location("log_to_figure", NOTEBOOK)
    notebook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(notebook)
    _, names = notebook.app.run()
    left, right = names["figure"].axes
    assert {line.get_label() for line in left.get_lines()} >= {"lru", "bound"}
    assert all(0 <= share <= 100 for line in left.get_lines() for share in line.get_ydata())
    assert len(right.get_lines()) >= 1
    table = names["table"]
    assert len(table) == len(names["sizes_kib"]) and not any(table["ended"] == "failed")
    assert Path("cache.svg").stat().st_size > 1000
