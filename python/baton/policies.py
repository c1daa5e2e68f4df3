"""Protocols of policies written in Python. Any object with these methods works; methods that are missing are not called."""

from __future__ import annotations

from typing import Protocol

from ._baton import Connection, NicLoad


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
