"""Row checks: every input row is used, or rejected with the reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from rebalance_core.checks.rules import (
    DETAILS,
    ENUMS,
    MAX_QUEUE_NUMS,
    NEEDED,
    PARSED,
    number_ranges,
    unparsed,
)
from rebalance_core.contracts import ALL_TABLES, INPUT_TABLES, Table
from rebalance_core.contracts.technical_columns import RAW, READ_ISSUES, SOURCE
from rebalance_core.contracts.times import TIME_RANGES
from rebalance_core.model import events
from rebalance_core.model.request_mode import parse_request_mode
from rebalance_core.spark.tables.conform import conform, found_issues, issue
from rebalance_core.spark.tables.read import InputTables

_REPEAT = "_repeat"


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
    frame = conform(table, frame)
    issues = [*_missing_values(table), *_time_issues(table)]
    issues += _number_issues(table, max_queue_nums)
    if table_name in INPUT_TABLES:
        issues += [*_event_issues(table), *_enum_issues(table), *_text_issues(table)]
    all_issues = sf.concat(sf.col(READ_ISSUES), found_issues(issues))
    if not table.key:
        whole = (*table.column_names, SOURCE, RAW)
        return frame.select(*whole, all_issues.alias("issues"), sf.lit(False).alias(_REPEAT))
    needed = [c.name for c in table.columns if c.name in table.key and not c.nullable]
    keyed = reduce(lambda a, b: a & b, [sf.col(n).isNotNull() for n in needed])
    marked = frame.select(
        "*", all_issues.alias("issues"), (keyed & (sf.size(READ_ISSUES) == 0)).alias("_keyed")
    )
    return _mark_duplicates(table, marked)


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


def _missing_values(table: Table) -> list[Column]:
    # what did not read is named already, and would be called missing here
    readable = sf.size(READ_ISSUES) == 0
    issues = []
    for column in table.columns:
        empty = _is_empty(column.name, column.type)
        if not column.nullable:
            message = (f"{column.name} is empty; every row of {table.name} needs it",)
            issues.append(sf.when(readable & empty, issue("MISSING_VALUE", *message)))
        elif table.name == "cluster_events" and column.name in NEEDED:
            concerned = sf.col("event_type").isin(*NEEDED[column.name])
            text = issue(
                "MISSING_VALUE", f"{column.name} is empty; ", sf.col("event_type"), " needs it"
            )
            issues.append(sf.when(readable & concerned & empty, text))
    return issues


def _is_empty(name: str, sql_type: str) -> Column:
    blank = sf.trim(name) == "" if sql_type == "STRING" else sf.lit(False)
    return sf.col(name).isNull() | blank


def _event_issues(table: Table) -> list[Column]:
    if table.name != "cluster_events":
        return []
    event_type, detail = sf.col("event_type"), sf.col("detail")
    known = event_type.isin(*events.EVENT_TYPES)
    valid = ", ".join(events.EVENT_TYPES)
    unknown = sf.when(
        ~known & (sf.trim(event_type) != ""),
        issue("UNKNOWN_EVENT_TYPE", "event_type is '", event_type, f"'; valid: {valid}"),
    )
    allowed = event_type == events.REQUEST_MODE
    expected = sf.lit("none")
    for name, details in DETAILS.items():
        allowed = allowed | ((event_type == name) & detail.isin(*details))
        expected = sf.when(event_type == name, sf.lit(", ".join(details))).otherwise(expected)
    message = ("detail is '", detail, "'; valid for ", event_type, ": ", expected)
    mode = sf.when((event_type == events.REQUEST_MODE) & (sf.trim(detail) != ""), detail)
    why = _complaints_udf(parse_request_mode)(mode)
    return [
        unknown,
        sf.when(known & detail.isNotNull() & ~allowed, issue("BAD_ENUM", *message)),
        sf.when(why.isNotNull(), issue("BAD_REQUEST_MODE", "detail: ", why)),
    ]


def _enum_issues(table: Table) -> list[Column]:
    return [
        sf.when(
            ~sf.col(name).isin(*values),
            issue("BAD_ENUM", f"{name} is '", sf.col(name), f"'; valid: {', '.join(values)}"),
        )
        for name, values in ENUMS.items()
        if name in table.column_names
    ]


def _time_issues(table: Table) -> list[Column]:
    issues = []
    for name, good in TIME_RANGES.items():
        if name in table.column_names:
            value = sf.col(name)
            valid = f" valid: {good.first_ms} to {good.end_ms - 1} (epoch ms)"
            for wrong, why in (
                (value < good.first_ms, good.too_early),
                (value >= good.end_ms, good.too_late),
            ):
                text = issue("BAD_TIME", f"{name} is ", value, f", {why}{valid}")
                issues.append(sf.when(wrong, text))
    return issues


def _number_issues(table: Table, max_queue_nums: int) -> list[Column]:
    ranges = number_ranges(max_queue_nums)
    issues = []
    for name in table.column_names:
        value = sf.col(name)
        if name in ranges:
            code, low, high = ranges[name]
            outside = (value < low) if high is None else ~value.between(low, high)
            valid = f"; valid: {low} and more" if high is None else f"; valid: {low} to {high}"
            issues.append(sf.when(outside, issue(code, f"{name} is ", value, valid)))
        if name.startswith("pull_threshold_"):
            wrong = (value == 0) | (value < -1)
            valid = "; valid: -1 (off), 1 and more"
            issues.append(sf.when(wrong, issue("BAD_THRESHOLD", f"{name} is ", value, valid)))
    if "min_offset" in table.column_names:
        low_end, high_end = sf.col("min_offset"), sf.col("max_offset")
        text = issue("BAD_OFFSET", "min_offset ", low_end, " is above max_offset ", high_end)
        issues.append(sf.when(low_end > high_end, text))
    return issues


def _text_issues(table: Table) -> list[Column]:
    issues = []
    for name in table.column_names:
        if name in PARSED:
            code, parse = PARSED[name]
            reason = _complaints_udf(parse)(sf.col(name))
            issues.append(sf.when(reason.isNotNull(), issue(code, f"{name}: ", reason)))
    return issues


def _complaints_udf(parse: Callable[[str], object]) -> Callable[[Column], Column]:
    def why(texts: pa.Array) -> pa.Array:
        return unparsed(texts, parse)

    return sf.arrow_udf(why, "STRING")  # type: ignore[attr-defined]  # since 4.1; the stubs lack it


def _mark_duplicates(table: Table, marked: DataFrame) -> DataFrame:
    content = sf.struct(*(name for name in table.column_names if name != "source"))
    # rows without a key stand alone, and spread
    alone = sf.when(~sf.col("_keyed"), sf.xxhash64(SOURCE, RAW))
    order = [name for name in ("source", SOURCE, RAW) if name in marked.columns]
    window = Window.partitionBy(*table.key, "_keyed", alone).orderBy(*order)
    whole = window.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    ranked = marked.select(
        "*",
        sf.count(sf.lit(1)).over(whole).alias("_rows"),
        (sf.min(content).over(whole) != sf.max(content).over(whole)).alias("_differ"),
        sf.row_number().over(window).alias("_number"),
    )
    key = sf.concat_ws(", ", *(sf.concat(sf.lit(f"{n} "), _shown(n)) for n in table.key))
    message = (sf.col("_rows"), " rows with different content have the key ", key, "; keep one")
    differ = sf.col("_keyed") & sf.col("_differ")
    twice = found_issues([sf.when(differ, issue("DUPLICATE_KEY", *message))])
    return ranked.select(
        *table.column_names,
        SOURCE,
        RAW,
        sf.concat("issues", twice).alias("issues"),
        (sf.col("_keyed") & (sf.col("_number") > 1)).alias(_REPEAT),
    )


def _shown(name: str) -> Column:
    return sf.coalesce(sf.col(name).cast("STRING"), sf.lit("null"))
