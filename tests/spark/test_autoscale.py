"""Scalers on Spark make the tables of a process."""

from pathlib import Path

import pyarrow as pa
import pytest

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.contracts.scaling import ARRIVALS, RECORDED_SCALING
from rebalance_core.engine.propagation import PropagationOptions
from rebalance_core.planning.autoscale.closed_loop import Question
from rebalance_core.planning.autoscale.policy import read_policies
from rebalance_core.planning.autoscale.scaled_group import Service
from rebalance_core.planning.autoscale.summary import Judgement
from rebalance_core.process.autoscale import Asked, write_autoscale
from rebalance_core.spark import InputTables, SparkSession
from rebalance_core.spark.runtime import SparkRuntime
from tests.tree import TREE

STEADY = str(TREE / "rebalance_core/bundled/demo/steady/tables")
BEGIN_MS = 1_795_231_200_000


def asked() -> Asked:
    rows = [
        {
            "from_ms": BEGIN_MS + place * 60_000,
            "to_ms": BEGIN_MS + (place + 1) * 60_000,
            "topic": topic,
            "messages_per_second": rate,
        }
        for topic, factor in (("Checkout", 1.0), ("Ledger", 0.05))
        for place, rate in enumerate([300.0 * factor, 1_500.0 * factor, 200.0 * factor])
    ]
    was = [
        {"consumer_group": "checkout", "at_ms": BEGIN_MS + place * 60_000, "replicas": replicas}
        for place, replicas in enumerate([2, 4, 3])
    ]
    return Asked(
        read_policies(["hpa", "keda"]),
        Question(range(2)),
        Judgement(),
        arrivals=pa.Table.from_pylist(rows, ARRIVALS.arrow_schema()),
        recorded_scaling=pa.Table.from_pylist(was, RECORDED_SCALING.arrow_schema()),
        default=Service((100.0, 100.0, 100.0)),
    )


def test_both_places_write_the_same(spark: SparkSession, tmp_path: Path) -> None:
    others = asked(), BadRowLimits(), PropagationOptions(seeds=1)
    here = write_autoscale(read_input_tables(STEADY), tmp_path / "process", *others)
    there = write_autoscale(
        InputTables.read(spark, STEADY),
        str(tmp_path / "spark"),
        *others,
        runtime=SparkRuntime(spark),
    )
    assert there.tables == here.tables
    assert there.facts["summary"] == here.facts["summary"]
    assert here.tables["scaling_steps"].rows > 10
    recorded = {
        row["consumer_group"]: row.get("pod_hours")
        for row in here.facts["summary"]
        if row["policy"] == "recorded"
    }
    assert recorded == {"checkout": pytest.approx(9 / 60), "ledger": None}
