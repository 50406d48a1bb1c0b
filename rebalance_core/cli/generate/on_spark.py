"""`generate` on Spark."""

from rebalance_core.cli.generate.finish import finish, say_begin
from rebalance_core.cli.generate.options import GenerateOptions
from rebalance_core.cli.run.run_record import RunRecord
from rebalance_core.cli.run.running import check_free, running
from rebalance_core.cli.settings import Settings
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.engine.table_writer import FleetWritten
from rebalance_core.spark.generate import generate_and_write
from rebalance_core.synthetic.fleet import FleetPlan


def generate(
    options: GenerateOptions, settings: Settings, plan: FleetPlan
) -> tuple[FleetWritten, RunRecord]:
    """Write the fleet and its record."""
    with running("generate", options, settings, INPUT_TABLES) as (run, session):
        say_begin(plan)
        output = run.folder.table_location("")
        written = generate_and_write(session, plan, output, before_writing=run.clear)
        return written, finish(run, plan, written)


def check(options: GenerateOptions, settings: Settings) -> None:
    """Raise what `generate` would raise about the output folder, and touch nothing."""
    check_free("generate", options, settings)
