"""What every simulation says as it begins, and records as it ends."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rebalance_core.cli.run.output_run import Outcome, OutputRun
from rebalance_core.cli.run.run_record import InputRecord, RunRecord, table_records
from rebalance_core.cli.terminal import say
from rebalance_core.engine.written import LedgerWritten


def say_begin(inputs: Sequence[InputRecord]) -> None:
    """Name the inputs."""
    say(f"simulating; inputs: {', '.join(record.table for record in inputs)}")


def finish(
    run: OutputRun,
    run_on: str,
    inputs: Sequence[InputRecord],
    written: LedgerWritten,
    versions: Mapping[str, str | None],
) -> RunRecord:
    """Write the record of the run.

    Args:
        run: Where the ledger is.
        run_on: Who ran it.
        inputs: Their records, without rows.
        written: What came of it.
        versions: Of Python and, if they took part, Spark and Java.
    """
    return run.finish(
        Outcome(
            outputs=table_records(written.tables),
            inputs=[replace(r, rows=written.input_rows.get(r.table)) for r in inputs],
            rejected=written.rejected,
            replayed_groups=sum(written.replay_reasons.values()),
            replay_reasons=written.replay_reasons,
            versions=versions,
            run_on=run_on,
        )
    )
