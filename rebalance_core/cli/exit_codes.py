"""How a job ends, for cron, Airflow and a shell."""

from enum import IntEnum

from rebalance_core.cli.missing_package import missing_package
from rebalance_core.model.errors import RebalanceError
from rebalance_core.storage.access import is_full


class ExitCode(IntEnum):
    """The pinned exit codes, and the two that a signal gives."""

    OK = 0
    BUG = 1
    USAGE = 2
    DIFFERENCES = 3
    INPUT_REFUSED = 4
    OUTPUT_EXISTS = 5
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
    if is_full(error) or missing_package(error):
        return ExitCode.USAGE
    return ExitCode.BUG
