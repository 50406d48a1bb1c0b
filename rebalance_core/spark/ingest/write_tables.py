"""A whole ingest: read a collection and write its tables, or make them without writing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from pyspark.sql import DataFrame, SparkSession

from rebalance_core.contracts import INGESTED_TABLES
from rebalance_core.engine.table_writer import IngestWritten
from rebalance_core.ingest.collection.collection import Collection
from rebalance_core.ingest.collection.collection_settings import Assumptions
from rebalance_core.spark.ingest.assembling_tasks import completing
from rebalance_core.spark.ingest.ingest import ingest
from rebalance_core.spark.tables.task_tables import kept_tables, task_tables


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
    rejected: Counter[str] = Counter()
    findings: Counter[str] = Counter()
    with ingest(session, collection, assumed) as ingested:
        if before_writing is not None:
            before_writing()
        with task_tables(session, output, tuple(INGESTED_TABLES)) as tables:
            for counts in tables.make(ingested.rows, completing, tuple(INGESTED_TABLES)):
                rejected.update(counts.rejected)
                findings.update(counts.findings)
            written = tables.finish()
    return IngestWritten(
        tables=written,
        stats=ingested.stats,
        rejected=dict(sorted(rejected.items())),
        findings=dict(sorted(findings.items())),
    )


@contextmanager
def ingested_tables(
    session: SparkSession, collection: Collection, assumed: Assumptions | None = None
) -> Iterator[dict[str, DataFrame]]:
    """The tables of a collection, lazy, with the contract's columns; kept until the end."""
    with (
        ingest(session, collection, assumed) as ingested,
        closing(kept_tables(ingested.rows, completing)) as kept,
    ):
        yield {name: kept.rows(name) for name in INGESTED_TABLES}
