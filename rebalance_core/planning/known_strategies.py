"""The strategies of a plan by their text: all of RocketMQ's, and two hypothetical ones, which
it lacks.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, TypeAlias

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.movement import STEP_FIGURES, figures_of_epoch, previous_owner
from rebalance_core.planning.strategies import (
    ConsistentHashBounded,
    HypotheticalStrategy,
    PlanningStrategy,
    Previous,
    by_topic,
)
from rebalance_core.replay.history import Epoch, GroupHistory, Replay, replay_events
from rebalance_core.replay.intervals import ownership_rows
from rebalance_core.replay.pop_tables import pop_metric_rows
from rebalance_core.replay.settle import Settled, settle, strategy_key
from rebalance_core.strategies import (
    AllocationStrategy,
    allocate_group,
    as_strategy,
    custom,
    parse_strategy,
    registry,
)
from rebalance_core.strategies.machine_room import NEARBY

# STICKY_BALANCED: always balanced, with the fewest moves possible. NOT RocketMQ's.
#
# RocketMQ's strategies are functions of the current members and queues, so they move queues that
# could stay. This one also sees who held what. It is here to say what a group could have had.


@dataclass(frozen=True)
class StickyBalanced(HypotheticalStrategy):
    """A balanced allocation that moves the proven minimum of `protocol.routes.minimum_moves`.

    Of each topic by itself, as RocketMQ divides: the e = |Q| mod |C| members that held most get
    f + 1 queues, f = |Q| // |C|, the others f; each keeps of its queues as many as it may, and the
    rest fills the others up. Sizes differ by at most one per topic; over several topics the
    differences may add up. The same allocation asked again moves nothing.

    Everything is decided by RocketMQ's orders, never by the order of the arguments: among members
    that held the same number the first in Java's order get the surplus, a member keeps its first
    queues, free queues go to the first member with room. Cost: O(n log n), n queues and members.

    >>> queues, sticky = [MessageQueue("T", "a", i) for i in range(5)], StickyBalanced()
    >>> list(sticky.assign_one({}, queues, ["x", "y"]).values())
    ['x', 'x', 'x', 'y', 'y']
    >>> held = dict(zip(queues, "xxxxy"))
    >>> list(sticky.assign_one(held, queues, ["x", "y", "z"]).values())  # AVG moves 3: xxyyz
    ['x', 'x', 'y', 'z', 'y']
    """

    @property
    def name(self) -> str:
        """The name of the text form."""
        return "STICKY_BALANCED"

    def assign_topic(
        self, previous: Previous, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[MessageQueue, str]:
        """Return who gets each queue of one topic."""
        held = dict.fromkeys(client_ids, 0)
        for queue in queues:
            holder = previous.get(queue)
            if holder in held:
                held[holder] += 1
        room = _quotas(held, len(queues))
        owners: dict[MessageQueue, str | None] = {}
        for queue in queues:
            holder = previous.get(queue)
            owners[queue] = holder if holder in room and room[holder] > 0 else None
            if (keeper := owners[queue]) is not None:
                room[keeper] -= 1
        free = iter([client_id for client_id, left in room.items() for _ in range(left)])
        return {queue: next(free) if owner is None else owner for queue, owner in owners.items()}


def _quotas(held: dict[str, int], queue_count: int) -> dict[str, int]:
    """How many queues each member gets, in Java's order of the members."""
    floor, extra = divmod(queue_count, len(held))
    richest = sorted(held, key=held.__getitem__, reverse=True)[:extra]  # stable: Java's order
    quotas = dict.fromkeys(held, floor)
    quotas.update(dict.fromkeys(richest, floor + 1))
    return quotas


# The strategies of a plan by their text: all of RocketMQ's, and two hypothetical ones.


@dataclass(frozen=True)
class RocketMqStrategy(PlanningStrategy):
    """One of RocketMQ's own strategies; what was held before does not count."""

    of_rocketmq: ClassVar[bool] = True

    strategy: AllocationStrategy

    @property
    def name(self) -> str:
        """``getName()``."""
        return self.strategy.name

    def __str__(self) -> str:
        """The strategy text."""
        return str(self.strategy)

    def assign(
        self, previous: Previous, queues: Iterable[MessageQueue], members: Iterable[str]
    ) -> dict[MessageQueue, tuple[str, ...]]:
        """`allocate_group` of each topic.

        CONFIG: queues of these topics that are listed but not among ``queues`` are owned too.
        """
        client_ids = list(members)
        owners: dict[MessageQueue, tuple[str, ...]] = {}
        for topic, of_topic in by_topic(queues).items():
            if not client_ids:
                owners.update(dict.fromkeys(of_topic, ()))
                continue
            group = allocate_group(self.strategy, of_topic, client_ids)
            owners.update((queue, group[queue]) for queue in group if queue.topic == topic)
        return owners

    def as_allocation(self, previous: Previous) -> AllocationStrategy:
        """RocketMQ's strategy itself."""
        return self.strategy


def _epsilon(key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"{key}={value}: not a number") from None


_Readers: TypeAlias = dict[str, Callable[[str, str], Any]]

# name -> (how it is made, how each of its settings is read)
_HYPOTHETICAL: dict[str, tuple[Callable[..., HypotheticalStrategy], _Readers]] = {
    "STICKY_BALANCED": (StickyBalanced, {}),
    "CONSISTENT_HASH_BOUNDED": (
        ConsistentHashBounded,
        {"epsilon": _epsilon, "virtual_nodes": registry.number_in_text},
    ),
}

