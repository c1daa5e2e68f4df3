"""Studies of many runs, over whatever executor."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import BrokenExecutor, Executor, as_completed
from typing import Any

from . import _baton
from ._config import Config, ask
from .executors import Slurm


class WorkersLost(RuntimeError):
    """Workers died and nobody does their runs any more. What was done is kept: the same call goes on with the rest."""


def sweep(
    study: Config,
    *,
    out: str | os.PathLike[str],
    executor: Executor | Callable[[], Executor] | Slurm | None = None,
    set: Mapping[str, Any] | None = None,
    profile: str | os.PathLike[str] | None = None,
    log: str | os.PathLike[str] | None = None,
    variants: Iterable[str] = (),
    threads: int | None = None,
    batch: int = 1,
) -> _baton.StudyTables:
    """Do all runs of a study that are not in a folder yet, and make its tables.

    The folder is that of ``baton sweep --out``: a run that either has done is not done again, several may work there at once, and what
    one leaves that dies is taken over.

    Parameters
    ----------
    study
        An experiment with a table ``sweep``, in the forms that `run` takes.
    out
        The folder. All workers must see it at the same path.
    executor
        Who does the runs: threads of this process by default; any `concurrent.futures.Executor`, as those of Dask's clients
        (``client.get_executor()``) and `RayExecutor`; a function that makes one, which is called again when its workers died; or
        `Slurm`.
    set, profile, log, variants
        As `run` has them; several variants may be chosen.
    threads
        Threads of this process, without an executor; by default one for each core.
    batch
        Runs in one task of an executor.

    Returns
    -------
    StudyTables
        Its tables.

    Raises
    ------
    InputError
        The study cannot be used.
    RunError
        A result cannot be kept.
    WorkersLost
        Workers died, and `executor` makes no others.
    """
    asked = ask(study, "study", set, profile, log, variants)
    plan = _baton.Study(asked, os.fspath(out))
    for note in plan.notes:
        warnings.warn(note, stacklevel=2)
    missing = len(plan.missing())
    if executor is None:
        plan.carry_out(threads or os.cpu_count() or 1)
    elif isinstance(executor, Slurm):
        executor.carry_out(plan, asked)
    elif isinstance(executor, Executor):
        _carry_out(plan, executor, batch)
    else:
        _carry_out_again(plan, executor, batch)
    return plan.finish(missing)


def open_study(path: str | os.PathLike[str]) -> _baton.StudyTables:
    """Open the tables of a study that was done before.

    Parameters
    ----------
    path
        A folder of ``baton sweep`` with one study, or FOLDER/STUDY.

    Returns
    -------
    StudyTables
        The runs that have been done.

    Raises
    ------
    InputError
        There is no such study.
    """
    return _baton.StudyTables.find(os.fspath(path))


def _work(folder: str, sources: str, tasks: list[tuple[str, str]]) -> int:
    """What a worker does: a function that can be pickled by its name."""
    return _baton.work(folder, sources, tasks)


def _carry_out(plan: _baton.Study, executor: Executor, batch: int) -> None:
    missing = plan.missing()
    folder = os.fspath(plan.folder)
    futures = []
    try:
        for first in range(0, len(missing), max(batch, 1)):
            tasks = plan.tasks(missing[first : first + max(batch, 1)])
            futures.append(executor.submit(_work, folder, _baton.sources, tasks))
        for future in as_completed(futures):
            future.result()
    except BrokenExecutor as error:
        left = len(plan.missing())
        kept = f"{len(plan) - left} of {len(plan)} runs are kept in {folder}"
        raise WorkersLost(f"a worker died; {kept}, and the same call goes on with the rest") from error
    finally:
        for future in futures:
            future.cancel()


def _carry_out_again(plan: _baton.Study, make: Callable[[], Executor], batch: int) -> None:
    """As long as each executor does something before its workers die."""
    while True:
        before = len(plan.missing())
        try:
            with make() as executor:
                _carry_out(plan, executor, batch)
            return
        except WorkersLost:
            if len(plan.missing()) == before:
                raise
