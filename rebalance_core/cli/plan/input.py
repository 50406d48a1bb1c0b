"""What `plan` reads: the tables, checked, and how much messages each queue carries."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rebalance_core.cli.plan.options import PlanOptions
from rebalance_core.cli.run.input_files import check_readable, tables_in
from rebalance_core.cli.run.output_folder import is_local, local_path, spark_location
from rebalance_core.cli.settings.settings import Settings
from rebalance_core.cli.simulate.job import check_rows
from rebalance_core.model.errors import InputRefused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rebalance_core.spark.tables.quarantine import Quarantined
    from rebalance_core.spark.tables.row_counts import RowCounts


def plan_inputs(options: PlanOptions) -> dict[str, str]:
    """Path by input table; those of a remote folder are for the reader to find."""
    if options.queue_rates is not None:
        check_readable("--queue-rates", options.queue_rates, options.input_format)
    if not is_local(options.input):
        return {}
    found = tables_in(local_path(options.input), options.input_format)
    return {table: str(path) for table, path in found.items()}


def checked_input(
    session: "SparkSession", options: PlanOptions, settings: Settings, inputs: Mapping[str, str]
) -> "tuple[Quarantined, Mapping[str, RowCounts]]":
    """The input and how much of it is bad."""
    from rebalance_core.spark import InputTables

    remote = None if is_local(options.input) else options.input
    paths = {name: spark_location(path) for name, path in inputs.items()} if not remote else {}
    read = InputTables.read(session, remote, **paths, input_format=options.input_format)
    return check_rows(read, settings)


def queue_rates(session: "SparkSession", options: PlanOptions) -> "DataFrame | None":
    """The rows of queue_rates; any bad one refuses the table."""
    from rebalance_core.contracts.planning import QUEUE_RATES
    from rebalance_core.spark.tables.quarantine import check, split
    from rebalance_core.spark.tables.read import read_table

    if options.queue_rates is None:
        return None
    location = spark_location(options.queue_rates)
    frame, _ = read_table(session, QUEUE_RATES, location, options.input_format)
    good, bad = split(check(QUEUE_RATES.name, frame), QUEUE_RATES.name)
    negative = good.where("isnan(messages_per_second) OR messages_per_second < 0")
    reasons = [row["issues"][0]["message"] for row in bad.limit(3).collect()]
    reasons += [
        f"messages_per_second is {row['messages_per_second']}; valid: 0 and more"
        for row in negative.limit(3).collect()
    ]
    if reasons:
        raise InputRefused(f"--queue-rates {options.queue_rates}: {'; '.join(reasons)}")
    return good
