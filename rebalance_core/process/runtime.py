"""The interface of a job's runtime, and this process as a runtime.

A job is written once, against `Runtime`: it checks its input, deals the rows out to tasks, defines
the tasks' work, and writes their results and a summary of their facts. In this process a single
task receives all rows; on Spark (`spark.runtime`) there are many.
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
"""A number that a task gets, and the rows that were dealt to it, by table."""
TableRows = Iterable[tuple[str, pa.RecordBatch]]
"""Rows of tables, each with the table's name."""
Rows = Any
"""Parts on their way to tasks, of the runtime that made them."""


class TaskFacts(Protocol):
    """Facts that a task returns besides its rows; empty when created."""

    def merge(self, other: Any) -> object:
        """Add the facts of another task."""


class NoFacts:
    """`TaskFacts` of a task whose rows are all that it makes."""

    def merge(self, other: Self) -> None:
        """Do nothing."""


MadeT = TypeVar("MadeT")


@dataclass(slots=True)
class Made(Generic[MadeT]):
    """`TaskFacts`: results of tasks, in no order."""

    made: list[MadeT] = field(default_factory=list)

    def merge(self, other: Made[MadeT]) -> None:
        """Add what another task made."""
        self.made += other.made


FactsT = TypeVar("FactsT", bound=TaskFacts)
KeptT = TypeVar("KeptT", bound=TaskFacts, covariant=True)
Work = Callable[[Iterable[Part], FactsT], TableRows]
"""From a task's parts to rows of tables; the facts are complete once these are made."""


Key = tuple[str, ...]
Sent = Iterable[tuple[Key | None, str, pa.Table]]
"""Rows of tables on their way to other tasks: all of a key go to one, those of None to any."""


class TaskStats(Protocol):
    """Counts of used rows that a later step needs; they are pickled."""

    @classmethod
    def merged(cls, parts: Iterable[Self]) -> Self:
        """Merge the stats of parts."""


StatsT = TypeVar("StatsT", bound=TaskStats)
StatsOf = Callable[[str, pa.Table], TaskStats | None]
"""From used rows of a table to what they say, if that is something."""


