"""Read, generate and analyse access logs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import _baton

#: 64 KB to 1 GB; each size is twice the previous one.
SIZES = tuple(1 << power for power in range(16, 31))


def read_log(
    path: str | os.PathLike[str], *, format: str | None = None, allow_skipped: bool = False
) -> _baton.Log:
    """Read an access log.

    Parameters
    ----------
    path
        Path of the log. Compression (bzip2, gzip, xz, Zstandard) is detected from the content.
    format
        The format, as in `baton trace --format`; by default it is detected from the first lines.
    allow_skipped
        Whether to accept a log of which more than half of the lines must be skipped.

    Returns
    -------
    Log
        The requests in order of time: an Arrow table with the columns ``time``, ``client``, ``method``, ``url``, ``status`` and ``bytes``.

    Raises
    ------
    InputError
        The file cannot be read, or is not an access log.
    """
    return _baton.read_log(os.fspath(path), format, allow_skipped)


def generate_log(
    generator: str | Mapping[str, Any] = "demo", *, requests: int | None = None, seed: int = 1
) -> _baton.Log:
    """Generate an access log. The same generator, number of requests and seed give the same log.

    Parameters
    ----------
    generator
        The name of a preset (`presets` lists them), or parameters such as those that `Log.fit` returns.
    requests
        Number of requests; by default the number that the preset was made for.
    seed
        Seed of all random numbers.

    Returns
    -------
    Log
        The log, as `read_log` returns one.

    Raises
    ------
    InputError
        There is no such preset, or a parameter is not valid.
    """
    for name, number in (("requests", requests), ("seed", seed)):
        if number is not None and not 0 <= number < 1 << 64:
            raise _baton.InputError(f"{name}: found {number}; expected a whole number from 0 to {(1 << 64) - 1}")
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
    """Compute the share of a log's content that caches of these sizes would hit.

    Parameters
    ----------
    log
        The log.
    policies
        Names of replacement policies, or ``"min"`` and ``"bound"``, which know all future requests.
    sizes
        Sizes of a cache in bytes.
    block_bytes
        Size of a block in bytes, a power of two.
    caches
        Number of independent caches, to which connections are assigned in turn.
    admission
        ``"all"``, ``"second-request"`` or ``"tinylfu"``.
    persistent_s
        A request uses the same connection as the previous one of its client if at most this many seconds lie between them.

    Returns
    -------
    Table
        The columns ``policy``, ``caches``, ``cache_bytes`` and ``hit_share`` (0 to 1).

    Raises
    ------
    InputError
        There is no such policy, a size is smaller than a block, or the log has no sizes.
    """
    return log._locality((list(policies), admission), list(sizes), block_bytes, caches, persistent_s)
