"""An audit of which nothing is written: of a collection or of tables, straight to its counts."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from pyspark.sql import SparkSession

from rebalance_core.audit.verdict import Count
from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.ingest.collection.assumptions import Assumptions
from rebalance_core.ingest.collection.collection import Collection
from rebalance_core.spark.audit.audit import audit_tables
from rebalance_core.spark.engine.ledger import Ledger
from rebalance_core.spark.ingest.ingest import ingest
from rebalance_core.spark.tables.observed import Observed, observed
from rebalance_core.spark.tables.quarantine import Quarantined
from rebalance_core.spark.tables.read import InputTables


def tables_of_collection(
    session: SparkSession, collection: Collection, assumed: Assumptions, kept: ExitStack
) -> tuple[InputTables, Observed]:
    """What an audit reads, ingested from a collection; lazy. ``kept`` releases it in the end."""
    tables = kept.enter_context(ingest(session, collection, assumed)).tables
    inputs = InputTables(
        tables["cluster_events"],
        tables["consumer_groups"],
        tables["queue_offsets"],
        tables["committed_offsets"],
    )
    return inputs, observed(session, tables)


def count_unwritten(
    checked: Quarantined, simulated: Ledger, observations: Observed, **options: Any
) -> list[Count]:
    """How many findings there are of which kind; tables, kept meanwhile, are released.

    Args:
        checked: the input.
        simulated: its ledger, which stays open.
        observations: what it is compared with.
        options: those of `audit_tables`.
    """
    with ExitStack() as kept:
        frames = simulated.frames()
        # Judged from several times: kept, where a run reads what it wrote.
        ledger = {name: frames[name].persist() for name in LEDGER_TABLES}
        for frame in ledger.values():
            kept.callback(frame.unpersist)
        tables = {**checked.tables, **observations.tables, **ledger}
        result = kept.enter_context(audit_tables(tables, **options))
        return result.counts()
