"""The opening state of a run on Spark; see `checks.opening_state`."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.opening_state import GROUP_SETTINGS, OF_STATE, end_of
from rebalance_core.contracts.table import SOURCE
from rebalance_core.engine.fan_out import GROUP
from rebalance_core.model.events import CONSUMER_JOIN
from rebalance_core.spark.read_tables import InputTables
from rebalance_core.spark.sources import rows_of


def with_state(spark: SparkSession, inputs: InputTables, folder: str) -> InputTables:
    """Return the tables of an input, preceded by the rows of a state, in one small job.

    Args:
        spark: Any session.
        inputs: The run's input.
        folder: As in `checks.opening_state.state_folder`, in Spark's form.
    """
    state = InputTables.read(spark, folder).tables()
    if "consumer_groups" in state:
        state["cluster_events"] = _with_settings(state["cluster_events"], state["consumer_groups"])
    new = {name: source.conformed for name, source in inputs.sources().items()}
    merged: dict[str, Any] = {
        name: rows.withColumn(SOURCE, sf.lit(OF_STATE)) for name, rows in state.items()
    }
    for name, rows in new.items():
        merged[name] = merged[name].unionByName(rows) if name in merged else rows
    (last,) = rows_of(state["cluster_events"].agg(sf.max("event_ms").alias("last")))
    return InputTables(**merged, paths=inputs.paths, state_end_ms=end_of(last["last"], folder))


def _with_settings(events: DataFrame, groups: DataFrame) -> DataFrame:
    """Return the events, filling in the group's settings on each join that has none."""
    of_groups = {name: f"_{name}" for name in GROUP_SETTINGS}
    settings = groups.select(
        *GROUP,
        *(sf.col(of_group).alias(of_groups[name]) for name, of_group in GROUP_SETTINGS.items()),
        sf.lit(CONSUMER_JOIN).alias("event_type"),
    )
    joined = events.join(settings, [*GROUP, "event_type"], "left")
    own = {name: sf.coalesce(name, of_groups[name]) for name in GROUP_SETTINGS}
    return joined.select(*(own.get(name, sf.col(name)).alias(name) for name in events.columns))
