"""Groups under hypothetical strategies: each epoch's allocation derives from the previous epoch's.

When a group's epochs begin, and what members see in them, does not depend on its strategy. A
group's events are therefore replayed once, and each hypothetical strategy allocates the same views
anew. The pass, the movement and the balance are the replay's own.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from rebalance_core.planning.movement import STEP_FIGURES, figures_of_epoch, previous_owner
from rebalance_core.planning.strategies import PlanningStrategy
from rebalance_core.replay.history import Epoch, GroupHistory, Replay, replay_events
from rebalance_core.replay.intervals import ownership_rows
from rebalance_core.replay.pop_tables import pop_metric_rows
from rebalance_core.replay.settle import Settled, settle
from rebalance_core.replay.topic_shares import strategy_key

Row = dict[str, Any]

STEPS, OWNERSHIP = "steps", "ownership"
ANY_STRATEGY = "AVG"
"""The strategy for all members, so that a strategy switch does not begin an epoch."""


@dataclass(frozen=True)
class HypotheticalStrategies:
    """Hypothetical strategies, by number; tasks run them for every group.

    Cost: that of the replay, hundreds of times that of the kernels.
    """

    strategies: Sequence[tuple[int, PlanningStrategy]]
    include_retry_topics: bool

    def tables(
        self, wanted: Sequence[str], history: GroupHistory
    ) -> Iterator[tuple[int, dict[str, list[Mapping[str, object]]]]]:
        """Yield (number of the strategy, its rows by table); the events are replayed once."""
        base = unallocated_replay(history, self.include_retry_topics)
        identity = {"cluster": history.cluster, "consumer_group": history.consumer_group}
        for number, strategy in self.strategies:
            replay = Replay(history, allocated_epochs(base, strategy))
            made = {table: _ROWS_OF[table](replay) for table in wanted}
            yield number, {t: [{**identity, **row} for row in rows] for t, rows in made.items()}


def unallocated_replay(history: GroupHistory, include_retry_topics: bool = True) -> Replay:
    """Return a group's epochs with all members on one strategy and no queue owned."""
    return replay_events(
        history,
        lambda view, before: Settled({}, frozenset()),
        include_retry_topics=include_retry_topics,
        strategy_override=ANY_STRATEGY,
    )


def allocated_epochs(base: Replay, strategy: PlanningStrategy) -> list[Epoch]:
    """Return the epochs of `unallocated_replay` with the strategy's allocation, step by step."""
    epochs: list[Epoch] = []
    before = Settled({}, frozenset())
    for epoch in base.epochs:
        present = {client_id for client_id, _ in epoch.members}
        allocation = strategy.as_allocation(previous_owner(before.holdings, present))
        strategies = {strategy_key(member): allocation for member in epoch.members.values()}
        settled = settle(epoch.view, before.holdings, strategies, before.taken, before.doubtful)
        epochs.append(
            replace(
                epoch,
                before=before.holdings,
                holdings=settled.holdings,
                taken=settled.taken,
                unsure=settled.unsure,
                unsure_before=before.unsure,
                doubtful=settled.doubtful,
                doubtful_before=before.doubtful,
                frozen_topics=settled.frozen_topics,
            )
        )
        before = settled
    return epochs


def step_row(epoch: Epoch) -> Row:
    """Return a step's figures as in ``plan_steps``, without the variant's columns."""
    figures: Row = {**figures_of_epoch(epoch)[-1]}
    holders = Counter(chain.from_iterable(epoch.holdings.values()))
    readable = chain.from_iterable(epoch.readable.values())
    shared = _of_shared_topics(epoch)
    of_group = {name: figures[name] for name in STEP_FIGURES}
    if shared["pop_queues"] and not of_group["queues"]:  # metrics count subscribers of owned queues
        of_group["members"] = len({client_id for client_id, _ in epoch.members})
    return {
        "epoch": epoch.number,
        "change_ms": epoch.from_ms,
        "causes": list(epoch.causes),
        "status": epoch.status,
        **of_group,
        "orphaned": sum(queue not in holders and queue not in epoch.unsure for queue in readable),
        "shared": sum(processes > 1 for processes in holders.values()),
        **shared,
    }


def _of_shared_topics(epoch: Epoch) -> Row:
    rows = [row for row in pop_metric_rows(epoch) if row["queues"]]
    return {
        "pop_queues": sum(row["queues"] for row in rows),
        "min_clients_per_queue": min((row["min_clients_per_queue"] for row in rows), default=None),
        "max_clients_per_queue": max((row["max_clients_per_queue"] for row in rows), default=None),
        "unreached": sum(row["unreached"] for row in rows) if rows else None,
    }


_ROWS_OF: dict[str, Callable[[Replay], Sequence[Mapping[str, object]]]] = {
    STEPS: lambda replay: list(map(step_row, replay.epochs)),
    OWNERSHIP: ownership_rows,
}
