"""What every `generate` says as it begins, and records as it ends."""

from rebalance_core.cli.run.output_run import OutputRun
from rebalance_core.cli.run.run_record import Outcome, RunRecord, table_records
from rebalance_core.cli.terminal import say
from rebalance_core.engine.table_writer import FleetWritten
from rebalance_core.synthetic.fleet import FleetPlan


def say_begin(plan: FleetPlan) -> None:
    """Name what is made."""
    say(f"generating {plan.groups:,} groups x {plan.days:,} days, seed {plan.seed}")


def finish(run: OutputRun, plan: FleetPlan, written: FleetWritten) -> RunRecord:
    """Write the record of the run.

    Args:
        run: Where the tables are.
        plan: What was made.
        written: What came of it.
    """
    outputs = table_records(written.tables)
    return run.finish(Outcome(outputs=outputs, seed=plan.seed))
