"""The search for a rollout: read the groups, play the plans round by round, write the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from glob import escape
from typing import Any, ClassVar, TypedDict

import pyarrow as pa

from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.planning import (
    EXPECTATIONS,
    ROLLOUT_DECISIONS,
    ROLLOUT_PLANS,
    SEARCH_TABLES,
)
from rebalance_core.contracts.propagation import HANDOVERS, HOLDERS
from rebalance_core.engine.options import refuse_rejected
from rebalance_core.engine.propagation import HANDOVER_SEEDS, PropagationOptions
from rebalance_core.engine.table_writer import Written
from rebalance_core.model.errors import InputRefused
from rebalance_core.planning.rollout.choice import Searched, search_plans
from rebalance_core.planning.rollout.expectations import (
    expectations_of,
    refuse_unjudged_search,
)
from rebalance_core.planning.rollout.futures import (
    DeployedGroup,
    Figures,
    Rollouts,
    Slice,
    deployed_group,
)
from rebalance_core.planning.rollout.recorded_starts import start_basis
from rebalance_core.planning.rollout.search import EACH_GROUP, Search
from rebalance_core.planning.sweep.plan_options import PlanConfig
from rebalance_core.process.pool import Progress
from rebalance_core.process.propagate import dealt_groups
from rebalance_core.process.propagation_pass import BucketGroups, SurveyStats
from rebalance_core.process.runtime import HERE, Made, Part, Runtime, TableRows
from rebalance_core.storage.place import Location

WRITTEN = (*SEARCH_TABLES, REJECTED.name)


class RolloutFacts(TypedDict):
    """Facts about the written tables: the first `Searched`, all of them (one for each decision),
    and the groups left out with the reasons.
    """

    searched: Searched
    decided: Sequence[Searched]
    warnings: Sequence[str]


@dataclass(frozen=True, slots=True)
class DeployedTask:
    """`Work` that returns the groups of buckets at rest."""

    VERB: ClassVar[str] = "gather"
    groups: BucketGroups

    def __call__(self, parts: Iterable[Part], facts: Made[DeployedGroup]) -> TableRows:
        """Return no rows."""
        facts.made += map(deployed_group, self.groups.whole(parts))
        return ()


@dataclass(frozen=True, slots=True)
class RoundTask:
    """`Work` that plays pieces of a round, by number.

    Attributes:
        rollouts: The rollouts to which the pieces belong.
        pieces: The pieces of the round.
        progress: As in `run_search`.
    """

    VERB: ClassVar[str] = "play"
    rollouts: Rollouts
    pieces: Sequence[Slice]
    progress: Progress | None = None

    def __call__(self, parts: Iterable[Part], facts: Made[tuple[int, Figures]]) -> TableRows:
        """Return no rows."""
        for number, _ in parts:
            piece = self.pieces[number]
            if self.progress is not None:
                plan_id = self.rollouts.plans[piece.plan].plan_id
                self.progress(number, len(self.pieces), plan_id)
            facts.made.append((number, self.rollouts.play(piece)))
        return ()


@dataclass(frozen=True, slots=True)
class GroupSearch:
    """A group with a search of its own.

    Attributes:
        rollouts: Its plans.
    """

    rollouts: Rollouts

    @property
    def name(self) -> str:
        """The name that progress shows."""
        return "/".join(self.rollouts.groups[0].name)


def searched_alone(group: GroupSearch) -> Searched:
    """Return the search of a group."""
    return search_plans(group.rollouts, lambda pieces: map(group.rollouts.play, pieces))


def run_search(
    inputs: Any,
    search: Search,
    output: Location,
    options: PlanConfig | None = None,
    *,
    before_writing: Callable[[Mapping[str, int]], object] | None = None,
    warn: Callable[[str], object] | None = None,
    progress: Progress | None = None,
    runtime: Runtime = HERE,
) -> Written[RolloutFacts]:
    """Search for a rollout; write ``rollout_plans``, the chosen plan's ``handovers``, and
    ``rejected``.

    Memory: the driver holds the state of the groups to deploy.

    Args:
        inputs: The recorded history, whose final state is deployed.
        search: The question.
        output: As in `run_plan`.
        options: Limits on bad rows, and assumptions about handlers and starts.
        before_writing: As in `run_plan`.
        warn: Receives a message for each input table with unknown columns.
        progress: Called with the number of played pieces of a round, the number of all pieces, and
            the plan; only in-process.
        runtime: Where the job runs.

    Raises:
        InputRefused: Too many rows are bad, no group has a member, or a rate is unknown.
        UsageError: There are too many plans.
        OutputExists: A table already exists in the folder.
    """
    options = replace(options or PlanConfig(), group=search.groups)
    wanted = PropagationOptions(seeds=1, group=search.groups, max_queue_nums=options.max_queue_nums)
    with dealt_groups(runtime, inputs, wanted, options.partitions, warn) as dealt:
        dealt.refuse(options.bad_rows)
        counts, tasks = dealt.checked.counts, dealt.routing.buckets
        with runtime.keep(dealt.rows, dealt.survey, SurveyStats) as kept:
            rejected = kept.facts().rejected
            refuse_rejected(counts, rejected, options.bad_rows)
            deployed = runtime.run(dealt.rows, DeployedTask(dealt.groups), Made[DeployedGroup])
            groups, warnings = deployable(search, deployed.made)
            refuse_unjudged_search(search, groups)
            if search.decide == EACH_GROUP:
                alone = [
                    GroupSearch(rollouts_of(replace(search, groups=escape(name)), [group], options))
                    for group in groups
                    for _, name in [group.name]
                ]
            else:
                rollouts = rollouts_of(search, groups, options)
            if before_writing is not None:
                before_writing({name: count.rows for name, count in counts.items()})

            def play(pieces: Sequence[Slice]) -> Iterator[Figures]:
                task = RoundTask(rollouts, pieces, progress)
                numbers = runtime.numbers(len(pieces), max(1, min(tasks, len(pieces))))
                played = dict(runtime.run(numbers, task, Made[tuple[int, Figures]]).made)
                return (played[number] for number in range(len(pieces)))

            with runtime.tables(output, WRITTEN) as tables:
                kept.write(tables, [REJECTED.name])
                if search.decide == EACH_GROUP:
                    decided = list(runtime.each(alone, searched_alone, progress))
                    made = tables_of_groups(decided, options.holder_futures)
                else:
                    decided = [search_plans(rollouts, play)]
                    made = search_tables(decided[0], options.holder_futures)
                for name, rows in made.items():
                    tables.add(name, rows)
                written = tables.finish()
    facts: RolloutFacts = {"searched": decided[0], "decided": decided, "warnings": warnings}
    return Written(written, facts, rejected.codes, counts)


def deployable(
    search: Search, deployed: Iterable[DeployedGroup]
) -> tuple[tuple[DeployedGroup, ...], tuple[str, ...]]:
    """Return the groups that can be deployed, sorted by name, and the reasons why others cannot.

    Raises:
        InputRefused: No group can be deployed.
    """
    groups, warnings = [], []
    for group in sorted(deployed, key=lambda group: group.name):
        trouble = group.trouble_in(search)
        if trouble is None:
            groups.append(group)
        else:
            warnings.append(f"{'/'.join(group.name)} {trouble}, so it is left out")
    if not groups:
        reasons = "; ".join(warnings) or "it matches no group"
        raise InputRefused(f"groups = {search.groups!r} names no member to deploy: {reasons}")
    return tuple(groups), tuple(warnings)


def rollouts_of(search: Search, groups: Sequence[DeployedGroup], options: PlanConfig) -> Rollouts:
    """Return the plans of groups that are deployed together.

    Raises:
        UsageError: there are too many plans.
    """
    basis = start_basis(search, [ms for group in groups for ms in group.starts])
    search = basis.of(search)
    plans = search.plans([group.members for group in groups])
    return Rollouts(search, plans, tuple(groups), options.clock, basis.words)


def search_tables(searched: Searched, holder_futures: int = 0) -> dict[str, pa.Table]:
    """Return the tables of `SEARCH_TABLES`, with ``holders`` of the chosen plan's first futures."""
    handovers = searched.rollouts.handovers(searched.chosen, HANDOVER_SEEDS)
    return {
        ROLLOUT_PLANS.name: searched.table,
        ROLLOUT_DECISIONS.name: pa.Table.from_pylist(
            searched.decisions(), ROLLOUT_DECISIONS.arrow_schema()
        ),
        HANDOVERS.name: handovers,
        HOLDERS.name: searched.rollouts.holders(searched.chosen, holder_futures),
        EXPECTATIONS.name: expectations_of(searched),
    }


def tables_of_groups(decided: Sequence[Searched], holder_futures: int = 0) -> dict[str, pa.Table]:
    """Return the combined `search_tables` of groups with searches of their own; ``rollout_plans``
    names the group.
    """
    made = [
        search_tables(
            replace(each, rows=[], of_groups=[row | {"group": 0} for row in each.rows]),
            holder_futures,
        )
        for each in decided
    ]
    return {name: pa.concat_tables([tables[name] for tables in made]) for name in SEARCH_TABLES}
