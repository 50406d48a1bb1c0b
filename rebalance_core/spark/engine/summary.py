"""What is counted of tables as they were written."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame

from rebalance_core.engine.facts import LedgerFacts
from rebalance_core.engine.units import GROUP
from rebalance_core.spark.driver_rows import rows_of

_FACTS = pa.schema([("facts", pa.binary())])


def facts_of(tables: Mapping[str, DataFrame]) -> LedgerFacts:
    """What `LedgerFacts` counts of the tables of a ledger, or of `REPLAYED`; one job.

    Args:
        tables: By name, any of them.
    """
    # the last epoch of a group is known where all its epochs are
    whole = {
        name: frame.repartition(*GROUP) if name == "epochs" else frame
        for name, frame in tables.items()
    }
    counted = [frame.mapInArrow(_counting(name), "facts BINARY") for name, frame in whole.items()]
    facts = LedgerFacts()
    for row in rows_of(reduce(DataFrame.unionAll, counted)):
        facts.merge(pickle.loads(row["facts"]))
    return facts


def _counting(name: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        facts = LedgerFacts()
        if name == "epochs":
            rows = list(batches)
            whole = pa.Table.from_batches(rows).combine_chunks().to_batches() if rows else []
        else:
            whole = batches
        for batch in whole:
            facts.add(name, batch)
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(facts)])], schema=_FACTS)

    return run


def rejected_per_code(rejected: DataFrame) -> dict[str, int]:
    """How often each issue code occurs in `rejected`; a row may have several."""
    return dict(sorted(facts_of({"rejected": rejected}).rejected.items()))
