"""RocketMQ's rules as functions of columns, for DataFrames, for SQL (after `register`) and for
pandas.

An argument is a Column, a column's name, or a constant: a valid word (a strategy text, a consumer
type, a start mode, a version), a number, None or a list. An invalid constant, even as ``lit(…)``,
is refused at once; an invalid row gives null and the reason. In SQL, constants are treated as rows.
With pandas Series as arguments, a function returns a Series (`rmq_pull_from_where` a DataFrame) and
needs no session.

Since Spark 4.1 the functions are Arrow UDFs. Older versions use pandas UDFs
(`rebalance_core.spark.series`), with the same results at a fifth of the speed. No strategy is an
expression of Spark: below a UDF such as `rmq_assignment_diff`, Spark 3.5 and 4.0 do not evaluate
nested lambdas (``Cannot evaluate expression``).
"""

import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyspark
from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from rebalance_core.kernels import functions as kernels
from rebalance_core.kernels.function_columns import (
    ALLOCATION,
    NUMBER,
    QUEUES,
    SQL_TYPES,
    TEXT,
    TEXTS,
)
from rebalance_core.model.errors import UsageError
from rebalance_core.spark import series
from rebalance_core.spark.failures import OF_SPARK, cause_of
from rebalance_core.spark.plugins import function_in_tasks
from rebalance_core.spark.sources import rows_of
from rebalance_core.strategies.texts import strategy_text
from rebalance_core.version import LIBRARY_VERSION


def _struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


_QUEUE = {"topic": StringType(), "broker_name": StringType(), "queue_id": IntegerType()}
_NAMES = ArrayType(StringType())
ALLOCATION_TYPE = ArrayType(_struct(**_QUEUE, client_ids=_NAMES))
DIFFERENCE_TYPE = ArrayType(_struct(**_QUEUE, action=StringType(), client_id=StringType()))
START_TYPE = _struct(rule=StringType(), offset=LongType(), error=StringType())

HAS_ARROW_UDFS = hasattr(sf, "arrow_udf")  # from Spark 4.1 on
HAS_NODES = not pyspark.__version__.startswith("3.")  # the representation of a JVM column
_PLAIN = (str, bool, int, float)
_LISTS = {
    TEXTS: _NAMES,
    QUEUES: ArrayType(_struct(**_QUEUE)),
    ALLOCATION: ALLOCATION_TYPE,
}

Argument = Any
"""A Column, the name of a column, a constant or a pandas Series."""


def rmq_allocate(strategy: Argument, queues: Argument, client_ids: Argument) -> Any:
    """Return the owners of every queue: `rebalance_core.allocate_group` of each row.

    Both lists are sorted as the client sorts them (Java's string order), then the strategy is
    applied for every member. All queues of a row are allocated as one list, as the client does for
    a topic; for groups with several topics see `allocate_by_group`.

    Args:
        strategy: Strategy texts such as ``AVG`` or ``CONSISTENT_HASH(virtual_nodes=10)``, or a
            custom object for all rows (`rebalance_core.register_strategy`).
        queues: ``ARRAY<STRUCT<topic, broker_name, queue_id>>`` in any order; further fields are
            ignored.
        client_ids: ``ARRAY<STRING>`` in any order, with an id that two processes share listed
            twice.

    Returns:
        ``ARRAY<STRUCT<topic, broker_name, queue_id, client_ids ARRAY<STRING>>>``: queues and owners
        in RocketMQ's order; a queue may have several owners or none. Null where the strategy throws
        or the row is invalid or has nulls (unknown is not none); `rmq_allocate_error` gives the
        reason.

    Raises:
        UsageError: A constant is invalid. A row whose text is not a strategy fails the query.
    """
    arguments = {"strategy": _text_of(strategy), "queues": queues, "client_ids": client_ids}
    return _call("rmq_allocate", arguments)


def try_rmq_allocate(strategy: Argument, queues: Argument, client_ids: Argument) -> Any:
    """Return `rmq_allocate` of the same arguments, or null where a row's text is not a strategy.

    Raises:
        UsageError: A constant is wrong.
    """
    arguments = {"strategy": _text_of(strategy), "queues": queues, "client_ids": client_ids}
    return _call("try_rmq_allocate", arguments)


def rmq_allocate_error(strategy: Argument, queues: Argument, client_ids: Argument) -> Any:
    """Return why `rmq_allocate` returns null for the same arguments, as a STRING, or null if it
    does not.
    """
    return _call(
        "rmq_allocate_error",
        {"strategy": _text_of(strategy), "queues": queues, "client_ids": client_ids},
    )


