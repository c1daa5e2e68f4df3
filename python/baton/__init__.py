"""TCP offload studied in a simulator: runs, studies, access logs, and policies of one's own.

The same simulator, the same keys and the same store of results as the command `baton`, in process. All tables are Arrow tables
(`__arrow_c_stream__`), which pyarrow, polars, pandas, DuckDB and others read without a copy.
"""

from ._baton import (
    ClosedConnection,
    Connection,
    InputError,
    Log,
    NicLoad,
    Result,
    RunError,
    StudyTables,
    Table,
    __version__,
    metrics,
    presets,
)
from ._logs import generate_log, locality, read_log
from ._run import run
from ._study import WorkersLost, open_study, sweep
from .executors import RayExecutor, Slurm
from .policies import LoadControl, Replacement, Selection

__all__ = [
    "ClosedConnection",
    "Connection",
    "InputError",
    "LoadControl",
    "Log",
    "NicLoad",
    "RayExecutor",
    "Replacement",
    "Result",
    "RunError",
    "Selection",
    "Slurm",
    "StudyTables",
    "Table",
    "WorkersLost",
    "__version__",
    "generate_log",
    "locality",
    "metrics",
    "open_study",
    "presets",
    "read_log",
    "run",
    "sweep",
]
