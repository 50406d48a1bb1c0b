"""Reads input tables from a catalog, and writes the tables of a finished run into one.

All statements are SQL that works alike for plain Parquet tables, Delta and Iceberg.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.contracts import ALL_TABLES
from rebalance_core.contracts.published import CURRENT, RUN_COLUMNS, RUNS, moments, night_of
from rebalance_core.contracts.run_names import RUN_NAME
from rebalance_core.model.errors import InputRefused, StoreFailed, UsageError
from rebalance_core.spark.failures import OF_SPARK, cause_of
from rebalance_core.spark.sources import read_written, rows_of, run_folder
from rebalance_core.storage.run_folder import counted_rows, read_run

if TYPE_CHECKING:
    from rebalance_core.contracts.run_record import StoredRun

SESSION_CATALOG = "spark_catalog"
"""The name of Spark's own catalog, which needs no setting."""
_CATALOG = "spark.sql.catalog."
_NAME = re.compile(r"[\w-]+(\.[\w-]+)*")
_PREFIX = re.compile(r"\w*", re.ASCII)
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
_DEFAULT_SOURCE = "spark.sql.sources.default"
_OF_THE_RUN = tuple(column.name for column in RUN_COLUMNS)


def is_catalog(session: SparkSession, name: str) -> bool:
    """Return True for Spark's own catalog and for a catalog that its configuration names."""
    return name == SESSION_CATALOG or session.conf.get(_CATALOG + name, None) is not None


def is_forgotten(session: SparkSession, database: str) -> bool:
    """Return True for a database in Spark's own catalog that is lost at the end of the session."""
    first = database.partition(".")[0]
    of_session = "." not in database or first == SESSION_CATALOG
    current = (
        first if not of_session or first == SESSION_CATALOG else session.catalog.currentCatalog()
    )
    in_memory = session.conf.get("spark.sql.catalogImplementation", "in-memory") == "in-memory"
    return current == SESSION_CATALOG and in_memory


