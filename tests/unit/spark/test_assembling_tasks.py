"""What the tasks of an ingest do, without Spark: evidence in any number of buckets."""

from collections import Counter
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rebalance_core.contracts import INGESTED_TABLES
from rebalance_core.contracts.fact_declaration import CLUSTER
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.ingest.collection import open_collection
from rebalance_core.ingest.collection_settings import Assumptions
from rebalance_core.ingest.events.broker_timeline import broker_tables
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.group_tables import assemble, complete, rejected_row
from rebalance_core.ingest.in_process import context_of, given_groups, read_file, reader_of
from rebalance_core.process.ingest import IngestCounts
from rebalance_core.spark import ingest
from rebalance_core.spark.ingest import Assembling, completing
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
    monkeypatch.setattr(ingest, "_ROWS_OF_ITS_OWN", of_its_own)
    monkeypatch.setattr(ingest, "_ROWS_AT_ONCE", at_once)
    collection, assumed = open_collection(COLLECTION), Assumptions()
    given, _ = given_groups(collection)
    readers = {
        file.name: (reader_of(collection, file, assumed), collection.path_of(file))
        for file in collection.files
        if file.name != "consumer_groups.jsonl"
    }
    pieces = [piece for reader, path in readers.values() for piece in read_file(reader, path)]
    stated = [piece for piece in pieces if isinstance(piece, Evidence)]
    of_cluster = [piece for piece in stated if piece.part == CLUSTER]
    stats = [reader.stats for reader, _ in readers.values()]
    context = context_of(collection, of_cluster, stats, given, assumed)
    expected = assemble(stated, context) | {"rejected": [rejected_row(WRONG)]}

    chunks = ingest.evidence_chunks([*pieces, WRONG], buckets)
    assembling = Assembling(context, buckets)
    routed = [*assembling.routed(broker_tables(of_cluster, context), 0)]
    for task in tasks(chunks, buckets):
        routed += assembling(task)
    found: Counter[tuple[str, str]] = Counter()
    counts = IngestCounts()
    for task in tasks(routed, buckets):
        rows = completing(task, counts)
        found.update((name, repr(row)) for name, batch in rows for row in batch.to_pylist())
    assert counts.rejections.codes == {WRONG.code: 1}
    assert found == Counter(
        (name, repr(row))
        for name, rows in complete(expected, context.cluster).items()
        for row in batch_of_rows(INGESTED_TABLES[name], rows).to_pylist()
    )
    assert len({name for name, _ in found}) > 6
