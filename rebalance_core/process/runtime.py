"""The interface between a job and its runtime, and the runtime of a single process.

A job is written once, against `Runtime`: it checks its input, distributes the rows to tasks,
defines the tasks' work, and writes their results and a summary of their facts. In this process a
single task receives all rows; on Spark (`spark.runtime`) there are many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import pyarrow as pa

from rebalance_core.checks.digest import TableWritten
from rebalance_core.checks.expected_values import MAX_QUEUE_NUMS
from rebalance_core.checks.input_tables import ArrowTables, read_tables
from rebalance_core.checks.rejections import Rejections
from rebalance_core.checks.row_checks import Checked, check_tables
from rebalance_core.checks.row_counts import RowCounts
from rebalance_core.checks.row_limits import BadRowLimits, refuse_bad_rows
from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.opening_state import EVIDENCE
from rebalance_core.engine.sharing_groups import Group, groups_sharing_with, joins_of
from rebalance_core.engine.table_writer import ReadWritten, TableWriters, reader_of
from rebalance_core.kernels.table_columns import EVENTS
from rebalance_core.process.pool import PieceT, Progress, in_order, usable_cores
from rebalance_core.storage.place import Location

if TYPE_CHECKING:
    from rebalance_core.ingest.assumptions import Assumptions
    from rebalance_core.ingest.collection import Collection
    from rebalance_core.ingest.file_reader import FileStats

Part = tuple[int, dict[str, pa.Table]]
"""The number of a bucket, and its rows by table."""
TableRows = Iterable[tuple[str, pa.RecordBatch]]
"""Batches of rows, each with the name of its table."""
Rows = Any
"""Parts on their way to tasks, in the form of the runtime that made them."""


class TaskFacts(Protocol):
    """Facts that a task returns besides its rows; empty when created."""

    def merge(self, other: Any) -> object:
        """Add the facts of another task."""


class NoFacts:
    """`TaskFacts` of a task that only makes rows."""

    def merge(self, other: Self) -> None:
        """Do nothing."""


MadeT = TypeVar("MadeT")


@dataclass(slots=True)
class Made(Generic[MadeT]):
    """`TaskFacts` that collect results of tasks, in no particular order."""

    made: list[MadeT] = field(default_factory=list)

    def merge(self, other: Made[MadeT]) -> None:
        """Add the results of another task."""
        self.made += other.made


FactsT = TypeVar("FactsT", bound=TaskFacts)
KeptT = TypeVar("KeptT", bound=TaskFacts, covariant=True)
Work = Callable[[Iterable[Part], FactsT], TableRows]
"""Turns a task's parts into rows of tables; the facts are complete once all rows are consumed."""


Key = tuple[str, ...]
Sent = Iterable[tuple[Key | None, str, pa.Table]]
"""Rows on their way to other tasks: rows with the same key go to one task, rows with key None to
any.
"""


class TaskStats(Protocol):
    """Counts over used rows that a later step needs; they are pickled."""

    @classmethod
    def merged(cls, parts: Iterable[Self]) -> Self:
        """Merge the stats of parts."""


StatsT = TypeVar("StatsT", bound=TaskStats)
StatsOf = Callable[[str, pa.Table], TaskStats | None]
"""Counts the used rows of a table, or returns None for tables that do not matter."""