def quoted(name: str) -> str:
    """Return a dotted name quoted for SQL, whatever words it contains.

    Raises:
        UsageError: The text is not the name of a database or table.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} names no database; write CATALOG.DATABASE, or DATABASE")
    return ".".join(f"`{part}`" for part in name.split("."))


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def database_tables(
    session: SparkSession,
    database: str,
    names: Iterable[str],
    where: str | None = None,
    warn: Callable[[str], object] | None = None,
) -> dict[str, DataFrame]:
    """Return the tables in the database by name, without `RUN_COLUMNS`, as lazy frames.

    Args:
        session: Any session.
        database: ``catalog.database``, or ``database`` of the current catalog.
        names: The names of the tables.
        where: A condition in SQL; a table that lacks one of its columns is read in full.
        warn: Receives a message for each such table.

    Raises:
        UsageError: The database does not exist, or the condition applies to no table.
    """
    try:
        full = {name: f"{quoted(database)}.`{name}`" for name in names}
        existing = {name: full for name, full in full.items() if session.catalog.tableExists(full)}
        frames = {name: session.table(full) for name, full in existing.items()}
    except AnalysisException as error:
        raise UsageError(f"{database} cannot be read: {_first_line(error)}") from error
    whole = [] if where is None else _without_columns_of(where, frames)
    if whole and len(whole) == len(frames):
        raise UsageError(f"where {where}: no table of {database} has all of its columns")
    if whole and warn is not None:
        warn(f"where {where}: these tables lack its columns and are read whole: {', '.join(whole)}")
    try:
        chosen = {
            name: frame if where is None or name in whole else frame.where(where)
            for name, frame in frames.items()
        }
        for frame in chosen.values():
            _ = frame.schema  # a Connect session evaluates the condition only now
    except (AnalysisException, ParseException) as error:
        raise UsageError(f"where {where}: {_first_line(error)}") from error
    return {name: frame.drop(*_OF_THE_RUN) for name, frame in chosen.items()}


def _without_columns_of(condition: str, frames: Mapping[str, DataFrame]) -> list[str]:
    """Return the tables that lack a column named in a condition; any word that is a column of some
    table counts as one.

    Trying the condition on each table would print a Java stack trace for every table that lacks a
    column.
    """
    columns = {name: {column.lower() for column in frame.columns} for name, frame in frames.items()}
    words = {word.lower() for word in re.findall(r"\w+", _QUOTED.sub(" ", condition))}
    named = words & set().union(*columns.values())
    return [name for name, names in columns.items() if not named <= names]


PERIOD, RUN = "period", "run"
"""The runs that a published run replaces: those of its job, clusters and night, or only itself."""


@dataclass(frozen=True)
class Published:
    """The tables that were published.

    Attributes:
        run_id: The id of the run; see ``_run.json``.
        tables: The number of rows per table, by its full name, with ``runs`` last.
        removed: The ``run_id`` of each removed run.
    """

    run_id: str
    tables: Mapping[str, int]
    removed: tuple[str, ...] = ()


def publish(
    session: SparkSession,
    run: str,
    to: str,
    prefix: str = "",
    *,
    replace: str = PERIOD,
    keep_days: int | None = None,
    warn: Callable[[str], object] | None = None,
) -> Published:
    """Write the tables of a finished run into a database, with `RUN_COLUMNS` as the last columns.

    Missing tables, columns and the database are created; a column that the run lacks is null.
    Readers of the views ``current_*`` see the run once its row in ``runs`` is written, after all of
    its tables. Until then they see the run that it replaces, whose rows are removed only
    afterwards, so a killed publish leaves one of the two visible. A complete run is not written
    again; if rows are missing, its row in ``runs`` is removed first.

    Args:
        session: Any session.
        run: Path or URI of the folder that the run wrote.
        to: ``catalog.database``, or ``database`` of the current catalog.
        prefix: The prefix of all tables' names.
        replace: `PERIOD` or `RUN`.
        keep_days: Remove runs of the same job and clusters that are more than this many nights
            older; None keeps all.
        warn: Receives a message if the catalog has no views.

    Raises:
        InputRefused: The folder has no result, a result without ``run_id``, or tables that do not
            match its record.
        StoreFailed: Rows are missing in the end, or Spark could not write, possibly because another
            publish is running.
        UsageError: The catalog does not exist, or an existing table has a column of a different
            type.
    """
    folder = run_folder(session, run)
    record = read_run(folder)
    run_id, tables = publishable(record, run)
    database = _Database(session, to, _checked_prefix(prefix))
    counted = counted_rows(folder, record, tables)
    _make_database(session, to)
    night = night_of(record)
    of_the_run = _OfRun(run_id, night, record.get("period_from_ms"), record.get("period_to_ms"))
    written = {database.full(table): counted[table] for table in tables}
    before = database.marks()
    alike = [mark for mark in before if mark.is_like(record) and mark.run_id != run_id]
    replaced = [mark for mark in alike if replace == PERIOD and mark.night == night]
    there = any(mark.run_id == run_id and {*mark.tables} == {*tables} for mark in before)
    whole = there and not _lost(session, run_id, written)
    shown = whole and not replaced and run_id not in {mark.run_id for mark in _replaced(before)}
    with _replacing(session):
        try:
            if not whole:
                database.write(RUNS.name, _no_mark(session), of_the_run)
                for table in tables:
                    database.write(table, read_written(session, run.rstrip("/"), table), of_the_run)
                _refuse_lost(session, run_id, written)
            database.make_views([RUNS.name, *tables], warn)
            if not shown:
                row = _mark(record, tables, before, [mark.run_id for mark in replaced])
                database.write(RUNS.name, _mark_frame(session, [row]), of_the_run)
        except BaseException as error:
            with suppress(*OF_SPARK):  # another publish of the run may have written it meanwhile
                database.write(RUNS.name, _no_mark(session), of_the_run)
            if isinstance(error, OF_SPARK):
                raise StoreFailed(
                    f"run {run_id} is incomplete in {to}: {cause_of(error)}; {_AT_ONCE}"
                ) from error
            raise
        old = alike if keep_days is not None else []
        too_old = [mark for mark in old if (night - mark.night).days > (keep_days or 0)]
        gone = {mark.run_id: mark for mark in (*replaced, *_replaced(before), *too_old)}
        gone.pop(run_id, None)
        with _of_the_store(f"run {run_id} is in {to}, and what it replaces is not removed"):
            for old_run in gone.values():
                database.remove(old_run.run_id, old_run.tables)
    return Published(run_id, written | {database.full(RUNS.name): 1}, tuple(gone))


def remove(session: SparkSession, run_id: str, to: str, prefix: str = "") -> Published:
    """Remove a run that was published, even partially: its row in ``runs``, then those of its
    tables.

    Args:
        session: Any session.
        run_id: The id of the run.
        to: As in `publish`.
        prefix: As in `publish`.

    Raises:
        StoreFailed: Spark could not write.
        UsageError: No table has a row of the run.
    """
    database = _Database(session, to, _checked_prefix(prefix))
    there = [name for name in ALL_TABLES if database.has(name)]
    rows = {database.full(name): database.rows_of(name, run_id) for name in there}
    marked = database.has(RUNS.name) and database.rows_of(RUNS.name, run_id)
    if not marked and not any(rows.values()):
        raise UsageError(f"--remove {run_id}: no table of {to} has a row of that run")
    with _replacing(session), _of_the_store(f"run {run_id} is removed from {to} in part"):
        if database.has(RUNS.name):
            database.clear(RUNS.name, run_id)
        for name in there:
            if rows[database.full(name)]:
                database.clear(name, run_id)
    return Published(run_id, {name: count for name, count in rows.items() if count}, (run_id,))


def _checked_prefix(prefix: str) -> str:
    if not _PREFIX.fullmatch(prefix):
        raise UsageError(f"prefix {prefix!r}: letters, digits and _ only")
    return prefix


@contextmanager
def _of_the_store(text: str) -> Iterator[None]:
    """Raise Spark's errors as `StoreFailed`."""
    try:
        yield
    except OF_SPARK as error:
        raise StoreFailed(f"{text}: {cause_of(error)}; {_AT_ONCE}") from error


