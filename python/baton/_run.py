"""One run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from . import _baton
from ._config import Config, ask
from .policies import LoadControl, Replacement, Selection


def run(
    config: Config,
    *,
    set: Mapping[str, Any] | None = None,
    profile: str | os.PathLike[str] | None = None,
    log: str | os.PathLike[str] | None = None,
    variant: str | None = None,
    selection: Selection | None = None,
    replacement: Callable[[int], Replacement] | None = None,
    load_control: Callable[[int], LoadControl] | None = None,
) -> _baton.Result:
    """Simulate one experiment in this process.

    The interpreter's lock is not held while the simulator works, so other threads go on and several runs may go at once.
    Equal experiments give equal bits, those of `baton run` included.

    Parameters
    ----------
    config
        The path of an experiment file, the name of one that ships (`baton list experiments`) or a shorthand as
        ``"W-1024-P-N-FCFS-400"``; the text of such a file; or its content as a dict, where keys may have dots.
    set
        Values for single keys, as ``{"nic.mips": 600}``, over all else.
    profile
        The machine, in place of the experiment's own.
    log
        An access log to replay, in place of the experiment's own workload.
    variant
        Which of the experiment's variants, if it has several.
    selection
        A policy that says which connections are handed off.
    replacement
        Makes, for a number of blocks, the policy that says which block makes room in a NIC's cache.
    load_control
        Makes, for a Hard_Limit, the rule that says how many connections may be on a NIC.

    Returns
    -------
    Result
        All that was measured.

    Raises
    ------
    InputError
        The configuration or the log cannot be used.
    RunError
        The simulator broke one of its rules.

    Warns
    -----
    UserWarning
        A key has no effect, a generated log took the place of one that is not part of Baton, or a log is doubtful.
    """
    asked = ask(config, "experiment", set, profile, log, [] if variant is None else [variant])
    result = _baton.run(asked, selection, replacement, load_control)
    for note in result.notes:
        warnings.warn(note, stacklevel=2)
    return result
