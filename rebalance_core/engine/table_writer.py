"""A table into one Parquet file of a fresh folder, counted and fingerprinted; what a job wrote."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import pyarrow as pa
import pyarrow.parquet as pq

from rebalance_core.checks.digest import TableDigest, TableWritten
from rebalance_core.checks.row_limits import RowCounts
from rebalance_core.contracts import ALL_TABLES
from rebalance_core.engine.facts import LedgerFacts
from rebalance_core.engine.options import RowForecast
from rebalance_core.ingest.file_reader import FileStats
from rebalance_core.kernels.tables.ledger import CODED
from rebalance_core.kernels.tables.output import NAMES, coded_schema
from rebalance_core.model.errors import OutputExists
from rebalance_core.storage.place import Location, place_of

# A table into one Parquet file of a fresh folder, counted and fingerprinted while written.

ROWS_PER_ROW_GROUP = 1 << 17
FILE_NAME = "part-00000.zstd.parquet"
_CODEC = "zstd"


class TableWriter:
    """Writes the rows of one table of the contract, all columns in order; a context manager.

    Args:
        folder: What the table's own folder is made in.
        table: Its name.

    Raises:
        OutputExists: The table's folder is there already.
        UsageError: No such place is reached from here.
    """

    def __init__(self, folder: Location, table: str) -> None:
        self._folder = place_of(folder) / table
        self._names_coded = table in CODED
        plain = ALL_TABLES[table].arrow_schema()
        self._schema = coded_schema(table) if self._names_coded else plain
        self._digest = TableDigest(ALL_TABLES[table])
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._writer = self._opened()

    def write(self, rows: pa.RecordBatch) -> None:
        """Add some rows; in tables of `CODED` their names may be coded."""
        if not rows.num_rows:
            return
        self._waiting.append(_with_coded_names(self._schema, rows))
        self._rows += rows.num_rows
        if self._rows >= ROWS_PER_ROW_GROUP:
            self._flush()

    def close(self) -> None:
        """Write what is left; the file is complete then.

        It is closed in any case: left open, it would reach a store when it is garbage-collected.
        """
        try:
            self._flush()
        finally:
            self._writer.close()

    @property
    def digest(self) -> TableDigest:
        """Of the rows that are in the file."""
        return self._digest

    def _opened(self) -> pq.ParquetWriter:
        try:
            self._folder.make_new_folder()
        except FileExistsError as error:
            text = f"{self._folder} exists already; write into a fresh folder"
            raise OutputExists(text) from error
        file = self._folder / FILE_NAME
        # A stored schema would tell readers in Arrow of dictionaries; these tables need none.
        return pq.ParquetWriter(
            file.path, self._schema, filesystem=file.file_system, compression=_CODEC,
            store_schema=not self._names_coded,
        )  # fmt: skip

    def _flush(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting, self._schema)
            table = table.unify_dictionaries().combine_chunks()
            self._digest.add(table)
            self._writer.write_table(table)
        self._waiting, self._rows = [], 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _with_coded_names(schema: pa.Schema, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows, with names coded where the schema has them so."""
    columns = [
        column.dictionary_encode() if field.type == NAMES else column
        for field, column in zip(schema, rows.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class TableWriters:
    """One writer a table; a context manager.

    Args:
        folder: As of `TableWriter`.
        tables: Names of the tables; each gets a file, even without a row.
    """

    def __init__(self, folder: Location, tables: tuple[str, ...]) -> None:
        self._writers: dict[str, TableWriter] = {}
        with ExitStack() as closing:
            for name in tables:
                writer = self._writers[name] = TableWriter(folder, name)
                closing.callback(writer.close)
            closing.pop_all()

    def write(self, table: str, rows: pa.RecordBatch) -> None:
        """Add some rows of a table."""
        self._writers[table].write(rows)

    def written(self) -> Mapping[str, TableWritten]:
        """Rows and digest of every table."""
        return {name: digest.result for name, digest in self.digests().items()}

    def digests(self) -> Mapping[str, TableDigest]:
        """The digests of every table, which those of other files can be merged with."""
        return {name: writer.digest for name, writer in self._writers.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with ExitStack() as closing:
            for writer in self._writers.values():
                closing.callback(writer.close)


# What a job wrote, wherever it ran.


class Written(Protocol):
    """What a job made of input tables."""

    @property
    def tables(self) -> Mapping[str, TableWritten]:
        """Rows and digest of every table written."""

    @property
    def rejected(self) -> Mapping[str, int]:
        """How often each issue code occurs in ``rejected``."""

    @property
    def input_rows(self) -> Mapping[str, int]:
        """Rows of every input table."""


@dataclass(frozen=True)
class LedgerWritten:
    """What a simulation wrote.

    Attributes:
        tables: Rows and digest of every table written.
        facts: What a summary says of them (`LedgerFacts.totals`).
        rejected: How often each issue code occurs in ``rejected``.
        input_rows: Rows of every input table.
        replay_reasons: How many groups the replay took instead of the kernels, by reason.
    """

    tables: Mapping[str, TableWritten]
    facts: Mapping[str, Any]
    rejected: Mapping[str, int]
    input_rows: Mapping[str, int]
    replay_reasons: Mapping[str, int]


def ledger_written(
    tables: Mapping[str, TableWritten],
    facts: LedgerFacts,
    counts: Mapping[str, RowCounts],
    worst_groups: int,
) -> LedgerWritten:
    """What was written, summed up.

    Args:
        tables: Rows and digest of every table.
        facts: Of the whole ledger.
        counts: Of every input table.
        worst_groups: How many groups the facts list.
    """
    return LedgerWritten(
        tables=tables,
        facts=facts.totals(worst_groups),
        rejected=dict(sorted(facts.rejected.items())),
        input_rows={name: count.rows for name, count in counts.items()},
        replay_reasons=dict(sorted(facts.replay_reasons.items())),
    )


@dataclass(frozen=True)
class IngestWritten:
    """What an ingest wrote.

    Attributes:
        tables: Rows and digest of every table written.
        stats: How each file was understood.
        rejected: How often each issue code occurs in ``rejected``.
        findings: Rows of ``findings`` by rule.
    """

    tables: Mapping[str, TableWritten]
    stats: tuple[FileStats, ...]
    rejected: Mapping[str, int]
    findings: Mapping[str, int]


@dataclass(frozen=True)
class FleetWritten:
    """Rows and digest of every table of a synthetic fleet, and the events by type."""

    tables: Mapping[str, TableWritten]
    events: Mapping[str, int]


@dataclass(frozen=True)
class ProducersWritten:
    """What a simulation of producers wrote.

    Attributes:
        tables: Rows and digest of every table written.
        answers: The small tables among them: ``producer_outcomes``, ``producer_shares``.
        rejected: How often each issue code occurs in ``rejected``.
        input_rows: Rows of every input table; empty of a model.
    """

    tables: Mapping[str, TableWritten]
    answers: Mapping[str, pa.Table]
    rejected: Mapping[str, int] = field(default_factory=dict)
    input_rows: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class PropagationWritten:
    """What a simulation of time wrote.

    Attributes:
        tables: Rows and digest of every table written.
        facts: What a summary says (`survey_facts` and `PropagationFacts.totals`).
        rejected: How often each issue code occurs in ``rejected``.
        input_rows: Rows of every input table.
    """

    tables: Mapping[str, TableWritten]
    facts: Mapping[str, Any]
    rejected: Mapping[str, int]
    input_rows: Mapping[str, int]


@dataclass(frozen=True)
class PropagationForecast:
    """How a simulation of time would end for its rows, and how much there is to do.

    Attributes:
        rows: What a run would make of its rows.
        facts: As `survey_facts` gives them; empty where the rows are refused.
    """

    rows: RowForecast
    facts: Mapping[str, Any]
