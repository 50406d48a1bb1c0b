"""What the tasks of an ingest do, without Spark: evidence in any number of buckets."""

from collections import Counter
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rebalance_core.checks.row_counts import Complaint, RowCounts
from rebalance_core.checks.row_limits import (
    SHOWN_COMPLAINTS,
    BadRowLimits,
    complaint_lines,
    refuse_bad_rows,
    with_unknown_members,
)
from rebalance_core.contracts.fact_declaration import CLUSTER
from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.collection import open_collection
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
from rebalance_core.spark import assembled_rows, evidence_chunks
from rebalance_core.spark.assembled_rows import AssembleTask, completing
from rebalance_core.spark.routed_rows import routed_tables
from tests.recordings.tables import DATA

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
