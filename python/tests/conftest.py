"""Fixtures for all tests: a small experiment, a small study, and the command of the same build."""

import os
import shutil

import pytest

SMALL = {
    "profile": "handoff-2006",
    "workload": {"kind": "fixed", "bytes": 8000, "requests": 4},
    "clients.connections": 16,
    "run": {"warmup_packets": 1000, "measured_packets": 2000},
}

STUDY = """
name = "small"
profile = "handoff-2006"
workload = { kind = "fixed", bytes = 8000, requests = 4 }
clients.connections = 16
run = { warmup_packets = 1000, measured_packets = 2000 }
[sweep]
nic.mips = [200, 400, 800]
nic.firmware.hard_limit = [0, 64]
seeds = 2
"""


@pytest.fixture
def small():
    return dict(SMALL)


@pytest.fixture
def study_file(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture(scope="session")
def command():
    """Path of the program `baton`, from the environment variable BATON or from PATH."""
    found = os.environ.get("BATON") or shutil.which("baton")
    if not found:
        pytest.skip("needs the command baton: set BATON to its path")
    return found
