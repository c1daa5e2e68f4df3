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

    The simulator does not hold the interpreter's lock, so that other threads continue and several runs may run at once.
    Equal experiments give results that are equal bit by bit, also those of `baton run`.

    Parameters
    ----------
    config
        The path of an experiment file, the name of an experiment that ships with Baton (`baton list experiments`) or a shorthand such as
        ``"W-1024-P-N-FCFS-400"``; the text of an experiment file; or its content as a dict, in which keys may have dots.
    set
        Values of single keys, such as ``{"nic.mips": 600}``, which override all others.
    profile
        The machine to use instead of that of the experiment.
    log
        An access log to replay instead of the workload of the experiment.
    variant
        The variant to run, if the experiment has several.
    selection
        A policy that selects the connections to hand off.
    replacement
        Returns the policy that selects the block to evict from a NIC's cache with the given number of blocks.
    load_control
        Returns the rule that sets how many connections may be on a NIC with the given Hard_Limit.

    Returns
    -------
    Result
        The results.

    Raises
    ------
    InputError
        The configuration or the log cannot be used.
    RunError
        An internal check of the simulator failed.

    Warns
    -----
    UserWarning
        A key has no effect, a generated log replaces one that is not part of Baton, or results with a log may be misleading.
    """
    asked = ask(config, "experiment", set, profile, log, [] if variant is None else [variant])
    result = _baton.run(asked, selection, replacement, load_control)
    for note in result.notes:
        warnings.warn(note, stacklevel=2)
    return result
