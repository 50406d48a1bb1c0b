"""What tasks on Spark do, without a JVM."""

import json
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rebalance_core.checks.expected_values import MAX_QUEUE_NUMS
from rebalance_core.checks.key_buckets import key_buckets
from rebalance_core.checks.packed_rows import pack, unpack
from rebalance_core.checks.rejections import Rejections
from rebalance_core.checks.row_checks import check_table
from rebalance_core.checks.row_counts import Complaint, Content, RowCounts
from rebalance_core.checks.row_limits import (
    SHOWN_COMPLAINTS,
    BadRowLimits,
    complaint_lines,
    refuse_bad_rows,
    with_unknown_members,
)
from rebalance_core.checks.text_rows import Lines, ReadRows, json_rows
from rebalance_core.contracts import ALL_TABLES
from rebalance_core.contracts.fact_declaration import CLUSTER
from rebalance_core.ingest.collection import open_collection
from rebalance_core.ingest.collection_settings import Assumptions
from rebalance_core.ingest.events.broker_timeline import broker_tables
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.group_tables import complete
from rebalance_core.ingest.in_process import read_file, reader_of
from rebalance_core.ingest.piece import Piece
from rebalance_core.ingest.rows import merged as merged_rows
from rebalance_core.ingest.whole_cluster import KeyedEvidence, context_of, given_groups
from rebalance_core.model.errors import InputRefused
from rebalance_core.process.ingested_rows import IngestCounts, IngestedRows
from rebalance_core.spark import assembled_rows, checks, evidence_chunks
from rebalance_core.spark.assembled_rows import AssembleTask, completing
from rebalance_core.spark.checks import KeyTask, RowTask, unknown_names
from rebalance_core.spark.routed_rows import routed_tables
from rebalance_core.spark.task_tables import merged
from tests.recordings.tables import DATA
from tests.row_cases import COMMITS, DEFAULTS, EVENTS, rows_by_table

# What tasks make of rows in pieces is what `check_table` makes of them all.

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


# What the tasks of an ingest do, without Spark: evidence in any number of buckets.

COLLECTION = DATA / "pathologies" / "collection"
WRONG = Unread("brokers/broker-a/broker.log:7", "new consumer", "BROKEN_TEXT", "is not UTF-8")


def tasks(batches: Iterable[pa.RecordBatch], buckets: int) -> Iterator[list[pa.RecordBatch]]:
    """The rows of each bucket, as a shuffle brings them to a task."""
    rows = pa.Table.from_batches(batches)
    for bucket in range(buckets):
        yield rows.filter(pc.equal(rows["bucket"], bucket)).to_batches(max_chunksize=3)


@pytest.mark.parametrize(
    ("buckets", "of_its_own", "at_once"), [(1, 512, 20_000), (3, 1, 1), (5, 20, 7)]
)
def test_any_buckets_give_the_tables_of_a_process(
    buckets: int, of_its_own: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence_chunks, "_ROWS_OF_ITS_OWN", of_its_own)
    monkeypatch.setattr(assembled_rows, "_ROWS_AT_ONCE", at_once)
    collection, assumed = open_collection(COLLECTION), Assumptions()
    given, _ = given_groups(collection)
    readers = {
        file.name: (reader_of(collection, file, assumed), collection.path_of(file))
        for file in collection.files
        if file.name != "consumer_groups.jsonl"
    }
    pieces = [piece for reader, path in readers.values() for piece in read_file(reader, path)]
    stated = [piece for piece in pieces if isinstance(piece, Piece)]
    of_cluster = [piece for piece in stated if piece.part == CLUSTER]
    stats = [reader.stats for reader, _ in readers.values()]
    context = context_of(collection, of_cluster, stats, given, assumed)
    keyed = KeyedEvidence(context)
    by_key: dict[tuple[str, str], list[Evidence]] = {}
    for piece in stated:
        by_key.setdefault((piece.part, piece.key), []).append(piece)
    by_key.pop((CLUSTER, ""))
    expected = merged_rows(
        broker_tables(of_cluster, context),
        *(keyed.tables(*key, by_key[key]) for key in sorted(by_key)),
        keyed.rejected([WRONG]),
    )

    chunks = evidence_chunks.evidence_chunks([*pieces, WRONG], buckets)
    assembling = AssembleTask(keyed, buckets)
    routed = [*assembling.routed(broker_tables(of_cluster, context), 0)]
    for task in tasks(chunks, buckets):
        routed += assembling(task)
    found: Counter[tuple[str, str]] = Counter()
    counts = IngestCounts()
    for task in tasks(routed, buckets):
        rows = completing(routed_tables(task), counts)
        found.update((name, repr(row)) for name, batch in rows for row in batch.to_pylist())
    assert counts.rejections.codes == {WRONG.code: 1}
    of_a_process = IngestedRows(complete(expected, context.cluster))([], IngestCounts())
    assert found == Counter(
        (name, repr(row)) for name, batch in of_a_process for row in batch.to_pylist()
    )
    assert len({name for name, _ in found}) > 6


COMPLAINTS = (
    Complaint("cluster_events", "A", 3, "f:1", "why"),
    Complaint("queue_offsets", "B", 2, "f:1", "why"),
)


def refusal(counts: dict[str, RowCounts], limits: BadRowLimits) -> str | None:
    try:
        refuse_bad_rows(counts, limits, lambda: COMPLAINTS)
    except InputRefused as error:
        return str(error)
    return None


def test_more_than_the_share_is_refused_with_the_reasons_of_that_table() -> None:
    counts = {"cluster_events": RowCounts(10, 4), "queue_offsets": RowCounts(3, 2)}
    text = refusal(counts, BadRowLimits())
    assert text is not None
    first, *reasons = text.splitlines()
    assert first.startswith("queue_offsets: 2 of 3 rows are bad (67%), more than max_bad_share")
    assert reasons == ["  B 2, first f:1: why"]


@pytest.mark.parametrize(
    ("rows", "bad", "limits", "refused"),
    [
        (2, 1, BadRowLimits(max_bad_share=0.5), False),
        (3, 2, BadRowLimits(max_bad_share=0.5), True),
        (3, 3, BadRowLimits(max_bad_share=1), False),
        (9, 1, BadRowLimits(max_bad_share=0), True),
        (9, 0, BadRowLimits(max_bad_share=0), False),
        (9, 1, BadRowLimits(on_bad_rows="fail"), True),
        (9, 0, BadRowLimits(on_bad_rows="fail"), False),
        (0, 0, BadRowLimits(max_bad_share=1), True),
    ],
)
def test_the_limits(rows: int, bad: int, limits: BadRowLimits, refused: bool) -> None:
    assert (refusal({"cluster_events": RowCounts(rows, bad)}, limits) is not None) == refused


def test_what_the_replay_rejects_counts() -> None:
    counts = {"cluster_events": RowCounts(9, 1), "queue_offsets": RowCounts(1, 0)}
    counted = with_unknown_members(counts, 2)
    assert counted == {"cluster_events": RowCounts(9, 3), "queue_offsets": RowCounts(1, 0)}


def test_a_long_list_of_codes_is_truncated() -> None:
    many = [Complaint("t", f"C{n}", 1, "f:1", "why") for n in range(SHOWN_COMPLAINTS + 2)]
    assert complaint_lines(many)[-1] == "  and 2 more codes"
    assert len(complaint_lines(many)) == SHOWN_COMPLAINTS + 1
    assert len(complaint_lines(many[:SHOWN_COMPLAINTS])) == SHOWN_COMPLAINTS
