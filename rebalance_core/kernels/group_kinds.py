"""The kernel that allocates each group, and why some groups are left to the replay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.strategies import AllocationStrategy
from rebalance_core.strategies.vectorised import Asked, ByPlace, InRooms, Listed, OnRing, PlaceRule

SHARED, BROADCAST, CONFIGURED, NOT_VECTORIZED = range(4)
"""The kinds of groups whose queues no strategy divides.

``SHARED``: for pieces only. ``BROADCAST`` (BROADCASTING): every member reads every queue.
``CONFIGURED`` (CONFIG): every member reads the queues in its list. ``NOT_VECTORIZED``: left to the
replay.
"""
ON_RING, IN_ROOMS, ASKED, BY_PLACE = range(4, 8)
"""Kinds by the form of the strategy (`Vectorised`). Strategies by place have ``BY_PLACE`` and the
following numbers, one for each of `rules_of`.
"""

MOST_STRATEGIES = 8
"""The maximum number of strategies in a group that the kernels support, not counting CONFIG
lists.
"""

REASONS = {
    "REGULAR": "a kernel handles the group",
    "MANY_STRATEGIES": "more than 8 strategies, CONFIG lists not counted",
    "NO_KERNEL": "a strategy without a kernel: one with a custom hash function or room resolver, "
    "a custom strategy that throws, returns unknown queues or assigns a queue twice, a "
    "strategy that always throws, a list with a negative queue id, or a strategy that a "
    "member requests from brokers that do not know it",
    "MASTERLESS": "a broker without a master refuses order locks of queues that several members "
    "may take from",
    "SHARED_AND_KEPT": "members share a topic while one is suspended or no queue is readable, so "
    "they keep the queues they pulled",
    "BROADCASTING_PROXY": "a BROADCASTING member is behind a proxy",
    "RESTART_AT_ONCE": "a member rejoined in place with a different start mode",
    "RETRY_SUBSCRIBED": "a member subscribed to the group's own retry topic at run time",
    "ONE_BROKER": "only one broker saw a member join or leave",
    "RING_COLLISION": "two points of the hash ring coincide, and a client id has several processes",
    "NO_ROOM": "a client or broker has no machine room",
    "SUBSCRIPTION_UNKNOWN": "neither a member's row nor its group's row states its subscriptions",
    "BLANK_CLIENT_ID": "MACHINE_ROOM treats a client id as empty (up to 4.9.3)",
    "LANGUAGE": "a member in another language behaves differently from Java's client: it "
    "releases a topic without a readable queue, keeps order locks, sorts "
    "differently, receives no notice of changes, or waits for a different interval "
    "between passes; or the way it divides queues is unknown",
    "OWN_INTERVALS": "a member's timer intervals differ from its group's",
}
"""The meaning of each code."""
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
    LANGUAGE,
    OWN_INTERVALS,
) = range(len(REASONS))


_KINDS = {
    OnRing: ON_RING,
    InRooms: IN_ROOMS,
    Asked: ASKED,
    Listed: CONFIGURED,
    type(None): NOT_VECTORIZED,
}


def divides(kinds: Ints) -> Bools:
    """Return True where a strategy divides the queues among members."""
    return kinds > NOT_VECTORIZED


def rules_of(strategies: Iterable[AllocationStrategy]) -> list[PlaceRule]:
    """Return the distinct rules of strategies, by position."""
    forms = (strategy.vectorised() for strategy in strategies)
    return list(dict.fromkeys(form.rule for form in forms if isinstance(form, ByPlace)))


def kinds_of(strategies: Sequence[AllocationStrategy]) -> Ints:
    """Return the kind of each strategy, followed by `NOT_VECTORIZED`."""
    rules = rules_of(strategies)
    forms = (strategy.vectorised() for strategy in strategies)
    kinds = (
        BY_PLACE + rules.index(form.rule) if isinstance(form, ByPlace) else _KINDS[type(form)]
        for form in forms
    )
    return np.array([*kinds, NOT_VECTORIZED], np.int64)
