"""Access logs: read, generated, analysed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import _baton

#: 64 KB to 1 GB, each twice the one before.
SIZES = tuple(1 << power for power in range(16, 31))


def read_log(
    path: str | os.PathLike[str], *, format: str | None = None, allow_skipped: bool = False
) -> _baton.Log:
    """Read an access log.

    Parameters
    ----------
    path
        The log. Compression (bzip2, gzip, xz, Zstandard) is told by content.
    format
        The format as `baton trace --format` takes it; by default that which the first lines fit.
    allow_skipped
        Whether a log is read of which more than half is not understood.

    Returns
    -------
    Log
        The requests by time: an Arrow table with the columns ``time``, ``client``, ``method``, ``url``, ``status`` and ``bytes``.

    Raises
    ------
    InputError
        It cannot be read, or is no log.
    """
    return _baton.read_log(os.fspath(path), format, allow_skipped)


def generate_log(
    generator: str | Mapping[str, Any] = "demo", *, requests: int | None = None, seed: int = 1
) -> _baton.Log:
    """Generate an access log. The same generator, number and seed give the same log.

    Parameters
    ----------
    generator
        A preset (`presets` has their names), or parameters as `Log.fit` finds them.
    requests
        How many; by default as many as the preset was made for.
    seed
        Of all that is drawn.

    Returns
    -------
    Log
        As one that was read.

    Raises
    ------
    InputError
        There is no such preset, or a parameter makes no sense.
    """
    if isinstance(generator, str):
        return _baton.generate_log(generator, None, requests, seed)
    return _baton.generate_log(None, json.dumps(generator), requests, seed)


def locality(
    log: _baton.Log,
    policies: Iterable[str] = ("lru",),
    *,
    sizes: Iterable[int] = SIZES,
    block_bytes: int = 4096,
    caches: int = 1,
    admission: str = "all",
    persistent_s: int = 15,
) -> _baton.Table:
    """Compute which share of a log's content caches of these sizes would have.

    Parameters
    ----------
    log
        The log.
    policies
        Names of replacement policies, or ``"min"`` and ``"bound"``, which know the future.
    sizes
        Sizes of a cache, bytes.
    block_bytes
        Bytes of a block, a power of two.
    caches
        Independent caches, over which connections are dealt out in turn.
    admission
        ``"all"``, ``"second-request"`` or ``"tinylfu"``.
    persistent_s
        A client's request goes over the same connection for so many seconds after its last.

    Returns
    -------
    Table
        The columns ``policy``, ``caches``, ``cache_bytes`` and ``hit_share`` (0 to 1).

    Raises
    ------
    InputError
        There is no such policy, a size is below a block, or the log has no sizes.
    """
    return log._locality((list(policies), admission), list(sizes), block_bytes, caches, persistent_s)
