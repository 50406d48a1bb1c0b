"""Tables of a catalog: input tables read there, and tables of a finished run written there.

Everything is SQL that plain Parquet tables, Delta and Iceberg take alike.
"""

import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.contracts import ALL_TABLES
from rebalance_core.contracts.published import RUN_COLUMNS, RUNS
from rebalance_core.contracts.run_names import RUN_NAME
from rebalance_core.model.errors import InputRefused, StoreFailed, UsageError
from rebalance_core.spark.failures import OF_SPARK, cause_of
from rebalance_core.spark.sources import read_written, rows_of, run_folder
from rebalance_core.storage.run_folder import counted_rows, read_run

SESSION_CATALOG = "spark_catalog"
"""Spark's own, which needs no setting."""
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
    """Return True for a database of Spark's own catalog, if it lives as long as the session."""
    first = database.partition(".")[0]
    of_session = "." not in database or first == SESSION_CATALOG
    current = (
        first if not of_session or first == SESSION_CATALOG else session.catalog.currentCatalog()
    )
    in_memory = session.conf.get("spark.sql.catalogImplementation", "in-memory") == "in-memory"
    return current == SESSION_CATALOG and in_memory


def quoted(name: str) -> str:
    """Return a dotted name quoted for SQL, whatever words are in it.

    Raises:
        UsageError: It is no name of a database or of a table.
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
    """Return the tables that are in the database, by name, without `RUN_COLUMNS`; lazy.

    Args:
        session: Any session.
        database: As SQL names it: ``catalog.database``, or ``database`` of the current catalog.
        names: Of the tables.
        where: A condition in SQL; a table that lacks one of its columns is read whole.
        warn: Gets a text for each such table.

    Raises:
        UsageError: There is no such database, or the condition holds for no table.
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
        warn(f"where {where}: read whole, as they lack its columns: {', '.join(whole)}")
    try:
        chosen = {
            name: frame if where is None or name in whole else frame.where(where)
            for name, frame in frames.items()
        }
        for frame in chosen.values():
            _ = frame.schema  # a Connect session looks at the condition only now
    except (AnalysisException, ParseException) as error:
        raise UsageError(f"where {where}: {_first_line(error)}") from error
    return {name: frame.drop(*_OF_THE_RUN) for name, frame in chosen.items()}


def _without_columns_of(condition: str, frames: Mapping[str, DataFrame]) -> list[str]:
    """Return the tables that lack a column of a condition: words in it that are columns of any.

    To try the condition on each would print a page of Java for every table that lacks a column.
    """
    columns = {name: {column.lower() for column in frame.columns} for name, frame in frames.items()}
    words = {word.lower() for word in re.findall(r"\w+", _QUOTED.sub(" ", condition))}
    named = words & set().union(*columns.values())
    return [name for name, names in columns.items() if not named <= names]


@dataclass(frozen=True)
class Published:
    """Tables that were published.

    Attributes:
        run_id: Of the run; see ``_run.json``.
        tables: Rows of each table, by its full name; the last is ``runs``.
    """

    run_id: str
    tables: Mapping[str, int]


def publish(session: SparkSession, run: str, to: str, prefix: str = "") -> Published:
    """Write the tables of a finished run into a database, with `RUN_COLUMNS` as last columns.

    Tables and the database are made if they are not there, and get columns that they lack; a
    column that the run lacks is null. What the same run wrote there before is replaced. The row in
    ``runs`` is removed before the first table is touched and written after the last: tables
    without it are not whole. A format without transactions shows readers of the same run a gap.

    Args:
        session: Any session.
        run: Path or URI of the folder that the run wrote.
        to: ``catalog.database``, or ``database`` of the current catalog.
        prefix: What the names of all tables begin with.

    Raises:
        InputRefused: The folder holds no result, a result without ``run_id``, or tables that are
            not as its record has them.
        StoreFailed: Rows are missing in the end, or Spark could not write: another publish may
            write there at this moment.
        UsageError: No such catalog, or a table is there with a column of another type.
    """
    folder = run_folder(session, run)
    record = read_run(folder)
    run_id, tables = publishable(record, run)
    if not _PREFIX.fullmatch(prefix):
        raise UsageError(f"prefix {prefix!r}: letters, digits and _ only")
    counted = counted_rows(folder, record, tables)
    _make_database(session, to)
    period = record.get("period_from_ms"), record.get("period_to_ms")
    columns = RUNS.columns[: -len(RUN_COLUMNS)]
    ddl = ", ".join(f"{column.name} {column.type}" for column in columns)
    mark = session.createDataFrame([_mark(record, tables)], ddl)
    written = {f"{to}.{prefix}{table}": counted[table] for table in tables}

    def write(table: str, rows: DataFrame) -> None:
        _replace_run(session, f"{to}.{prefix}{table}", rows, (run_id, *period))

    with _replacing(session):
        try:
            write(RUNS.name, mark.limit(0))
            for table in tables:
                write(table, read_written(session, run.rstrip("/"), table))
            _refuse_lost(session, run_id, written)
            write(RUNS.name, mark)
        except BaseException as error:
            with suppress(*OF_SPARK):  # another publish of the run may have written it meanwhile
                write(RUNS.name, mark.limit(0))
            if isinstance(error, OF_SPARK):
                raise StoreFailed(
                    f"run {run_id} is incomplete in {to}: {cause_of(error)}; {_AT_ONCE}"
                ) from error
            raise
    return Published(run_id, written | {f"{to}.{prefix}{RUNS.name}": 1})


