"""Which kernel divides a group, and why some groups are left to the replay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.strategies import AllocationStrategy
from rebalance_core.strategies.vectorised import Asked, ByPlace, InRooms, Listed, OnRing, PlaceRule

SHARED, BROADCAST, CONFIGURED, NOT_VECTORIZED = range(4)
"""Kinds of groups of which no strategy divides the queues.

``SHARED``: of pieces alone. ``BROADCAST``, BROADCASTING: every member reads every queue.
``CONFIGURED``, CONFIG: every member reads the queues of its list. ``NOT_VECTORIZED``: the replay
has them.
"""
ON_RING, IN_ROOMS, ASKED, BY_PLACE = range(4, 8)
"""Kinds by the form of the strategy (`Vectorised`). Strategies by place have ``BY_PLACE`` and the
numbers that follow, one for each of `rules_of`."""

MOST_STRATEGIES = 8
"""Strategies of one group that the kernels divide by, CONFIG lists not counted."""

REASONS = {
    "REGULAR": "the kernels take the group",
    "MANY_STRATEGIES": "more than 8 strategies, CONFIG lists not counted",
    "NO_KERNEL": "a strategy without a kernel, as with an own hash function or room resolver, an "
    "own one that throws, names queues that are not there or gives one to several, one that always "
    "throws, a list with a negative queue id, or a strategy that the brokers do not know and a "
    "member asks them for",
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
    "LANGUAGE": "a member of another language, and what it does otherwise than Java's: it lets go "
    "of a topic without a readable queue, keeps order locks, sorts in another order, gets no "
    "notice of changes, or has another interval between passes; or the way it divides is not known",
    "OWN_INTERVALS": "a member whose timers have other intervals than its group's",
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
    """True where a strategy divides the queues among members."""
    return kinds > NOT_VECTORIZED


def rules_of(strategies: Iterable[AllocationStrategy]) -> list[PlaceRule]:
    """The rules of strategies by place, each once."""
    forms = (strategy.vectorised() for strategy in strategies)
    return list(dict.fromkeys(form.rule for form in forms if isinstance(form, ByPlace)))


def kinds_of(strategies: Sequence[AllocationStrategy]) -> Ints:
    """The kind of each strategy of the coded, and `NOT_VECTORIZED` after the last."""
    rules = rules_of(strategies)
    forms = (strategy.vectorised() for strategy in strategies)
    kinds = (
        BY_PLACE + rules.index(form.rule) if isinstance(form, ByPlace) else _KINDS[type(form)]
        for form in forms
    )
    return np.array([*kinds, NOT_VECTORIZED], np.int64)
