"""What every plan says as it begins, and records as it ends."""

from collections.abc import Mapping, Sequence

from rebalance_core.cli.plan.options import PlanOptions
from rebalance_core.cli.run.output_run import OutputRun
from rebalance_core.cli.run.run_record import InputRecord, RunRecord, outcome_of
from rebalance_core.cli.terminal import say, warn
from rebalance_core.contracts import PLAN_OUTPUT_TABLES, REJECTED
from rebalance_core.planning.sweep.plan_options import PlanResult

WRITTEN = (*PLAN_OUTPUT_TABLES, REJECTED.name)


def say_begin(options: PlanOptions, rows: Mapping[str, int]) -> None:
    """Tell how much there is to do."""
    variants, events = len(options.variants), rows["cluster_events"]
    say(f"planning {variants:,} variants of {events:,} events")


def finish(
    run: OutputRun, options: PlanOptions, inputs: Sequence[InputRecord], result: PlanResult
) -> RunRecord:
    """Pass on the warnings, and write the record of the run.

    Args:
        run: Where the tables are.
        options: Of the run.
        inputs: Their records, without rows.
        result: What came of it.
    """
    for warning in result.warnings:
        warn(warning)
    return run.finish(outcome_of(result, inputs, seed=_only_seed(options)))


def _only_seed(options: PlanOptions) -> int | None:
    """The seed, if there is but one; several are in the arguments."""
    seeds = {history.seed for history in options.variants.histories}
    return seeds.pop() if len(seeds) == 1 else None
