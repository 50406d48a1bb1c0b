"""The line of a strategy that gives a queue to a client, or lets it pop one, with its numbers."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies import AllocationStrategy, go
from rebalance_core.strategies.averagely import Averagely, AveragelyByCircle, average_slice
from rebalance_core.strategies.config import Config
from rebalance_core.strategies.consistent_hash import ConsistentHash, build_ring, ring_point
from rebalance_core.strategies.custom import CustomStrategy
from rebalance_core.strategies.go import GoConsistentHash, GoMachineRoom
from rebalance_core.strategies.machine_room import MachineRoom, MachineRoomNearby, queues_in_rooms
from rebalance_core.strategies.pop import pops_whole_brokers


class _Question(NamedTuple):
    """Who gets a queue: the arguments of `formula_of`."""

    queue: MessageQueue
    queues: Sequence[MessageQueue]
    client_ids: Sequence[str]
    client_id: str | None

    def index_at(self, entry: int) -> int:
        """The index in cidAll whose share is written out, of a queue that falls to ``entry``."""
        return entry if self.client_id is None else self.client_ids.index(self.client_id)

    def first_owner(self, entry: int) -> str | None:
        """The client of an entry if it is the id's first: upstream asks for indexOf(currentCID)."""
        owner = self.client_ids[entry]
        return owner if self.client_ids.index(owner) == entry else None


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
    asked = _Question(queue, queues, client_ids, client_id)
    for kind, formula in _FORMULAS:
        if isinstance(strategy, kind):
            return formula(strategy, asked)
    return Formula(str(strategy), (f"{strategy.name}: no formula is known here",))


def _average(strategy: Averagely, asked: _Question) -> Formula:
    size, members = len(asked.queues), len(asked.client_ids)
    mod, place = size % members, asked.queues.index(asked.queue)
    entry = _entry_of_slice(size, members, place)
    index = asked.index_at(entry)
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
    return Formula(str(strategy), lines, values, entry, asked.first_owner(entry))


def _entry_of_slice(size: int, members: int, place: int) -> int:
    """Return the index of cidAll whose slice has this index of mqAll."""
    if size <= members:
        return place
    average, mod = divmod(size, members)
    wide = mod * (average + 1)
    return place // (average + 1) if place < wide else mod + (place - wide) // average


def _circle(strategy: AveragelyByCircle, asked: _Question) -> Formula:
    place, members = asked.queues.index(asked.queue), len(asked.client_ids)
    entry = place % members
    index = asked.index_at(entry)
    lines = (
        f"every cidAll-th queue from the index on: i % cidAll = {place} % {members} = {entry}; "
        f"the index is {index}",
    )
    values = {"index": index, "cidAll": members, "queueIndex": place, "remainder": entry}
    return Formula(str(strategy), lines, values, entry, asked.first_owner(entry))


def _config(strategy: Config, asked: _Question) -> Formula:
    listed = strategy.queues or ()
    if asked.queue not in listed:
        return Formula(str(strategy), (f"not among the {len(listed)} queues of the list",))
    place = listed.index(asked.queue)
    line = f"the list has it at {place + 1} of {len(listed)}, whoever else holds it"
    values = {"listIndex": place, "listed": len(listed)}
    return Formula(str(strategy), (line,), values, None, asked.client_id)


def _nearby(strategy: MachineRoomNearby, asked: _Question) -> Formula:
    queue, queues, client_ids, client_id = asked
    room = strategy.rooms.broker_room(queue)
    near = [q for q in queues if strategy.rooms.broker_room(q) == room]
    ids = [cid for cid in client_ids if strategy.rooms.client_room(cid) == room]
    sharing = ids or list(client_ids)
    sharers = f"its {len(ids)} members" if ids else f"all {len(sharing)} members, as none is there"
    head = f"{queue.broker_name} is in room {room}: its {len(near)} queues are shared by {sharers}"
    inner = formula_of(
        strategy.inner, queue, near, sharing, client_id if client_id in sharing else None
    )
    entry = inner.entry
    if entry is not None:
        # Entries of one id stand together, so its k-th of the room is its k-th of all.
        of_id = sharing[entry]
        entry += client_ids.index(of_id) - sharing.index(of_id)
    return Formula(
        str(strategy),
        (head, *(f"{strategy.inner.name}: {line}" for line in inner.lines)),
        {"room": room, "queuesOfRoom": len(near), "membersOfRoom": len(ids), **inner.values},
        entry,
        inner.owner,
    )


