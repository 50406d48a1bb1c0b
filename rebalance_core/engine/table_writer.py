"""Writes tables, counts their rows for the summary, and reads them back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Generic, Protocol, Self, TypedDict, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from rebalance_core.checks.digest import TableDigest, TableWritten
from rebalance_core.checks.rejections import Rejections
from rebalance_core.checks.row_counts import RowCounts
from rebalance_core.contracts import ALL_TABLES, LEDGER_TABLES
from rebalance_core.engine.fan_out import GROUP
from rebalance_core.engine.replayed import REPLAYED
from rebalance_core.kernels.table_rows import CODED, NAMES, coded_schema
from rebalance_core.model.errors import InputRefused, OutputExists
from rebalance_core.model.system_groups import is_system_group
from rebalance_core.model.verdicts import FAILED
from rebalance_core.storage.place import Location, Place, place_of

GroupName = tuple[str, str]
_STATE = ("status", "queues", "orphaned", "shared")
MOVED_BY, FAILED_BY = "group_metrics", "pull_starts"
"""The tables that show how many queues moved and which starts failed."""


class _GroupState(TypedDict):
    status: str
    queues: int
    orphaned: int
    shared: int
    epochs: int
    first_ms: int
    last_ms: int


class GroupTotals(_GroupState):
    """The summary of a group: its state in the last epoch, and its totals over all epochs."""

    cluster: str
    consumer_group: str
    moved: int | None
    failed_starts: int | None


class LedgerTotals(TypedDict):
    """Totals over all groups, and the worst groups; None for figures from tables that were not
    made.
    """

    groups: int
    epochs: int
    moved: int | None
    orphaned: int
    shared: int
    failed_starts: int | None
    first_ms: int | None
    last_ms: int | None
    worst_groups: list[GroupTotals]


class LedgerFacts:
    """The figures of the summary and the groups in trouble; each batch of rows contains whole
    groups.
    """

    def __init__(self) -> None:
        self._groups: dict[GroupName, _GroupState] = {}
        self._moved: Counter[GroupName] = Counter()
        self._failed: Counter[GroupName] = Counter()
        self.rejected = Rejections()
        self.replay_reasons: Counter[str] = Counter()
        """The number of groups processed by the replay instead of the kernels, by reason."""

    def add(self, table: str, rows: pa.RecordBatch) -> None:
        """Count rows of a ledger table or of `REPLAYED`."""
        if not rows.num_rows:
            return
        if table == "epochs":
            self._add_epochs(rows)
        elif table == MOVED_BY:
            self._moved.update(_sums(rows.filter(pc.is_null(rows["topic"])), "moved"))
        elif table == FAILED_BY:
            self._failed.update(_sums(rows.filter(pc.equal(rows["status"], FAILED)), None))
        elif table == "rejected":
            self.rejected.add(rows)
        elif table == REPLAYED.name:
            self.replay_reasons.update(rows["reason"].to_pylist())

    def merge(self, other: LedgerFacts) -> None:
        """Add the counts of other groups, or of other parts of the same groups."""
        self._groups |= other._groups
        self._moved += other._moved
        self._failed += other._failed
        self.rejected.merge(other.rejected)
        self.replay_reasons += other.replay_reasons

    def totals(self, worst: int, made: Container[str] = LEDGER_TABLES) -> LedgerTotals:
        """Return the totals over all groups and the ``worst`` groups, from the tables ``made``.

        Groups with the most orphaned and shared queues and failed starts come first, then those
        with the most moves. RocketMQ's own groups appear only in the totals.
        """
        known = MOVED_BY in made, FAILED_BY in made
        groups = [self._row(name, state, *known) for name, state in self._groups.items()]
        judged = (group for group in groups if not is_system_group(group["consumer_group"]))
        return {
            "groups": len(groups),
            "epochs": sum(group["epochs"] for group in groups),
            "moved": sum(self._moved.values()) if known[0] else None,
            "orphaned": sum(group["orphaned"] for group in groups),
            "shared": sum(group["shared"] for group in groups),
            "failed_starts": sum(self._failed.values()) if known[1] else None,
            "first_ms": min((group["first_ms"] for group in groups), default=None),
            "last_ms": max((group["last_ms"] for group in groups), default=None),
            "worst_groups": sorted(judged, key=_gravest_first)[:worst],
        }

    def _row(
        self, name: GroupName, state: _GroupState, moved_known: bool, failed_known: bool
    ) -> GroupTotals:
        cluster, group = name
        return {
            "cluster": cluster,
            "consumer_group": group,
            "moved": self._moved[name] if moved_known else None,
            "failed_starts": self._failed[name] if failed_known else None,
            **state,
        }

    def _add_epochs(self, rows: pa.RecordBatch) -> None:
        names, group = _names(rows)
        epoch = rows["epoch"].to_numpy()
        order = np.lexsort((epoch, group))
        ends = np.flatnonzero(np.append(np.diff(group[order]) != 0, True))
        last = pa.array(order[ends])
        first = pa.array(order[np.append(0, ends[:-1] + 1)])
        columns = {name: rows[name].take(last).to_pylist() for name in _STATE}
        columns["epochs"] = np.diff(ends, prepend=-1).tolist()
        columns["first_ms"] = rows["from_ms"].take(first).to_pylist()
        columns["last_ms"] = rows["from_ms"].take(last).to_pylist()
        for place, number in enumerate(group[order[ends]].tolist()):
            state = {name: values[place] for name, values in columns.items()}
            self._groups[names[number]] = cast("_GroupState", state)


def _gravest_first(group: GroupTotals) -> tuple[int, int, str, str]:
    trouble = group["orphaned"] + group["shared"] + (group["failed_starts"] or 0)
    return -trouble, -(group["moved"] or 0), group["cluster"], group["consumer_group"]


def _names(rows: pa.RecordBatch) -> tuple[list[GroupName], np.ndarray]:
    """Return the distinct groups of the rows, and the index of each row's group."""
    keys = pa.table([rows[name] for name in GROUP], names=list(GROUP))
    numbered = keys.append_column("_row", pa.array(np.arange(rows.num_rows)))
    by_group = numbered.group_by(list(GROUP), use_threads=False).aggregate([("_row", "list")])
    number = np.zeros(rows.num_rows, np.int64)
    lists = by_group["_row_list"].combine_chunks()
    lengths = pc.list_value_length(lists).to_numpy()
    number[lists.flatten().to_numpy()] = np.repeat(np.arange(len(by_group)), lengths)
    return list(zip(*(by_group[name].to_pylist() for name in GROUP), strict=True)), number


