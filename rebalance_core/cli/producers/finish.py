"""What every run of `producers` says as it begins, and records as it ends."""

from collections.abc import Sequence

from rebalance_core.cli.producers.options import ProducersOptions
from rebalance_core.cli.run.output_run import OutputRun
from rebalance_core.cli.run.run_record import InputRecord, RunRecord, outcome_of
from rebalance_core.cli.terminal import say
from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.producers import PRODUCER_WRITTEN
from rebalance_core.engine.table_writer import ProducersWritten
from rebalance_core.producers.model import Variant
from rebalance_core.producers.results import ResultsOptions

WRITTEN = (*PRODUCER_WRITTEN, REJECTED.name)


def results_options(options: ProducersOptions) -> ResultsOptions:
    """What is assumed of the producers whose results were recorded."""
    return ResultsOptions(Variant(options.versions[0], fault_tolerance=True))


def say_begin(options: ProducersOptions) -> None:
    """Name what is done."""
    model = options.model
    if model is None:
        say(f"replaying the results of {options.input} as {options.versions[0]} would")
    else:
        say(f"simulating {model.producers:,} producers for {model.length_ms / 1000:,.0f} s")


def finish(
    run: OutputRun,
    options: ProducersOptions,
    inputs: Sequence[InputRecord],
    written: ProducersWritten,
) -> RunRecord:
    """Write the record of the run.

    Args:
        run: Where the tables are.
        options: Of the run.
        inputs: Their records, without rows.
        written: What came of it.
    """
    seed = None if options.model is None else options.model.seed
    return run.finish(outcome_of(written, inputs, seed=seed))
