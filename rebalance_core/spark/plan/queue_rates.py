"""The optional input ``queue_rates``: messages per second of each queue."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from rebalance_core.contracts.planning import QUEUE_RATES
from rebalance_core.planning.sweep.plan_options import MOST_REASONS, refuse_bad_rates
from rebalance_core.spark.driver_rows import rows_of
from rebalance_core.spark.tables.quarantine import check
from rebalance_core.spark.tables.read import read_table


def read_queue_rates(
    session: SparkSession, location: str, input_format: str | None = None, *, name: str = ""
) -> DataFrame:
    """The rows of the table.

    Args:
        session: Any session.
        location: Path or URI.
        input_format: Of the files; None: by their names.
        name: What the message calls the table; the location if it is empty.

    Raises:
        InputRefused: Any row is bad; rates are few, and one left out would go unnoticed.
    """
    checked = check({QUEUE_RATES.name: read_table(session, QUEUE_RATES, location, input_format)})
    good, bad = checked.tables[QUEUE_RATES.name], checked.rejected
    negative = good.where("isnan(messages_per_second) OR messages_per_second < 0")
    reasons = [row["issues"][0]["message"] for row in rows_of(bad.limit(MOST_REASONS))]
    rates = [row["messages_per_second"] for row in rows_of(negative.limit(MOST_REASONS))]
    refuse_bad_rates(name or location, reasons, rates)
    return good