def rmq_assignment_diff(before: Argument, after: Argument) -> Any:
    """Return the changes from one result of `rmq_allocate` to another.

    Returns:
        ``ARRAY<STRUCT<topic, broker_name, queue_id, action, client_id>>`` with action DROP or ADD,
        like the rows of the ledger's ``diffs``: by queue in RocketMQ's order, DROPs first. Null if
        either argument is null; if there was no earlier result, pass an empty array.
    """
    return _call("rmq_assignment_diff", {"before": before, "after": after})


def rmq_pull_from_where(
    consumer_type: Argument,
    consume_from_where: Argument,
    topic: Argument,
    stored_offset: Argument,
    max_offset: Argument,
    timestamp_offset: Argument,
    version: Argument,
) -> Any:
    """Return where a new owner starts: `rebalance_core.compute_pull_from_where` of each row.

    Args:
        consumer_type: PUSH, LITE_PULL or PULL.
        consume_from_where: As CONSUME_FROM_LAST_OFFSET.
        topic: The queue's topic; retry topics have rules of their own.
        stored_offset: BIGINT; -1 for none, -2 for an error.
        max_offset: BIGINT; null where the look-up fails.
        timestamp_offset: BIGINT; null where the look-up fails.
        version: The client's version.

    Returns:
        ``STRUCT<rule STRING, offset BIGINT, error STRING>``: the rule as in ``pull_starts``; where
        upstream throws, QUERY_FAILED with its message and no offset; if an argument is invalid or
        null, only the error.

    Raises:
        UsageError: A constant is wrong.
    """
    return _call(
        "rmq_pull_from_where",
        {
            "consumer_type": consumer_type,
            "consume_from_where": consume_from_where,
            "topic": topic,
            "stored_offset": stored_offset,
            "max_offset": max_offset,
            "timestamp_offset": timestamp_offset,
            "version": version,
        },
    )


def _text_of(strategy: Argument) -> Argument:
    """Register a custom object and return its text; return anything else unchanged."""
    return strategy_text(strategy) if hasattr(type(strategy), "allocate") else strategy


def allocate_by_group(frame: DataFrame, strategy: Any) -> DataFrame:
    """Return the owners of every queue of every group and epoch, with a row per owner.

    Each topic is allocated separately, as clients do. A topic whose strategy throws, or whose
    queues or clients are not all known, has no rows; a string that is not a strategy fails the
    query.

    Args:
        frame: A row per (cluster, consumer_group, epoch), with ``queues`` and ``client_ids`` as in
            `rmq_allocate`.
        strategy: A column of the frame, or a strategy text or custom object for all rows.

    Returns:
        cluster, consumer_group, epoch, topic, broker_name, queue_id and client_id, with a row per
        owner; client_id is null for a queue without an owner.

    Raises:
        UsageError: The frame lacks columns, a column has a different type, or the strategy is
            unknown.
    """
    keys = ["cluster", "consumer_group", "epoch"]
    _check_columns(frame, keys)
    strategy = _text_of(strategy)
    if isinstance(strategy, str):
        strategy = sf.col(strategy) if strategy in frame.columns else sf.lit(strategy)
    strategy = _FUNCTIONS["rmq_allocate"].column("strategy", strategy)
    topics = sf.array_distinct(sf.transform("queues", lambda queue: queue["topic"]))
    # a queue without a topic may belong to any topic, so no topic is complete
    of_topic = sf.filter(
        "queues", lambda queue: sf.coalesce(queue["topic"] == sf.col("topic"), sf.lit(True))
    )
    owners = rmq_allocate("strategy", "queues", "client_ids")
    return (
        frame.select(
            *keys,
            strategy.alias("strategy"),
            "queues",
            "client_ids",
            sf.explode(topics).alias("topic"),
        )
        .select(*keys, "strategy", "topic", of_topic.alias("queues"), "client_ids")
        .select(*keys, "topic", sf.explode(owners).alias("owned"))
        .where("owned.topic = topic")  # CONFIG returns its whole list for every topic
        .select(
            *keys,
            "topic",
            "owned.broker_name",
            "owned.queue_id",
            sf.explode_outer("owned.client_ids").alias("client_id"),
        )
    )