HYPOTHETICAL_NAMES = tuple(_HYPOTHETICAL)
"""Strategies that RocketMQ lacks."""

PLANNING_NAMES = (*(name for name in registry.KNOWN_NAMES if name != "POP"), *HYPOTHETICAL_NAMES)
"""Every name that `planning_strategy` knows; POP is no strategy of clients."""


def planning_strategy(text: str, *, version: str = registry.DEFAULT_VERSION) -> PlanningStrategy:
    """The strategy of a text such as ``AVG`` or ``CONSISTENT_HASH_BOUNDED(epsilon=0.25)``.

    Args:
        text: A strategy text of RocketMQ's strategies (`parse_strategy`), or ``STICKY_BALANCED``,
            or ``CONSISTENT_HASH_BOUNDED(epsilon=0.25, virtual_nodes=10)`` (these are the defaults).
        version: Of the client; CONSISTENT_HASH of 4.9 hashes in the platform's charset.

    Raises:
        UsageError: Not of that form, an unknown name (all are listed, with the nearest) or key, a
            wrong value.

    >>> planning_strategy("STICKY_BALANCED").of_rocketmq, planning_strategy("AVG").of_rocketmq
    (False, True)
    >>> str(planning_strategy("CONSISTENT_HASH_BOUNDED( epsilon = 0.5 )"))
    'CONSISTENT_HASH_BOUNDED(epsilon=0.5, virtual_nodes=10)'
    """
    head, parenthesis, rest = text.strip(" ").partition("(")
    name = head.strip(" ")
    piece = custom.find(custom.STRATEGIES, name)
    if name in registry.KNOWN_NAMES or name.startswith(NEARBY) or piece is not None:
        return RocketMqStrategy(parse_strategy(text, version=version))
    if name not in _HYPOTHETICAL:
        listed = (*PLANNING_NAMES, *custom.known(custom.STRATEGIES))
        raise registry.unknown_name("strategy", name, (*listed, f"{NEARBY}-AVG"), listed)
    if parenthesis and not rest.endswith(")"):
        raise UsageError(f"strategy {text!r} does not end with ')'")
    make, readers = _HYPOTHETICAL[name]
    params = {}
    for key, value in registry.settings_of(text, rest.removesuffix(")")):
        if key not in readers:
            raise registry.unknown_name(f"parameter of {name}", key, tuple(readers))
        params[key] = readers[key](key, value)
    return make(**params)


def as_planning_strategy(strategy: Any) -> PlanningStrategy:
    """A text, a strategy of RocketMQ, an own object or one of plans as one of plans.

    Raises as above, and as `registry.register_strategy`.
    """
    if isinstance(strategy, PlanningStrategy):
        return strategy
    if isinstance(strategy, str):
        return planning_strategy(strategy)
    return RocketMqStrategy(as_strategy(strategy))


# Groups under hypothetical strategies: those that RocketMQ lacks.
#
# When a group's epochs begin, and what members see in them, does not depend on its strategy. So a
# group's events are replayed once, and every hypothetical strategy settles the same views anew,
# each step given the allocation before it. The pass, the movement and the balance are the
# replay's own.

Row = dict[str, Any]

STEPS, OWNERSHIP = "steps", "ownership"
ANY_STRATEGY = "AVG"
"""Of all members of the epochs: with one strategy for all, a switch of strategy begins no epoch."""


@dataclass(frozen=True)
class HypotheticalStrategies:
    """Hypothetical strategies by their numbers; asked once for every group, in the tasks.

    Cost: that of the replay, hundreds of times that of the kernels.
    """

    strategies: Sequence[tuple[int, PlanningStrategy]]
    include_retry_topics: bool

    def tables(
        self, wanted: Sequence[str], history: GroupHistory
    ) -> Iterator[tuple[int, dict[str, list[Row]]]]:
        """(number of the strategy, its rows by table); the events are replayed once."""
        base = unallocated_replay(history, self.include_retry_topics)
        identity = {"cluster": history.cluster, "consumer_group": history.consumer_group}
        for number, strategy in self.strategies:
            replay = Replay(history, allocated_epochs(base, strategy))
            made = {table: _ROWS_OF[table](replay) for table in wanted}
            yield number, {t: [identity | row for row in rows] for t, rows in made.items()}


def unallocated_replay(history: GroupHistory, include_retry_topics: bool = True) -> Replay:
    """The epochs of a group whose members all have one strategy; no queue has an owner in them."""
    return replay_events(
        history,
        lambda view, before: Settled({}, frozenset()),
        include_retry_topics=include_retry_topics,
        strategy_override=ANY_STRATEGY,
    )


def allocated_epochs(base: Replay, strategy: PlanningStrategy) -> list[Epoch]:
    """The epochs of `unallocated_replay` with what the strategy allocates, step by step."""
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
    """The figures of one step as ``plan_steps`` has them, before the variant's columns."""
    figures = figures_of_epoch(epoch)[-1]
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


_ROWS_OF: dict[str, Callable[[Replay], list[Row]]] = {
    STEPS: lambda replay: list(map(step_row, replay.epochs)),
    OWNERSHIP: ownership_rows,
}
