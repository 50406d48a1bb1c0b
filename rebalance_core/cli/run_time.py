"""How long a run took, and where, in summaries."""

from rebalance_core.cli.run_on import PROCESS, SPARK

_PLACES = {PROCESS: "in process", SPARK: "on Spark"}
_EXACT_BELOW = 10


def duration(seconds: float) -> str:
    """Seconds as a person wants them.

    >>> duration(0.234), duration(51.4)
    ('0.2 s', '51 s')
    """
    return f"{seconds:.1f} s" if seconds < _EXACT_BELOW else f"{seconds:,.0f} s"


def place(run_on: str) -> str:
    """Where a run took place.

    >>> place("spark")
    'on Spark'
    """
    return _PLACES[run_on]
