"""Movement beside balance of one step, per topic and for the whole group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from rebalance_core.model.errors import UsageError
from rebalance_core.model.group_settings import (
    BROADCASTING,
    CLIENT_REBALANCE,
    CLUSTERING,
    GroupSettings,
)
from rebalance_core.model.ordering import sort_client_ids
from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.strategies.planning_strategy import Owners, by_topic
from rebalance_core.replay.changes import changes_of
from rebalance_core.replay.group_replay import metric_rows
from rebalance_core.replay.group_state import GroupView
from rebalance_core.replay.history import Epoch
from rebalance_core.replay.shared_topics import Member, ProcessKey

# Who holds each queue, by client id, out of the holdings of processes.


def owners_of(holdings: Mapping[ProcessKey, frozenset[MessageQueue]]) -> Owners:
    """The client ids that hold each queue, each once, in the order of the holdings."""
    owners: dict[MessageQueue, tuple[str, ...]] = {}
    for (client_id, _), queues in holdings.items():
        for queue in queues:
            others = owners.get(queue, ())
            if client_id not in others:
                owners[queue] = (*others, client_id)
    return owners


def previous_owner(
    before: Mapping[ProcessKey, frozenset[MessageQueue]], present: Collection[str]
) -> dict[MessageQueue, str]:
    """The owner of each queue as strategies are given it: of several the first, as held.

    Args:
        before: The holdings.
        present: Client ids of the members now; what others held has no owner.
    """
    owner: dict[MessageQueue, str] = {}
    for (client_id, _), queues in reversed(list(before.items())):
        if client_id in present:
            owner.update(dict.fromkeys(queues, client_id))
    return owner


# Movement beside balance of one step, per topic and for the whole group.
#
# The figures are those of the ledger's `group_metrics`, computed by the replay's own code; this
# file only makes an epoch of one step, and says where amplification means nothing.

Holders: TypeAlias = Mapping[MessageQueue, "str | tuple[str, ...] | None"]
"""Who holds each queue: a client id, several, or none (None, () or no key)."""


@dataclass(frozen=True, slots=True)
class Movement:
    """One row of `group_metrics` (see the contract for each figure), without its keys.

    ``caveat`` is None, or why ``minimum_moves`` and ``amplification`` mean nothing here even where
    they are numbers: say it wherever they are shown.
    """

    topic: str | None
    queues: int
    members: int
    moved: int
    voluntary_moves: int
    minimum_moves: int | None
    amplification: float | None
    stickiness: float | None
    max_queues: int
    min_queues: int
    peak_ratio: float | None
    idle_members: int
    caveat: str | None = None


@dataclass(frozen=True, slots=True)
class StepMovement:
    """One step: a row for each topic, in Java's order of the names, and one for the group."""

    group: Movement
    topics: Mapping[str, Movement]