def register(spark: SparkSession) -> None:
    """Register the functions for the session's SQL under the same names, running them on one row.

    From Spark 4.0 on `rmq_pull_from_where` has arguments with names and types, which the analyser
    checks. A cast to a declared type would read a struct's fields by position, so functions of
    queues, which read them by name, declare no types.

    Raises:
        UsageError: Python workers do not start, have a different version, or lack the package.
    """
    _refuse_workers(spark)
    for name, function in _FUNCTIONS.items():
        declared = _DECLARED.get(name) if HAS_NODES else None
        if declared is None:
            spark.udf.register(name, function.udf())
            continue
        inner = f"_{name}_of_rows"
        spark.udf.register(inner, function.udf())
        spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")  # from an earlier session: no SQL
        arguments = ", ".join(
            f"{argument} {SQL_TYPES[function.valid[argument][0]]} COMMENT '{text}'"
            for argument, text in declared.items()
        )
        spark.sql(
            f"CREATE TEMPORARY FUNCTION {name}({arguments}) "
            f"RETURNS {function.returns.simpleString()} COMMENT 'Where a new owner starts' "
            f"RETURN {inner}({', '.join(declared)})"
        )


def _refuse_workers(spark: SparkSession) -> None:
    def versions(batches: Any) -> Any:
        import rebalance_core

        for _ in batches:
            found = [rebalance_core.__version__]
            yield pa.RecordBatch.from_arrays([pa.array(found, pa.string())], ["version"])

    try:
        rows = rows_of(spark.range(0, 1, 1, 1).mapInArrow(versions, "version STRING"))
    except OF_SPARK as error:
        raise UsageError(
            f"Python workers of this session cannot run the functions: {cause_of(error)}; "
            f"this is Python {platform.python_version()} ({sys.executable}): set PYSPARK_PYTHON to "
            "one of its version that has the package, or send it (--py-files)"
        ) from error
    if (there := rows[0]["version"]) != LIBRARY_VERSION:
        raise UsageError(f"Python workers have rebalance-core {there}, this is {LIBRARY_VERSION}")


_DECLARED: Mapping[str, Mapping[str, str]] = {
    "rmq_pull_from_where": {
        "consumer_type": "PUSH, LITE_PULL or PULL",
        "consume_from_where": "as CONSUME_FROM_LAST_OFFSET",
        "topic": "of the queue",
        "stored_offset": "-1 none, -2 error",
        "max_offset": "null: the look-up fails",
        "timestamp_offset": "null: the look-up fails",
        "version": "of the client",
    }
}
"""The kinds of each function's arguments, in the order of its columns."""


@dataclass(frozen=True)
class _Function:
    """A function in its Arrow and pandas forms.

    Attributes:
        arrow: The function of Arrow arrays.
        pandas: The function of Series.
        returns: Its type.
        valid: Its arguments with their types, and a valid value for each.
        faults: Returns why rows are invalid, given the arrays of `arrow`.
    """

    arrow: Callable[..., pa.Array]
    pandas: Callable[..., Any]
    returns: DataType
    valid: Mapping[str, tuple[pa.DataType, Any]]
    faults: Callable[..., pa.Array]

    def udf(self) -> Any:
        """Return the UDF, created for each use because it depends on the session's kind at that
        time.
        """
        # both exist for users, but not for type checkers
        if HAS_ARROW_UDFS:
            return sf.arrow_udf(function_in_tasks(self.arrow), self.returns)  # type: ignore[attr-defined]
        return sf.pandas_udf(function_in_tasks(self.pandas), self.returns)  # type: ignore[attr-defined]

    def fault(self, name: str, value: Any) -> str | None:
        """Return why a constant is invalid regardless of the other arguments, or None if it is
        valid.
        """
        kind = self.valid[name][0]
        try:
            array = series.array_of(name, pd.Series([value], dtype=object), kind)
        except (UsageError, OverflowError):
            return f"{name} must be {SQL_TYPES[kind]}, not {value!r}"
        row = [
            array if key == name else pa.array([right], of)
            for key, (of, right) in self.valid.items()
        ]
        fault: str | None = self.faults(*row)[0].as_py()
        return fault

    def check(self, name: str, value: Any) -> None:
        """Raise `UsageError` for an invalid constant."""
        fault = self.fault(name, value)
        if fault is not None:
            raise UsageError(f"{fault} (argument {name})")

    def column(self, name: str, value: Argument) -> Column:
        """Return an argument as a column. Raises `UsageError`."""
        kind = self.valid[name][0]
        if isinstance(value, str):
            is_word = kind == TEXT and self.fault(name, value) is None and name != "topic"
            if "(" in value and not is_word:
                self.check(name, value)  # not the name of a column
            value = sf.lit(value) if is_word else sf.col(value)
        elif isinstance(value, Column) or type(value).__name__ == "Column":  # 3.5's of Connect
            for constant in _constants(value):
                self.check(name, constant)
        else:
            self.check(name, value)
            value = _literal(pa.array([value], kind)[0].as_py())
            if kind in _LISTS:  # an empty one has no type of its own
                value = value.cast(_LISTS[kind])
        # pandas rounds integers in columns with nulls
        return value.cast("string") if kind == NUMBER and not HAS_ARROW_UDFS else value