@dataclass(frozen=True)
class _OfRun:
    """The values of `RUN_COLUMNS`."""

    run_id: str
    night: date | None
    from_ms: int | None = None
    to_ms: int | None = None


@dataclass(frozen=True)
class _Mark:
    """A row of ``runs``."""

    run_id: str
    job: str
    clusters: frozenset[str]
    night: date
    published_ms: int
    replaces: frozenset[str]
    tables: tuple[str, ...]

    def is_like(self, record: StoredRun) -> bool:
        """Return True for a run of the same job on the same clusters."""
        return (self.job, self.clusters) == (record["job"], frozenset(record["clusters"]))


def _replaced(marks: Iterable[_Mark]) -> list[_Mark]:
    """Return the runs that later runs replace, left behind by a killed publish."""
    known = list(marks)
    return [
        mark
        for mark in known
        if any(
            mark.run_id in later.replaces and later.published_ms > mark.published_ms
            for later in known
        )
    ]


@dataclass(frozen=True)
class _Database:
    """The published tables of one prefix."""

    session: SparkSession
    name: str
    prefix: str

    def full(self, table: str) -> str:
        """Return the full name of a table or view, with the database."""
        return f"{self.name}.{self.prefix}{table}"

    def has(self, table: str) -> bool:
        """Return True if the table exists."""
        try:
            return bool(self.session.catalog.tableExists(quoted(self.full(table))))
        except AnalysisException as error:
            raise UsageError(f"{self.name} cannot be read: {_first_line(error)}") from error

    def rows_of(self, table: str, run_id: str) -> int:
        """Return the number of a run's rows in a table."""
        rows = self.session.table(quoted(self.full(table)))
        return rows.where(sf.col("run_id") == run_id).count() if "run_id" in rows.columns else 0

    def marks(self) -> list[_Mark]:
        """Return the rows of ``runs``."""
        if not self.has(RUNS.name):
            return []
        full = quoted(self.full(RUNS.name))
        self.session.catalog.refreshTable(full)
        rows = self.session.table(full)
        names = ("run_id", "job", "clusters", "night", "published_ms", "replaces", "tables")
        if missing := [name for name in names if name not in rows.columns]:
            raise UsageError(
                f"publish did not make the table {self.full(RUNS.name)}: {missing[0]} is missing; "
                "choose another prefix or database"
            )
        return [
            _Mark(
                row["run_id"],
                row["job"],
                frozenset(row["clusters"]),
                row["night"],
                row["published_ms"],
                frozenset(row["replaces"]),
                tuple(row["tables"]),
            )
            for row in rows_of(rows.select(*names))
        ]

    def write(self, table: str, rows: DataFrame, of_the_run: _OfRun) -> None:
        """Replace a run's rows in the table."""
        _replace_run(self.session, self.full(table), rows, of_the_run)

    def clear(self, table: str, run_id: str) -> None:
        """Remove the rows of a run."""
        schema = self.session.table(quoted(self.full(table))).drop(*_OF_THE_RUN).schema
        self.write(table, self.session.createDataFrame([], schema), _OfRun(run_id, None))

    def remove(self, run_id: str, tables: Iterable[str]) -> None:
        """Remove a run that another replaces; its row in ``runs`` goes last, as it marks the
        remaining work.
        """
        for table in tables:
            if self.has(table):
                self.clear(table, run_id)
        self.clear(RUNS.name, run_id)

    def make_views(
        self, tables: Iterable[str], warn: Callable[[str], object] | None = None
    ) -> None:
        """Create the `CURRENT` views of tables that have none or whose view lacks a column."""
        runs = quoted(self.full(RUNS.name))
        current = (
            f"SELECT r.run_id FROM {runs} r WHERE NOT EXISTS (SELECT 1 FROM {runs} s WHERE "
            "s.published_ms > r.published_ms AND array_contains(s.replaces, r.run_id))"
        )
        for table in tables:
            name = quoted(self.full(table))
            columns = self.session.table(name).columns
            times = moments(columns)
            made = [*columns, *times.values()]
            view = quoted(self.full(f"{CURRENT}{table}"))
            try:
                if (
                    self.session.catalog.tableExists(view)
                    and self.session.table(view).columns == made
                ):
                    continue
                shown = [f"`{column}`" for column in columns]
                shown += [f"timestamp_millis(`{old}`) AS `{new}`" for old, new in times.items()]
                self.session.sql(
                    f"CREATE OR REPLACE VIEW {view} AS SELECT {', '.join(shown)} FROM {name} "
                    f"WHERE run_id IN ({current})"
                )
            except OF_SPARK as error:
                if warn is not None:
                    warn(
                        f"{self.name} has no views {self.prefix}{CURRENT}…: {cause_of(error)}; "
                        f"of each table read the rows WHERE run_id IN ({current})"
                    )
                return


