"""What every simulation says as it begins, and records as it ends."""

from collections.abc import Sequence

from rebalance_core.cli.run.output_run import OutputRun
from rebalance_core.cli.run.run_record import InputRecord, RunRecord, outcome_of
from rebalance_core.cli.terminal import say
from rebalance_core.engine.table_writer import LedgerWritten


def say_begin(inputs: Sequence[InputRecord]) -> None:
    """Name the inputs."""
    say(f"simulating; inputs: {', '.join(record.table for record in inputs)}")


def finish(run: OutputRun, inputs: Sequence[InputRecord], written: LedgerWritten) -> RunRecord:
    """Write the record of the run.

    Args:
        run: Where the ledger is.
        inputs: Their records, without rows.
        written: What came of it.
    """
    return run.finish(outcome_of(written, inputs, replay_reasons=written.replay_reasons))