def _ring(strategy: ConsistentHash, asked: _Question) -> Formula:
    hashing, client_ids = strategy.hashing, asked.client_ids
    points, owners = build_ring(tuple(client_ids), strategy.virtual_nodes, hashing)
    place = ring_point(str(asked.queue), hashing)
    index = bisect_left(points, place)

    def node(owner: str, point: int) -> str:
        names = (f"{owner}-{n}" for n in range(strategy.virtual_nodes * client_ids.count(owner)))
        return next(name for name in names if ring_point(name, hashing) == point)

    function = "first 4 bytes of md5" if isinstance(hashing, str) else str(hashing)
    head = f'queue: {function}("{asked.queue}") = {place}'
    return _next_node(strategy, client_ids, head, place, points, owners, index, node)


def _go_ring(strategy: GoConsistentHash, asked: _Question) -> Formula:
    points, owners = go.build_go_ring(tuple(asked.client_ids), strategy.virtual_nodes)
    place = go.go_ring_point(str(asked.queue))
    index = bisect_right(points, place)

    def node(owner: str, point: int) -> str:
        names = (f"{n}{owner}" for n in range(strategy.virtual_nodes))
        return next(name for name in names if go.go_ring_point(name) == point)

    head = f'queue: crc32("{asked.queue}") = {place}'
    return _next_node(strategy, asked.client_ids, head, place, points, owners, index, node)


def _next_node(
    strategy: AllocationStrategy,
    client_ids: Sequence[str],
    head: str,
    place: int,
    points: Sequence[int],
    owners: Sequence[str],
    index: int,
    node: Callable[[str, int], str],
) -> Formula:
    """The formula of a ring: the queue belongs to the node at ``index``, past the last the first.

    ``node`` names the node of an owner at a point.
    """
    if not points:
        empty = ("the ring is empty: no virtual nodes",)
        return Formula(str(strategy), empty, {"queuePoint": place})
    wraps = index == len(points)
    point, owner = points[index % len(points)], owners[index % len(points)]
    name = node(owner, point)
    end = "" if isinstance(strategy, ConsistentHash) and strategy.hash_function else " up to 2^32"
    where = f"no node follows{end}, so the first one: {point}" if wraps else f"{point}"
    lines = (head, f'next of {len(points)} nodes on the ring: {where} = "{name}"')
    values = {
        "queuePoint": place, "nodePoint": point, "node": name, "nodes": len(points), "wraps": wraps,
    }  # fmt: skip
    return Formula(str(strategy), lines, values, client_ids.index(owner), owner)


def _go_machine_room(strategy: GoMachineRoom, asked: _Question) -> Formula:
    queue, queues, client_ids, _ = asked
    inside, members = len(strategy.in_rooms(queues)), len(client_ids)
    size, rest = divmod(inside, members)
    rooms = ", ".join(strategy.consumer_idcs) or "none"
    owner = next((c for c in client_ids if queue in strategy.allocate(c, queues, client_ids)), None)
    entry = None if owner is None else client_ids.index(owner)
    lines: tuple[str, ...] = (
        f"{inside} of {len(queues)} queues are on brokers room@name of the rooms {rooms}",
        f"each of {members} gets {inside} / {members} = {size}, cut out of all {len(queues)} queues"
        f" (Go's slip), the first {inside} % {members} = {rest} one more of the rooms' tail",
    )
    if owner is None:
        lines = (*lines, "no slice holds this queue: nobody gets it")
    values = {"inRooms": inside, "size": size, "remainder": rest}
    return Formula(str(strategy), lines, values, entry, owner)


def _custom(strategy: CustomStrategy, asked: _Question) -> Formula:
    queue, queues, client_ids, client_id = asked
    owners = []
    for one in dict.fromkeys(client_ids):
        with suppress(AllocationError):  # of others
            owners += [one] if queue in strategy.allocate(one, queues, client_ids) else []
    owner = client_id if client_id in owners else next(iter(owners), None)
    head = (
        f"own code, asked with mqAll {len(queues)}, cidAll {len(client_ids)}: it gives this queue "
        f"to {', '.join(owners) or 'nobody'}"
    )
    values = {"mqAll": len(queues), "cidAll": len(client_ids), "owners": owners}
    entry = None if owner is None else client_ids.index(owner)
    return Formula(str(strategy), (head,), values, entry, owner)


