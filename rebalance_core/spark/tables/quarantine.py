"""Row checks: every input row is used, or rejected with the reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from rebalance_core.checks.duplicate_keys import has_key
from rebalance_core.checks.issue_arrays import issues_array, joined_issues
from rebalance_core.checks.row_issues import row_issues
from rebalance_core.checks.rules import MAX_QUEUE_NUMS
from rebalance_core.contracts import ALL_TABLES, Table
from rebalance_core.contracts.table import ISSUES_TYPE
from rebalance_core.contracts.technical_columns import RAW, READ_ISSUES, SOURCE
from rebalance_core.spark.tables.conformed_frames import conform
from rebalance_core.spark.tables.read import InputTables

_REPEAT, _KEYED = "_repeat", "_keyed"


@dataclass(frozen=True, eq=False)
class Quarantined:
    """The input after the checks; everything lazy.

    ``tables`` has the used rows by table name (contract columns, ``_source``, ``_raw``; equal
    repeats once), ``rejected`` is the ledger table, ``checked`` has every row with its ``issues``.
    """

    tables: Mapping[str, DataFrame]
    rejected: DataFrame
    checked: Mapping[str, DataFrame]

    def close(self) -> None:
        """Release the checked rows, which are kept once computed."""
        for frame in self.checked.values():
            frame.unpersist()


def quarantine(inputs: InputTables, *, max_queue_nums: int = MAX_QUEUE_NUMS) -> Quarantined:
    """Check every table there is; see `check`."""
    # Kept once computed: counted, used (cluster_events by several joins) and rejected from here.
    checked = {
        name: check(name, frame, max_queue_nums=max_queue_nums).persist()
        for name, frame in inputs.tables().items()
    }
    parts = {name: split(frame, name) for name, frame in checked.items()}
    return Quarantined(
        tables={name: good for name, (good, _) in parts.items()},
        rejected=reduce(DataFrame.unionByName, (rejected for _, rejected in parts.values())),
        checked=checked,
    )


def check(table_name: str, frame: DataFrame, *, max_queue_nums: int = MAX_QUEUE_NUMS) -> DataFrame:
    """The conformed rows with ``issues`` (empty: none) and ``_repeat`` (an equal row is kept).

    One pass and one shuffle by key. Rows of one key are equal if all columns but ``source`` are:
    the same event may stand in two logs. Rows with a field that did not read have no key. Observed
    tables have no keys, and their texts are what was seen, not settings: any is good.

    Raises:
        InputRefused: columns that may not be null are missing.
    """
    table = ALL_TABLES[table_name]
    marked = conform(table, frame).mapInArrow(_task(table, max_queue_nums), _marked_ddl(table))
    if not table.key:
        return marked.drop(_KEYED).withColumn(_REPEAT, sf.lit(False))
    return _mark_duplicates(table, marked)


def _marked_ddl(table: Table) -> str:
    places = f"{SOURCE} STRING, {RAW} STRING, issues {ISSUES_TYPE}, {_KEYED} BOOLEAN"
    return f"{table.plain_ddl}, {places}"


def _task(
    table: Table, max_queue_nums: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Conformed rows to rows with all that is wrong with each, and whether it has a key."""
    names = [*table.column_names, SOURCE, RAW]

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            own = issues_array(rows.num_rows, row_issues(table, rows, max_queue_nums))
            issues = joined_issues(rows.column(READ_ISSUES).cast(own.type), own)
            columns = [*rows.select(names).columns, issues, pa.array(has_key(table, rows))]
            yield pa.RecordBatch.from_arrays(columns, names=[*names, "issues", _KEYED])

    return run


def split(checked: DataFrame, table_name: str) -> tuple[DataFrame, DataFrame]:
    """The used rows (equal repeats once) and the rows of `rejected`."""
    names = [c for c in checked.columns if c not in ("issues", _REPEAT)]
    no_issue = sf.size("issues") == 0
    good = checked.where(no_issue & ~sf.col(_REPEAT)).select(*names)
    rejected = checked.where(~no_issue).select(
        sf.lit(table_name).alias("table_name"),
        sf.col(SOURCE).alias("source"),
        sf.col(RAW).alias("raw"),
        "issues",
    )
    return good, rejected


def _mark_duplicates(table: Table, marked: DataFrame) -> DataFrame:
    content = sf.struct(*(name for name in table.column_names if name != "source"))
    # rows without a key stand alone, and spread
    alone = sf.when(~sf.col(_KEYED), sf.xxhash64(SOURCE, RAW))
    order = [name for name in ("source", SOURCE, RAW) if name in marked.columns]
    window = Window.partitionBy(*table.key, _KEYED, alone).orderBy(*order)
    whole = window.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    ranked = marked.select(
        "*",
        sf.count(sf.lit(1)).over(whole).alias("_rows"),
        (sf.min(content).over(whole) != sf.max(content).over(whole)).alias("_differ"),
        sf.row_number().over(window).alias("_number"),
    )
    key = sf.concat_ws(", ", *(sf.concat(sf.lit(f"{n} "), _shown(n)) for n in table.key))
    message = (sf.col("_rows"), " rows with different content have the key ", key, "; keep one")
    differ = sf.col(_KEYED) & sf.col("_differ")
    text = sf.concat(*(part if isinstance(part, Column) else sf.lit(part) for part in message))
    issue = sf.struct(sf.lit("DUPLICATE_KEY").alias("code"), text.alias("message"))
    twice = sf.when(differ, sf.array(issue)).otherwise(sf.array()).cast(ISSUES_TYPE)
    return ranked.select(
        *table.column_names,
        SOURCE,
        RAW,
        sf.concat("issues", twice).alias("issues"),
        (sf.col(_KEYED) & (sf.col("_number") > 1)).alias(_REPEAT),
    )


def _shown(name: str) -> Column:
    return sf.coalesce(sf.col(name).cast("STRING"), sf.lit("null"))
