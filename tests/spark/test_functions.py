"""The SQL functions on Spark: of DataFrames, in SQL and of pandas, in the forms that there are."""

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_type

from rebalance_core.kernels import functions as kernels
from rebalance_core.kernels.function_columns import QUEUES
from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.spark import InputTables, functions, series
from rebalance_core.spark.functions import (
    ALLOCATION_TYPE,
    DIFFERENCE_TYPE,
    START_TYPE,
    allocate_by_group,
    rmq_allocate,
    rmq_allocate_error,
    rmq_assignment_diff,
    rmq_pull_from_where,
    try_rmq_allocate,
)
from tests.recordings.tables import replayed
from tests.spark.frames import assert_same_rows, frame_of
from tests.tree import TREE
from tests.unit.kernels.test_functions import (
    ARGUMENTS,
    batch,
    random_rows,
)

GROUPS = (
    "cluster STRING, consumer_group STRING, epoch INT, strategy STRING,"
    " queues ARRAY<STRUCT<topic: STRING, broker_name: STRING, queue_id: BIGINT>>,"
    " client_ids ARRAY<STRING>"
)
OWNED = (
    "epoch INT, owners ARRAY<STRUCT<topic: STRING, broker_name: STRING, queue_id: INT,"
    " client_ids: ARRAY<STRING>>>, error STRING"
)
COLUMNS = ("strategy", "queues", "client_ids")
DEMO = "rebalance_core/bundled/demo/join-leave/tables"
FORMS = ("arrow", "pandas")


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both forms, wherever the Spark that runs has both."""
    if request.param == "pandas":
        monkeypatch.setattr(functions, "HAS_ARROW_UDFS", False)
    elif not functions.HAS_ARROW_UDFS:
        pytest.skip("this Spark has no Arrow UDFs")
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def asked(spark: SparkSession, seed: int) -> DataFrame:
    """Random groups in several partitions; some lack a list, an element or a strategy."""
    rows = [
        ("c", f"g{number % 7}", number, strategy, queues, ids)
        for number, (strategy, queues, ids) in enumerate(list(random_rows(seed))[:400])
    ]
    return spark.createDataFrame(rows, GROUPS).repartition(3).cache()


@pytest.fixture(scope="module")
def owned(spark: SparkSession, seed: int) -> DataFrame:
    """What the kernels, which tests/unit holds to `allocate_group`, say of `asked`."""
    columns = batch(list(random_rows(seed))[:400])
    answers = zip(
        kernels.try_rmq_allocate(*columns).to_pylist(),
        kernels.rmq_allocate_error(*columns).to_pylist(),
        strict=True,
    )
    rows = [
        {"epoch": n, "owners": owners, "error": error} for n, (owners, error) in enumerate(answers)
    ]
    return frame_of(spark, rows, OWNED)


def test_of_a_frame(form: str, asked: DataFrame, owned: DataFrame) -> None:
    found = asked.select(
        "epoch",
        try_rmq_allocate(*COLUMNS).alias("owners"),
        rmq_allocate_error(*map(sf.col, COLUMNS)).alias("error"),
    )
    assert_same_rows(found, owned)


def test_in_sql(form: str, spark: SparkSession, asked: DataFrame, owned: DataFrame) -> None:
    functions.register(spark)
    asked.createOrReplaceTempView("asked")
    found = spark.sql(
        "SELECT epoch, try_rmq_allocate(strategy, queues, client_ids) AS owners,"
        " rmq_allocate_error(strategy, queues, client_ids) AS error FROM asked"
    )
    assert_same_rows(found, owned)
    # a constant is a row like others there
    wrong = "rmq_allocate_error('AVERAGE', array(), array())"
    (row,) = spark.sql(
        f"SELECT {wrong} AS error, rmq_assignment_diff(array(), null) AS diff"
    ).collect()
    assert row.error.startswith("unknown strategy: 'AVERAGE'")
    assert row["diff"] is None
    with pytest.raises(Exception, match=r"strategy: unknown strategy: 'AVERAGE'; .*; try_"):
        spark.sql("SELECT rmq_allocate('AVERAGE', array(), array())").collect()


def test_of_pandas_without_a_session(asked: DataFrame, owned: DataFrame) -> None:
    frame: Any = asked.toPandas()
    frame = frame.set_index("epoch", drop=False)
    found = pd.DataFrame(
        {
            "epoch": frame["epoch"],
            "owners": try_rmq_allocate(*(frame[name] for name in COLUMNS)),
            "error": rmq_allocate_error(*(frame[name] for name in COLUMNS)),
        }
    )
    assert found.index.equals(frame.index)
    spark = asked.sparkSession
    assert_same_rows(spark.createDataFrame(found, owned.schema), owned)


def test_constants_of_any_kind(form: str, spark: SparkSession) -> None:
    queues = [MessageQueue("T", "a", 1), MessageQueue("T", "a", 0)]
    frame = spark.range(1).select(
        rmq_allocate("AVG", queues, ["10.0.0.1@1", "10.0.0.10@1"]).alias("owners"),
        rmq_allocate(sf.lit("AVG"), queues, []).alias("nobody"),
    )
    expected = [[("T", "a", 0, ["10.0.0.10@1"]), ("T", "a", 1, ["10.0.0.1@1"])],
                [("T", "a", 0, []), ("T", "a", 1, [])]]  # fmt: skip
    (row,) = frame.collect()
    assert [[tuple(queue) for queue in owners] for owners in row] == expected
    diff = frame.select(rmq_assignment_diff("nobody", "owners").alias("diff"))
    assert [tuple(change) for change in diff.collect()[0]["diff"]] == [
        ("T", "a", 0, "ADD", "10.0.0.10@1"),
        ("T", "a", 1, "ADD", "10.0.0.1@1"),
    ]


def test_differences_of_neighbours(form: str, asked: DataFrame, owned: DataFrame) -> None:
    later = owned.select((sf.col("epoch") - 1).alias("epoch"), sf.col("owners").alias("after"))
    pairs = owned.join(later, "epoch")
    found = pairs.select("epoch", rmq_assignment_diff("owners", "after").alias("diff"))
    local = sorted(pairs.collect())
    kind = to_arrow_type(ALLOCATION_TYPE)
    sides = [
        pa.array([row[at] and [item.asDict() for item in row[at]] for row in local], kind)
        for at in ("owners", "after")
    ]
    rows = [
        {"epoch": row.epoch, "diff": diff}
        for row, diff in zip(local, kernels.rmq_assignment_diff(*sides).to_pylist(), strict=True)
    ]
    expected = frame_of(
        asked.sparkSession, rows, f"epoch INT, diff {DIFFERENCE_TYPE.simpleString()}"
    )
    assert_same_rows(found, expected)


STARTS = (
    "consumer_type STRING, consume_from_where STRING, topic STRING, stored_offset BIGINT,"
    " max_offset BIGINT, timestamp_offset BIGINT, version STRING"
)


@pytest.fixture(scope="module")
def starting(seed: int) -> list[tuple[Any, ...]]:
    draw = random.Random(seed)
    choices: Any = (
        ("PUSH", "LITE_PULL", "PULL", "POP", None),
        ("CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_TIMESTAMP", "CONSUME_FROM_MIN_OFFSET", None),
        ("T", "%RETRY%g", None), (None, -1, -1, -1, -2, 2**53 + 1),
        (None, 0, 5, -3, 2**62 + 1), (None, 0, 7), ("5.3", "4.9.7", "3.2", None),
    )  # fmt: skip
    return [tuple(draw.choice(column) for column in choices) for _ in range(500)]


def starts_of(rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    kinds = [kind for kind, _ in functions._START.values()]
    columns = map(pa.array, zip(*rows, strict=True), kinds)
    starts: list[dict[str, Any]] = kernels.rmq_pull_from_where(*columns).to_pylist()
    return starts


def test_starts(form: str, spark: SparkSession, starting: list[tuple[Any, ...]]) -> None:
    """Offsets that a float64 has not are exact in the pandas form too: they go as texts."""
    numbered = [(*row, number) for number, row in enumerate(starting)]
    frame = spark.createDataFrame(numbered, f"{STARTS}, number INT").repartition(2)
    found = frame.select("number", rmq_pull_from_where(*ARGUMENTS).alias("start"))
    starts = starts_of(starting)
    assert any(start["offset"] == 2**62 + 1 for start in starts)
    rows = [{"number": number, "start": start} for number, start in enumerate(starts)]
    expected = frame_of(spark, rows, f"number INT, start {START_TYPE.simpleString()}")
    assert_same_rows(found, expected)
    constants = rmq_pull_from_where(
        "PUSH", "CONSUME_FROM_LAST_OFFSET", sf.lit("T"), -1, 9, None, "5.3"
    )
    assert spark.range(1).select(constants).first() == (("MAX_OFFSET", 9, None),)


def test_starts_in_sql(form: str, spark: SparkSession, starting: list[tuple[Any, ...]]) -> None:
    functions.register(spark)
    small = [row for row in starting if max(number or 0 for number in row[3:6]) < 2**53]
    spark.createDataFrame(small, STARTS).createOrReplaceTempView("starting")
    start = f"rmq_pull_from_where({', '.join(ARGUMENTS)})"
    found = spark.sql(f"SELECT {', '.join(ARGUMENTS)}, {start} AS start FROM starting")
    rows = [
        dict(zip((*ARGUMENTS, "start"), (*row, start), strict=True))
        for row, start in zip(small, starts_of(small), strict=True)
    ]
    ddl = f"{STARTS}, start {START_TYPE.simpleString()}"
    assert_same_rows(found, frame_of(spark, rows, ddl))


@pytest.mark.skipif(not functions.HAS_NODES, reason="from Spark 4.0 on")
def test_arguments_of_starts_have_names_and_types_in_sql(spark: SparkSession) -> None:
    functions.register(spark)
    functions.register(spark)
    start = "rmq_pull_from_where(version => '5.3', topic => 'T', stored_offset => -1, "
    start += "consumer_type => 'PUSH', consume_from_where => 'CONSUME_FROM_LAST_OFFSET', "
    (row,) = spark.sql(f"SELECT {start} timestamp_offset => null, max_offset => 9) s").collect()
    assert row.s == ("MAX_OFFSET", 9, None)
    for wrong, said in (
        (f"{start} max_offset => 9)", "timestamp_offset"),
        (f"{start} timestamp_offset => null, maxoffset => 9)", "maxoffset"),
        ("rmq_pull_from_where('PUSH')", "WRONG_NUM_ARGS|REQUIRED_PARAMETER_NOT_FOUND"),
    ):
        with pytest.raises(AnalysisException, match=said):
            spark.sql(f"SELECT {wrong}")
    told = "\n".join(
        row.function_desc
        for row in spark.sql("DESCRIBE FUNCTION EXTENDED rmq_pull_from_where").collect()
    )
    if pyspark.__version__ >= "4.3":  # older ones print the properties of the function
        assert re.search(r"stored_offset +BIGINT +'-1 none, -2 error'", told)


def test_workers_that_do_not_start_are_named_in_a_line(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no interpreter >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(broken))
    with pytest.raises(UsageError, match=r"cannot run the functions: .*set PYSPARK_PYTHON") as told:
        functions.register(spark)
    assert "\n" not in str(told.value)


def test_what_pandas_and_pyarrow_make_of_values_is_refused() -> None:
    offsets = pd.Series([2**53 + 1, None])
    constants = ("PUSH", "CONSUME_FROM_LAST_OFFSET", "T")
    with pytest.raises(UsageError, match=r"max_offset: pandas rounds whole numbers of 2\^53"):
        rmq_pull_from_where(*constants, -1, offsets, None, "5.3")
    exact = rmq_pull_from_where(*constants, -1, pd.Series([str(2**53 + 1), None]), None, "5.3")
    assert exact["offset"].tolist() == [2**53 + 1, None]
    assert exact["error"].tolist() == [None, "maxOffset failed"]
    for column in (pd.Series([[("T", "b", 1.5)]]), pd.Series(["T"])):
        with pytest.raises(UsageError, match="queues must be ARRAY<STRUCT"):
            rmq_allocate("AVG", column, ["x"])
    with pytest.raises(UsageError, match="client_ids must be ARRAY<STRING>, not 'client_ids'"):
        rmq_allocate("AVG", pd.Series([[("T", "b", 1)]]), "client_ids")
    with pytest.raises(UsageError, match="max_offset must be BIGINT"):
        rmq_pull_from_where(*constants, -1, pd.Series([1.5]), None, "5.3")


def test_by_group_divides_each_topic_by_itself(form: str, spark: SparkSession) -> None:
    queues = [("T", "a", n) for n in (1, 0)] + [("U", "a", 0)]
    rows = [
        ("c", "g", 0, "AVG", queues, ["10.0.0.1@1", "10.0.0.10@1"]),
        ("c", "g", 1, "AVG_BY_CIRCLE", queues, ["x", "x", "y"]),
        ("c", "nobody", 0, "AVG", queues[:1], []),
        (
            "c",
            "listed",
            0,
            "CONFIG(queues=T/a/9|not subscribed/a/0)",
            queues[2:] + queues[:1],
            ["x"],
        ),
        ("c", "throws", 0, "MACHINE_ROOM_NEARBY-AVG", queues, ["x"]),
        ("c", "not known", 0, "AVG", [*queues, None], ["x"]),
        ("c", "not known", 1, "AVG", queues, ["x", None]),
        ("c", "not known", 2, "AVG", None, ["x"]),
    ]
    found = allocate_by_group(spark.createDataFrame(rows, GROUPS), "strategy")
    ten, one = "10.0.0.10@1", "10.0.0.1@1"
    owners = [
        ("g", 0, "T", "a", 0, ten), ("g", 0, "T", "a", 1, one), ("g", 0, "U", "a", 0, ten),
        ("g", 1, "T", "a", 0, "x"), ("g", 1, "T", "a", 1, None), ("g", 1, "U", "a", 0, "x"),
        ("nobody", 0, "T", "a", 1, None),
        ("listed", 0, "T", "a", 1, None), ("listed", 0, "T", "a", 9, "x"),
        ("listed", 0, "U", "a", 0, None),
    ]  # fmt: skip
    ddl = (
        "cluster STRING, consumer_group STRING, epoch INT, topic STRING, broker_name STRING,"
        " queue_id INT, client_id STRING"
    )
    assert_same_rows(found, spark.createDataFrame([("c", *owner) for owner in owners], ddl))


def test_by_group_takes_one_strategy_for_all(form: str, asked: DataFrame) -> None:
    by_text = allocate_by_group(asked.drop("strategy"), "AVG_BY_CIRCLE")
    by_column = allocate_by_group(asked, sf.lit("AVG_BY_CIRCLE"))
    assert_same_rows(by_text, by_column)
    assert by_text.where("client_id IS NULL").count() > 0


FRAME = "cluster STRING, consumer_group STRING, epoch INT, queues ARRAY<STRING>, client_ids INT"
LISTS = ("queues", "client_ids")
Call = Callable[[SparkSession], Column | DataFrame]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda spark: rmq_allocate(sf.lit("AVGG"), *LISTS), "unknown strategy: 'AVGG'; known:"),
        (lambda spark: rmq_allocate_error(sf.lit("AVGG"), *LISTS), "unknown strategy: 'AVGG'"),
        (lambda spark: rmq_allocate("CONSISTENT_HASH(nodes=1)", *LISTS), "unknown parameter"),
        (lambda spark: rmq_allocate(5, *LISTS), "strategy must be STRING, not 5"),
        (lambda spark: rmq_allocate(sf.lit(5), *LISTS), "strategy must be STRING, not 5"),
        (lambda spark: rmq_allocate(sf.lit(None), *LISTS), "strategy is null"),
        (lambda spark: rmq_allocate("AVG", [("T", "b", -1)], "client_ids"), "queue_id -1"),
        (lambda spark: rmq_allocate("AVG", ["T"], "client_ids"), "queues must be ARRAY<STRUCT"),
        (lambda spark: rmq_allocate("AVG", "queues", [None]), "client_ids contains a null"),
        (lambda spark: rmq_pull_from_where(sf.lit("PUSCH"), *ARGUMENTS[1:]), "'PUSCH' is no"),
        (lambda spark: rmq_pull_from_where("PUSH", sf.lit(""), *ARGUMENTS[2:]), "not a start mode"),
        (lambda spark: rmq_pull_from_where(*ARGUMENTS[:3], None, *ARGUMENTS[4:]),
         "stored_offset is null"),
        (lambda spark: rmq_pull_from_where(*ARGUMENTS[:4], "max_offset", 1.5, "5.3"),
         "timestamp_offset must be BIGINT, not 1.5"),
        (lambda spark: rmq_pull_from_where(*ARGUMENTS[:6], sf.lit("3.2")),
         "oldest supported line is 4.9"),
        (lambda spark: allocate_by_group(spark.createDataFrame([], GROUPS), "AVGG"), "'AVGG'"),
        (lambda spark: allocate_by_group(spark.range(1), "AVG"), "the frame lacks cluster, consum"),
        (lambda spark: allocate_by_group(spark.createDataFrame([], FRAME), "AVG"),
         "queues must be ARRAY<STRUCT"),
    ],
)  # fmt: skip
def test_a_wrong_constant_is_refused_when_the_plan_is_made(
    spark: SparkSession, call: Call, message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        call(spark)


def test_a_column_of_another_type_fails_the_query_with_its_name(
    form: str, asked: DataFrame
) -> None:
    for columns, message in (
        (("epoch", "queues", "client_ids"), "strategy must be STRING"),
        (("strategy", "client_ids", "client_ids"), "queues must be ARRAY<STRUCT<topic STRING"),
        (("strategy", "queues", "strategy"), "client_ids must be ARRAY<STRING>"),
    ):
        with pytest.raises(Exception, match=message):
            asked.coalesce(1).select(rmq_allocate(*columns)).collect()


def test_types_are_those_of_the_bodies(form: str) -> None:
    for function in functions._FUNCTIONS.values():
        valid = [pa.array([right], kind) for kind, right in function.valid.values()]
        assert to_arrow_type(function.returns) == function.arrow(*valid).type
    assert form in FORMS


def test_the_pandas_form_keeps_every_value(asked: DataFrame) -> None:
    """Lists of structs to dicts and back; whole numbers beside nulls."""
    frame: Any = asked.toPandas()
    queues = series.array_of("queues", frame["queues"], QUEUES)
    expected = asked.select("queues").collect()
    assert queues.to_pylist() == [
        None if row is None else [item and item.asDict() for item in row] for (row,) in expected
    ]
    numbers = series.series_of(pa.array([1, None, 2**62 + 1]))
    assert numbers.tolist() == [1, None, 2**62 + 1]


def test_the_sql_of_the_notebook_gives_simulate_s_ledger(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TREE)
    notebook = (TREE / "notebooks/own_frames.py").read_text("utf-8")
    statements = re.findall(r'^spark\.sql\("""(.*?)"""\)', notebook, re.M | re.S)
    assert len(statements) == 3
    functions.register(spark)
    for view, frame in InputTables.read(spark, DEMO).tables().items():
        frame.createOrReplaceTempView(view)
    for statement in statements:
        spark.sql(statement)
    ledger = replayed("join-leave")
    key = "cluster STRING, consumer_group STRING, epoch INT, topic STRING, broker_name STRING,"
    for name, table, ddl in (
        ("diffs", "diffs", f"{key} queue_id INT, action STRING, client_id STRING"),
        ("starts", "pull_starts", f"{key} queue_id INT, client_id STRING, start_offset BIGINT"),
    ):
        rows = [row for row in ledger[table] if not row["topic"].startswith("%RETRY%")]
        expected = frame_of(spark, rows, ddl)
        assert expected.count() > 25
        assert_same_rows(spark.table(name).select(*expected.columns), expected)
