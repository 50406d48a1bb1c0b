"""How many rows were read, how many are bad and why, counted before anything is simulated."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from rebalance_core.checks.conform import unknown_columns
from rebalance_core.checks.row_counts import Complaint, RowCounts
from rebalance_core.spark.driver_rows import rows_of
from rebalance_core.spark.tables.check_tasks import Note, Noting, unknown_names
from rebalance_core.spark.tables.quarantine import Quarantined, quarantine
from rebalance_core.spark.tables.sources import Inputs

NoteT = TypeVar("NoteT", bound=Note)

_COUNTED = ("name", "row_count", "bad", "unknown", "note")


@dataclass(frozen=True, eq=False)
class Counted:
    """What was counted of checked tables.

    Attributes:
        rows: Rows and bad rows of each table.
        unknown: Columns, sorted, that were read past, by table.
        notes: What tasks noted of the used rows, in no order.
    """

    rows: Mapping[str, RowCounts]
    unknown: Mapping[str, list[str]]
    notes: Sequence[Note]

    def noted(self, kind: type[NoteT]) -> NoteT:
        """What all tasks noted, of one class."""
        return kind.merged(note for note in self.notes if isinstance(note, kind))


def check_and_note(
    inputs: Inputs,
    max_queue_nums: int,
    notings: tuple[Noting, ...],
    warn: Callable[[str], object] | None = None,
) -> tuple[Quarantined, Counted]:
    """The checked tables, kept until closed, and what was counted of them; one job.

    Args:
        inputs: The tables as read.
        max_queue_nums: As of `quarantine`.
        notings: Each notes something of the used rows.
        warn: Gets a text for each table with unknown columns, which are not read.
    """
    checked = quarantine(inputs, max_queue_nums=max_queue_nums, notings=notings)
    try:
        told = {n: s.extras for n, s in inputs.sources().items() if s.extras is not None}
        counted = _counted(checked, told)
    except BaseException:
        checked.close()
        raise
    if warn is not None:
        for name, columns in counted.unknown.items():
            warn(unknown_columns(name, columns))
    return checked, counted


def _counted(checked: Quarantined, told: Mapping[str, list[str]]) -> Counted:
    """Args: the tables, and the unknown columns that are known before rows are read."""
    rows = dict.fromkeys(checked.tables, RowCounts(0, 0))
    texts: dict[str, list[str]] = {name: [] for name in checked.tables}
    notes: list[Note] = []
    for row in rows_of(checked.chunks.select(*_COUNTED)):
        name = row["name"]
        if row["note"] is not None:
            notes += pickle.loads(row["note"])
            continue
        rows[name] = RowCounts(rows[name].rows + row["row_count"], rows[name].bad + row["bad"])
        texts[name].append(row["unknown"])
    found = {name: told.get(name) or sorted(unknown_names(texts[name])) for name in rows}
    return Counted(rows, {name: names for name, names in found.items() if names}, notes)


def complaints(rejected: DataFrame) -> list[Complaint]:
    """The issues of rows of ``rejected``, by table and code, the most frequent first; one job."""
    issue = sf.explode("issues").alias("issue")
    line = sf.regexp_extract("source", r"[:@](\d+)$", 1).try_cast("BIGINT")
    file = sf.regexp_replace("source", r"[:@]\d+$", "")
    rows = rejected.select("table_name", file.alias("file"), line.alias("line"), "source", issue)
    first = sf.min(sf.struct("file", "line", "source", "issue.message")).alias("first")
    counted = rows.groupBy("table_name", sf.col("issue.code").alias("code")).agg(
        sf.count(sf.lit(1)).alias("times"), first
    )
    return [
        Complaint(
            row["table_name"],
            row["code"],
            row["times"],
            row["first"]["source"] or "",
            row["first"]["message"],
        )
        for row in rows_of(counted.orderBy("table_name", sf.desc("times"), "code"))
    ]