def _machine_room(strategy: MachineRoom, asked: _Question) -> Formula:
    rooms = ", ".join(strategy.consumer_idcs or ()) or "none"
    inside = queues_in_rooms(tuple(asked.queues), strategy.consumer_idcs)
    head = (
        f"{len(inside)} of {len(asked.queues)} queues are on brokers room@name of the rooms {rooms}"
    )
    if asked.queue not in inside:
        return Formula(
            str(strategy), (head, f"{asked.queue.broker_name} is not: nobody gets its queues")
        )
    place, members = inside.index(asked.queue), len(asked.client_ids)
    size, rest = divmod(len(inside), members)
    entry = place // size if place < size * members else place - size * members
    index = asked.index_at(entry)
    tail = f" and [{index + size * members}]" if rest > index else ""
    lines = (
        head,
        f"each of {members} gets {len(inside)} / {members} = {size}, the first {len(inside)} % "
        f"{members} = {rest} one more from the tail",
        f"index {index} gets [{size * index}..{size * (index + 1)}){tail}; this queue is [{place}] "
        "of them",
    )
    values = {
        "index": index, "inRooms": len(inside), "size": size, "remainder": rest,
        "queueIndex": place,
    }  # fmt: skip
    return Formula(str(strategy), lines, values, entry, asked.first_owner(entry))


_FORMULAS: tuple[tuple[type[AllocationStrategy], Callable[..., Formula]], ...] = (
    (Averagely, _average),
    (AveragelyByCircle, _circle),
    (Config, _config),
    (ConsistentHash, _ring),
    (CustomStrategy, _custom),
    (GoConsistentHash, _go_ring),
    (GoMachineRoom, _go_machine_room),
    (MachineRoom, _machine_room),
    (MachineRoomNearby, _nearby),
)


def pop_formula(
    inner: AllocationStrategy,
    queue: MessageQueue,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    client_id: str,
    share: int,
) -> Formula:
    """The line of ``allocate4Pop`` by which a client pops a queue (rocketmq.md §2.8, §14).

    Args:
        inner: the members' strategy: AVG or AVG_BY_CIRCLE.
        queue: one that the client pops.
        queues: mqAll.
        client_ids: cidAll.
        client_id: who pops.
        share: the share number of the topic's request mode.
    """
    name = f"POP, {inner.name}"
    if pops_whole_brokers(share, len(client_ids)):
        return _everything(name, client_ids, client_id, share)
    if len(client_ids) > len(queues):
        return _one(name, _Question(queue, queues, client_ids, client_id), share)
    index = client_ids.index(client_id)
    formula = formula_of(inner, queue, queues, client_ids)
    steps = _steps_to(formula.entry, index, client_ids, share)
    place = "its own share" if steps == 0 else f"the share of [{formula.entry}] {formula.owner}"
    after = "" if steps == 0 else f", {steps} after its own place, [{index}]"
    head = (
        f"cidAll {len(client_ids)} <= mqAll {len(queues)}: its own share and those of the next "
        f"{share} of cidAll"
    )
    values = formula.values | {"shareQueueNum": share, "clientIndex": index, "steps": steps}
    lines = (head, f"this queue is in {place}{after}", *formula.lines)
    return replace(formula, strategy=name, lines=lines, values=values)


def _everything(name: str, client_ids: Sequence[str], client_id: str, share: int) -> Formula:
    least = len(client_ids) - 1
    line = (
        f"share_queue_num <= 0, or >= cidAll - 1 = {least}: every client pops every readable "
        "broker whole"
    )
    values = {"cidAll": len(client_ids), "shareQueueNum": share}
    return Formula(name, (line,), values, client_ids.index(client_id), client_id)


def _one(name: str, asked: _Question, share: int) -> Formula:
    index, size, members = asked.index_at(0), len(asked.queues), len(asked.client_ids)
    place = asked.queues.index(asked.queue)
    lines = (
        f"cidAll {members} > mqAll {size}: one queue each",
        f"index % mqAll = {index} % {size} = {index % size}; this queue is mqAll[{place}]",
    )
    values = {
        "index": index, "mqAll": size, "cidAll": members, "remainder": index % size,
        "queueIndex": place, "shareQueueNum": share,
    }  # fmt: skip
    return Formula(name, lines, values, index, asked.client_id)


def _steps_to(entry: int | None, index: int, client_ids: Sequence[str], most: int) -> int:
    """How many places on from the client's the id stands whose share has the queue.

    An id that stands in cidAll several times has the share of its first place at each.
    """
    for steps in range(most + 1):
        neighbour = client_ids[(index + steps) % len(client_ids)]
        if client_ids.index(neighbour) == entry:
            return steps
    raise ValueError("the client does not pop the queue")
