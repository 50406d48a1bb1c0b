"""Detects client ids that a redaction tool rewrote, so that live owners follow another member
order.

Members allocate a topic by the order of their client ids. If a tool hashed the addresses in all
files, or masked a part of the ids, the ids in the files sort differently, and AVG and AVG_BY_CIRCLE
assign every queue to another id. Before owners count as different, this module looks for an order
that explains them. The order must explain everything:

* each queue that a dump shows, of every topic and in every round: all queues that one member should
  hold by the files' order have the same other member as their holder, a different one for each;
* all rounds, by a single order of all members, including those that were absent in a round.

A fault looks different: a member with a stale list allocates for a different number of members, and
so holds others' queues or leaves some without an owner. But members may have changed places in one
round for another reason, such as mixed-up rows of a dump. Therefore either the ids must also look
rewritten, or rounds with different members must show the same order. If the addresses of all the
cluster's clients look hashed, no order is needed, because subscriptions may differ as well.
"""

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from rebalance_core.audit.group_snapshot import AuditRun, GroupSnapshot, listed
from rebalance_core.audit.observations import (
    COMMAND_MS,
    ClientObservation,
    Observation,
    QueueObservation,
    address_of,
)
from rebalance_core.audit.prediction import Prediction, holds
from rebalance_core.audit.topic_readers import is_proxied
from rebalance_core.ingest.hashed_addresses import looks_hashed, looks_masked
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.queue import MessageQueue, java_string_key
from rebalance_core.replay.topic_shares import CONFIG_STRATEGY

BY_ORDER = ("AVG", "AVG_BY_CIRCLE")
"""Strategies whose shares depend only on a member's place."""
LEAST_MOVED = 2


def order_is_lost(run: AuditRun, clients: int, strategy: str | None) -> bool:
    """Return True if a group's members allocate queues by ids that differ from those in the files.

    Args:
        run: the cluster's run.
        clients: the number of client ids in the group.
        strategy: the text of its strategy; None means AVG.
    """
    return run.ids_hashed and clients > 1 and _name(strategy) != CONFIG_STRATEGY


def divides_by_hashes(group: GroupSnapshot) -> bool:
    """Return `order_is_lost` for the members that allocate queues."""
    rows = group.tables["memberships"]
    ids = {
        row["client_id"]
        for row in rows
        if row["message_model"] != BROADCASTING and not is_proxied(row)
    }
    return order_is_lost(group.run, len(ids), group.settings.get("strategy"))


def _name(strategy: str | None) -> str:
    return (strategy or "AVG").partition("(")[0]


HASHED = (
    "the addresses of the cluster's clients look hashed, and members divide queues by the order "
    "of their ids"
)


class _Contradicted(Exception):
    """Raised when no order explains the observations."""


def rewritten(
    group: GroupSnapshot, prediction: Prediction, observed: Iterable[Observation]
) -> str | None:
    """Return why the ids are not those by which the members allocated; None if no evidence shows
    it.

    Args:
        group: the group, whose live owners differ.
        prediction: its owners according to the ids in the files.
        observed: the observed holders.
    """
    ids = {row["client_id"] for row in group.tables["memberships"]}
    masked = sorted(filter(looks_masked, ids))
    if masked:
        return f"a part of {listed(masked, 2)} is masked, and members sort by it"
    if divides_by_hashes(group):
        return HASHED
    if _name(group.settings.get("strategy")) not in BY_ORDER:
        return None
    try:
        places = _places(group, prediction, observed)
        moved = {members: _moved(order) for members, order in places.items()}
        _one_order(places.values())
    except _Contradicted:
        return None
    most = max(map(len, moved.values()), default=0)
    rounds = [members for members, of_round in moved.items() if len(of_round) >= LEAST_MOVED]
    hashed = looks_hashed(map(address_of, ids))
    if most < LEAST_MOVED or (len(rounds) < 2 and not hashed):
        return None
    return (
        f"another order of the same {len(ids)} client ids explains every queue in the dumps, "
        f"while in the order of the ids as written {most} members hold each other's share"
    )


_Order = list[tuple[str, str]]
"""The expected and the actual id at each place of an order."""


def _places(
    group: GroupSnapshot, prediction: Prediction, observed: Iterable[Observation]
) -> dict[frozenset[str], _Order]:
    """Return, for each set of present members, which member had which other member's place in the
    order of the ids.

    Raises:
        _Contradicted: a queue has no single owner, or two queues of a member belong to different
            others.
    """
    holders_by_members: dict[frozenset[str], dict[str, str]] = {}
    for observation in observed:
        if prediction.changing(observation.at_ms, observation.at_ms + COMMAND_MS) is not None:
            continue
        rows = group.tables["memberships"]
        members = frozenset(row["client_id"] for row in rows if holds(row, observation.at_ms))
        holders = holders_by_members.setdefault(members, {})
        for place, holder in _shown(observation, prediction, members):
            if holders.setdefault(place, holder) != holder:
                raise _Contradicted
    for holders in holders_by_members.values():
        if len(set(holders.values())) < len(holders):
            raise _Contradicted
    return {
        members: sorted(holders.items(), key=lambda pair: java_string_key(pair[0]))
        for members, holders in holders_by_members.items()
        if holders
    }


def _shown(
    observation: Observation, prediction: Prediction, members: frozenset[str]
) -> Iterable[tuple[str, str]]:
    """Yield which member the observation shows in which other member's place."""
    if isinstance(observation, ClientObservation):
        places = {_owner(prediction, queue, observation.at_ms) for queue in observation.held}
        if len(places) > 1 or observation.popped:
            raise _Contradicted
        for place in places:
            if prediction.held(place, observation.at_ms) != observation.held:
                raise _Contradicted
            yield place, observation.client_id
        return
    assert isinstance(observation, QueueObservation)
    if not observation.address and not prediction.owners(observation.queue, observation.at_ms):
        return
    place = _owner(prediction, observation.queue, observation.at_ms)
    holders = [member for member in members if address_of(member) == observation.address]
    if not holders:
        raise _Contradicted
    if len(holders) == 1:  # otherwise the address does not identify the member
        yield place, holders[0]


def _owner(prediction: Prediction, queue: MessageQueue, at_ms: int) -> str:
    owners = prediction.owners(queue, at_ms)
    if len(owners) != 1:
        raise _Contradicted
    return next(iter(owners))


def _moved(order: _Order) -> list[str]:
    return [holder for place, holder in order if holder != place]


def _one_order(orders: Iterable[_Order]) -> None:
    """Check that all orders agree; raise `_Contradicted` if two of them order two members
    differently.
    """
    before: dict[str, set[str]] = {}
    for order in orders:
        holders = [holder for _, holder in order]
        for first, second in pairwise(holders):
            before.setdefault(second, set()).add(first)
    try:
        TopologicalSorter(before).prepare()
    except CycleError:
        raise _Contradicted from None
