"""Own strategies, a hash function and a resolver, as a user writes them."""

from collections.abc import Callable, Sequence
from hashlib import md5
from random import random

from rebalance_core.model.queue import MessageQueue

Queues = Sequence[MessageQueue]
Share = list[MessageQueue]


class OwnAverage:
    """AVG, written anew: queue by queue."""

    name = "OWN_AVG"

    def allocate(self, client_id: str, queues: Queues, client_ids: Sequence[str]) -> Share:
        place, members = client_ids.index(client_id), len(client_ids)
        sizes = [len(queues) // members + (n < len(queues) % members) for n in range(members)]
        first = sum(sizes[:place])
        return list(queues)[first : first + sizes[place]]


class Asking:
    """A strategy that is a function."""

    def __init__(self, name: str, share: Callable[[str, Queues, Sequence[str]], object]) -> None:
        self.name, self._share = name, share

    def allocate(self, client_id: str, queues: Queues, client_ids: Sequence[str]) -> object:
        return self._share(client_id, queues, client_ids)


class ThrowsForThree(OwnAverage):
    """What it divides among three fails."""

    name = "THROWS_FOR_THREE"

    def allocate(self, client_id: str, queues: Queues, client_ids: Sequence[str]) -> Share:
        if len(client_ids) == 3 and client_ids[0].startswith("c"):
            raise ValueError("three are a crowd")
        return super().allocate(client_id, queues, client_ids)


class NamesMore(OwnAverage):
    """The first member also gets a queue that is not there, and one of another topic."""

    name = "NAMES_MORE"

    def allocate(self, client_id: str, queues: Queues, client_ids: Sequence[str]) -> Share:
        share = super().allocate(client_id, queues, client_ids)
        if client_id != client_ids[0]:
            return share
        return [*share, queues[0]._replace(queue_id=77), MessageQueue("elsewhere", "b", 0)]


class Sticky:
    """Rendezvous hashing with a bound: who comes or goes moves few queues, and sizes stay even.

    A member is asked for nothing but the lists of now, so that sticky can only be what follows
    from names: each queue prefers members in an order of its own, and takes the first with room.
    """

    name = "STICKY_BY_NAME"

    def allocate(self, client_id: str, queues: Queues, client_ids: Sequence[str]) -> Share:
        members = list(dict.fromkeys(client_ids))
        room = dict.fromkeys(members, -(-len(queues) // len(members)))
        mine = []
        for queue in queues:
            for member in sorted(members, key=lambda one: _score(queue, one)):
                if room[member]:
                    room[member] -= 1
                    mine += [queue] if member == client_id else []
                    break
        return mine


def _score(queue: MessageQueue, client_id: str) -> bytes:
    return md5(f"{queue}{client_id}".encode(), usedforsecurity=False).digest()


def upstream_hash(key: str) -> int:
    """``ConsistentHashRouter.MD5Hash``, written anew."""
    digest = md5(key.encode(), usedforsecurity=False).digest()
    return (digest[0] << 24) + (digest[1] << 16) + (digest[2] << 8) + digest[3]


class BeforeTheDash:
    """A resolver whose rooms are those of ``room_separator=-``."""

    def broker_room(self, queue: MessageQueue) -> str | None:
        return self.client_room(queue.broker_name)

    def client_room(self, client_id: str) -> str | None:
        room, dash, _ = client_id.partition("-")
        return room if dash else None


def at_random(client_id: str, queues: Queues, client_ids: Sequence[str]) -> Share:
    """Another answer each time."""
    return [queue for queue in queues if random() < 0.5] + list(queues)[:1] * int(random() * 9)
