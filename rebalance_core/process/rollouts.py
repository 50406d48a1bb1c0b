"""A search for a rollout in this process: read the groups, play the plans, write the tables."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from rebalance_core.checks.input_tables import ArrowTables
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.checks.row_limits import refuse_bad_rows
from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.planning import ROLLOUT_PLANS, SEARCH_TABLES
from rebalance_core.contracts.propagation import HANDOVERS
from rebalance_core.engine.propagation import HANDOVER_SEEDS, PropagationOptions
from rebalance_core.engine.table_writer import TableWriters, Written
from rebalance_core.model.errors import InputRefused
from rebalance_core.planning.rollout import futures
from rebalance_core.planning.rollout.choice import Searched, search_plans
from rebalance_core.planning.rollout.futures import DeployedGroup, Figures, Rollouts, Slice
from rebalance_core.planning.rollout.search import Search
from rebalance_core.planning.sweep.plan_options import PlanConfig
from rebalance_core.planning.sweep.transitions import CLOCK
from rebalance_core.process.plan import write_rejected
from rebalance_core.process.propagate import GroupHistories
from rebalance_core.process.simulate import refuse_no_group_of
from rebalance_core.storage.place import Location

Progress = Callable[[int, int, str | None], object]
WRITTEN = (*SEARCH_TABLES, REJECTED.name)


SEARCHED, WARNINGS = "searched", "warnings"
"""Facts of what was written: the `Searched`, and groups that are left out, and why."""


def run_search(
    inputs: ArrowTables,
    search: Search,
    output: Location,
    options: PlanConfig | None = None,
    *,
    before_writing: Callable[[Mapping[str, int]], object] | None = None,
    warn: Callable[[str], object] | None = None,
    progress: Progress | None = None,
) -> Written:
    """Search a rollout and write ``rollout_plans``, ``handovers`` of the chosen one, ``rejected``.

    Args:
        inputs: The recorded history; what it comes to in the end is deployed.
        search: What is asked.
        output: As of `run_plan`.
        options: Limits of bad rows, and what is assumed of handlers and starts.
        before_writing: As of `run_plan`.
        warn: Gets a text for each input table with unknown columns.
        progress: Told how many pieces of a round are played, of how many, and of which plan.

    Raises:
        InputRefused: Too many bad rows; no group has a member; a rate is not known.
        UsageError: There are too many plans.
        OutputExists: A table is in the folder already.
    """
    options = replace(options or PlanConfig(), group=search.groups)
    checked = check_tables(inputs, max_queue_nums=options.max_queue_nums, warn=warn)
    refuse_bad_rows(checked.counts, options.bad_rows, checked.complaints)
    refuse_no_group_of(checked, search.groups)
    wanted = PropagationOptions(group=search.groups)
    found = [futures.deployed_group(history) for history in GroupHistories.of(checked, wanted)]
    rollouts, warnings = rollouts_of(search, found, options)
    if before_writing is not None:
        before_writing({name: count.rows for name, count in checked.counts.items()})
    with TableWriters(output, WRITTEN) as writers:
        rejected = write_rejected(writers, checked, options)
        searched = search_plans(rollouts, lambda pieces: played_here(rollouts, pieces, progress))
        writers.write_tables(search_tables(searched))
    facts = {SEARCHED: searched, WARNINGS: warnings}
    return Written(writers.written(), facts, rejected, checked.counts)


def played_here(
    rollouts: Rollouts, pieces: Sequence[Slice], progress: Progress | None = None
) -> Iterator[Figures]:
    """Play pieces one after the other."""
    for done, piece in enumerate(pieces):
        if progress is not None:
            progress(done, len(pieces), rollouts.plans[piece.plan].plan_id)
        yield rollouts.play(piece)


def rollouts_of(
    search: Search, found: Iterable[DeployedGroup], options: PlanConfig
) -> tuple[Rollouts, tuple[str, ...]]:
    """The plans of the groups that can be deployed, and of which groups nothing can be said.

    Raises:
        InputRefused: of all of them.
        UsageError: there are too many plans.
    """
    groups, warnings = [], []
    for group in sorted(found, key=lambda group: group.name):
        if group.trouble is None:
            groups.append(group)
        else:
            warnings.append(f"{'/'.join(group.name)} {group.trouble}, so it is left out")
    if not groups:
        reasons = "; ".join(warnings) or "it matches no group"
        raise InputRefused(f"groups = {search.groups!r} names no member to deploy: {reasons}")
    clock = replace(CLOCK, handler_ms=options.handler_ms, start_up_ms=options.start_up_ms)
    plans = search.plans([group.members for group in groups])
    return Rollouts(search, plans, tuple(groups), clock), tuple(warnings)


def search_tables(searched: Searched) -> dict[str, pa.Table]:
    """The tables of `SEARCH_TABLES`."""
    handovers = searched.rollouts.handovers(searched.chosen, HANDOVER_SEEDS)
    return {ROLLOUT_PLANS.name: searched.table, HANDOVERS.name: handovers}
