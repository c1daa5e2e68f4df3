"""Converts an experiment or a study that a caller passes to the form that the extension takes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Union

from ._baton import InputError

#: A path, the name of an experiment that ships with Baton, a shorthand, the text of a file, or its content as a mapping.
Config = Union[str, "os.PathLike[str]", Mapping[str, Any]]


@dataclass(frozen=True)
class Asked:
    """An experiment or a study, by location or by text, and changes to it."""

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
    """Distinguish the forms of a configuration. Errors call the configuration `what` if it is not a file."""
    name, text = what, None
    if isinstance(config, Mapping):
        lines = (f"{_key(key)} = {_toml(value, f'{what}: {key}: ')}\n" for key, value in _nested(config).items())
        text = "".join(lines)
    elif is_text(config):
        text = str(config)
    else:
        name = os.fspath(config)
    if set is not None and not isinstance(set, Mapping):
        raise InputError(f'set: found {set!r}; expected a dict of keys and values, such as {{"nic.mips": 600}}')
    return Asked(
        name=name,
        text=text,
        settings=[(path, _toml(value, f"set: {path}: ")) for path, value in (set or {}).items()],
        profile=None if profile is None else os.fspath(profile),
        log=None if log is None else os.fspath(log),
        variants=list(variants),
    )


def is_text(config: Config) -> bool:
    """Return whether `config` is the text of a file rather than its location: names of experiments have no equals sign."""
    return isinstance(config, str) and ("\n" in config or "=" in config)


def _nested(config: Mapping[str, Any]) -> dict[str, Any]:
    """Replace keys with dots by tables, as TOML reads them."""
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


def _toml(value: Any, place: str = "") -> str:
    """Format a value on one line. Tables keep the order of their keys, because a study varies the last key fastest.

    Errors begin with `place`.
    """
    if hasattr(value, "tolist"):  # a value of NumPy
        value = value.tolist()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, float) and value.is_integer():
        # Keys that take fractions also take whole numbers, and others take nothing else: `numpy.linspace` has only fractions.
        value = int(value)
    if isinstance(value, (bool, int, float)):
        return str(value).lower()
    if isinstance(value, str):
        # TOML has the escapes of JSON that are used here.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        table = place.removesuffix(": ")
        inside = ", ".join(f"{_key(key)} = {_toml(inner, f'{table}.{key}: ')}" for key, inner in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, Iterable):
        return f"[{', '.join(_toml(inner, place) for inner in value)}]"
    raise InputError(f"{place}found {value!r}; expected a number, a bool, a string, a list or a dict")