def _refuse_lost(session: SparkSession, run_id: str, written: Mapping[str, int]) -> None:
    """Raise `StoreFailed` unless the tables contain all rows of the run."""
    if lost := _lost(session, run_id, written):
        raise StoreFailed(f"run {run_id} is incomplete there: {'; '.join(lost)}; {_AT_ONCE}")


def _lost(session: SparkSession, run_id: str, written: Mapping[str, int]) -> list[str]:
    """Return, in words, which tables do not have all rows of the run."""
    counts = []
    for number, name in enumerate(written):
        if not session.catalog.tableExists(quoted(name)):
            return [f"{name} is gone"]
        session.catalog.refreshTable(quoted(name))
        if RUN_COLUMNS[0].name not in session.table(quoted(name)).columns:
            return [f"{name} is another table"]
        counts.append(
            f"SELECT {number} AS number, count(*) AS rows FROM {quoted(name)} "
            f"WHERE run_id = '{run_id}'"
        )
    counted = {
        row["number"]: row["rows"] for row in rows_of(session.sql(" UNION ALL ".join(counts)))
    }
    return [
        f"{name} has {counted[number]:,} of {rows:,} rows"
        for number, (name, rows) in enumerate(written.items())
        if counted[number] != rows
    ]


_AT_ONCE = (
    "if another publish writes to the same tables, repeat this publish when the other has ended"
)


def publishable(record: StoredRun, run: str) -> tuple[str, list[str]]:
    """Return the id of a run and the names of its tables.

    Raises:
        InputRefused: The run has no id, or its record lacks a column of `runs`.
    """
    run_id = record.get("run_id")
    if run_id is None:
        raise InputRefused(
            f"{run}/{RUN_NAME} has no run_id: rebalance-core {record.get('library_version')} "
            "wrote it; run the job again"
        )
    missing = [name for name in _OF_THE_RECORD if name not in record]
    if missing:
        raise InputRefused(f"{run}/{RUN_NAME} is damaged: it lacks {', '.join(missing)}")
    return run_id, [name for name in record["outputs"] if name in ALL_TABLES]


_OF_THE_RECORD = ("outputs", "exit_code", "started_at", "clusters")


def _mark(
    record: StoredRun, tables: list[str], before: Iterable[_Mark], replaces: list[str]
) -> tuple[Any, ...]:
    """Return the row of ``runs`` without `RUN_COLUMNS`, with a later time than all existing
    rows.
    """
    latest = max((mark.published_ms for mark in before), default=0)
    return (
        record["job"],
        record["exit_code"],
        int(datetime.fromisoformat(record["started_at"]).timestamp() * 1000),
        record["library_version"],
        record["contract_version"],
        record["clusters"],
        tables,
        max(int(time.time() * 1000), latest + 1),
        replaces,
    )


def _mark_frame(session: SparkSession, marks: list[tuple[Any, ...]]) -> DataFrame:
    columns = RUNS.columns[: -len(RUN_COLUMNS)]
    ddl = ", ".join(f"{column.name} {column.type}" for column in columns)
    return session.createDataFrame(marks, ddl)


def _no_mark(session: SparkSession) -> DataFrame:
    return _mark_frame(session, [])


