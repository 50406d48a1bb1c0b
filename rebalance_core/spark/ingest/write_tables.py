"""A whole ingest: read a collection and write its tables."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from rebalance_core.engine.written import IngestWritten
from rebalance_core.ingest.collection.assumptions import Assumptions
from rebalance_core.ingest.collection.collection import Collection
from rebalance_core.spark.engine.summary import count_by, rejected_per_code
from rebalance_core.spark.ingest.ingest import ingest
from rebalance_core.spark.tables.write import write_table
from rebalance_core.spark.tables.written import read_written


def ingest_and_write(
    session: SparkSession,
    collection: Collection,
    output: str,
    assumed: Assumptions | None = None,
    *,
    before_writing: Callable[[], object] | None = None,
) -> IngestWritten:
    """Read a collection and write its tables; what is kept meanwhile is released.

    Args:
        session: Any session.
        collection: `open_collection` of a folder that driver and executors mount.
        output: Path or URI of a folder, which gets the tables; none of them may be there.
        assumed: What is taken for granted where no file says it.
        before_writing: Called once every file is read, before the first table is written.

    Raises:
        OutputExists: A table is in the folder already.
    """
    folder = output.rstrip("/")
    with ingest(session, collection, assumed) as ingested:
        if before_writing is not None:
            before_writing()
        written = {n: write_table(frame, folder, n) for n, frame in ingested.tables.items()}
    return IngestWritten(
        tables=written,
        stats=ingested.stats,
        rejected=rejected_per_code(read_written(session, folder, "rejected")),
        findings=count_by(read_written(session, folder, "findings"), "rule_id"),
    )
