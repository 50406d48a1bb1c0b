"""Which consumers a picture of changes shows: one a row, or neighbours with equal numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from rebalance_core.report.plots.labels import short
from rebalance_core.report.plots.what_if.states import Column

MOST_ROWS = 26


@dataclass(frozen=True, slots=True)
class Row:
    """Consumers whose loads are equal in every column; None: not there. Or those left out."""

    label: str
    loads: tuple[tuple[int | None, ...], ...]
    """Of each column the distinct loads, in rising order."""
    idle: tuple[int, ...]
    """Of each column how many are idle."""
    many: bool = False


def rows_of(consumers: Sequence[str], columns: Sequence[Column]) -> list[Row]:
    """At most `MOST_ROWS`: runs of equal loads share one, and of too many runs idle ones go first.

    Args:
        consumers: Client ids of all columns, in the order of the picture.
        columns: The states.
    """
    loads = {c: tuple(column.loads.get(c) for column in columns) for c in consumers}
    if len(consumers) <= MOST_ROWS:
        return [_row([client], loads) for client in consumers]
    runs = [list(run) for _, run in groupby(consumers, key=loads.__getitem__)]
    if len(runs) <= MOST_ROWS:
        return [_row(run, loads) for run in runs]
    idle_first = sorted(range(len(runs)), key=lambda at: (0 not in loads[runs[at][0]], at))
    shown = set(idle_first[: MOST_ROWS - 1])
    rest = [client for at, run in enumerate(runs) if at not in shown for client in run]
    rows = [_row(run, loads) for at, run in enumerate(runs) if at in shown]
    return [*rows, _row(rest, loads, f"… and {len(rest):,} more")]


def _row(
    clients: Sequence[str], loads: Mapping[str, tuple[int | None, ...]], label: str = ""
) -> Row:
    per_column = list(zip(*(loads[client] for client in clients), strict=True))
    if not label:
        more = f" and {len(clients) - 1:,} more" if len(clients) > 1 else ""
        label = short(clients[0], 30) + more
    return Row(
        label,
        tuple(
            tuple(sorted(set(column), key=lambda n: -1 if n is None else n))
            for column in per_column
        ),
        tuple(column.count(0) for column in per_column),
        len(clients) > 1,
    )