def movement(
    previous: Holders,
    members: Iterable[str] | Mapping[str, Iterable[str]],
    owners: Holders,
    *,
    queues: Iterable[MessageQueue] | None = None,
    message_model: str = CLUSTERING,
) -> StepMovement:
    """What a step from ``previous`` to ``owners`` moved, and how even its result is.

    Retry topics are left out, as in the ledger.

    Args:
        previous: Holders before; those that are no member any more count as gone.
        members: Client ids now (repeats are processes of one id: one member), or client id ->
            the topics it subscribes. Ids alone subscribe every topic.
        owners: Holders now.
        queues: Readable queues now; the keys of ``owners`` if not given.
        message_model: CLUSTERING or BROADCASTING.

    Cost: that of the replay: O(moved x members) at worst.

    Raises:
        UsageError: An owner is no member.

    >>> queues = [MessageQueue("T", "a", i) for i in range(8)]
    >>> before = dict(zip(queues, "aaaabbbb"))
    >>> step = movement(before, "abc", dict(zip(queues, "aaabbbcc"))).group  # AVG, c joins
    >>> step.moved, step.minimum_moves, step.amplification, step.max_queues
    (3, 2, 1.5, 3)
    """
    readable = by_topic(owners if queues is None else queues)
    if not isinstance(members, Mapping):
        topics = readable.keys() | {queue.topic for queue in previous}
        members = dict.fromkeys(members, topics)
    if unknown := {client_id for client_id, _ in _holdings(owners, {})} - set(members):
        raise UsageError(f"owners that are no members: {', '.join(sort_client_ids(unknown))}")
    keys: dict[ProcessKey, Member] = {
        (client_id, None): member_of(client_id, None, topics, message_model)
        for client_id, topics in members.items()
    }
    return movement_of_epoch(
        Epoch(
            number=1, from_ms=0, latest_ms=0, retry_latest_ms=0, seen_late=False, causes=(),
            initial=False, lost=frozenset(), frozen_topics=frozenset(),
            view=GroupView(GroupSettings(message_model=message_model), keys, readable),
            before=_holdings(previous, {}), holdings=_holdings(owners, keys),
        )
    )  # fmt: skip


def movement_of_epoch(epoch: Epoch) -> StepMovement:
    """`movement` of a step that is an epoch of the replay already."""
    rows, owners = figures_of_epoch(epoch), owners_of(epoch.holdings)
    figures: list[Movement] = []
    for row in rows:
        topics = epoch.readable if row["topic"] is None else (row["topic"],)
        named = {name: row[name] for name in Movement.__slots__ if name in row}
        figures.append(Movement(**named, caveat=_caveat(epoch, topics, owners)))
    return StepMovement(figures[-1], MappingProxyType({str(m.topic): m for m in figures[:-1]}))


def figures_of_epoch(epoch: Epoch) -> list[dict[str, Any]]:
    """Rows of `group_metrics` of an epoch without its keys: of each topic, last of the group."""
    return metric_rows(epoch, changes_of(epoch, ordered=False))


def member_of(
    client_id: str,
    channel_id: str | None,
    topics: Iterable[str],
    message_model: str,
    rebalance_mode: str = CLIENT_REBALANCE,
) -> Member:
    """A member with only what movement depends on, of a client as new as any."""
    version = GroupSettings().client_version
    topics = frozenset(topics)
    return Member(client_id, channel_id, topics, "", version, message_model, "", rebalance_mode)


def _holdings(
    holders: Holders, members: Mapping[ProcessKey, Member]
) -> dict[ProcessKey, frozenset[MessageQueue]]:
    held: dict[ProcessKey, set[MessageQueue]] = {key: set() for key in members}
    for queue, holder in holders.items():
        for client_id in (holder,) if isinstance(holder, str) else holder or ():
            held.setdefault((client_id, None), set()).add(queue)
    return {key: frozenset(queues) for key, queues in held.items()}


def _caveat(epoch: Epoch, topics: Iterable[str], owners: Owners) -> str | None:
    """Why the minimum of a balanced result is no measure of this one; None: it is."""
    members = epoch.members.values()
    if not members:
        return "no member"
    if any(member.message_model == BROADCASTING for member in members):
        return "BROADCASTING: every member owns every queue"
    topics = list(topics)
    if not topics and epoch.shared:
        return f"members share the queues of {', '.join(epoch.shared)}: no client owns one"
    frozen = [topic for topic in topics if topic in epoch.frozen_topics]
    if frozen:
        return f"frozen, members keep what they hold: {', '.join(frozen)}"
    if len({member.subscriptions for member in members}) > 1:
        return "members subscribe differently: shares of those that do not read a topic are lost"
    holders = Counter(len(owners.get(q, ())) for topic in topics for q in epoch.readable[topic])
    if holders[0]:
        return f"queues without an owner: {holders[0]}"
    shared = holders.total() - holders[1]
    return f"queues that several members hold: {shared}" if shared else None
