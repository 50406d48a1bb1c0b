"""``python -m tests.recordings.scalers``: the scaler runs beside their futures, for
docs/fidelity-figures.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.recordings.figures_page import write_part
from tests.recordings.scalers import compared
from tests.recordings.scalers.runs import NAMES, Run, recorded

MARKS = ("<!-- made by python -m tests.recordings.scalers -->", "<!-- end of scalers -->")
COLUMNS = (
    "run",
    "lag, message-seconds",
    "most lag",
    "late messages",
    "decisions with a partner",
    "seconds with as many replicas",
    "read again",
    "load of the host",
)


def main() -> None:
    """Run it: some ten seconds of processor time."""
    lines = list(table_lines())
    print("\n".join(lines))
    write_part(MARKS, lines)


def table_lines() -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| " + " | ".join(COLUMNS) + " |"
    yield "|" + "---|" * len(COLUMNS)
    for name in NAMES:
        yield "| " + " | ".join(_cells(recorded(name))) + " |"


def _cells(run: Run) -> Iterator[str]:
    yield run.name
    for one in (compared.lag_integral(run), compared.lag_max(run)):
        yield f"{one.measured:,.0f}: {one.futures.mean():,.0f} ({one.error:+.0%})"
    late = compared.late_messages(run)
    yield f"{late.measured:,.0f}: {late.futures.mean():,.0f}"
    yield f"{compared.decisions(run):.0%}"
    yield f"{compared.same_replicas(run):.0%}"
    again = compared.read_again(run)
    low, high = again.range
    yield f"{again.measured:,.0f}: {low:,.0f} to {high:,.0f}"
    yield f"{run.truth['load1_least']:.1f} to {run.truth['load1_most']:.1f}"


if __name__ == "__main__":
    main()
