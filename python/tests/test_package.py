"""The package is documented, and its type stubs match the extension module."""

import ast
import inspect
from pathlib import Path

import pytest

import baton
from baton import _baton

STUBS = ast.parse(Path(baton.__file__).with_name("_baton.pyi").read_text())


def test_all_that_is_public_is_documented():
    for name in baton.__all__:
        thing = getattr(baton, name)
        assert name == "__version__" or inspect.getdoc(thing), name
        if inspect.isclass(thing) and thing.__module__ == "baton":
            for member in vars(thing):
                assert member.startswith("_") or inspect.getdoc(getattr(thing, member)), f"{name}.{member}"


@pytest.mark.parametrize("function", [baton.run, baton.sweep, baton.read_log, baton.generate_log, baton.locality])
def test_every_parameter_is_described(function):
    text = inspect.getdoc(function)
    for section in ("Parameters", "Returns", "Raises"):
        assert f"{section}\n{'-' * len(section)}" in text
    for name in inspect.signature(function).parameters:
        assert any(name in line.replace(",", "").split() for line in text.splitlines()), name


def test_stubs_say_what_there_is():
    stubbed = {}
    for node in STUBS.body:
        if isinstance(node, ast.ClassDef):
            stubbed[node.name] = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            stubbed[node.name] = None
        elif isinstance(node, ast.AnnAssign):
            stubbed[node.target.id] = None
    actual = {name for name in vars(_baton) if not name.startswith("__")} | {"__version__"}
    assert actual == set(stubbed)
    for name, members in stubbed.items():
        if members is None or issubclass(getattr(_baton, name), Exception):
            continue
        found = {member for member in vars(getattr(_baton, name)) if not member.startswith("__")}
        assert found - {"_of_json"} == {member for member in members if not member.startswith("__")}, name


def test_types_are_announced():
    assert Path(baton.__file__).with_name("py.typed").exists()