def _sums(rows: pa.RecordBatch, column: str | None) -> dict[GroupName, int]:
    """Return the sum of a column by group, or the number of rows if no column is given."""
    table = pa.Table.from_batches([rows])
    counted = table.group_by(list(GROUP), use_threads=False).aggregate(
        [([], "count_all") if column is None else (column, "sum")]
    )
    *names, sums = (
        counted[name].to_pylist()
        for name in (*GROUP, "count_all" if column is None else f"{column}_sum")
    )
    return {
        (cluster, group): sums[i] for i, (cluster, group) in enumerate(zip(*names, strict=True))
    }


ROWS_PER_ROW_GROUP = 1 << 17
FILE_NAME = "part-00000.zstd.parquet"
_CODEC = "zstd"


class TableWriter:
    """Writes the rows of a contract table, with all columns in order; a context manager.

    Args:
        folder: The parent of the table's own folder.
        table: The table's name.

    Raises:
        OutputExists: The table's folder already exists.
        UsageError: This process cannot reach the location.
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
        """Add rows; in tables listed in `CODED`, names may be encoded."""
        if not rows.num_rows:
            return
        self._waiting.append(_with_coded_names(self._schema, rows))
        self._rows += rows.num_rows
        if self._rows >= ROWS_PER_ROW_GROUP:
            self._flush()

    def close(self) -> None:
        """Write the remaining rows and complete the file.

        The file is always closed; otherwise, a file in an object store would be completed when
        garbage-collected.
        """
        try:
            self._flush()
        finally:
            self._writer.close()

    @property
    def digest(self) -> TableDigest:
        """The digest of the rows in the file."""
        return self._digest

    def _opened(self) -> pq.ParquetWriter:
        try:
            self._folder.make_new_folder()
        except FileExistsError as error:
            text = f"{self._folder} exists already; write to a new folder"
            raise OutputExists(text) from error
        file = self._folder / FILE_NAME
        # A stored schema would make Arrow readers return dictionaries, which these tables do not
        # need.
        return pq.ParquetWriter(
            file.path,
            self._schema,
            filesystem=file.file_system,
            compression=_CODEC,
            use_dictionary=_coded_columns(self._schema),
            store_schema=not self._names_coded,
        )

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


def _coded_columns(schema: pa.Schema) -> list[str] | bool:
    """Return the text columns, whose values a file encodes, or True (all) if some columns are
    nested.

    Numbers, mostly offsets and times, are smaller and faster to write without a dictionary.
    """
    if any(pa.types.is_nested(kind) for kind in schema.types):
        return True
    return [
        field.name
        for field in schema
        if pa.types.is_string(field.type) or pa.types.is_dictionary(field.type)
    ]


def _with_coded_names(schema: pa.Schema, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows, with names encoded where the schema encodes them."""
    columns = [
        column.dictionary_encode() if field.type == NAMES else column
        for field, column in zip(schema, rows.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class TableWriters:
    """A `TableWriter` for each table; a context manager.

    Args:
        folder: As in `TableWriter`.
        tables: The names of the tables; each gets a file, even without rows.
    """

    def __init__(self, folder: Location, tables: tuple[str, ...]) -> None:
        self._writers: dict[str, TableWriter] = {}
        with ExitStack() as closing:
            for name in tables:
                writer = self._writers[name] = TableWriter(folder, name)
                closing.callback(writer.close)
            closing.pop_all()

    def write(self, table: str, rows: pa.RecordBatch) -> None:
        """Add rows of a table."""
        self._writers[table].write(rows)

    def write_tables(self, tables: Mapping[str, pa.Table]) -> None:
        """Add the rows of the given tables."""
        for name, rows in tables.items():
            for batch in rows.to_batches():
                self.write(name, batch)

    def close(self) -> None:
        """Complete the files, after which the writers cannot be used."""
        with ExitStack() as closing:
            for writer in self._writers.values():
                closing.callback(writer.close)

    def written(self) -> Mapping[str, TableWritten]:
        """Return the number of rows and the digest of each table."""
        return {name: digest.result for name, digest in self.digests().items()}

    def digests(self) -> Mapping[str, TableDigest]:
        """Return the digest of each table, which can be merged with those of other files."""
        return {name: writer.digest for name, writer in self._writers.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


FactsT = TypeVar("FactsT", bound=Mapping[str, object], covariant=True)


@dataclass(frozen=True)
class Written(Generic[FactsT]):
    """The tables that a job wrote, and the facts for its summary.

    Attributes:
        tables: The rows and digest of every table written.
        facts: The facts for the summary: `LedgerFacts.totals` for a simulation, `survey_facts` and
            `propagation.PropagationFacts.totals` for simulated time, the events by type for a
            fleet, ``producer_outcomes`` and ``producer_shares`` for producers.
        rejected: How often each issue code occurs in ``rejected``.
        inputs: The number of rows read, by table.
        replay_reasons: The number of groups processed by the replay instead of the kernels, by
            reason.
        state: The rows and digest of the tables from which a later run may begin.
    """

    tables: Mapping[str, TableWritten]
    facts: FactsT
    rejected: Mapping[str, int] = field(default_factory=dict)
    inputs: Mapping[str, RowCounts] = field(default_factory=dict)
    replay_reasons: Mapping[str, int] = field(default_factory=dict)
    state: Mapping[str, TableWritten] = field(default_factory=dict)


def ledger_written(
    tables: Mapping[str, TableWritten],
    facts: LedgerFacts,
    counts: Mapping[str, RowCounts],
    worst_groups: int,
) -> Written[LedgerTotals]:
    """Summarise the written tables; tables that were not written have no figures.

    Args:
        tables: The rows and digest of every table.
        facts: The facts of the whole ledger.
        counts: The counts of every input table.
        worst_groups: The number of groups that the facts list.
    """
    return Written(
        tables=tables,
        facts=facts.totals(worst_groups, tables),
        rejected=facts.rejected.codes,
        inputs=counts,
        replay_reasons=dict(sorted(facts.replay_reasons.items())),
    )


class ReadWritten(Protocol):
    """Reads the tables that a run wrote."""

    def __call__(
        self, table: str, group: GroupName | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Return the rows of a (cluster, group) or of all groups, with the given columns or all
        columns.
        """


def read_written(
    folder: Location,
    table: str,
    rows: pc.Expression | None = None,
    columns: Iterable[str] | None = None,
) -> pa.Table:
    """Return a table with the contract's columns.

    Args:
        folder: the run's folder.
        table: the table's name.
        rows: a filter of rows; None for all.
        columns: the columns to read; None for all.

    Raises:
        FileNotFoundError: the table does not exist.
        InputRefused: the table lacks a column.
    """
    schema = ALL_TABLES[table].arrow_schema()
    place = place_of(folder) / table
    dataset = ds.dataset(place.path, filesystem=place.file_system, format="parquet")
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns])
    _refuse_missing(dataset.schema, schema, place)
    return _declared(dataset.to_table(schema.names, filter=rows), schema)


def reader_of(folder: Location) -> ReadWritten:
    """Return a reader of the tables in a folder."""

    def read(
        table: str, group: GroupName | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        named = None
        if group is not None:
            named = (pc.field("cluster") == group[0]) & (pc.field("consumer_group") == group[1])
        return read_written(folder, table, named, columns)

    return read


def _refuse_missing(written: pa.Schema, schema: pa.Schema, place: Place) -> None:
    """Raise `InputRefused` if the written columns lack any of the schema's columns."""
    missing = [name for name in schema.names if name not in written.names]
    if missing:
        raise InputRefused(
            f"{place.url} lacks the column(s) {', '.join(missing)}; run the job again"
        )


def _declared(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the columns of the schema, in its types."""
    # Spark's files declare NOT NULL where the contract does; nothing else differs.
    columns = [rows[field.name].cast(field.type) for field in schema]
    return pa.table(columns, schema=schema)


def batches_of_file(file: Place, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in batches, with the columns of the schema."""
    with pq.ParquetFile(file.path, filesystem=file.file_system) as opened:
        _refuse_missing(opened.schema_arrow, schema, file)
        for batch in opened.iter_batches():
            yield from _declared(pa.Table.from_batches([batch]), schema).to_batches()