class RowRouting(Protocol):
    """Routes rows to tasks, as `engine.routing.Routing` does."""

    @property
    def buckets(self) -> int:
        """Return the number of buckets."""

    @property
    def units(self) -> int:
        """Return how many groups, or parts of them, the buckets hold; 0 if that is unknown."""

    def split(self, table: str, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """Yield the buckets to which used rows of a table go, with the rows of each."""


class CheckedInput(Protocol):
    """An input whose rows are checked, and so either used or rejected."""

    @property
    def tables(self) -> Mapping[str, Any]:
        """The used rows of each table, in the form of the runtime."""

    @property
    def counts(self) -> Mapping[str, RowCounts]:
        """The numbers of rows and bad rows of each table."""

    @property
    def rejections(self) -> Rejections:
        """What is wrong with the bad rows."""

    @property
    def state_end_ms(self) -> int | None:
        """The end of the opening state, whose rows are among the used ones; None without an opening
        state.
        """

    def stats(self, kind: type[StatsT]) -> StatsT:
        """Return the merged counts of one class over the used rows."""

    def refuse(self, limits: BadRowLimits) -> None:
        """Raise `model.errors.InputRefused` for too many bad rows."""

    def sharing_groups(self) -> Mapping[Group, tuple[Group, ...]]:
        """Return, for each group, the other groups that share client instances with it."""

    def rows(self, table: str, most: int | None = None) -> pa.Table:
        """Return the used (or rejected) rows of a small table to the driver."""


class Tables(Protocol):
    """A folder that receives tables from tasks or from the job itself."""

    def write(
        self, rows: Rows, work: Work[FactsT], kind: Callable[[], FactsT], names: Iterable[str]
    ) -> FactsT:
        """Write the named tables that ``work`` makes, and return the facts of all tasks."""

    def add(self, table: str, rows: pa.Table) -> None:
        """Write a table from the driver."""

    def finish(self) -> Mapping[str, TableWritten]:
        """Finish writing; return the number of rows and the digest of every table."""


class Kept(Protocol[KeptT]):
    """Results of tasks, kept until it is decided whether to write them."""

    def facts(self) -> KeptT:
        """Return the facts of all tasks."""

    def write(self, into: Any, names: Iterable[str]) -> None:
        """Write the named tables into `Tables` of the same runtime."""


@dataclass(frozen=True, eq=False)
class ReadFiles:
    """The files of a collection after reading.

    Attributes:
        rows: The input of the tasks.
        work: Makes the tables from it; its facts are `process.ingested_rows.IngestCounts`.
        stats: How each file was understood.
        evidence: The input from which `process.ingest.EvidenceRows` makes `EVIDENCE` in tasks.
        end_ms: The end of the collection.
        left_out: Ignored files that belong to others.
    """

    rows: Rows
    work: Work[Any]
    stats: tuple[FileStats, ...]
    evidence: Rows
    end_ms: int
    left_out: frozenset[str]


class Runtime(Protocol):
    """The environment in which a job runs."""

    def read(self, places: Mapping[str, str], input_format: str | None = None) -> Any:
        """Read the tables at the given places; return them by name, in the form that `check`
        takes.
        """

    def reader(self, folder: str) -> ReadWritten:
        """Return a reader of the tables that a run wrote into a folder."""

    def read_files(
        self,
        collection: Collection,
        assumed: Assumptions,
        progress: Callable[[int, int], object] | None = None,
    ) -> AbstractContextManager[ReadFiles]:
        """Read every file of a collection once; in-process, ``progress`` counts them."""

    def check(
        self,
        inputs: Any,
        stats_of: tuple[StatsOf, ...] = (),
        *,
        max_queue_nums: int = MAX_QUEUE_NUMS,
        warn: Callable[[str], object] | None = None,
    ) -> AbstractContextManager[CheckedInput]:
        """Check every row, apply ``stats_of`` to the used rows, and warn about unknown columns."""

    def task_count(
        self,
        amount: int,
        per_task: int | None = None,
        *,
        per_core: int = 1,
        wanted: int | None = None,
    ) -> int:
        """Return the number of tasks for the work.

        Args:
            amount: Number of rows or other items.
            per_task: Items per task; None for the default of rows.
            per_core: Minimum number of tasks per core; more than one if tasks take different times.
            wanted: The exact number on a runtime with several tasks; None for as many as the work
                needs.
        """

    def numbers(self, count: int, tasks: int | None = None) -> Rows:
        """Return the numbers from 0 as parts without rows; if ``tasks`` is None, the runtime
        decides their number.
        """

    def deal(
        self, checked: Any, routing: RowRouting, copies: int = 1, more_rejected: Any = None
    ) -> Rows:
        """Distribute the used and the rejected rows, each bucket to one task.

        Args:
            checked: From `check`.
            routing: The bucket of each row.
            copies: Number of tasks that receive the used rows of a bucket; those of bucket b are
                numbered from b x copies.
            more_rejected: Rows of ``rejected`` from earlier steps, as a table of the runtime.
        """

    def exchange(
        self,
        rows: Rows,
        pieces: Callable[[Iterable[Part]], Iterable[PieceT]],
        play: Callable[[PieceT], Sent],
        tasks: int,
        *,
        count: int,
        progress: Progress | None = None,
    ) -> Rows:
        """Play pieces of work and distribute their results by key. The result is lazy and can be
        read once.

        Args:
            rows: The first tasks' input.
            pieces: Makes pieces from the rows, those of a key in succession.
            play: A module-level function, which any process may call.
            tasks: Number of tasks that receive the results.
            count: The approximate number of pieces, which limits the number of processes.
            progress: Called as pieces finish; only in-process.
        """

    def run(self, rows: Rows, work: Work[FactsT], kind: Callable[[], FactsT]) -> FactsT:
        """Return the facts of all tasks and discard their rows."""

    def each(
        self,
        pieces: Sequence[PieceT],
        play: Callable[[PieceT], MadeT],
        progress: Progress | None = None,
    ) -> Iterator[MadeT]:
        """Yield the result of each piece in order, playing pieces in parallel.

        Args:
            pieces: Long-running pieces, which are pickled.
            play: A module-level function.
            progress: Called with the number of finished pieces, the total, and the name of the
                piece being waited for; only in-process.
        """

    def keep(
        self, rows: Rows, work: Work[FactsT], kind: Callable[[], FactsT]
    ) -> AbstractContextManager[Kept[FactsT]]:
        """Keep the tasks' results until it is decided whether to write them."""

    def tables(self, output: Location, names: Iterable[str]) -> AbstractContextManager[Tables]:
        """Open a folder for writing the named tables.

        Raises:
            OutputExists: One of the tables already exists.
        """


@dataclass(frozen=True, eq=False)
class CheckedHere:
    """`CheckedInput` in memory, with counts computed on demand."""

    checked: Checked
    stats_of: tuple[StatsOf, ...]

    @property
    def tables(self) -> Mapping[str, pa.Table]:
        """The used rows of each table."""
        return self.checked.tables

    @property
    def counts(self) -> Mapping[str, RowCounts]:
        """The numbers of rows and bad rows of each table."""
        return self.checked.counts

    @property
    def rejections(self) -> Rejections:
        """What is wrong with the bad rows."""
        return self.checked.rejections

    @property
    def state_end_ms(self) -> int | None:
        """The end of the opening state, if there is one."""
        return self.checked.state_end_ms

    @cached_property
    def _counted(self) -> list[TaskStats]:
        tables = self.tables.items()
        read_stats = (read(name, rows) for read in self.stats_of for name, rows in tables)
        return [stats for stats in read_stats if stats is not None]

    def stats(self, kind: type[StatsT]) -> StatsT:
        """Return the merged counts of one class over all tables."""
        return kind.merged(stats for stats in self._counted if isinstance(stats, kind))

    def refuse(self, limits: BadRowLimits) -> None:
        """Raise `model.errors.InputRefused` for too many bad rows."""
        refuse_bad_rows(self.counts, limits, self.checked.complaints)

    def sharing_groups(self) -> Mapping[Group, tuple[Group, ...]]:
        """Return, for each group, the other groups that share client instances with it."""
        return groups_sharing_with(joins_of(self.tables[EVENTS]))

    def rows(self, table: str, most: int | None = None) -> pa.Table:
        """Return the used (or rejected) rows of a table."""
        rows = self.checked.rejected if table == REJECTED.name else self.tables[table]
        return rows.slice(0, most)


@dataclass(frozen=True, eq=False)
class TablesHere:
    """`Tables` that are written while the rows are computed."""

    writers: TableWriters

    def write(
        self, rows: Rows, work: Work[FactsT], kind: Callable[[], FactsT], names: Iterable[str]
    ) -> FactsT:
        """Write the results of ``work`` on all rows."""
        facts = kind()
        for name, batch in work(_fresh(rows), facts):
            self.writers.write(name, batch)
        return facts

    def add(self, table: str, rows: pa.Table) -> None:
        """Write a table."""
        self.writers.write_tables({table: rows})

    def finish(self) -> Mapping[str, TableWritten]:
        """Close the files; return the number of rows and the digest of every table."""
        self.writers.close()
        return self.writers.written()


@dataclass(frozen=True, eq=False)
class KeptHere(Generic[FactsT]):
    """`Kept` in memory."""

    made: Mapping[str, list[pa.RecordBatch]]
    task_facts: FactsT

    def facts(self) -> FactsT:
        """Return the facts of the single task."""
        return self.task_facts

    def write(self, into: Tables, names: Iterable[str]) -> None:
        """Write the named tables."""
        for name in names:
            if name in self.made:
                into.add(name, pa.Table.from_batches(self.made[name]))


@dataclass(frozen=True)
class LocalRuntime:
    """The `Runtime` of this process, in which a single task receives all rows.

    Attributes:
        processes: The number of processes that play pieces of work; None for one per core, but no
            more than there are pieces.
    """

    processes: int | None = None

    def read(self, places: Mapping[str, str], input_format: str | None = None) -> ArrowTables:
        """Return the tables by name."""
        return read_tables(places, input_format)

    def reader(self, folder: Location) -> ReadWritten:
        """Return a reader of the tables that a run wrote into a folder."""
        return reader_of(folder)

    @contextmanager
    def read_files(
        self,
        collection: Collection,
        assumed: Assumptions,
        progress: Callable[[int, int], object] | None = None,
    ) -> Iterator[ReadFiles]:
        """Read one file after another."""
        from rebalance_core.ingest.in_process import (
            read_collection,
        )  # imported here because few jobs read files
        from rebalance_core.process.ingested_rows import IngestedRows, opening_rows

        read = read_collection(collection, assumed, progress, opening_rows(collection))
        evidence = ((0, {EVIDENCE.name: pa.Table.from_batches([b])}) for b in read.evidence)
        work = IngestedRows(read.tables)
        yield ReadFiles([(0, {})], work, read.stats, evidence, read.end_ms, read.left_out)

    @contextmanager
    def check(
        self,
        inputs: ArrowTables,
        stats_of: tuple[StatsOf, ...] = (),
        *,
        max_queue_nums: int = MAX_QUEUE_NUMS,
        warn: Callable[[str], object] | None = None,
    ) -> Iterator[CheckedHere]:
        """Check every row."""
        checked = check_tables(inputs, max_queue_nums=max_queue_nums, warn=warn)
        # Arrow keeps the memory that it frees, here about a third of the rows' size, for its own
        # later arrays, but the next steps need NumPy arrays.
        pa.default_memory_pool().release_unused()
        yield CheckedHere(checked, stats_of)

    def task_count(
        self,
        amount: int,
        per_task: int | None = None,
        *,
        per_core: int = 1,
        wanted: int | None = None,
    ) -> int:
        """Return 1."""
        return 1

    def numbers(self, count: int, tasks: int | None = None) -> Rows:
        """Return the numbers from 0."""
        return [(number, {}) for number in range(count)]

    def deal(
        self,
        checked: CheckedHere,
        routing: RowRouting,
        copies: int = 1,
        more_rejected: pa.Table | None = None,
    ) -> Rows:
        """Return all rows to the single task, which has all buckets."""
        rejected = [checked.checked.rejected, *([] if more_rejected is None else [more_rejected])]
        return [(0, {**checked.tables, REJECTED.name: pa.concat_tables(rejected)})]

    def exchange(
        self,
        rows: Rows,
        pieces: Callable[[Iterable[Part]], Iterable[PieceT]],
        play: Callable[[PieceT], Sent],
        tasks: int,
        *,
        count: int,
        progress: Progress | None = None,
    ) -> Rows:
        """Play pieces in order, in this process or in others, and yield the rows of a key once all
        exist.
        """

        def report(done: int, waited: str | None) -> None:
            if progress is not None:
                progress(done, count, waited)

        processes = self.processes or min(usable_cores(), max(1, count))
        played = in_order(_Listed(play), pieces(_fresh(rows)), processes, report)
        return _of_keys(sent for of_piece in played for sent in of_piece)

    def run(self, rows: Rows, work: Work[FactsT], kind: Callable[[], FactsT]) -> FactsT:
        """Return only the facts."""
        facts = kind()
        for _ in work(_fresh(rows), facts):
            pass
        return facts

    def each(
        self,
        pieces: Sequence[PieceT],
        play: Callable[[PieceT], MadeT],
        progress: Progress | None = None,
    ) -> Iterator[MadeT]:
        """Play the pieces in this process, or in a process per core."""

        def report(done: int, waited: str | None) -> None:
            if progress is not None:
                progress(done, len(pieces), waited)

        processes = self.processes or min(usable_cores(), max(1, len(pieces)))
        return in_order(play, pieces, processes, report)

    @contextmanager
    def keep(
        self, rows: Rows, work: Work[FactsT], kind: Callable[[], FactsT]
    ) -> Iterator[KeptHere[FactsT]]:
        """Keep the task's results in memory."""
        facts, made = kind(), dict[str, list[pa.RecordBatch]]()
        for name, batch in work(_fresh(rows), facts):
            made.setdefault(name, []).append(batch)
        yield KeptHere(made, facts)

    @contextmanager
    def tables(self, output: Location, names: Iterable[str]) -> Iterator[TablesHere]:
        """Open a folder for writing tables."""
        with TableWriters(output, tuple(names)) as writers:
            yield TablesHere(writers)


HERE = LocalRuntime()


def _fresh(parts: Iterable[Part]) -> Iterator[Part]:
    """Return the parts with fresh dicts, which a task may empty, as on Spark."""
    return ((number, dict(tables)) for number, tables in parts)


@dataclass(frozen=True)
class _Listed(Generic[PieceT]):
    """Plays a piece to its end in the calling process."""

    play: Callable[[PieceT], Sent]

    def __call__(self, piece: PieceT) -> list[tuple[Key | None, str, pa.Table]]:
        return list(self.play(piece))


def _of_keys(sent: Sent) -> Iterator[Part]:
    """Yield the rows of each key, which arrive in succession, and rows without a key as they
    arrive.
    """
    current: Key | None = None
    tables = dict[str, list[pa.Table]]()
    for key, name, rows in sent:
        if key is None:
            yield 0, {name: rows}
            continue
        if key != current and tables:
            yield 0, {of: pa.concat_tables(parts) for of, parts in tables.items()}
            tables.clear()
        current = key
        tables.setdefault(name, []).append(rows)
    if tables:
        yield 0, {of: pa.concat_tables(parts) for of, parts in tables.items()}
