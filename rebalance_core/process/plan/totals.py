"""Rows of ``plan_summary`` added up over groups: what league and scenarios have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.planning.sweep.plan_options import EXTREMES

Row = dict[str, Any]
_DISTINCT = {"cluster", "consumer_group"}
_OF_SOUND = {"moved_sound": "moved", "minimum_moves": "minimum_moves"}


def totals(summary: pa.Table, keys: Sequence[str], sums: Iterable[str]) -> list[Row]:
    """A row for each key, as plain values.

    Beside the key and the sums it has ``groups``; ``rows``, one a group and variant, and how many
    of them have a caveat (``left_out``) and ``cannot_pop``; the different ``caveats``, sorted; the
    `EXTREMES`; and ``moved_sound`` and
    ``minimum_moves``, the sums of those without one, where the minimum is a measure of the
    strategy.

    Args:
        summary: ``plan_summary``.
        keys: Columns, at least one.
        sums: Columns to add up; null where all are.
    """
    sums = list(sums)
    sound = pc.is_null(summary["caveat"])
    table = summary.select([*keys, "caveat", "cannot_pop", *sums, *EXTREMES])
    for name, column in _OF_SOUND.items():
        values = pc.if_else(sound, summary[column], pa.scalar(None, pa.int64()))
        table = table.append_column(f"_{name}", values)
    how: list[tuple[Any, str]]
    how = [(name, "sum") for name in (*sums, *(f"_{name}" for name in _OF_SOUND))]
    how += [("caveat", "count"), ("caveat", "distinct"), ("cannot_pop", "count"), ([], "count_all")]
    how += EXTREMES.items()
    grouped = table.group_by(list(keys), use_threads=False).aggregate(how)
    groups = distinct(summary, keys, _DISTINCT)
    return [
        {name: row[name] for name in keys}
        | {name: row[f"{name}_sum"] for name in sums}
        | {name: row[f"_{name}_sum"] for name in _OF_SOUND}
        | {
            "groups": groups[tuple(row[name] for name in keys)],
            "rows": row["count_all"],
            "left_out": row["caveat_count"],
            "caveats": sorted(filter(None, row["caveat_distinct"])),
            "cannot_pop": row["cannot_pop_count"],
        }
        | {name: row[f"{name}_{how}"] for name, how in EXTREMES.items()}
        for row in grouped.to_pylist()
    ]


def distinct(
    rows: pa.Table, keys: Sequence[str], columns: Iterable[str]
) -> dict[tuple[Any, ...], int]:
    """By key: how many different values of some columns there are."""
    found = rows.group_by([*keys, *columns], use_threads=False).aggregate([])
    counted = found.group_by(list(keys), use_threads=False).aggregate([([], "count_all")])
    counts = counted["count_all"].to_pylist()
    names = zip(*(counted[name].to_pylist() for name in keys), strict=True)
    return dict(zip(names, counts, strict=True))
