"""Runs the examples of the chapter on Python from top to bottom in one session."""

import os
import re
from pathlib import Path

CHAPTER = Path(__file__).parents[2] / "docs/src/python.md"


def test_examples_run(tmp_path, monkeypatch, command, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(command).parent}{os.pathsep}{os.environ['PATH']}")
    text = CHAPTER.read_text()
    for name, content in re.findall(r"```toml\n# (\S+\.toml)\n(.*?)```", text, re.DOTALL):
        Path(name).write_text(content)
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(examples) >= 6
    session = {"__name__": "docs"}
    ran = 0
    for number, example in enumerate(examples):
        if example.startswith("# Needs "):
            compile(example, f"{CHAPTER.name}, example {number}", "exec")
            continue
        exec(compile(example, f"{CHAPTER.name}, example {number}", "exec"), session)
        ran += 1
    assert ran >= 6
