"""The data for a figure: a pandas DataFrame, or rows (mappings or Spark rows)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pandas as pd

from rebalance_core.model.errors import UsageError, did_you_mean

PlotRows: TypeAlias = "pd.DataFrame | Iterable[Mapping[str, Any]]"


def table(rows: PlotRows, needed: Sequence[str], defaults: Mapping[str, Any] | None = None) -> Any:
    """Return a new DataFrame with the needed columns and those of ``defaults``, indexed from 0.

    Raises:
        UsageError: Needed columns are missing; the message names all of them. No rows at all are
            valid.
    """
    if isinstance(rows, pd.DataFrame):
        frame = rows.reset_index(drop=True)
    elif hasattr(rows, "toPandas"):
        raise UsageError("a Spark DataFrame: select the rows to draw and pass toPandas()")
    else:
        frame = pd.DataFrame([_mapping(row) for row in rows])
    if not len(frame.columns):
        frame = pd.DataFrame(columns=list(needed))
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        present = [str(name) for name in frame.columns]
        named = ", ".join(name + did_you_mean(name, present) for name in missing)
        raise UsageError(f"columns missing: {named}; present: {', '.join(present)}")
    for name, value in (defaults or {}).items():
        if name not in frame.columns:
            frame[name] = [value] * len(frame)
    return frame


def only(frame: Any, names: Sequence[str], what: str) -> tuple[str, ...]:
    """Return the single value of each of these columns, since a figure of several would be
    meaningless.

    Raises:
        UsageError: A column has several values; the message names some of them.
    """
    for name in names:
        values = sorted({str(value) for value in frame[name]})
        if len(values) > 1:
            some = ", ".join(values[:3]) + (f" and {len(values) - 3} more" if values[3:] else "")
            raise UsageError(f"{what} shows a single {name}; these rows have {len(values)}: {some}")
    return tuple(str(frame[name].iloc[0]) if len(frame) else "" for name in names)


def _mapping(row: Any) -> Mapping[str, Any]:
    return row.asDict() if hasattr(row, "asDict") else row
