"""How a job ends, for cron, Airflow and a shell; what to install where a package is missing."""

from enum import IntEnum

from rebalance_core.model.errors import RebalanceError
from rebalance_core.storage.place import is_full, is_of_store

# A package that is not installed: the wheel brings none, so that it replaces none on a cluster.

_EXTRAS = {
    "numpy": "process",
    "pyarrow": "process",
    "pandas": "spark",
    "py4j": "spark",
    "grpc_status": "connect",
    "google": "connect",
    "pyspark": "spark",
    "jinja2": "process",
    "matplotlib": "plots",
}
"""The extra of `pyproject.toml` that brings it."""


def missing_package(error: BaseException) -> str | None:
    """Hint to install a package; None if the error is another one.

    >>> missing_package(ModuleNotFoundError("No module named 'numpy'", name="numpy"))
    "numpy is not installed here: pip install 'WHEEL[process]' (the .whl file), or numpy by itself"
    """
    if not isinstance(error, ModuleNotFoundError):
        return None
    package = (error.name or "").partition(".")[0]
    extra = _EXTRAS.get(package)
    if extra is None:
        return None
    wheel = f"pip install 'WHEEL[{extra}]' (the .whl file)"
    return f"{package} is not installed here: {wheel}, or {package} by itself"


# How a job ends, for cron, Airflow and a shell.


class ExitCode(IntEnum):
    """The pinned exit codes, and the two that a signal gives."""

    OK = 0
    BUG = 1
    USAGE = 2
    DIFFERENCES = 3
    INPUT_REFUSED = 4
    OUTPUT_EXISTS = 5
    STORE_FAILED = 6
    INTERRUPTED = 130  # 128 + SIGINT, as a shell says it
    TERMINATED = 143  # 128 + SIGTERM


def exit_code_of(error: BaseException) -> int:
    """The code that a job ends with when `error` reaches its top."""
    if isinstance(error, RebalanceError):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        return error.code
    if is_of_store(error):
        return ExitCode.STORE_FAILED
    if is_full(error) or missing_package(error):
        return ExitCode.USAGE
    return ExitCode.BUG
