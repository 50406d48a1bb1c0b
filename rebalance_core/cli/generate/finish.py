"""What every `generate` says as it begins, and records as it ends."""

from collections.abc import Mapping

from rebalance_core.cli.run.output_run import Outcome, OutputRun
from rebalance_core.cli.run.run_record import RunRecord, table_records
from rebalance_core.cli.terminal import say
from rebalance_core.engine.written import FleetWritten
from rebalance_core.synthetic.fleet import FleetPlan


def say_begin(plan: FleetPlan) -> None:
    """Name what is made."""
    say(f"generating {plan.groups:,} groups x {plan.days:,} days, seed {plan.seed}")


def finish(
    run: OutputRun,
    run_on: str,
    plan: FleetPlan,
    written: FleetWritten,
    versions: Mapping[str, str | None],
) -> RunRecord:
    """Write the record of the run.

    Args:
        run: Where the tables are.
        run_on: Who ran it.
        plan: What was made.
        written: What came of it.
        versions: Of Python and, if they took part, Spark and Java.
    """
    outputs = table_records(written.tables)
    return run.finish(Outcome(outputs=outputs, versions=versions, seed=plan.seed, run_on=run_on))
