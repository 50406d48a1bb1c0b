"""What every run of `propagate` is told, says as it begins, and records as it ends."""

from collections.abc import Sequence

from rebalance_core.cli.propagate.options import PropagateOptions
from rebalance_core.cli.run.output_run import OutputRun
from rebalance_core.cli.run.run_record import InputRecord, RunRecord, outcome_of
from rebalance_core.cli.settings import Settings
from rebalance_core.cli.terminal import say
from rebalance_core.clockwork.options import ClockOptions
from rebalance_core.engine.propagation import PropagationOptions
from rebalance_core.engine.table_writer import PropagationWritten


def propagation_options(options: PropagateOptions, settings: Settings) -> PropagationOptions:
    """What the services are told."""
    return PropagationOptions(
        seeds=options.seeds,
        first_seed=options.first_seed,
        handover_seeds=options.handover_seeds,
        group=options.group,
        max_queue_nums=settings.limits.max_queue_nums,
        clock=ClockOptions(
            phases=options.phases,
            exact_times=options.exact_times,
            lost_notices=options.lost_notices,
            late_share=options.late_share,
            late_ms=options.late_ms,
            concurrent_heartbeat=options.concurrent_heartbeat,
        ),
    )


def say_begin(options: PropagateOptions, inputs: Sequence[InputRecord]) -> None:
    """Name what is done, and with what."""
    tables = ", ".join(record.table for record in inputs)
    say(f"simulating {options.seeds:,} futures of each group; inputs: {tables}")


def finish(
    run: OutputRun,
    options: PropagateOptions,
    inputs: Sequence[InputRecord],
    written: PropagationWritten,
) -> RunRecord:
    """Write the record of the run.

    Args:
        run: Where the tables are.
        options: Of the run.
        inputs: Their records, without rows.
        written: What came of it.
    """
    reasons = written.facts["played_one_by_one"]
    outcome = outcome_of(written, inputs, replay_reasons=reasons, seed=options.first_seed)
    return run.finish(outcome)
