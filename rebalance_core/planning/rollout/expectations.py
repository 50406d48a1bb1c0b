"""The expectations of a search, judged by the figures of the plan that it recommends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from rebalance_core.contracts.planning import EXPECTATIONS
from rebalance_core.model.times import SECOND_MS
from rebalance_core.planning.expectations import Computed, judged, refuse_unjudged
from rebalance_core.planning.rollout.choice import Searched
from rebalance_core.planning.rollout.futures import DeployedGroup, Figures
from rebalance_core.planning.rollout.search import NAME, Search
from rebalance_core.planning.variants import RECORDED
from rebalance_core.timing.message_facts import MILLI

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ExpectationsBegun, ExpectationsRow

_MISSING = dict.fromkeys(
    ("orphaned", "peak_queues", "left_unread", "late_s"), "a search does not count this figure"
)


def refuse_unjudged_search(search: Search, groups: Sequence[DeployedGroup]) -> None:
    """Refuse a search that would leave an expectation unjudged, as `refuse_unjudged` does."""
    missing = dict(_MISSING)
    if any(group.history.queue_offsets is None for group in groups):
        missing["read_again"] = "the input has no queue_offsets"
    names = [group.name for group in groups]
    refuse_unjudged(search.expectations, names, missing, of_means=("moved",))


def expectations_of(searched: Searched) -> pa.Table:
    """Return the table ``expectations`` for the recommended plan."""
    rows: list[ExpectationsRow] = []
    for group, figures in zip(searched.rollouts.groups, searched.figures, strict=True):
        cluster, name = group.name
        variant: ExpectationsBegun = {
            "cluster": cluster,
            "consumer_group": name,
            "scenario": NAME,
            "strategy": RECORDED,
            "of_rocketmq": True,
            "seed": 0,
        }
        rows += judged(searched.rollouts.search.expectations, variant, _computed(figures))
    key = [(name, "ascending") for name in EXPECTATIONS.key]
    return pa.Table.from_pylist(rows, EXPECTATIONS.arrow_schema()).sort_by(key)


def _computed(figures: Figures) -> Computed:
    futures = {"no_owner_s": (figures.orphan_ms / SECOND_MS).tolist()}
    if figures.read_again_milli is not None:
        futures["read_again"] = (figures.read_again_milli / MILLI).tolist()
    means: dict[str, float | None] = {
        name: sum(values) / len(values) for name, values in futures.items()
    }
    means["moved"] = figures.moves / figures.futures
    return Computed(means, futures, "the rate of a queue is unknown")
