"""What every plan says as it begins, and records as it ends."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rebalance_core.cli.plan.options import PlanOptions
from rebalance_core.cli.run.output_run import Outcome, OutputRun
from rebalance_core.cli.run.run_record import InputRecord, RunRecord, table_records
from rebalance_core.cli.terminal import say, warn
from rebalance_core.contracts import PLAN_OUTPUT_TABLES, REJECTED
from rebalance_core.planning.sweep.plan_result import PlanResult

WRITTEN = (*PLAN_OUTPUT_TABLES, REJECTED.name)


def say_begin(options: PlanOptions, rows: Mapping[str, int]) -> None:
    """Tell how much there is to do."""
    variants, events = len(options.variants), rows["cluster_events"]
    say(f"planning {variants:,} variants of {events:,} events")


def finish(
    run: OutputRun,
    run_on: str,
    options: PlanOptions,
    inputs: Sequence[InputRecord],
    result: PlanResult,
    versions: Mapping[str, str | None],
) -> RunRecord:
    """Pass on the warnings, and write the record of the run.

    Args:
        run: Where the tables are.
        run_on: Who ran it.
        options: Of the run.
        inputs: Their records, without rows.
        result: What came of it.
        versions: Of Python and, if they took part, Spark and Java.
    """
    for warning in result.warnings:
        warn(warning)
    return run.finish(
        Outcome(
            outputs=table_records(result.tables),
            inputs=[replace(r, rows=result.input_rows.get(r.table)) for r in inputs],
            rejected=result.rejected,
            versions=versions,
            run_on=run_on,
            seed=_only_seed(options),
        )
    )


def _only_seed(options: PlanOptions) -> int | None:
    """The seed, if there is but one; several are in the arguments."""
    seeds = {history.seed for history in options.variants.histories}
    return seeds.pop() if len(seeds) == 1 else None
