"""Study TCP offload in a simulator: runs, studies, access logs, and your own policies.

The package runs the simulator of the command `baton` in process, with the same keys and the same store of results. All tables are Arrow
tables (`__arrow_c_stream__`), which pyarrow, polars, pandas, DuckDB and others read without copying them.
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
