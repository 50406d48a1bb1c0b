"""The tables that an audit reads: the input of a simulation, and what it is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from rebalance_core.contracts.propagation import PROPAGATION
from rebalance_core.ingest.collection.collection import Collection
from rebalance_core.ingest.collection.collection_settings import Assumptions
from rebalance_core.spark.ingest.write_tables import ingested_tables
from rebalance_core.spark.tables.observed import observed, read_observed, stored_observed
from rebalance_core.spark.tables.read import InputTables
from rebalance_core.spark.tables.sources import Source, source_of
from rebalance_core.spark.tables.written import read_written
from rebalance_core.storage.place import object_store


@dataclass(frozen=True, eq=False)
class AuditInputs:
    """The tables of an audit, as read; lazy.

    Attributes:
        history: the input of its simulation.
        seen: by name the observed tables, ingest's findings and ``propagation`` that are there.
    """

    history: InputTables
    seen: Mapping[str, Source]

    def sources(self) -> dict[str, Source]:
        """All of them by name."""
        return {**self.history.sources(), **self.seen}

    def with_propagation(self, session: SparkSession, folder: str) -> AuditInputs:
        """The same, and what `propagate` wrote into a folder."""
        source = source_of(PROPAGATION, read_written(session, folder, PROPAGATION.name))
        return replace(self, seen={**self.seen, PROPAGATION.name: source})


def read_inputs(session: SparkSession, folder: str) -> AuditInputs:
    """The tables that lie by name in a folder.

    Raises:
        InputRefused: a table lacks columns, is there twice or is not readable.
    """
    return AuditInputs(InputTables.read(session, folder), read_observed(session, folder))


def read_ingested(session: SparkSession, folder: str) -> AuditInputs:
    """The tables that an ingest of ours wrote into a folder."""
    store = object_store(folder)
    if store is None:
        return read_inputs(session, folder)
    return AuditInputs(InputTables.read_stored(session, store), stored_observed(session, store))


def unwritten_inputs(
    session: SparkSession, collection: Collection, assumed: Assumptions, kept: ExitStack
) -> AuditInputs:
    """What an ingest makes of a collection; ``kept`` releases it in the end."""
    tables = kept.enter_context(ingested_tables(session, collection, assumed))
    history = InputTables(
        tables["cluster_events"],
        tables["consumer_groups"],
        tables["queue_offsets"],
        tables["committed_offsets"],
    )
    return AuditInputs(history, observed(tables))
