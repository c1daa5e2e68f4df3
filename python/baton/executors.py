"""Executors for systems that have no `concurrent.futures.Executor`."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._baton import InputError, RunError

if TYPE_CHECKING:
    from ._baton import Study
    from ._config import Asked


class RayExecutor(Executor):
    """Executor that runs its calls as tasks of Ray. Ray repeats the tasks of a worker that died.

    Parameters
    ----------
    **options
        Options of `ray.remote`, such as ``num_cpus=1``.
    """

    def __init__(self, **options: Any) -> None:
        import ray

        self._ray = ray
        self._options = options

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call `fn` in a task of Ray."""
        remote = self._ray.remote(fn)
        future: Future[Any] = remote.options(**self._options).remote(*args, **kwargs).future()
        return future


@dataclass(frozen=True)
class Slurm:
    """An array of Slurm jobs, each of which does a part of a study with ``baton sweep --shard``.

    Parameters
    ----------
    tasks
        Number of jobs in the array.
    options
        More options of ``sbatch``, such as ``["--partition=short", "--mem=2G"]``.
    command
        The command ``baton`` on the nodes, of the same version as this package.
    threads
        Number of threads of each job.
    """

    tasks: int
    options: Sequence[str] = field(default=())
    command: str = "baton"
    threads: int = 1

    def carry_out(self, plan: Study, asked: Asked) -> None:
        """Submit the array and wait for its end."""
        if not plan.missing():
            return
        if asked.text is not None:
            raise InputError("study: is not a file; expected the path of a file, because the Slurm jobs read it themselves")
        words = [self.command, "sweep", asked.name, "--out", os.fspath(plan.folder)]
        for key, value in asked.settings:
            words += ["--set", f"{key}={value}"]
        for flag, path in (("--profile", asked.profile), ("--log", asked.log)):
            words += [] if path is None else [flag, path]
        for variant in asked.variants:
            words += ["--variant", variant]
        words += ["--threads", str(self.threads)]
        script = f"exec {shlex.join(words)} --shard $SLURM_ARRAY_TASK_ID/{self.tasks}"
        logs = Path(plan.folder, "slurm")
        logs.mkdir(exist_ok=True)
        self._submit(script, logs)
        if plan.missing():
            raise RunError(
                f"{len(plan.missing())} runs are missing after the jobs have ended; {logs} has their output; "
                f"check that {self.command} is of the same version as this package"
            )

    def _submit(self, script: str, logs: Path) -> None:
        command = [
            "sbatch",
            "--wait",
            f"--array=1-{self.tasks}",
            f"--cpus-per-task={self.threads}",
            f"--output={logs}/%A_%a.log",
            "--job-name=baton",
            *self.options,
            "--wrap",
            script,
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        # A job that fails writes the error to its log. Results that it has stored are kept.
        if done.returncode != 0 and "Submitted" not in done.stdout:
            raise RunError(f"sbatch: {done.stderr.strip()}")
