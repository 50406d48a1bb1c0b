"""Own strategies in Spark's tasks: their code travels, whatever the executors can import."""

from pathlib import Path
from threading import Lock

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import rebalance_core
from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.model.errors import UsageError
from rebalance_core.spark import InputTables, simulate
from rebalance_core.spark.functions import rmq_allocate
from rebalance_core.spark.plugins import in_tasks
from tests.recordings.tables import DATA
from tests.spark.frames import assert_same_rows, frame_of

pytestmark = pytest.mark.usefixtures("registered_plugins")

FOLDER = DATA / "join-leave" / "tables"
MODULE = """
from acme_of_a_user.places import place_of


class Grey:
    name = "GREY"

    def allocate(self, client_id, queues, client_ids):
        return queues[place_of(client_id, client_ids)::len(client_ids)]
"""
PLACES = """
def place_of(client_id, client_ids):
    return client_ids.index(client_id)
"""


@pytest.fixture
def grey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a strategy whose package no worker of Spark can import."""
    package = tmp_path / "acme_of_a_user"
    package.mkdir()
    for name, text in (("__init__", ""), ("strategy", MODULE), ("places", PLACES)):
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    rebalance_core.register_strategy("com.acme.Grey", "acme_of_a_user.strategy:Grey")
    return "com.acme.Grey"


def test_a_simulation_has_the_rows_of_one_in_a_process(
    spark: SparkSession, grey: str, tmp_path: Path
) -> None:
    lines = (FOLDER / "cluster_events.jsonl").read_text()
    assert lines.count('"strategy":"AVG"') > 3
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    (inputs / "cluster_events.jsonl").write_text(
        lines.replace('"strategy":"AVG"', f'"strategy":"{grey}"')
    )
    expected = rebalance_core.simulate(inputs)
    assert grey in expected.memberships["strategy"].to_pylist()
    with simulate(InputTables.read(spark, str(inputs))) as ledger:
        for table in ("ownership", "memberships"):
            rows, ddl = expected[table].to_pylist(), LEDGER_TABLES[table].plain_ddl
            assert_same_rows(getattr(ledger, table), frame_of(spark, rows, ddl))


def test_a_function_of_columns_takes_an_object(spark: SparkSession, grey: str) -> None:
    frame = spark.sql(
        "SELECT array(named_struct('topic', 'T', 'broker_name', 'a', 'queue_id', 0), "
        "named_struct('topic', 'T', 'broker_name', 'a', 'queue_id', 1)) AS queues, "
        "array('y', 'x') AS client_ids"
    )
    strategies = {"own": grey, "circle": "AVG_BY_CIRCLE"}
    found = frame.select(
        *(
            rmq_allocate(text, "queues", "client_ids").alias(name)
            for name, text in strategies.items()
        )
    )
    assert_same_rows(found.select("own"), found.select(sf.col("circle").alias("own")))


def test_what_cannot_be_sent_is_named() -> None:
    class Held:
        name = "HELD"

        def __init__(self) -> None:
            self.lock = Lock()

        def allocate(self, client_id: str, queues: list[str], client_ids: list[str]) -> list[str]:
            return []

    rebalance_core.register_strategy("HELD", Held())
    with pytest.raises(UsageError, match="HELD cannot be sent to Spark's tasks: cannot pickle"):
        in_tasks(list).__getstate__()  # type: ignore[call-arg]
