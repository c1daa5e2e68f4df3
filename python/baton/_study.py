"""Studies of many runs, with any executor."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import BrokenExecutor, Executor, as_completed
from typing import Any

from . import _baton
from ._config import Config, ask
from .executors import Slurm
from .policies import LoadControl, Replacement, Selection, StudyPolicies


class WorkersLost(RuntimeError):
    """Workers died, and no others do their runs. Results are kept; the same call does the missing runs."""


def sweep(
    study: Config,
    *,
    out: str | os.PathLike[str],
    executor: Executor | Callable[[], Executor] | Slurm | None = None,
    set: Mapping[str, Any] | None = None,
    profile: str | os.PathLike[str] | None = None,
    log: str | os.PathLike[str] | None = None,
    variants: Iterable[str] = (),
    selection: Callable[[], Selection] | None = None,
    replacement: Callable[[int], Replacement] | None = None,
    load_control: Callable[[int], LoadControl] | None = None,
    threads: int | None = None,
    batch: int = 1,
) -> _baton.StudyTables:
    """Do all runs of a study whose results are not in the folder yet, and write the tables of the study.

    Results with policies are kept under the names and the code of the policies, in a study of its own: a changed policy is run again, but not
    one that uses changed code or values elsewhere. Workers in other processes must be able to import the policies.

    The folder is the same as that of ``baton sweep --out``: a run that either has done is not done again, several processes may work on it
    at once, and the runs of a process that dies are taken over by the others.

    Parameters
    ----------
    study
        An experiment with a table ``sweep``, in any form that `run` takes.
    out
        The folder for the results. All workers must see it at the same path.
    executor
        What does the runs: by default threads of this process; any `concurrent.futures.Executor`, such as that of a Dask client
        (``client.get_executor()``) or `RayExecutor`; a function that returns one, which is called again if its workers die; or
        `Slurm`.
    set, profile, log, variants
        As in `run`; several variants may be chosen.
    selection
        A class or function that makes a policy for each run, which selects the connections to hand off.
    replacement, load_control
        As in `run`.
    threads
        Number of threads of this process, if there is no executor; by default one per core.
    batch
        Number of runs in one task of an executor.

    Returns
    -------
    StudyTables
        The tables of the study.

    Raises
    ------
    InputError
        The study cannot be used.
    RunError
        A result cannot be stored.
    WorkersLost
        Workers died, and `executor` does not start others.
    """
    asked = ask(study, "study", set, profile, log, variants)
    policies = StudyPolicies.of(selection, replacement, load_control)
    plan = _baton.Study(asked, os.fspath(out), policies)
    for note in plan.notes:
        warnings.warn(note, stacklevel=2)
    missing = len(plan.missing())
    if executor is None:
        plan.carry_out(threads or os.cpu_count() or 1, policies)
    elif isinstance(executor, Slurm):
        if policies is not None:
            raise _baton.InputError("executor: the jobs of Slurm run the command `baton`, which has no policies in Python; expected another one")
        executor.carry_out(plan, asked)
    elif isinstance(executor, Executor):
        _carry_out(plan, executor, batch, policies)
    else:
        _carry_out_again(plan, executor, batch, policies)
    return plan.finish(missing)


def open_study(path: str | os.PathLike[str]) -> _baton.StudyTables:
    """Open the tables of a study that was done before.

    Parameters
    ----------
    path
        A folder of ``baton sweep`` with a single study, or FOLDER/STUDY.

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


def _work(folder: str, sources: str, tasks: list[tuple[str, str]], policies: StudyPolicies | None) -> int:
    """Do the given runs in a worker. As a function of the module, this can be pickled by its name."""
    return _baton.work(folder, sources, tasks, policies)


def _carry_out(plan: _baton.Study, executor: Executor, batch: int, policies: StudyPolicies | None) -> None:
    missing = plan.missing()
    folder = os.fspath(plan.folder)
    futures = []
    try:
        for first in range(0, len(missing), max(batch, 1)):
            tasks = plan.tasks(missing[first : first + max(batch, 1)])
            futures.append(executor.submit(_work, folder, _baton.sources, tasks, policies))
        for future in as_completed(futures):
            future.result()
    except BrokenExecutor as error:
        left = len(plan.missing())
        kept = f"{len(plan) - left} of {len(plan)} runs are kept in {folder}"
        raise WorkersLost(f"a worker died; {kept}, and the same call does the rest") from error
    finally:
        for future in futures:
            future.cancel()


def _carry_out_again(plan: _baton.Study, make: Callable[[], Executor], batch: int, policies: StudyPolicies | None) -> None:
    """Continue with new executors as long as each does some runs before its workers die."""
    while True:
        before = len(plan.missing())
        try:
            with make() as executor:
                _carry_out(plan, executor, batch, policies)
            return
        except WorkersLost:
            if len(plan.missing()) == before:
                raise