def _make_database(session: SparkSession, database: str) -> None:
    name = quoted(database)
    try:
        if not session.catalog.databaseExists(name):
            session.sql(f"CREATE DATABASE IF NOT EXISTS {name}")
    except AnalysisException as error:
        catalog = database.partition(".")[0]
        has_catalog = "." not in database or is_catalog(session, catalog)
        hint = "" if has_catalog else f"; is {_CATALOG}{catalog} set?"
        raise UsageError(f"{database} cannot be written: {_first_line(error)}{hint}") from error


def _format_of(session: SparkSession, name: str) -> str:
    """Return the ``USING …`` clause that a Delta or Iceberg session catalog needs.

    Other catalogs create tables in their own format, as does Spark's own if so configured.
    """
    catalog = name.partition(".")[0] if is_catalog(session, name.partition(".")[0]) else None
    if (catalog or session.catalog.currentCatalog()) != SESSION_CATALOG:
        return ""
    if session.conf.get(_DEFAULT_SOURCE, "parquet") != "parquet":
        return ""
    implementation = (session.conf.get(_CATALOG + SESSION_CATALOG, None) or "").lower()
    of_catalog = [form for form in ("delta", "iceberg") if form in implementation]
    return f"USING {of_catalog[0] if of_catalog else 'parquet'}"


@contextmanager
def _replacing(session: SparkSession) -> Iterator[None]:
    """Make INSERT OVERWRITE clear the named partition even if there are no new rows."""
    before = session.conf.get(_OVERWRITE_MODE)
    session.conf.set(_OVERWRITE_MODE, "static")
    try:
        yield
    finally:
        session.conf.set(_OVERWRITE_MODE, before or "static")


def _replace_run(
    session: SparkSession,
    name: str,
    rows: DataFrame,
    of_the_run: _OfRun,
) -> None:
    """Replace the rows of a run in the named table."""
    target, partitions = quoted(name), ", ".join(_OF_THE_RUN)
    ddl = ", ".join(f"`{column}` {kind}" for column, kind in _types(rows).items())
    of_runs = ", ".join(f"{column.name} {column.type}" for column in RUN_COLUMNS)
    session.sql(
        f"CREATE TABLE IF NOT EXISTS {target} ({ddl}, {of_runs}) {_format_of(session, name)} "
        f"PARTITIONED BY ({partitions})"
    )
    _add_columns(session, name, rows)
    columns = [
        sf.col(f"`{column}`") if column in rows.columns else sf.lit(None).cast(kind).alias(column)
        for column, kind in _types(session.table(target)).items()
        if column not in _OF_THE_RUN
    ]
    columns += [
        sf.lit(value).cast(column.type).alias(f"_{column.name}")
        for column, value in zip(
            RUN_COLUMNS[1:], (of_the_run.night, of_the_run.from_ms, of_the_run.to_ms), strict=True
        )
    ]
    view = f"rebalance_{uuid.uuid4().hex}"
    rows.select(*columns).createOrReplaceTempView(view)
    try:
        session.sql(
            f"INSERT OVERWRITE TABLE {target} PARTITION (run_id = '{of_the_run.run_id}', "
            f"{', '.join(_OF_THE_RUN[1:])}) SELECT * FROM {view}"
        )
    finally:
        session.catalog.dropTempView(view)


def _add_columns(session: SparkSession, name: str, rows: DataFrame) -> None:
    """Add the columns that the table lacks, before `RUN_COLUMNS`.

    Raises:
        UsageError: A column exists with a different type, or the columns of the run are missing.
    """
    existing = _types(session.table(quoted(name)))
    wanted = _types(rows)
    wrong = [
        f"{column} is {existing[column]} there but {kind} here"
        for column, kind in wanted.items()
        if existing.get(column, kind) != kind
    ]
    wrong += [f"{column} is missing" for column in _OF_THE_RUN if column not in existing]
    if wrong:
        raise UsageError(
            f"publish did not create the table {name}: {'; '.join(wrong)}; choose another prefix "
            "or database"
        )
    last = [column for column in existing if column not in _OF_THE_RUN][-1]
    for column, kind in wanted.items():
        if column not in existing:
            added = f"ADD COLUMNS (`{column}` {kind} AFTER `{last}`)"
            session.sql(f"ALTER TABLE {quoted(name)} {added}")
            last = column


def _types(frame: DataFrame) -> dict[str, str]:
    """Return the type of each column as SQL names it."""
    return {field.name: field.dataType.simpleString() for field in frame.schema.fields}
