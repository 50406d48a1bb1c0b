"""Client ids that a redaction tool rewrote: live owners are then those of another order of members.

Members divide a topic by the order of their client ids. Where a tool hashed the addresses in all
files, or masked a part of the ids, the files have another order than the members had, and AVG and
AVG_BY_CIRCLE assign every queue to another id. Before owners count as different, an order is looked
for that explains them. It has to explain everything:

* each queue that a dump shows, of every topic and in every round: whoever should hold one queue by
  the files' order is one and the same other member for all of its queues, and no two are the same;
* all rounds by one order of all members, whoever was there.

A fault does not look so: a member with a stale list of members divides by another number of them,
and so holds what others hold, or leaves some without an owner. But members may have changed places
in one round for another reason, as when rows of a dump were mixed up. So either the ids look
rewritten, too, or rounds with different members show the one order. Where the addresses of all the
cluster's clients look hashed, no order has to be found: what members subscribe may differ, too.
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
"""Strategies whose shares follow from a member's place alone."""
LEAST_MOVED = 2


def order_is_lost(run: AuditRun, clients: int, strategy: str | None) -> bool:
    """Return whether members of a group divide by ids of which the files have other texts.

    Args:
        run: of the cluster.
        clients: how many client ids the group has.
        strategy: the text of its strategy; None: AVG.
    """
    return run.ids_hashed and clients > 1 and _name(strategy) != CONFIG_STRATEGY


def divides_by_hashes(group: GroupSnapshot) -> bool:
    """Return whether `order_is_lost` of the members that divide."""
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
    """No order explains what is shown."""


def rewritten(
    group: GroupSnapshot, prediction: Prediction, observed: Iterable[Observation]
) -> str | None:
    """Say in words why the ids are not those that the members divided by; None: nothing shows it.

    Args:
        group: whose live owners differ.
        prediction: its owners by the ids of the files.
        observed: who held what.
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
        f"another order of the same {len(ids)} client ids explains every queue in the dumps, while "
        f"by the ids as written {most} members hold each other's share"
    )


_Order = list[tuple[str, str]]
"""By the ids' order who should have each place, and who has it."""


def _places(
    group: GroupSnapshot, prediction: Prediction, observed: Iterable[Observation]
) -> dict[frozenset[str], _Order]:
    """Return by the members present which member had whose place, in the order of the ids.

    Raises:
        _Contradicted: a queue has no single owner, or two of a member's are another's each.
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
    """Yield which member this shows in whose place."""
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
    if len(holders) == 1:  # else the address does not show which of them
        yield place, holders[0]


def _owner(prediction: Prediction, queue: MessageQueue, at_ms: int) -> str:
    owners = prediction.owners(queue, at_ms)
    if len(owners) != 1:
        raise _Contradicted
    return next(iter(owners))


def _moved(order: _Order) -> list[str]:
    return [holder for place, holder in order if holder != place]


def _one_order(orders: Iterable[_Order]) -> None:
    """Hold all orders to one; raises `_Contradicted` where two have two members the other way."""
    before: dict[str, set[str]] = {}
    for order in orders:
        holders = [holder for _, holder in order]
        for first, second in pairwise(holders):
            before.setdefault(second, set()).add(first)
    try:
        TopologicalSorter(before).prepare()
    except CycleError:
        raise _Contradicted from None
