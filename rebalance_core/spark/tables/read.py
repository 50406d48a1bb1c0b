"""Input tables from JSON lines, CSV or Parquet, every row with the place it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.reading.csv_rows import header_names
from rebalance_core.checks.reading.locations import (
    entries_of,
    format_of_table,
    not_found,
    unknown_names,
)
from rebalance_core.contracts import INPUT_TABLES, Table
from rebalance_core.contracts.technical_columns import RAW, READ_ISSUES, SOURCE, TECHNICAL
from rebalance_core.contracts.unreadable_file import unreadable_file
from rebalance_core.model.errors import InputRefused
from rebalance_core.spark.tables.conform import conform, found_issues, issue, no_issues
from rebalance_core.spark.tables.lines import numbered_lines


@dataclass(frozen=True, eq=False)
class InputTables:
    """The tables of one simulation, as read or made by hand (see `conform` for what is accepted).

    ``paths`` says where a table was read from, ``known_extras`` which unknown columns its header
    or schema has.
    """

    cluster_events: DataFrame
    consumer_groups: DataFrame | None = None
    queue_offsets: DataFrame | None = None
    committed_offsets: DataFrame | None = None
    paths: Mapping[str, str] = field(default_factory=dict)
    known_extras: Mapping[str, list[str]] = field(default_factory=dict)

    @classmethod
    def read(
        cls,
        spark: SparkSession,
        path: str | None = None,
        *,
        cluster_events: str | None = None,
        consumer_groups: str | None = None,
        queue_offsets: str | None = None,
        committed_offsets: str | None = None,
        input_format: str | None = None,
    ) -> InputTables:
        """Read the tables found by name in ``path``; the paths given by name go first.

        A table is a file or a folder of part files: ``cluster_events.jsonl``, ``.json``, ``.csv``
        (each also ``.gz``) or ``.parquet``. JSON has one object a line; CSV has a header in every
        part, RFC 4180 quoting, one record a line, arrays as JSON text. Blank lines are skipped.
        Each frame has the contract columns and `conform.TECHNICAL`. Lazy, but for one look at a
        CSV's header and a Parquet's schema.

        Raises:
            InputRefused: a path does not exist, a required table is not there or lacks columns.
            UsageError: the format is unknown.
        """
        paths = {
            "cluster_events": cluster_events,
            "consumer_groups": consumer_groups,
            "queue_offsets": queue_offsets,
            "committed_offsets": committed_offsets,
        }
        locations = tables_in(spark, str(path), INPUT_TABLES) if path is not None else {}
        locations |= {name: str(given) for name, given in paths.items() if given is not None}
        for table in INPUT_TABLES.values():
            if table.required and table.name not in locations:
                files = () if path is None else _files(spark, str(path))
                raise InputRefused(not_found(table, path, files))
        read = {
            n: read_table(spark, INPUT_TABLES[n], p, input_format) for n, p in locations.items()
        }
        frames = {name: conform(INPUT_TABLES[name], frame) for name, (frame, _) in read.items()}
        extras = {name: known for name, (_, known) in read.items() if known is not None}
        return cls(**frames, paths=locations, known_extras=extras)

    def tables(self) -> dict[str, DataFrame]:
        """The frames that are there, by table name."""
        frames = {name: getattr(self, name) for name in INPUT_TABLES}
        return {name: frame for name, frame in frames.items() if frame is not None}

    def unknown_columns(self) -> dict[str, list[str]]:
        """Columns (sorted) that are read past, by table. One aggregate per table read from JSON."""
        unknown = {}
        for name, frame in self.tables().items():
            extra = self.known_extras.get(name)
            if extra is None:
                keys = _json_keys(frame) if RAW in frame.columns else frame.columns
                extra = unknown_names(INPUT_TABLES[name], keys, TECHNICAL)
            if extra:
                unknown[name] = extra
        return unknown


def _json_keys(frame: DataFrame) -> list[str]:
    keys = sf.explode(sf.json_object_keys(RAW)).alias("key")
    return [row.key for row in frame.select(keys).distinct().collect()]


def _files(spark: SparkSession, path: str) -> list[str]:
    """Every data file under the path, as Spark sees it (local, HDFS, object store, Connect)."""
    try:
        listing = spark.read.format("binaryFile").option("recursiveFileLookup", True).load(path)
        return sorted(unquote(uri) for uri in listing.inputFiles())
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise InputRefused(f"{path} does not exist") from error
        raise


def tables_in(spark: SparkSession, folder: str, names: Iterable[str]) -> dict[str, str]:
    """The path of every table that lies right in the folder; `InputRefused` if one is twice."""
    locations: dict[str, str] = {}
    for name in names:
        try:
            files = _files(spark, f"{folder.rstrip('/')}/{name}*")
        except InputRefused:
            continue
        entry = entries_of(files, folder, name)
        if entry is not None:
            locations[name] = entry
    if not locations:
        _files(spark, folder)  # refuses a folder that does not exist
    return locations


def read_table(
    spark: SparkSession, table: Table, path: str, input_format: str | None = None
) -> tuple[DataFrame, list[str] | None]:
    """The table before `conform`, and its unknown columns if they can be told without reading."""
    files = _files(spark, path)
    kind = format_of_table(path, files, input_format)
    if kind is None or not files:
        return spark.createDataFrame([], table.ddl.replace(" NOT NULL", "")), []
    try:
        return {"json": _json, "csv": _csv, "parquet": _parquet}[kind](spark, table, path)
    except (PySparkException, Py4JJavaError) as error:
        damage = None if kind == "parquet" else unreadable_file(str(error))
        if damage is not None:
            raise InputRefused(damage) from error
        lines = str(error).strip().splitlines()
        causes = [line for line in lines if line.startswith("Caused by: ")]
        raise InputRefused(
            f"{path} cannot be read as {kind}: {[*lines[:1], *causes][-1]}"
        ) from error


def _parquet(spark: SparkSession, table: Table, path: str) -> tuple[DataFrame, list[str]]:
    rows = spark.read.parquet(path)
    names = [sf.col(f"`{name}`") for name in rows.columns if name not in TECHNICAL]
    # a URI turns + into a space only in its query, so url_decode must not see one
    file = sf.expr("try_url_decode(replace(_metadata.file_name, '+', '%2B'))")
    source = sf.concat_ws(":", file, sf.col("_metadata.row_index") + 1)
    frame = rows.select(*names, source.alias(SOURCE), sf.to_json(sf.struct(*names)).alias(RAW))
    return frame, unknown_names(table, rows.columns, TECHNICAL)


def _json(spark: SparkSession, table: Table, path: str) -> tuple[DataFrame, None]:
    lines = numbered_lines(spark, path)
    # Spark's parser ignores what follows the first value; inside brackets it cannot
    fields = ", ".join(f"`{name}`: STRING" for name in table.column_names)
    rows = sf.from_json(
        sf.concat(sf.lit("["), RAW, sf.lit("]")),
        f"ARRAY<STRUCT<{fields}>>",
        {"allowSingleQuotes": "false"},
    )
    objects = lines.withColumn("_rows", rows)
    one = (sf.size("_rows") == 1) & sf.col(RAW).rlike(r"^\s*\{") & sf.col("_utf8")
    # a column each, not inlined: inlined they are worked out again for every column below
    objects = objects.select("*", sf.when(one, sf.get("_rows", sf.lit(0))).alias("_row"))
    row = sf.col("_row")
    texts = [column.name for column in table.columns if column.type == "STRING"]
    nested = [_nested_as_text(name, row.getField(name)) for name in texts]
    # as text an array looks like a string that begins with [, which a name may do too
    bracket = sf.concat_ws("\n", *(row.getField(name) for name in texts)).rlike(r"(?m)^[\[{]")
    unparsable = _unparsable(row.isNotNull(), "the line is not one JSON object")
    issues = (
        sf.when(row.isNull(), found_issues([unparsable]))
        .when(bracket, found_issues(nested))
        .otherwise(no_issues())
    )
    frame = objects.select("_row", SOURCE, RAW, issues.alias(READ_ISSUES))
    values = [
        _unless_nested(c.name, row.getField(c.name)) if c.type == "STRING" else row.getField(c.name)
        for c in table.columns
    ]
    named = [value.alias(c.name) for value, c in zip(values, table.columns, strict=True)]
    return frame.select(*named, SOURCE, RAW, READ_ISSUES), None


def _nested_as_text(name: str, value: Column) -> Column:
    nested = _json_type(name).rlike("^(ARRAY|OBJECT)")
    return sf.when(nested, issue("BAD_TYPE", name, " is ", value, ", no text"))


def _unless_nested(name: str, value: Column) -> Column:
    prefix = sf.lit(f"{name} is ")
    named = sf.exists(READ_ISSUES, lambda issue: sf.startswith(issue.message, prefix))
    return sf.when(~((sf.size(READ_ISSUES) > 0) & named), value)


def _json_type(name: str) -> Column:
    member = sf.try_variant_get(sf.try_parse_json(RAW), f"$.{name}", "variant")
    return sf.schema_of_variant(member)


def _unparsable(readable: Column, why: str) -> Column:
    broken = sf.when(~sf.col("_utf8"), sf.lit("the line is not UTF-8")).otherwise(sf.lit(why))
    return sf.when(~(readable & sf.col("_utf8")), issue("UNPARSABLE", broken))


def _csv(spark: SparkSession, table: Table, path: str) -> tuple[DataFrame, list[str]]:
    first = spark.read.option("recursiveFileLookup", True).text(path).head()
    header = "" if first is None else first[0].lstrip("\ufeff")
    names = header_names(path, header)
    if first is None:
        return spark.createDataFrame([], table.ddl.replace(" NOT NULL", "")), []
    cells = ", ".join(f"c{i} STRING" for i in range(len(names)))
    options = {"columnNameOfCorruptRecord": "_bad", "escape": '"'}
    row = sf.from_csv(sf.col(RAW), f"{cells}, _bad STRING", options)
    rows = numbered_lines(spark, path, header).withColumn("_row", row)
    complete = sf.col("_row._bad").isNull() & sf.col("_row").isNotNull()
    wrong = _unparsable(complete, f"the line has not the {len(names)} columns of the header")
    # an empty cell is no value, quoted or not: writers that quote everything quote nulls too
    values = [
        sf.when(complete, sf.nullif(sf.col(f"_row.c{i}"), sf.lit(""))).alias(name)
        for i, name in enumerate(names)
        if name in table.column_names
    ]
    frame = rows.select(*values, SOURCE, RAW, found_issues([wrong]).alias(READ_ISSUES))
    return frame, unknown_names(table, names, TECHNICAL)
