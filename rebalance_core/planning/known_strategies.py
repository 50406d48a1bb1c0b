"""The strategies that a plan may name: RocketMQ's and hypothetical ones."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.consistent_hash_bounded import ConsistentHashBounded
from rebalance_core.planning.sticky_balanced import StickyBalanced
from rebalance_core.planning.strategies import (
    HypotheticalStrategy,
    PlanningStrategy,
    Previous,
    by_topic,
)
from rebalance_core.strategies import (
    AllocationStrategy,
    allocate_group,
    as_strategy,
    custom,
    parse_strategy,
    registry,
)
from rebalance_core.strategies.machine_room_nearby import NEARBY
from rebalance_core.strategies.parameters import unknown_name
from rebalance_core.strategies.texts import read_settings

HYPOTHETICAL: tuple[type[HypotheticalStrategy], ...] = (StickyBalanced, ConsistentHashBounded)
"""Strategies that RocketMQ lacks."""
HYPOTHETICAL_NAMES = tuple(strategy.NAME for strategy in HYPOTHETICAL)
PLANNING_NAMES = (*(name for name in registry.KNOWN_NAMES if name != "POP"), *HYPOTHETICAL_NAMES)
"""Every name that `planning_strategy` accepts; POP is not a client strategy."""
LEAGUE_STRATEGIES = (*registry.LEAGUE, *(text for each in HYPOTHETICAL for text in each.LEAGUE))
"""The strategies of ``--strategy league``."""


@dataclass(frozen=True)
class RocketMqStrategy(PlanningStrategy):
    """A strategy of RocketMQ, which ignores the previous holders."""

    of_rocketmq: ClassVar[bool] = True

    strategy: AllocationStrategy

    @property
    def name(self) -> str:
        """``getName()``."""
        return self.strategy.name

    def __str__(self) -> str:
        """Return the strategy text."""
        return str(self.strategy)

    def assign(
        self, previous: Previous, queues: Iterable[MessageQueue], members: Iterable[str]
    ) -> dict[MessageQueue, tuple[str, ...]]:
        """Return `allocate_group` for each topic.

        CONFIG: listed queues of these topics that are not among ``queues`` are also owned.
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
        """Return RocketMQ's strategy itself."""
        return self.strategy


def planning_strategy(text: str, *, version: str = registry.DEFAULT_VERSION) -> PlanningStrategy:
    """Return the strategy for a string such as ``AVG`` or
    ``CONSISTENT_HASH_BOUNDED(epsilon=0.25)``.

    Args:
        text: The text of a RocketMQ strategy (`parse_strategy`), or ``STICKY_BALANCED``, or
            ``CONSISTENT_HASH_BOUNDED(epsilon=0.25, virtual_nodes=10)`` (these are the defaults).
        version: The client's version; CONSISTENT_HASH in 4.9 hashes in the platform's charset.

    Raises:
        UsageError: The text has another form, an unknown name (the message lists all names and the
            nearest) or key, or an invalid value.

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
    if name not in HYPOTHETICAL_NAMES:
        listed = (*PLANNING_NAMES, *custom.known(custom.STRATEGIES))
        raise unknown_name("strategy", name, (*listed, f"{NEARBY}-AVG"), listed)
    if parenthesis and not rest.endswith(")"):
        raise UsageError(f"strategy {text!r}: the closing ')' is missing")
    made = HYPOTHETICAL[HYPOTHETICAL_NAMES.index(name)]
    values = read_settings(text, rest.removesuffix(")"), name, made.PARAMETERS)
    return made(**{key: made.PARAMETERS[key].checked(key, value) for key, value in values.items()})


def as_planning_strategy(strategy: Any) -> PlanningStrategy:
    """Return a planning strategy for a string, a RocketMQ strategy or a custom object.

    Raises the same errors, and those of `registry.register_strategy`.
    """
    if isinstance(strategy, PlanningStrategy):
        return strategy
    if isinstance(strategy, str):
        return planning_strategy(strategy)
    return RocketMqStrategy(as_strategy(strategy))
