"""What tasks make of rows in pieces is what `check_table` makes of them all."""

import json
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pytest

from rebalance_core.checks.expected_values import MAX_QUEUE_NUMS
from rebalance_core.checks.key_buckets import key_buckets
from rebalance_core.checks.packed_rows import pack, unpack
from rebalance_core.checks.rejections import Rejections
from rebalance_core.checks.row_checks import check_table
from rebalance_core.checks.row_counts import Content
from rebalance_core.checks.text_rows import Lines, ReadRows, json_rows
from rebalance_core.contracts import ALL_TABLES
from rebalance_core.spark import checks
from rebalance_core.spark.checks import KeyTask, RowTask, unknown_names
from rebalance_core.spark.task_tables import merged
from tests.row_cases import COMMITS, DEFAULTS, EVENTS, rows_by_table

LINES, _ = rows_by_table()
REPEATED = [*LINES[EVENTS], *LINES[EVENTS][:5], '{"cluster": "c", "odd": 1}']


class Tally(Counter[str]):
    """Rows by table."""

    @classmethod
    def merged(cls, parts: Iterable[Self]) -> Self:
        total = cls()
        for part in parts:
            total.update(part)
        return total


class Pieces(Tally):
    """Pieces of tables: noted beside the rows, of a class of its own."""


def read_of(name: str) -> Any:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[ReadRows]:
        for batch in batches:
            yield json_rows(ALL_TABLES[name], Lines(*batch.columns))

    return read


def batches(lines: list[str], size: int) -> list[pa.RecordBatch]:
    found = []
    for begin in range(0, len(lines), size):
        part = lines[begin : begin + size]
        source = [f"f:{begin + n + 1}" for n in range(len(part))]
        columns = [pa.array(part), pa.array(source), pa.array([True] * len(part))]
        found.append(pa.RecordBatch.from_arrays(columns, ["line", "source", "utf8"]))
    return found


def rows_of(made: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in made for row in batch.to_pylist()]


def bare(rows: pa.Table) -> list[dict[str, Any]]:
    """Without places: each task numbers its own lines."""
    return rows.drop_columns(
        [n for n in ("source", "_source") if n in rows.schema.names]
    ).to_pylist()


def placeless(made: list[dict[str, Any]], column: str) -> list[str]:
    return by_text([row for each in made if each[column] for row in bare(unpack(each[column]))])


def by_text(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.parametrize("at_once", [1, 7, 1 << 17])
@pytest.mark.parametrize("buckets", [1, 5])
@pytest.mark.parametrize("name", [EVENTS, COMMITS])
def test_pieces_are_checked_as_the_whole(
    name: str, buckets: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "_ROWS_AT_ONCE", at_once)
    lines = REPEATED if name == EVENTS else LINES[name] * 2
    task = RowTask(name, read_of(name), MAX_QUEUE_NUMS, buckets)
    keyed = [  # of two tasks that read
        batch for half in (lines[::2], lines[1::2]) for batch in task(batches(half, 4))
    ]
    keyed.sort(key=lambda batch: batch["bucket"][0].as_py())
    stats_of = (
        lambda table, rows: Tally({table: len(rows)}),
        lambda table, rows: Pieces({table: 1}) if at_once == 1 else None,
    )
    made = rows_of(KeyTask(stats_of)(keyed))
    (whole,) = read_of(name)(batches(lines, len(lines)))
    expected = check_table(name, whole.rows)
    assert placeless(made, "used") == by_text(bare(expected.tables[name]))
    assert placeless(made, "rejected") == by_text(bare(expected.rejected))
    assert sum(row["row_count"] for row in made) == len(lines) == expected.counts[name].rows
    assert sum(row["bad"] for row in made) == expected.counts[name].bad > 0
    assert made[-1]["name"] is None
    notes = [pickle.loads(row["note"]) for row in made[:-1] if row["note"] is not None]
    content = sum((content for content, _, _ in notes), Content())
    assert content == expected.counts[name].content != Content()
    rejections = merged(Rejections, (wrong for _, _, wrong in notes))
    assert rejections.codes == expected.rejections.codes != {}
    tally, *pieces = pickle.loads(made[-1]["note"])
    assert (type(tally), tally) == (Tally, {name: len(expected.tables[name])})
    assert [type(each) for each in pieces] == [Pieces] * (at_once == 1)
    filled = {batch["bucket"][0].as_py() for batch in keyed}
    assert all(each == {name: len(filled)} for each in pieces)
    odd = unknown_names(row["unknown"] for row in made)
    assert ("odd" in odd) == (name == EVENTS)


def test_no_rows_make_no_chunk() -> None:
    task = RowTask(EVENTS, read_of(EVENTS), MAX_QUEUE_NUMS, 4)
    assert list(task([])) == []
    assert list(KeyTask(())([])) == []


def test_rows_of_one_key_share_a_bucket_and_those_without_one_spread() -> None:
    event = DEFAULTS[EVENTS]
    lines = [json.dumps(event | {"sequence": n % 10}) for n in range(40)]
    lines += [json.dumps(event | {"sequence": None})] * 40
    (read,) = read_of(EVENTS)(batches(lines, len(lines)))
    buckets = key_buckets(ALL_TABLES[EVENTS], read.rows, 8)
    assert len(buckets) == len(lines)
    of_key = [set(buckets[:40][n::10]) for n in range(10)]
    assert all(len(each) == 1 for each in of_key)
    assert len(set().union(*of_key)) > 2
    assert np.bincount(buckets[40:]).tolist() == [5] * 8


def test_packed_rows_come_back() -> None:
    rows = pa.table({"a": [1, None], "b": [["x"], None]})
    assert unpack(pack(rows)).equals(rows)