def _refuse_lost(session: SparkSession, run_id: str, written: Mapping[str, int]) -> None:
    """Raise `StoreFailed` unless the tables hold as many rows of the run as it has."""
    counts = []
    for number, name in enumerate(written):
        session.catalog.refreshTable(quoted(name))
        counts.append(
            f"SELECT {number} AS number, count(*) AS rows FROM {quoted(name)} "
            f"WHERE run_id = '{run_id}'"
        )
    counted = {
        row["number"]: row["rows"] for row in rows_of(session.sql(" UNION ALL ".join(counts)))
    }
    lost = [
        f"{name} has {counted[number]:,} of {rows:,} rows"
        for number, (name, rows) in enumerate(written.items())
        if counted[number] != rows
    ]
    if lost:
        raise StoreFailed(f"run {run_id} is incomplete there: {'; '.join(lost)}; {_AT_ONCE}")


_AT_ONCE = "if another publish writes into the same tables, repeat this one when it has ended"


def publishable(record: Mapping[str, Any], run: str) -> tuple[str, list[str]]:
    """Return the id of a run and the names of its tables.

    Raises:
        InputRefused: It has no id, or its record lacks what `runs` keeps.
    """
    if record.get("run_id") is None:
        raise InputRefused(
            f"{run}/{RUN_NAME} has no run_id: rebalance-core {record.get('library_version')} "
            "wrote it; run the job again"
        )
    missing = [name for name in _OF_THE_RECORD if name not in record]
    if missing:
        raise InputRefused(f"{run}/{RUN_NAME} is damaged: it lacks {', '.join(missing)}")
    return record["run_id"], [name for name in record["outputs"] if name in ALL_TABLES]


_OF_THE_RECORD = ("outputs", "exit_code", "started_at", "clusters")


def _mark(record: Mapping[str, Any], tables: list[str]) -> tuple[Any, ...]:
    """Return the row of ``runs``, without `RUN_COLUMNS`."""
    return (
        record["job"],
        record["exit_code"],
        int(datetime.fromisoformat(record["started_at"]).timestamp() * 1000),
        record["library_version"],
        record["contract_version"],
        record["clusters"],
        tables,
    )


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
    """Return ``USING …`` where a session catalog of Delta's or Iceberg's would differ.

    Other catalogs make tables of their own format; so does Spark's own, if configured to.
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
    """Let INSERT OVERWRITE remove what the named partition holds, even where no row replaces it."""
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
    of_the_run: tuple[str, int | None, int | None],
) -> None:
    """Write the rows of a run into the table of that name, in place of those that it has."""
    target, partitions = quoted(name), ", ".join(_OF_THE_RUN)
    ddl = ", ".join(f"`{column}` {kind}" for column, kind in _types(rows).items())
    of_runs = ", ".join(f"{column.name} {column.type}" for column in RUN_COLUMNS)
    session.sql(
        f"CREATE TABLE IF NOT EXISTS {target} ({ddl}, {of_runs}) {_format_of(session, name)} "
        f"PARTITIONED BY ({partitions})"
    )
    _add_columns(session, name, rows)
    run_id, from_ms, to_ms = of_the_run
    columns = [
        sf.col(f"`{column}`") if column in rows.columns else sf.lit(None).cast(kind).alias(column)
        for column, kind in _types(session.table(target)).items()
        if column not in _OF_THE_RUN
    ]
    columns += [sf.lit(time).cast("BIGINT").alias(c) for time, c in ((from_ms, "f"), (to_ms, "t"))]
    view = f"rebalance_{uuid.uuid4().hex}"
    rows.select(*columns).createOrReplaceTempView(view)
    try:
        session.sql(
            f"INSERT OVERWRITE TABLE {target} PARTITION (run_id = '{run_id}', "
            f"{', '.join(_OF_THE_RUN[1:])}) SELECT * FROM {view}"
        )
    finally:
        session.catalog.dropTempView(view)


def _add_columns(session: SparkSession, name: str, rows: DataFrame) -> None:
    """Add the columns that the table lacks, before `RUN_COLUMNS`.

    Raises:
        UsageError: A column is there with another type, or those of the run are not.
    """
    existing = _types(session.table(quoted(name)))
    wanted = _types(rows)
    wrong = [
        f"{column} is {existing[column]} there and {kind} here"
        for column, kind in wanted.items()
        if existing.get(column, kind) != kind
    ]
    wrong += [f"{column} is missing" for column in _OF_THE_RUN if column not in existing]
    if wrong:
        raise UsageError(
            f"publish did not make the table {name}: {'; '.join(wrong)}; choose another prefix or "
            "database"
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