class RowRouting(Protocol):
    """The routing of rows to tasks, as in `engine.routing.Routing`."""

    @property
    def buckets(self) -> int:
        """Return the number of buckets."""

    def split(self, table: str, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """Yield the buckets that used rows of a table go to, and the rows of each."""


class CheckedInput(Protocol):
    """An input whose rows are used or rejected."""

    @property
    def tables(self) -> Mapping[str, Any]:
        """The used rows of each table, as the runtime has them."""

    @property
    def counts(self) -> Mapping[str, RowCounts]:
        """Rows and bad rows of each table."""

    @property
    def rejections(self) -> Rejections:
        """What is wrong with the bad ones."""

    @property
    def state_end_ms(self) -> int | None:
        """The end of the opening state, whose rows are among the used ones; None: there is none."""

    def stats(self, kind: type[StatsT]) -> StatsT:
        """Merge the counts of the used rows, of one class."""

    def refuse(self, limits: BadRowLimits) -> None:
        """Raise `model.errors.InputRefused` for too many bad rows."""

    def sharing_groups(self) -> Mapping[Group, tuple[Group, ...]]:
        """Return by group the other groups that share client instances with it."""

    def rows(self, table: str, most: int | None = None) -> pa.Table:
        """Return the used rows of a small table, or the rejected ones, where the job runs."""


class Tables(Protocol):
    """A folder that receives tables, from tasks or from the job itself."""

    def write(
        self, rows: Rows, work: Work[FactsT], kind: Callable[[], FactsT], names: Iterable[str]
    ) -> FactsT:
        """Write the tables of these names that work makes; return the facts of all tasks."""

    def add(self, table: str, rows: pa.Table) -> None:
        """Write one table from here."""

    def finish(self) -> Mapping[str, TableWritten]:
        """Return the rows and digest of every table; all are in the folder then."""


class Kept(Protocol[KeptT]):
    """Results of tasks, before it is known whether they will be written."""

    def facts(self) -> KeptT:
        """Return the facts of all tasks."""

    def write(self, into: Any, names: Iterable[str]) -> None:
        """Write some of the tables into `Tables` of the same runtime."""


@dataclass(frozen=True, eq=False)
class ReadFiles:
    """The files of a collection, read.

    Attributes:
        rows: What tasks get.
        work: Makes the tables of its rows; its facts are `process.ingested_rows.IngestCounts`.
        stats: How each file was understood.
        evidence: The input from which `process.ingest.EvidenceRows` makes `EVIDENCE` in tasks.
        end_ms: The end of the collection.
        left_out: Files of others, which are ignored.
    """

    rows: Rows
    work: Work[Any]
    stats: tuple[FileStats, ...]
    evidence: Rows
    end_ms: int
    left_out: frozenset[str]


class Runtime(Protocol):
    """The place that a job runs in."""

    def read(self, places: Mapping[str, str], input_format: str | None = None) -> Any:
        """Return the tables by name, read from their places, as `check` takes them."""

    def reader(self, folder: str) -> ReadWritten:
        """Read the tables that a run wrote into a folder."""

    def read_files(
        self,
        collection: Collection,
        assumed: Assumptions,
        progress: Callable[[int, int], object] | None = None,
    ) -> AbstractContextManager[ReadFiles]:
        """Read every file of a collection once; progress counts them, in-process."""

    def check(
        self,
        inputs: Any,
        stats_of: tuple[StatsOf, ...] = (),
        *,
        max_queue_nums: int = MAX_QUEUE_NUMS,
        warn: Callable[[str], object] | None = None,
    ) -> AbstractContextManager[CheckedInput]:
        """Check every row, and make the counts that ``stats_of`` names; warn of columns that are
        not read.
        """

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
            per_task: Items per task; None: as for rows.
            per_core: Minimum number of tasks per core; several if their lengths differ.
            wanted: The exact number, if there can be several; None: as many as the work needs.
        """

    def numbers(self, count: int, tasks: int | None = None) -> Rows:
        """Return the numbers from 0 as parts without rows; tasks None: as suits the runtime."""

    def deal(
        self, checked: Any, routing: RowRouting, copies: int = 1, more_rejected: Any = None
    ) -> Rows:
        """Return the used rows and the rejected ones among them, each bucket in one task.

        Args:
            checked: From `check`.
            routing: The bucket of each row.
            copies: Number of tasks that receive the used rows of a bucket; those of bucket b are
                numbered from b x copies.
            more_rejected: Rows of ``rejected`` from earlier steps, in the runtime's form of tables.
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
        """Play pieces of work, and deal their results out again by key; lazy, and read once.

        Args:
            rows: The first tasks' input.
            pieces: Makes pieces of its rows, those of a key one after the other.
            play: A function of a module, as any process may call it.
            tasks: How many tasks receive what is sent.
            count: How many pieces there are, about; no more processes are started.
            progress: Called as pieces are done; in-process.
        """

    def run(self, rows: Rows, work: Work[FactsT], kind: Callable[[], FactsT]) -> FactsT:
        """Return the facts of all tasks; their rows are not written anywhere."""

    def each(
        self,
        pieces: Sequence[PieceT],
        play: Callable[[PieceT], MadeT],
        progress: Progress | None = None,
    ) -> Iterator[MadeT]:
        """Yield the result of each piece, in order; pieces are played side by side.

        Args:
            pieces: Long ones; they are pickled.
            play: A function of a module.
            progress: Called with how many are done, of how many, and whose is waited for; in a
                process.
        """

    def keep(
        self, rows: Rows, work: Work[FactsT], kind: Callable[[], FactsT]
    ) -> AbstractContextManager[Kept[FactsT]]:
        """Keep tasks' results until a decision whether to write them."""

    def tables(self, output: Location, names: Iterable[str]) -> AbstractContextManager[Tables]:
        """Give the tables of these names to a folder.

        Raises:
            OutputExists: One of them already exists.
        """


@dataclass(frozen=True, eq=False)
class CheckedHere:
    """`CheckedInput` in memory; counts are computed on demand."""

    checked: Checked
    stats_of: tuple[StatsOf, ...]

    @property
    def tables(self) -> Mapping[str, pa.Table]:
        """The used rows of each table."""
        return self.checked.tables

    @property
    def counts(self) -> Mapping[str, RowCounts]:
        """Rows and bad rows of each table."""
        return self.checked.counts

    @property
    def rejections(self) -> Rejections:
        """What is wrong with the bad ones."""
        return self.checked.rejections

    @property
    def state_end_ms(self) -> int | None:
        """The end of the opening state; None: there is none."""
        return self.checked.state_end_ms

    @cached_property
    def _counted(self) -> list[TaskStats]:
        tables = self.tables.items()
        read_stats = (read(name, rows) for read in self.stats_of for name, rows in tables)
        return [stats for stats in read_stats if stats is not None]

    def stats(self, kind: type[StatsT]) -> StatsT:
        """Merge the tables' counts, of one class."""
        return kind.merged(stats for stats in self._counted if isinstance(stats, kind))

    def refuse(self, limits: BadRowLimits) -> None:
        """Raise `model.errors.InputRefused` for too many bad rows."""
        refuse_bad_rows(self.counts, limits, self.checked.complaints)

    def sharing_groups(self) -> Mapping[Group, tuple[Group, ...]]:
        """Return by group the other groups that share client instances with it."""
        return groups_sharing_with(joins_of(self.tables[EVENTS]))

    def rows(self, table: str, most: int | None = None) -> pa.Table:
        """Return the used rows of a table, or the rejected ones."""
        rows = self.checked.rejected if table == REJECTED.name else self.tables[table]
        return rows.slice(0, most)


@dataclass(frozen=True, eq=False)
class TablesHere:
    """`Tables` written as the rows are made."""

    writers: TableWriters

    def write(
        self, rows: Rows, work: Work[FactsT], kind: Callable[[], FactsT], names: Iterable[str]
    ) -> FactsT:
        """Write the results of work on all rows."""
        facts = kind()
        for name, batch in work(_fresh(rows), facts):
            self.writers.write(name, batch)
        return facts

    def add(self, table: str, rows: pa.Table) -> None:
        """Write one table."""
        self.writers.write_tables({table: rows})

    def finish(self) -> Mapping[str, TableWritten]:
        """Close the files; return rows and digest of every table."""
        self.writers.close()
        return self.writers.written()


@dataclass(frozen=True, eq=False)
class KeptHere(Generic[FactsT]):
    """`Kept` in memory."""

    made: Mapping[str, list[pa.RecordBatch]]
    task_facts: FactsT

    def facts(self) -> FactsT:
        """Return the facts of the one task."""
        return self.task_facts

    def write(self, into: Tables, names: Iterable[str]) -> None:
        """Write some of the tables."""
        for name in names:
            if name in self.made:
                into.add(name, pa.Table.from_batches(self.made[name]))


@dataclass(frozen=True)
class LocalRuntime:
    """`Runtime` in this process: one task, which gets all rows.

    Attributes:
        processes: How many play pieces of work; None: a process a core, if there are as many
            pieces.
    """

    processes: int | None = None

    def read(self, places: Mapping[str, str], input_format: str | None = None) -> ArrowTables:
        """Return the tables by name."""
        return read_tables(places, input_format)

    def reader(self, folder: Location) -> ReadWritten:
        """Read the tables that a run wrote into a folder."""
        return reader_of(folder)

    @contextmanager
    def read_files(
        self,
        collection: Collection,
        assumed: Assumptions,
        progress: Callable[[int, int], object] | None = None,
    ) -> Iterator[ReadFiles]:
        """Read one file after the other."""
        from rebalance_core.ingest.in_process import read_collection  # few jobs read files
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
        yield CheckedHere(check_tables(inputs, max_queue_nums=max_queue_nums, warn=warn), stats_of)

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
        """Return all rows to the one task, which has all buckets."""
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
        """Return pieces in order, here or in other processes; rows of a key once all are there."""

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
        """Play the pieces here, or in-process for each core."""

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
        """Give tables to a folder."""
        with TableWriters(output, tuple(names)) as writers:
            yield TablesHere(writers)


HERE = LocalRuntime()


def _fresh(parts: Iterable[Part]) -> Iterator[Part]:
    """Return the parts, with dicts that a task may empty, as on Spark."""
    return ((number, dict(tables)) for number, tables in parts)


@dataclass(frozen=True)
class _Listed(Generic[PieceT]):
    """Plays a piece to its end, where it is called."""

    play: Callable[[PieceT], Sent]

    def __call__(self, piece: PieceT) -> list[tuple[Key | None, str, pa.Table]]:
        return list(self.play(piece))


def _of_keys(sent: Sent) -> Iterator[Part]:
    """Yield the rows of each key, which follow each other, and rows without a key as they come."""
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
