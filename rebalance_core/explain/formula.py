"""The line of a strategy that gives a queue to a client, with the numbers filled in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rebalance_core.explain.ring import ring_formula
from rebalance_core.explain.room import room_formula
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies import AllocationStrategy
from rebalance_core.strategies.averagely import Averagely, AveragelyByCircle, average_slice
from rebalance_core.strategies.config import Config
from rebalance_core.strategies.consistent_hash import ConsistentHash
from rebalance_core.strategies.machine_room import MachineRoom, MachineRoomNearby


@dataclass(frozen=True, slots=True)
class Formula:
    """How a strategy decides: ``entry`` is the index of cidAll that gets the queue, if one does.

    ``owner`` is None where that index is a repetition of an id, whose share AVG gives to no client,
    or where the strategy leaves the queue out.
    """

    strategy: str
    lines: tuple[str, ...]
    values: dict[str, Any] = field(default_factory=dict)
    entry: int | None = None
    owner: str | None = None


def formula_of(
    strategy: AllocationStrategy,
    queue: MessageQueue,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    client_id: str | None = None,
) -> Formula:
    """The formula of a strategy for a queue.

    Args:
        strategy: of the client.
        queue: the queue.
        queues: mqAll, with the queue in it unless the strategy is CONFIG.
        client_ids: cidAll, not empty.
        client_id: whose share to write out; None: that of the client at ``entry``.
    """
    for kind, formula in _FORMULAS:
        if isinstance(strategy, kind):
            return formula(strategy, queue, queues, client_ids, client_id)
    return Formula(str(strategy), (f"{strategy.name}: no formula is known here",))


def _first_owner(client_ids: Sequence[str], entry: int) -> str | None:
    """The client of an entry if it is the id's first one: upstream asks for indexOf(currentCID)."""
    owner = client_ids[entry]
    return owner if client_ids.index(owner) == entry else None


def _average(
    strategy: Averagely,
    queue: MessageQueue,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    client_id: str | None,
) -> Formula:
    size, members, place = len(queues), len(client_ids), queues.index(queue)
    mod = size % members
    entry = _entry_of_slice(size, members, place)
    index = entry if client_id is None else client_ids.index(client_id)
    share = average_slice(index, size, members)
    has_extra = mod > 0 and index < mod
    average = 1 if size <= members else size // members + has_extra
    count = share.stop - share.start
    if size <= members:
        why = f"1, as mqAll {size} <= cidAll {members}"
    elif has_extra:
        why = f"{size} / {members} + 1 = {average}, as index {index} < mod {mod}"
    else:
        why = f"{size} / {members} = {average}"
    start = f"{index} * {average}" + ("" if has_extra else f" + {mod}")
    lines = (
        f"mod = mqAll % cidAll = {size} % {members} = {mod}",
        f"averageSize = {why}",
        f"startIndex = index * averageSize{'' if has_extra else ' + mod'} = {start} = "
        f"{share.start}",
        f"range = min(averageSize, mqAll - startIndex) = min({average}, {size - share.start}) = "
        f"{count}",
        f"mqAll[{share.start}] to mqAll[{share.stop - 1}]; this queue is mqAll[{place}]"
        if count > 0
        else f"an empty range; this queue is mqAll[{place}]",
    )
    values = {
        "index": index, "mqAll": size, "cidAll": members, "mod": mod, "averageSize": average,
        "startIndex": share.start, "range": count, "queueIndex": place,
    }  # fmt: skip
    return Formula(str(strategy), lines, values, entry, _first_owner(client_ids, entry))


def _entry_of_slice(size: int, members: int, place: int) -> int:
    """Which index of cidAll has the slice with this index of mqAll."""
    if size <= members:
        return place
    average, mod = divmod(size, members)
    wide = mod * (average + 1)
    return place // (average + 1) if place < wide else mod + (place - wide) // average


def _circle(
    strategy: AveragelyByCircle,
    queue: MessageQueue,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    client_id: str | None,
) -> Formula:
    place, members = queues.index(queue), len(client_ids)
    entry = place % members
    index = entry if client_id is None else client_ids.index(client_id)
    lines = (
        f"every cidAll-th queue from the index on: i % cidAll = {place} % {members} = {entry}; "
        f"the index is {index}",
    )
    values = {"index": index, "cidAll": members, "queueIndex": place, "remainder": entry}
    return Formula(str(strategy), lines, values, entry, _first_owner(client_ids, entry))


def _config(
    strategy: Config,
    queue: MessageQueue,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    client_id: str | None,
) -> Formula:
    listed = strategy.queues or ()
    if queue not in listed:
        return Formula(str(strategy), (f"not among the {len(listed)} queues of the list",))
    place = listed.index(queue)
    line = f"the list has it at {place + 1} of {len(listed)}, whoever else holds it"
    return Formula(str(strategy), (line,), {"listIndex": place, "listed": len(listed)}, None,
                   client_id)  # fmt: skip


def _machine_room(
    strategy: MachineRoom,
    queue: MessageQueue,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    client_id: str | None,
) -> Formula:
    lines, values, entry = room_formula(strategy, queue, queues, client_ids, client_id)
    owner = None if entry is None else _first_owner(client_ids, entry)
    return Formula(str(strategy), lines, values, entry, owner)


def _nearby(
    strategy: MachineRoomNearby,
    queue: MessageQueue,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    client_id: str | None,
) -> Formula:
    room = strategy.rooms.broker_room(queue)
    near = [q for q in queues if strategy.rooms.broker_room(q) == room]
    own = [cid for cid in client_ids if strategy.rooms.client_room(cid) == room]
    asked = own or list(client_ids)
    whom = f"its {len(own)} members" if own else f"all {len(asked)} members, as none is there"
    head = f"{queue.broker_name} is in room {room}: its {len(near)} queues are shared by {whom}"
    inner = formula_of(
        strategy.inner, queue, near, asked, client_id if client_id in asked else None
    )
    entry = inner.entry
    if entry is not None:
        # Entries of one id stand together, so its k-th of the room is its k-th of all.
        of_id = asked[entry]
        entry += client_ids.index(of_id) - asked.index(of_id)
    return Formula(
        str(strategy),
        (head, *(f"{strategy.inner.name}: {line}" for line in inner.lines)),
        {"room": room, "queuesOfRoom": len(near), "membersOfRoom": len(own), **inner.values},
        entry,
        inner.owner,
    )


def _ring(
    strategy: ConsistentHash,
    queue: MessageQueue,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    client_id: str | None,
) -> Formula:
    lines, values, owner = ring_formula(strategy, queue, client_ids)
    entry = None if owner is None else client_ids.index(owner)
    return Formula(str(strategy), lines, values, entry, owner)


_FORMULAS: tuple[tuple[type[AllocationStrategy], Callable[..., Formula]], ...] = (
    (Averagely, _average),
    (AveragelyByCircle, _circle),
    (Config, _config),
    (ConsistentHash, _ring),
    (MachineRoom, _machine_room),
    (MachineRoomNearby, _nearby),
)