def _constants(column: Column) -> list[Any]:
    """Return the value of a column made by ``lit``, or None for other columns and where Spark hides
    it.
    """
    parts = vars(column)  # getattr would return the column of a field
    expression: Any = parts.get("_expr")  # of Connect
    if type(expression).__name__ == "LiteralExpression":
        return [expression._value]
    with suppress(Py4JError, KeyError):
        node = parts["_jc"].node() if HAS_NODES else parts["_jc"].expr()
        if node.getClass().getSimpleName() == "Literal":
            value = node.value()
            return [value if value is None or isinstance(value, _PLAIN) else value.toString()]
    return []


def _literal(value: Any) -> Column:
    """Return a constant column of an Arrow value."""
    if isinstance(value, list):
        return sf.array(*map(_literal, value))
    if isinstance(value, dict):
        return sf.struct(*(_literal(field).alias(name) for name, field in value.items()))
    return sf.lit(value)


def _call(name: str, arguments: Mapping[str, Argument]) -> Any:
    """Apply a function to columns, or to Series if one of the arguments is a Series."""
    function = _FUNCTIONS[name]
    series_argument = next(
        (value for value in arguments.values() if isinstance(value, pd.Series)), None
    )
    if series_argument is None:
        return function.udf()(*(function.column(key, value) for key, value in arguments.items()))
    columns = []
    for key, value in arguments.items():
        if not isinstance(value, pd.Series):
            function.check(key, value)
            value = pd.Series([value] * len(series_argument), series_argument.index, object)
        columns.append(value)
    return function.pandas(*columns).set_axis(series_argument.index)


def _check_columns(frame: DataFrame, keys: Sequence[str]) -> None:
    """Refuse a frame that lacks columns of `allocate_by_group` or has them with other types."""
    needed = [*keys, "queues", "client_ids"]
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        raise UsageError(
            f"the frame lacks {', '.join(missing)}; it needs {', '.join(needed)} and has "
            f"{', '.join(frame.columns)}"
        )
    lists = [pa.array([], to_arrow_type(frame.schema[name].dataType)) for name in needed[-2:]]
    kernels.rmq_allocate_error(pa.array([], TEXT), *lists)


def _start_faults(*columns: pa.Array) -> pa.Array:
    starts = kernels.rmq_pull_from_where(*columns)
    return pc.if_else(starts.field("rule").is_null(), starts.field("error"), None)


def _no_faults(before: pa.Array, after: pa.Array) -> pa.Array:
    return pa.nulls(len(before))


_GROUP = {"strategy": (TEXT, "CONFIG"), "queues": (QUEUES, []), "client_ids": (TEXTS, [])}
_ALLOCATIONS: dict[str, tuple[pa.DataType, Any]] = {
    "before": (ALLOCATION, []),
    "after": (ALLOCATION, []),
}
_START = {
    "consumer_type": (TEXT, "PUSH"),
    "consume_from_where": (TEXT, "CONSUME_FROM_LAST_OFFSET"),
    "topic": (TEXT, "T"),
    "stored_offset": (NUMBER, -1),
    "max_offset": (NUMBER, 0),
    "timestamp_offset": (NUMBER, 0),
    "version": (TEXT, "5.3"),
}
_FUNCTIONS = {
    function.arrow.__name__: function
    for function in (
        _Function(
            kernels.rmq_allocate,
            series.rmq_allocate,
            ALLOCATION_TYPE,
            _GROUP,
            kernels.rmq_allocate_error,
        ),
        _Function(
            kernels.try_rmq_allocate,
            series.try_rmq_allocate,
            ALLOCATION_TYPE,
            _GROUP,
            kernels.rmq_allocate_error,
        ),
        _Function(
            kernels.rmq_allocate_error,
            series.rmq_allocate_error,
            StringType(),
            _GROUP,
            kernels.rmq_allocate_error,
        ),
        _Function(
            kernels.rmq_assignment_diff,
            series.rmq_assignment_diff,
            DIFFERENCE_TYPE,
            _ALLOCATIONS,
            _no_faults,
        ),
        _Function(
            kernels.rmq_pull_from_where,
            series.rmq_pull_from_where,
            START_TYPE,
            _START,
            _start_faults,
        ),
    )
}
