"""MACHINE_ROOM in numbers: which queues are in the rooms, and whose share a queue is in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.machine_room import MachineRoom, queues_in_rooms


def room_formula(
    strategy: MachineRoom,
    queue: MessageQueue,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    client_id: str | None,
) -> tuple[tuple[str, ...], dict[str, Any], int | None]:
    """The lines, the numbers, and the index in cidAll that gets the queue; None: no client does.

    Arguments as `formula_of`.
    """
    rooms = ", ".join(strategy.consumer_idcs or ()) or "none"
    inside = queues_in_rooms(tuple(queues), strategy.consumer_idcs)
    head = f"{len(inside)} of {len(queues)} queues are on brokers room@name of the rooms {rooms}"
    if queue not in inside:
        return (head, f"{queue.broker_name} is not: nobody gets its queues"), {}, None
    place, members = inside.index(queue), len(client_ids)
    size, rest = divmod(len(inside), members)
    entry = place // size if place < size * members else place - size * members
    index = entry if client_id is None else client_ids.index(client_id)
    tail = f" and [{index + size * members}]" if rest > index else ""
    lines = (
        head,
        f"each of {members} gets {len(inside)} / {members} = {size}, the first {len(inside)} % "
        f"{members} = {rest} one more from the tail",
        f"index {index} gets [{size * index}..{size * (index + 1)}){tail}; this queue is [{place}] "
        "of them",
    )
    values = {
        "index": index,
        "inRooms": len(inside),
        "size": size,
        "remainder": rest,
        "queueIndex": place,
    }
    return lines, values, entry
