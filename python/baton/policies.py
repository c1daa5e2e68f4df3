"""What policies written in Python look like. Any object with these methods will do; those that are missing are not asked for."""

from __future__ import annotations

from typing import Protocol

from ._baton import Connection, NicLoad


class Selection(Protocol):
    """Says which connections are handed off.

    The host asks when a connection is established, when the application sends, and when it has read, as far as the policy has
    ``on_established(connection)``, ``on_send(connection)`` and ``on_receive(connection)``; an answer that is true attempts a handoff.
    ``reconsiders(connection)`` says whether one that failed is considered again, ``takes_back(connection)`` whether the host is to
    have one back, and ``on_closed(connection)`` is told what a connection has been (`ClosedConnection`).
    """

    def on_send(self, connection: Connection) -> bool:
        """Say whether this connection is to be handed off now."""


class Replacement(Protocol):
    """Says which block makes room in a cache of numbered slots."""

    def inserted(self, slot: int, key: int, bytes: int) -> object:
        """Note that the block `key` was put into an empty slot; `bytes` are what a hit saves."""

    def used(self, slot: int) -> object:
        """Note a hit."""

    def removed(self, slot: int) -> object:
        """Note that the slot was emptied for other reasons."""

    def victim(self) -> int:
        """Choose a slot that is in use; it is empty from then on."""


class LoadControl(Protocol):
    """Says how many connections may be on a NIC: Soft_Limit."""

    def __call__(self, load: NicLoad, connections: int) -> int:
        """Look at the load and at the connections on the NIC, and say Soft_Limit from now on."""
