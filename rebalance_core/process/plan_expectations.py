"""Judges the expectations of a plan's scenarios by its rows."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import pyarrow as pa

from rebalance_core.contracts.planning import EXPECTATIONS
from rebalance_core.planning.expectations import (
    Computed,
    Expectation,
    judged,
    refuse_unjudged,
)
from rebalance_core.planning.scenario.cluster_life import ClusterNames
from rebalance_core.planning.sweep.plan_options import SweepOptions
from rebalance_core.planning.sweep.transitions import (
    LATE,
    NO_OWNER,
    READ_AGAIN,
    READ_AGAIN_BY_SEED,
)
from rebalance_core.planning.variants import Variants, scenarios_of

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ExpectationsBegun, ExpectationsRow

_OF_SUMMARY = {
    "orphaned": "orphaned_after",
    "peak_queues": "peak_queues_after",
    "moved": "moved",
    "left_unread": "left_unread",
    "no_owner_s": "orphan_queue_seconds",
    "read_again": "read_again",
}
"""The columns of ``plan_summary`` for figures with a single value, and for means over futures."""
_TIMED = {NO_OWNER: NO_OWNER, READ_AGAIN: READ_AGAIN_BY_SEED, LATE: LATE}
"""The figures that differ between futures, with their columns in the pass `TRANSITIONS`."""
_RATES, _COMMITS = "queue_offsets", "committed_offsets"

Group = tuple[str, str]


def groups_expected_of(
    variants: Variants, clusters: Mapping[str, ClusterNames], group: str | None
) -> list[Group]:
    """Return the planned groups in order; empty without expectations.

    Args:
        variants: What is planned.
        clusters: The names in each cluster's events.
        group: Glob of the selected groups; None for all.
    """
    if not any(scenario.expectations for scenario in scenarios_of(variants)):
        return []
    return sorted(
        (cluster, name)
        for cluster, names in clusters.items()
        for name in names.groups
        if group is None or fnmatchcase(name, group)
    )


def groups_to_time(variants: Variants, groups: Iterable[Group]) -> frozenset[Group]:
    """Return the groups with an expected figure that only simulated futures provide."""
    timed = [each for each in _expectations(variants) if not each.limits.keys().isdisjoint(_TIMED)]
    return frozenset(pair for pair in groups if any(each.concerns(*pair) for each in timed))


def _expectations(variants: Variants) -> Iterator[Expectation]:
    for scenario in scenarios_of(variants):
        yield from scenario.expectations


def refuse_unjudged_plan(
    variants: Variants, groups: Sequence[Group], input_names: Container[str], options: SweepOptions
) -> None:
    """Refuse a plan that would leave an expectation unjudged, as `refuse_unjudged` does.

    Args:
        variants: What is planned.
        groups: From `groups_expected_of`.
        input_names: Names of the input tables that exist.
        options: The plan's options.
    """
    missing: dict[str, str] = {}
    for name in (_COMMITS, _RATES):
        if name not in input_names:
            missing["left_unread"] = f"the input has no {name}"
    if _RATES not in input_names:
        missing |= dict.fromkeys((READ_AGAIN, LATE), f"the input has no {_RATES}")
    without = [swept.text for swept in variants.strategies if not swept.of_rocketmq]
    shared = [str(mode) for _, mode in variants.popped()]
    for text in (*without, *shared):
        missing |= dict.fromkeys(_TIMED, f"no future is simulated under {text}")
    for text in shared:
        missing |= dict.fromkeys(("moved", "peak_queues"), f"members share queues under {text}")
    if not options.futures:
        missing |= dict.fromkeys(_TIMED, "plan.futures is 0")
    refuse_unjudged(_expectations(variants), groups, missing)


def judged_rows(
    expectations: Collection[Expectation], summary: pa.Table, timed: pa.Table | None
) -> Iterator[ExpectationsRow]:
    """Yield the rows of ``expectations`` of the given groups under one variant.

    Args:
        expectations: Those of the variant's scenario.
        summary: The groups' rows of ``plan_summary``.
        timed: The groups' rows of `TRANSITION_SCHEMA`; None if nothing was simulated.
    """
    futures = {
        (row["cluster"], row["consumer_group"]): row
        for row in (() if timed is None else timed.to_pylist())
    }
    for row in summary.to_pylist():
        of_group = futures.get((row["cluster"], row["consumer_group"]), {})
        values = {
            name: of_group[column]
            for name, column in _TIMED.items()
            if of_group.get(column) is not None
        }
        means = {name: row[column] for name, column in _OF_SUMMARY.items()}
        if READ_AGAIN in values and means[READ_AGAIN] is not None:
            # starts below the commit are the same in every future
            rewound = means[READ_AGAIN] - of_group[READ_AGAIN]
            values[READ_AGAIN] = [each + rewound for each in values[READ_AGAIN]]
        settles = means[NO_OWNER] is not None  # without settling there is no time, either
        if settles and LATE in values:
            means[LATE] = sum(values[LATE]) / len(values[LATE])
        unknown = "the rate of a queue is unknown" if settles else "the group was not simulated"
        computed = Computed(means, values, row["caveat"] or unknown)
        variant: ExpectationsBegun = {
            "cluster": row["cluster"],
            "consumer_group": row["consumer_group"],
            "scenario": row["scenario"],
            "strategy": row["strategy"],
            "of_rocketmq": row["of_rocketmq"],
            "seed": row["seed"],
        }
        yield from judged(expectations, variant, computed)


def expectation_rows(
    variants: Variants, groups: Sequence[Group], rows: Sequence[ExpectationsRow]
) -> pa.Table:
    """Return the table ``expectations``, including expectations that could not be evaluated.

    Args:
        variants: What was planned.
        groups: From `groups_expected_of`.
        rows: The `judged_rows` of all groups and variants.
    """
    there = {
        (row["cluster"], row["consumer_group"], row["scenario"], row["strategy"], row["seed"])
        for row in rows
    }
    nothing = Computed({}, {}, "the group has no epoch")
    lacking = [
        row
        for history in variants.histories
        if history.scenario is not None
        for swept in variants.strategies
        for cluster, group in groups
        if (cluster, group, history.name, swept.text, history.seed) not in there
        for row in judged(
            history.scenario.expectations,
            {
                "cluster": cluster,
                "consumer_group": group,
                "scenario": history.name,
                "strategy": swept.text,
                "of_rocketmq": swept.of_rocketmq,
                "seed": history.seed,
            },
            nothing,
        )
    ]
    key = [(name, "ascending") for name in EXPECTATIONS.key]
    return pa.Table.from_pylist([*rows, *lacking], EXPECTATIONS.arrow_schema()).sort_by(key)
