"""What a caller gives as an experiment or a study, as the extension takes it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Union

from ._baton import InputError

#: A path, the name of an experiment that ships, a shorthand, the text of a file, or its content.
Config = Union[str, "os.PathLike[str]", Mapping[str, Any]]


@dataclass(frozen=True)
class Asked:
    """An experiment or a study: where it is or what it says, and what is changed of it."""

    name: str
    text: str | None
    settings: list[tuple[str, str]]
    profile: str | None
    log: str | None
    variants: list[str]


def ask(
    config: Config,
    what: str,
    set: Mapping[str, Any] | None,
    profile: str | os.PathLike[str] | None,
    log: str | os.PathLike[str] | None,
    variants: Iterable[str],
) -> Asked:
    """Tells the forms of a configuration apart; errors call it `what` where it is no file."""
    name, text = what, None
    if isinstance(config, Mapping):
        lines = (f"{_key(key)} = {_toml(value)}\n" for key, value in _nested(config).items())
        text = "".join(lines)
    elif is_text(config):
        text = str(config)
    else:
        name = os.fspath(config)
    return Asked(
        name=name,
        text=text,
        settings=[(path, _toml(value)) for path, value in (set or {}).items()],
        profile=None if profile is None else os.fspath(profile),
        log=None if log is None else os.fspath(log),
        variants=list(variants),
    )


def is_text(config: Config) -> bool:
    """Whether it is what a file says, and not where it is: no name of an experiment has an equals sign."""
    return isinstance(config, str) and ("\n" in config or "=" in config)


def _nested(config: Mapping[str, Any]) -> dict[str, Any]:
    """With tables in place of keys with dots, as TOML reads them."""
    tables: dict[str, Any] = {}
    for path, value in config.items():
        *folders, key = path.split(".")
        table = tables
        for folder in folders:
            table = table.setdefault(folder, {})
        if isinstance(value, Mapping):
            table.setdefault(key, {}).update(_nested(value))
        else:
            table[key] = value
    return tables


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml(key)


def _toml(value: Any) -> str:
    """A value on one line, tables in the order of their keys: a study varies the last of them fastest."""
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, (bool, int, float)):
        return str(value).lower()
    if isinstance(value, str):
        # Of JSON's escapes TOML has those that are used here.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(key)} = {_toml(inner)}" for key, inner in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, Iterable):
        return f"[{', '.join(map(_toml, value))}]"
    raise InputError(f"found {value!r}; expected numbers, truths, texts, lists and dicts")
