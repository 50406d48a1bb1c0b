"""The changes in an epoch: who drops and who adds which queues, and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass

from rebalance_core.model.queue import MessageQueue, is_retry_topic, java_string_key, queue_sort_key
from rebalance_core.protocol.order_locks import ORDER_LOCK_MS
from rebalance_core.replay.history import Epoch
from rebalance_core.replay.member import Member, ProcessKey
from rebalance_core.replay.settle import Holdings

ADD, DROP = "ADD", "DROP"
INITIAL, NEW, FORCED, VOLUNTARY = "INITIAL", "NEW", "FORCED", "VOLUNTARY"


@dataclass(frozen=True, slots=True)
class OwnerChange:
    """A row of diffs."""

    queue: MessageQueue
    action: str
    client_id: str
    other_client_id: str | None
    kind: str
    earliest_ms: int
    latest_ms: int


def holders_by_queue(
    holdings: Holdings, wanted: Set[MessageQueue] | None = None
) -> dict[MessageQueue, dict[str, int]]:
    """Count, for each of the wanted queues or all queues, the processes of each client id that hold
    it.
    """
    holders: dict[MessageQueue, dict[str, int]] = {}
    for (client_id, _), queues in holdings.items():
        for queue in queues if wanted is None else queues & wanted:
            counts = holders.setdefault(queue, {})
            counts[client_id] = counts.get(client_id, 0) + 1
    return holders


def _changing_queues(epoch: Epoch) -> set[MessageQueue]:
    """Return the queues that some process adds or drops."""
    nothing = frozenset[MessageQueue]()
    changing: set[MessageQueue] = set()
    for key in epoch.before.keys() | epoch.holdings.keys():
        changing |= epoch.before.get(key, nothing) ^ epoch.holdings.get(key, nothing)
    return changing


def queues_taken(epoch: Epoch) -> set[MessageQueue]:
    """Return the queues that have an ADD in `changes_of`, without computing those rows."""
    nothing = frozenset[MessageQueue]()
    taken = set[MessageQueue]().union(
        *(queues - epoch.before.get(key, nothing) for key, queues in epoch.holdings.items())
    )
    keys = epoch.before.keys() | epoch.holdings.keys()
    if len({client_id for client_id, _ in keys}) == len(keys) and not epoch.doubtful_before:
        return taken
    # of two processes with the same id, one may take a queue that the other releases
    before, after = (holders_by_queue(held, taken) for held in (epoch.before, epoch.holdings))
    for (client_id, _), queues in epoch.doubtful_before.items():
        for queue in queues & after.keys():
            after[queue].pop(client_id, None)
    return {
        queue
        for queue, now in after.items()
        if any(count > before.get(queue, {}).get(client, 0) for client, count in now.items())
    }


def changes_of(epoch: Epoch, *, ordered: bool) -> list[OwnerChange]:
    """Return the diffs of an epoch, ordered by queue, action and client id.

    A queue that a client may go on holding, or may have held before, has no diff.

    Args:
        epoch: the epoch and the earlier holdings.
        ordered: whether the group is orderly, so that a new owner waits for the old owner's lock.
    """
    changing = _changing_queues(epoch)
    if not changing:
        return []
    before = holders_by_queue(epoch.before, changing)
    after = holders_by_queue(epoch.holdings, changing)
    readable = {queue for queues in epoch.readable.values() for queue in queues}
    clients = _Clients.from_epoch(epoch, set().union(*before.values(), *after.values()))
    changes: list[OwnerChange] = []
    for queue in sorted(changing, key=queue_sort_key):
        was, now = before.get(queue, {}), after.get(queue, {})
        may_drop, may_have = (
            {client_id for (client_id, _), queues in doubtful.items() if queue in queues}
            for doubtful in (epoch.doubtful, epoch.doubtful_before)
        )
        dropping = [c for c in was if now.get(c, 0) < was[c] and c not in may_drop]
        adding = [c for c in now if now[c] > was.get(c, 0) and c not in may_have]
        for client_id in sorted(adding, key=java_string_key):
            changes.append(
                OwnerChange(
                    queue=queue,
                    action=ADD,
                    client_id=client_id,
                    other_client_id=_only(dropping),
                    kind=_add_kind(epoch, clients, queue, was),
                    earliest_ms=epoch.from_ms,
                    latest_ms=_latest_ms(epoch, queue, client_id)
                    + (ORDER_LOCK_MS if ordered else 0),
                )
            )
        for client_id in sorted(dropping, key=java_string_key):
            departed = clients.departed(queue, client_id)
            forced = departed or queue not in readable or not clients.subscribes(client_id, queue)
            changes.append(
                OwnerChange(
                    queue=queue,
                    action=DROP,
                    client_id=client_id,
                    other_client_id=_only(adding),
                    kind=FORCED if forced else VOLUNTARY,
                    earliest_ms=epoch.from_ms,
                    latest_ms=epoch.from_ms if departed else _latest_ms(epoch, queue, client_id),
                )
            )
    return changes


def _latest_ms(epoch: Epoch, queue: MessageQueue, client_id: str) -> int:
    everyone = epoch.latest_ms, epoch.retry_latest_ms
    return epoch.latest_of.get(client_id, everyone)[is_retry_topic(queue.topic)]


def _only(clients: list[str]) -> str | None:
    return clients[0] if len(clients) == 1 else None


def _add_kind(epoch: Epoch, clients: _Clients, queue: MessageQueue, was: Collection[str]) -> str:
    if epoch.initial:
        return INITIAL
    if not was and queue in epoch.unsure_before:
        return VOLUNTARY if not epoch.all_known else FORCED
    if not was:
        return NEW
    return VOLUNTARY if any(clients.subscribes(client_id, queue) for client_id in was) else FORCED


@dataclass(frozen=True, slots=True)
class _Clients:
    """The processes of some client ids in an epoch, and those that held queues before it."""

    epoch: Epoch
    live: Mapping[str, Sequence[Member]]
    before: Mapping[str, Sequence[ProcessKey]]

    @classmethod
    def from_epoch(cls, epoch: Epoch, wanted: Set[str]) -> _Clients:
        live: dict[str, list[Member]] = {}
        for key, member in epoch.members.items():
            if key[0] in wanted:
                live.setdefault(key[0], []).append(member)
        before: dict[str, list[ProcessKey]] = {}
        for key in epoch.before:
            before.setdefault(key[0], []).append(key)
        return cls(epoch, live, before)

    def subscribes(self, client_id: str, queue: MessageQueue) -> bool:
        """Return whether a live process of this id still subscribes to the queue's topic."""
        return any(member.subscribes(queue.topic) for member in self.live.get(client_id, ()))

    def departed(self, queue: MessageQueue, client_id: str) -> bool:
        """Return whether every process of this id that releases the queue is gone."""
        nothing = frozenset[MessageQueue]()
        return all(
            key not in self.epoch.members
            for key in self.before.get(client_id, ())
            if queue in self.epoch.before[key]
            and queue not in self.epoch.holdings.get(key, nothing)
        )
