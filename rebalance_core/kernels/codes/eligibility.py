"""Which groups the kernels take, and why they leave the others to the replay."""

from __future__ import annotations

from rebalance_core.strategies import AllocationStrategy
from rebalance_core.strategies.averagely import Averagely
from rebalance_core.strategies.averagely_by_circle import AveragelyByCircle
from rebalance_core.strategies.config import Config
from rebalance_core.strategies.consistent_hash import ConsistentHash
from rebalance_core.strategies.machine_room import MachineRoom
from rebalance_core.strategies.machine_room_nearby import MachineRoomNearby

KINDS: tuple[type[AllocationStrategy], ...] = (
    Averagely,
    AveragelyByCircle,
    ConsistentHash,
    MachineRoom,
    MachineRoomNearby,
)
"""Strategies with a kernel; a group's kind is the index here, or one of those below."""
RING = KINDS.index(ConsistentHash)
EVERYONE = len(KINDS)
"""BROADCASTING: every member reads every queue."""
LISTED = EVERYONE + 1
"""CONFIG: every member reads the queues of its list."""
NO_KIND = LISTED + 1

MOST_STRATEGIES = 8
"""Strategies of one group that the kernels divide by, CONFIG lists not counted."""

REASONS = {
    "REGULAR": "the kernels take the group",
    "MANY_STRATEGIES": "more than 8 strategies, CONFIG lists not counted",
    "NO_KERNEL": "a strategy without a kernel, one that always throws, a list with a negative "
    "queue id, or a strategy that the brokers do not know and a member asks them for",
    "MASTERLESS": "order locks that a broker without its master does not give, of queues that "
    "several members may take from",
    "SHARED_AND_KEPT": "a topic that members share, and a suspended member or no readable queue, "
    "so that members keep what they pulled",
    "BROADCASTING_PROXY": "a BROADCASTING member behind a proxy",
    "RESTART_AT_ONCE": "a member that came back in place with another start mode",
    "RETRY_SUBSCRIBED": "a member subscribed the group's own retry topic at run time",
    "ONE_BROKER": "a member that one broker alone saw come or go",
    "RING_COLLISION": "two points of the hash ring coincide, and a client id has several processes",
    "NO_ROOM": "a client or broker without a machine room",
    "SUBSCRIPTION_UNKNOWN": "a member whose subscriptions no row states, nor those of its group",
    "BLANK_CLIENT_ID": "a client id that MACHINE_ROOM takes for an empty one (up to 4.9.3)",
}
"""Code and meaning."""
(
    REGULAR,
    MANY_STRATEGIES,
    NO_KERNEL,
    MASTERLESS,
    SHARED_AND_KEPT,
    BROADCASTING_PROXY,
    RESTART_AT_ONCE,
    RETRY_SUBSCRIBED,
    ONE_BROKER,
    RING_COLLISION,
    NO_ROOM,
    SUBSCRIPTION_UNKNOWN,
    BLANK_CLIENT_ID,
) = range(len(REASONS))


def kind_of(strategy: AllocationStrategy) -> int:
    """Index into `KINDS`; `NO_KIND` for a strategy without a kernel."""
    if isinstance(strategy, MachineRoom) and strategy.consumer_idcs is None:
        return NO_KIND  # throws as soon as a broker has a room
    if isinstance(strategy, MachineRoomNearby):
        inner = type(strategy.inner)
        return KINDS.index(MachineRoomNearby) if inner in KINDS[:2] else NO_KIND
    if isinstance(strategy, Config):
        negative = any(queue.queue_id < 0 for queue in strategy.queues or ())
        return NO_KIND if negative else LISTED
    return KINDS.index(type(strategy)) if type(strategy) in KINDS else NO_KIND
