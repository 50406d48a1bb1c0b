"""The tables that an audit reads: the input of a simulation, and what it is compared with."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from rebalance_core.checks.input_tables import (
    InputTables,
    input_tables_of,
    read_input_tables,
    stored_input_tables,
)
from rebalance_core.checks.row_checks import check_table
from rebalance_core.contracts import INGESTED_TABLES, INPUT_TABLES
from rebalance_core.contracts.propagation import PROPAGATION
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.ingest.collection.collection import Collection
from rebalance_core.ingest.collection.collection_settings import Assumptions
from rebalance_core.ingest.in_process import read_collection
from rebalance_core.process.observed import (
    READ_TABLES,
    Observed,
    observed,
    read_observed,
    stored_observed,
)
from rebalance_core.process.written_tables import read_written
from rebalance_core.storage.locations import Location
from rebalance_core.storage.place import Place


@dataclass(frozen=True, eq=False)
class AuditInputs:
    """The tables of an audit.

    Attributes:
        history: the input of its simulation, as read.
        seen: the observed tables, ingest's findings and ``propagation``, if it is there; checked.
    """

    history: InputTables
    seen: Observed

    def with_propagation(self, folder: Location) -> AuditInputs:
        """The same, and what `propagate` wrote into a folder."""
        name = PROPAGATION.name
        checked = check_table(name, read_written(folder, name))
        rows = checked.tables[name].select(PROPAGATION.column_names)
        rejected = pa.concat_tables([self.seen.rejected, checked.rejected])
        return replace(self, seen=Observed({**self.seen.tables, name: rows}, rejected))


def read_inputs(folder: str) -> AuditInputs:
    """The tables that lie by name in a local folder.

    Raises:
        InputRefused: a table lacks columns, is there twice or is not readable.
    """
    return AuditInputs(read_input_tables(folder), read_observed(folder))


def read_ingested(folder: Place) -> AuditInputs:
    """The tables that an ingest of ours wrote into a folder, wherever that is."""
    return AuditInputs(stored_input_tables(folder), stored_observed(folder))


def unwritten_inputs(collection: Collection, assumed: Assumptions) -> AuditInputs:
    """What an ingest makes of a collection."""
    ingested = read_collection(collection, assumed).tables
    tables = {
        name: pa.Table.from_batches([batch_of_rows(table, ingested.get(name, []))])
        for name, table in INGESTED_TABLES.items()
    }
    history = input_tables_of({name: tables[name] for name in INPUT_TABLES})
    return AuditInputs(history, observed({name: tables[name] for name in READ_TABLES}))
