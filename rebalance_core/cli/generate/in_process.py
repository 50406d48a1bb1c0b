"""`generate` in this process; needs no JVM."""

from rebalance_core.cli.generate.finish import finish, say_begin
from rebalance_core.cli.generate.options import GenerateOptions
from rebalance_core.cli.run.run_record import RunRecord
from rebalance_core.cli.run.running_here import check_free_here, running_here
from rebalance_core.cli.settings import Settings
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.engine.table_writer import FleetWritten
from rebalance_core.process.generate import generate_and_write
from rebalance_core.storage.place import place_of
from rebalance_core.synthetic.fleet import FleetPlan


def generate(
    options: GenerateOptions, settings: Settings, plan: FleetPlan
) -> tuple[FleetWritten, RunRecord]:
    """Write the fleet and its record."""
    with running_here("generate", options, settings, INPUT_TABLES) as run:
        say_begin(plan)
        output = place_of(options.output)
        written = generate_and_write(plan, output, before_writing=run.clear)
        return written, finish(run, plan, written)


def check(options: GenerateOptions, _settings: Settings) -> None:
    """Raise what `generate` would raise about the output folder, and touch nothing."""
    check_free_here(options)
