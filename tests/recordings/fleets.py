"""Collections of recordings as one fleet, a cluster each."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import pyarrow as pa

from rebalance_core.contracts import ALL_TABLES, COLLECTED_TABLES
from rebalance_core.contracts.table import batch_of_rows
from tests.recordings.tables import Row, ingested_recording

FLEET = ("nightly", "silent-loss", "pop")


@cache
def ingested_fleet() -> dict[str, pa.Table]:
    """What ingest makes of the collections of `FLEET`; rows reversed."""
    return {
        name: table_of(name, [row for part in FLEET for row in _ingested(part, name)][::-1])
        for name in COLLECTED_TABLES
    }


def table_of(name: str, rows: Iterable[Row]) -> pa.Table:
    """Rows of a table of the contract."""
    return pa.Table.from_batches([batch_of_rows(ALL_TABLES[name], list(rows))])


def _ingested(recording: str, table: str) -> Iterator[Row]:
    tables: Any = ingested_recording(recording).tables
    for row in tables[table]:
        yield row | ({"cluster": recording} if "cluster" in row else {})
