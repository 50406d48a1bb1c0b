"""STICKY_BALANCED: always balanced, with the minimum number of moves. NOT RocketMQ's.

RocketMQ's strategies are functions of the current members and queues only, so they move queues that
could stay. This strategy also sees the previous holders. It shows what would have been possible for
a group.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.strategies import HypotheticalStrategy, Previous


@dataclass(frozen=True)
class StickyBalanced(HypotheticalStrategy):
    """A balanced allocation that moves the proven minimum, `protocol.minimum_moves.minimum_moves`.

    Each topic is allocated separately, as RocketMQ does: the e = |Q| mod |C| members that held the
    most queues get f + 1 queues, where f = |Q| // |C|, and the others get f; each keeps as many of
    its queues as it may, and the rest go to members with room. Sizes differ by at most one per
    topic; over several topics, the differences may add up. Repeating an allocation moves nothing.

    Results depend on RocketMQ's orders, never on the order of the arguments: among members that
    held the same number, the first in Java's order get the surplus; a member keeps its first
    queues; free queues go to the first member with room. Cost: O(n log n) for n queues and members.

    >>> queues, sticky = [MessageQueue("T", "a", i) for i in range(5)], StickyBalanced()
    >>> list(sticky.assign_one({}, queues, ["x", "y"]).values())
    ['x', 'x', 'x', 'y', 'y']
    >>> held = dict(zip(queues, "xxxxy"))
    >>> list(sticky.assign_one(held, queues, ["x", "y", "z"]).values())  # AVG moves 3: xxyyz
    ['x', 'x', 'y', 'z', 'y']
    """

    NAME = "STICKY_BALANCED"
    LEAGUE = ("STICKY_BALANCED",)

    def assign_topic(
        self, previous: Previous, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[MessageQueue, str]:
        """Return the owner of each queue of a topic."""
        held = dict.fromkeys(client_ids, 0)
        for queue in queues:
            holder = previous.get(queue)
            if holder in held:
                held[holder] += 1
        room = _quotas(held, len(queues))
        owners: dict[MessageQueue, str | None] = {}
        for queue in queues:
            holder = previous.get(queue)
            owners[queue] = holder if holder in room and room[holder] > 0 else None
            if (keeper := owners[queue]) is not None:
                room[keeper] -= 1
        free = iter([client_id for client_id, left in room.items() for _ in range(left)])
        return {queue: next(free) if owner is None else owner for queue, owner in owners.items()}


def _quotas(held: dict[str, int], queue_count: int) -> dict[str, int]:
    """Return the number of queues that each member gets, in Java's order of the members."""
    floor, extra = divmod(queue_count, len(held))
    richest = sorted(held, key=held.__getitem__, reverse=True)[:extra]  # stable: Java's order
    quotas = dict.fromkeys(held, floor)
    quotas.update(dict.fromkeys(richest, floor + 1))
    return quotas
