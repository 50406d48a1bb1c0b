"""Owners in a settled state of a group, the difference between two states, and redelivery after a
client's death.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from rebalance_core.model import times
from rebalance_core.model.group_settings import PROXY_REBALANCE
from rebalance_core.model.queue import MessageQueue, sort_queues
from rebalance_core.planning.movement import StepMovement, movement_of_epoch, owners_of
from rebalance_core.planning.strategies import Owners, PlanningStrategy
from rebalance_core.planning.what_if.planned_group import PlannedGroup
from rebalance_core.protocol.mixed_group import MixedGroup
from rebalance_core.replay.history import Epoch
from rebalance_core.replay.pop_reach import client_reaches
from rebalance_core.replay.pop_tables import pop_metric_rows

POP_INVISIBLE_S = times.POP_INVISIBLE_MS / times.SECOND_MS


@dataclass(frozen=True, slots=True)
class Redelivery:
    """The cost of a client's death: seconds until the messages that it held are redelivered.

    A queue owned by a single client is read again from the last commit once another client has it.
    A popped message belongs to no client: it is redelivered when its invisible time has elapsed
    (rocketmq.md §14). RocketMQ does not guarantee these times: a broker that is busy or down
    revives messages later.

    Attributes:
        from_s: The shortest; the client may have taken its oldest message almost a full invisible
            time earlier.
        to_s: The longest.
        why: The reason, in words.
    """

    from_s: float
    to_s: float
    why: str

    def __str__(self) -> str:
        """Return the seconds in words, e.g. ``0 to 64 s``."""
        return f"{self.from_s:g} to {self.to_s:g} s"


def redelivery_after_death(
    rebalance_mode: str, invisible_time_s: float = POP_INVISIBLE_S
) -> Redelivery:
    """Return the times at which messages popped by a killed client are redelivered.

    Behind a proxy, the client remains a member until its channel has expired and a scan detects it;
    until then, the proxy renews the messages that it held. Recorded: 119 to 129 s, and messages
    again after 130 to 165 s (rocketmq.md §14). Messages that could no longer be handed to the
    client are redelivered at once.

    Args:
        rebalance_mode: The client's mode: PROXY, or a mode that pops from brokers.
        invisible_time_s: The invisible time of its pops.

    >>> str(redelivery_after_death("BROKER")), str(redelivery_after_death("PROXY"))
    ('0 to 64 s', '110 to 194 s')
    """
    revive_s = (times.POP_REVIVE_WAIT_MS + times.REVIVE_ROUND_MS) / times.SECOND_MS
    if rebalance_mode != PROXY_REBALANCE:
        why = f"popped before the death, redelivered after {invisible_time_s:g} s and 2 to 4 s more"
        return Redelivery(0.0, invisible_time_s + revive_s, why)
    expiry_s = times.PROXY_CHANNEL_EXPIRY_MS / times.SECOND_MS
    scan_s = times.CHANNEL_SCAN_MS / times.SECOND_MS
    why = (
        f"the proxy renews the messages until the channel has expired ({expiry_s:g} s) and a scan "
        f"detects this ({scan_s:.0f} s); then up to {invisible_time_s:g} s and 2 to 4 s more"
    )
    latest_s = expiry_s + scan_s + invisible_time_s + revive_s
    return Redelivery(expiry_s - times.GRPC_HEARTBEAT_MS / times.SECOND_MS, latest_s, why)


@dataclass(frozen=True, slots=True)
class PopFigures:
    """How clients and queues of a shared topic are matched: a row of `pop_metrics` without its
    keys.

    See the contract for each figure.
    """

    clients: int
    queues: int
    min_clients_per_queue: int
    max_clients_per_queue: int
    min_queues_per_client: int
    max_queues_per_client: int
    unreached: int


@dataclass(frozen=True)
class Allocation:
    """The settled allocation of a group.

    Attributes:
        strategy: The strategy that all members use; ``strategy.of_rocketmq`` states whether
            RocketMQ has it.
        client_ids: cidAll, with one entry per process.
        owners: Queue -> client ids; () is none. Contains all readable queues of the group's topics,
            and other queues held (in a frozen topic, or CONFIG's missing queues), in RocketMQ's
            order.
        loads: Client id -> queues that it holds, in Java's order of the members.
        orphaned: Readable queues with no owner.
        shared: Queues held by more than one process.
        frozen_topics: Topics without a readable queue, or whose strategy throws: members keep the
            queues that they hold there, and new members get none.
        figures: The rows of `group_metrics`; in the state before, everything counts as moved.
        pop: Figures for each topic whose queues members share; these queues are not in ``owners``.
        reach: Client id -> queues of shared topics that it may take messages from.
        unused_modes: Topics with the request mode POP that no member queries a broker for.
        redelivery: What a death costs where a topic is shared; None: no topic is.
        mixed: The members of a group with clients in several languages; None: one language.
        unknown: Client ids that may hold queues besides those here.
    """

    strategy: PlanningStrategy
    client_ids: tuple[str, ...]
    owners: Owners
    loads: Mapping[str, int]
    orphaned: tuple[MessageQueue, ...]
    shared: tuple[MessageQueue, ...]
    frozen_topics: frozenset[str]
    figures: StepMovement
    pop: Mapping[str, PopFigures] = field(default_factory=dict)
    reach: Mapping[str, int] = field(default_factory=dict)
    unused_modes: tuple[str, ...] = ()
    redelivery: Redelivery | None = None
    mixed: MixedGroup | None = None
    unknown: frozenset[str] = frozenset()

    @property
    def peak(self) -> int:
        """The maximum number of queues of a member."""
        return max(self.loads.values(), default=0)

    @property
    def idle(self) -> tuple[str, ...]:
        """The members without a queue, owned or shared."""
        alone = (c for c, load in self.loads.items() if load == 0 and c not in self.unknown)
        return tuple(client_id for client_id in alone if not self.reach.get(client_id))


def allocation_of(
    group: PlannedGroup, epoch: Epoch, invisible_time_s: float = POP_INVISIBLE_S
) -> Allocation:
    """Return the allocation of a group in its settled epoch.

    Args:
        group: The group.
        epoch: The epoch.
        invisible_time_s: The invisible time of the messages that its members pop.
    """
    client_ids = group.client_ids
    held = owners_of(epoch.holdings)
    readable = [queue for queues in epoch.readable.values() for queue in queues]
    owners = {queue: held.get(queue, ()) for queue in sort_queues({*readable, *held})}
    holders = Counter(queue for queues in epoch.holdings.values() for queue in queues)
    loads = dict.fromkeys(client_ids, 0)
    loads.update(Counter(client_id for clients in held.values() for client_id in clients))
    return Allocation(
        strategy=group.strategy,
        client_ids=client_ids,
        owners=MappingProxyType(owners),
        loads=MappingProxyType(loads),
        orphaned=tuple(q for q in owners if not owners[q] and q not in epoch.unsure),
        shared=tuple(queue for queue in owners if holders[queue] > 1),
        frozen_topics=epoch.frozen_topics,
        figures=movement_of_epoch(epoch),
        pop={row["topic"]: _pop_figures(row) for row in pop_metric_rows(epoch)},
        reach={client_id: len(of.queues) for client_id, of in client_reaches(epoch).items()},
        unused_modes=_unused_modes(group, epoch),
        redelivery=redelivery_after_death(group.rebalance_mode, invisible_time_s)
        if epoch.shared
        else None,
        mixed=group.mixed(),
        unknown=frozenset(
            member.client_id
            for member in epoch.members.values()
            if not member.share_known or member.key in epoch.doubtful
        ),
    )


def _pop_figures(row: Mapping[str, Any]) -> PopFigures:
    return PopFigures(**{name: row[name] for name in PopFigures.__slots__})


def _unused_modes(group: PlannedGroup, epoch: Epoch) -> tuple[str, ...]:
    popped = {t for t, shared in epoch.shared.items() if shared.share_queue_num is not None}
    modes = group.request_modes.items()
    return tuple(topic for topic, mode in modes if mode.is_pop and topic not in popped)


def changed_owners(
    before: Allocation, after: Allocation
) -> dict[MessageQueue, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return queues whose owners differ -> owners before and after, including removed queues."""
    both = sort_queues(before.owners.keys() | after.owners.keys())
    pairs = ((queue, before.owners.get(queue, ()), after.owners.get(queue, ())) for queue in both)
    return {queue: (was, now) for queue, was, now in pairs if was != now}
