"""What tasks do with the rows of groups: look them over, and play their futures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from rebalance_core.clockwork.measure.partial import PARTIAL_DDL, PARTIAL_SCHEMA
from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.propagation import HANDOVERS
from rebalance_core.engine.group_history import by_table, history_of
from rebalance_core.engine.propagation.options import PropagationOptions
from rebalance_core.engine.propagation.pieces import Survey, played, rejected_rows, surveyed
from rebalance_core.engine.units import PART, PARTS, chunks, split_units
from rebalance_core.replay.history import GroupHistory

SURVEYED, PLAYED = "surveyed", "played"
"""Columns of the frames, one a kind of row; each row has one of them."""

_SURVEY = pa.schema(
    [
        ("cluster", pa.string()),
        ("consumer_group", pa.string()),
        ("changes", pa.int64()),
        ("steps", pa.int64()),
        ("shared_topics", pa.list_(pa.string())),
        ("broadcasts", pa.bool_()),
        ("reason", pa.string()),
    ]
)
_SURVEY_STRUCT = (
    "STRUCT<cluster: STRING, consumer_group: STRING, changes: BIGINT, steps: BIGINT, "
    "shared_topics: ARRAY<STRING>, broadcasts: BOOLEAN, reason: STRING>"
)
SURVEY_DDL = f"{SURVEYED} {_SURVEY_STRUCT}, {REJECTED.name} {REJECTED.struct_type()}"
_PARTIAL_STRUCT = f"STRUCT<{', '.join(c.replace(' ', ': ', 1) for c in PARTIAL_DDL.split(', '))}>"
PLAYED_DDL = f"{HANDOVERS.name} {HANDOVERS.struct_type()}, {PLAYED} {_PARTIAL_STRUCT}"


@dataclass(frozen=True, slots=True)
class SurveyTask:
    """Looks groups over; rows of `SURVEY_DDL`.

    Attributes:
        options: of the simulation.
        queue_offsets_given: there is such a table.
        committed_offsets_given: there is such a table.
    """

    options: PropagationOptions
    queue_offsets_given: bool
    committed_offsets_given: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of units in one part each."""
        for unit in _units(batches):
            survey = surveyed(_history(unit, self), self.options)
            row = {name: getattr(survey, name) for name in _SURVEY.names}
            row["shared_topics"] = list(survey.shared_topics)
            found = pa.Table.from_pylist([row], _SURVEY)
            yield from _tagged(found, rejected_rows([survey]), (SURVEYED, REJECTED.name))


@dataclass(frozen=True, slots=True)
class PlayTask:
    """Plays the seeds of each unit's part; rows of `PLAYED_DDL`. Attributes as `SurveyTask`."""

    options: PropagationOptions
    queue_offsets_given: bool
    committed_offsets_given: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of units."""
        for unit in _units(batches):
            part = unit[PART][0].as_py()
            parts = min(unit[PARTS][0].as_py(), self.options.seeds)
            if part >= parts:
                continue
            seeds = self.options.part(part, parts)
            for made in played(_history(unit, self), self.options, seeds):
                yield from _tagged(made.handovers, made.partial, (HANDOVERS.name, PLAYED))


def survey_of(row: dict[str, object]) -> Survey:
    """A row of the column `SURVEYED`."""
    return Survey(**row)  # type: ignore[arg-type]  # its own fields


def _units(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    for chunk in chunks(batches):
        yield from split_units(chunk)


def _history(unit: pa.Table, task: SurveyTask | PlayTask) -> GroupHistory:
    return history_of(
        by_table(unit),
        queue_offsets_given=task.queue_offsets_given,
        committed_offsets_given=task.committed_offsets_given,
    )


def _tagged(one: pa.Table, other: pa.Table, names: tuple[str, str]) -> Iterator[pa.RecordBatch]:
    """Rows of two tables as rows with two struct columns, of which one is null."""
    kinds = [pa.struct(list(table.schema)) for table in (one, other)]
    for place, table in enumerate((one, other)):
        for batch in table.combine_chunks().to_batches():
            arrays = [pa.nulls(len(batch), kind) for kind in kinds]
            arrays[place] = batch.to_struct_array()
            yield pa.RecordBatch.from_arrays(arrays, names=list(names))


assert PARTIAL_SCHEMA.names == [column.split()[0] for column in PARTIAL_DDL.split(", ")]
