"""Protocols of policies written in Python. Any object with these methods works; methods that are missing are not called."""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ._baton import Connection, InputError, NicLoad


class Selection(Protocol):
    """Selects the connections to hand off.

    The host calls ``on_established(connection)`` when a connection is established, ``on_send(connection)`` when the application sends, and
    ``on_receive(connection)`` when it has read data, if the policy has these methods; if one returns true, a handoff is attempted.
    ``reconsiders(connection)`` returns whether a connection whose handoff failed is considered again, ``takes_back(connection)`` whether
    the host takes a connection back, and ``on_closed(connection)`` receives a summary of a closed connection (`ClosedConnection`).
    """

    def on_send(self, connection: Connection) -> bool:
        """Return whether to hand off this connection now."""


class Replacement(Protocol):
    """Selects the block to evict from a cache of numbered slots."""

    def inserted(self, slot: int, key: int, bytes: int) -> object:
        """Record that the block `key` was inserted into an empty slot; a hit saves `bytes`."""

    def used(self, slot: int) -> object:
        """Record a hit."""

    def removed(self, slot: int) -> object:
        """Record that the slot was emptied for another reason."""

    def victim(self) -> int:
        """Return a slot that is in use; it is empty from then on."""


class LoadControl(Protocol):
    """Sets how many connections may be on a NIC (Soft_Limit)."""

    def __call__(self, load: NicLoad, connections: int) -> int:
        """Return the new Soft_Limit, given the load and the number of connections on the NIC."""


@dataclass(frozen=True)
class StudyPolicies:
    """Factories of the policies of each run of a study, and an identity that distinguishes them from other policies."""

    name: str
    identity: str
    selection: Callable[[], Selection] | None
    replacement: Callable[[int], Replacement] | None
    load_control: Callable[[int], LoadControl] | None

    @classmethod
    def of(
        cls,
        selection: Callable[[], Selection] | None,
        replacement: Callable[[int], Replacement] | None,
        load_control: Callable[[int], LoadControl] | None,
    ) -> StudyPolicies | None:
        """Return the policies, or `None` if there are none."""
        given = {"selection": selection, "replacement": replacement, "load_control": load_control}
        named = {what: make for what, make in given.items() if make is not None}
        for what, make in named.items():
            if not callable(make):
                raise InputError(f"{what}: found {make!r}; expected a class or a function that makes a policy for each run")
        if not named:
            return None
        return cls(
            "+".join(re.sub(r"[^A-Za-z0-9_]+", "-", _name(make)) for make in named.values()),
            "\n".join(f"{what}: {_identity(make)}" for what, make in named.items()),
            selection,
            replacement,
            load_control,
        )


def _name(make: Any) -> str:
    if isinstance(make, functools.partial):
        words = [_name(make.func), *map(str, make.args), *(f"{key}-{value}" for key, value in make.keywords.items())]
        return "-".join(words)
    return str(getattr(make, "__name__", type(make).__name__))


def _identity(make: Any) -> str:
    if isinstance(make, functools.partial):
        return f"{_identity(make.func)} with {make.args!r} and {sorted(make.keywords.items())!r}"
    if inspect.isclass(make):
        members = [(name, of) for base in make.__mro__ for name, of in vars(base).items() if inspect.isfunction(of)]
    elif inspect.isfunction(make):
        members = [("", make)]
    else:
        raise InputError(f"{make!r}: expected a class or a function that is written in Python, or a functools.partial of one")
    return f"{_name(make)}: {[(name, _code(of.__code__), of.__defaults__) for name, of in members]!r}"


def _code(code: types.CodeType) -> tuple[object, ...]:
    """Return a function's code without its location in the file, for comparisons."""
    constants = [_code(one) if isinstance(one, types.CodeType) else one for one in code.co_consts]
    return (code.co_code, code.co_names, constants)
