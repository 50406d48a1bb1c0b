"""Run-length intervals over epochs: ownership, memberships, load."""

import operator
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

from rebalance_core.contracts.ledger import CONSUMER_LOAD
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import MessageQueue, is_retry_topic, java_string_key
from rebalance_core.protocol.pull_threshold import pull_threshold_per_queue
from rebalance_core.replay.changes import holders_by_queue
from rebalance_core.replay.history import Epoch, Replay
from rebalance_core.replay.member import ProcessKey
from rebalance_core.replay.pop_reach import client_reaches, process_reach
from rebalance_core.replay.settle import NO_QUEUES

Row = dict[str, Any]
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def ownership_rows(replay: Replay) -> list[dict[str, object]]:
    """Return one row per unbroken period in which a queue has a constant number of holders, or no
    owner.

    A queue has no row while it is unknown whether it has an owner.
    """

    def holders(epoch: Epoch) -> dict[tuple[MessageQueue, str | None], int]:
        held = holders_by_queue(epoch.holdings)
        counts: dict[tuple[MessageQueue, str | None], int] = {
            (queue, client_id): count
            for queue, of_client in held.items()
            for client_id, count in of_client.items()
        }
        for queues in epoch.readable.values():
            counts |= {
                (queue, None): 0
                for queue in queues
                if queue not in held and queue not in epoch.unsure
            }
        return counts

    return [
        queue._asdict() | {"client_id": client_id, "holders": count} | span
        for (queue, client_id), count, span in _intervals(replay, holders)
    ]


def pop_reach_rows(replay: Replay) -> list[Row]:
    """Return one row per client id, entry of its reach, and run of epochs in which it has that
    entry.
    """

    def entries(epoch: Epoch) -> dict[tuple[MessageQueue, str], None]:
        return {
            (queue, client_id): None
            for client_id, reach in client_reaches(epoch).items()
            for queue in reach.entries
        }

    return [
        queue._asdict() | {"client_id": client_id} | span
        for (queue, client_id), _, span in _intervals(replay, entries)
    ]


def queue_state_rows(replay: Replay) -> list[Row]:
    """Return one row per queue and run of epochs in which it is not simply readable and owned.

    Either the queue is held but cannot be read, or several processes with the same client id may
    hold it, or it is a readable queue of a shared topic.
    """

    def states(epoch: Epoch) -> dict[MessageQueue, tuple[bool, tuple[str | None, ...]]]:
        processes = {client_id for client_id, _ in epoch.members}
        doubled = len(processes) < len(epoch.members)
        counts = Counter(client_id for client_id, _ in epoch.members if doubled)
        readable = {queue for queues in epoch.readable.values() for queue in queues}
        channels: dict[MessageQueue, set[str | None]] = {}
        for (client_id, channel_id), queues in epoch.holdings.items():
            for queue in queues:
                of_queue = channels.setdefault(queue, set())
                if counts[client_id] > 1:
                    of_queue.add(channel_id)
        odd = {
            queue: (queue in readable, tuple(sorted(of_queue, key=lambda c: (c is not None, c))))
            for queue, of_queue in channels.items()
            if of_queue or queue not in readable
        }
        return odd | {queue: (True, ()) for of in epoch.shared.values() for queue in of.queues}

    return [
        queue._asdict()
        | {"readable": readable, "channel_ids": list(channels)}
        | {"from_epoch": span["from_epoch"], "to_epoch": span["to_epoch"]}
        for queue, (readable, channels), span in _intervals(replay, states)
    ]


def membership_rows(replay: Replay) -> list[Row]:
    """Return one row per process and run of epochs with the same settings."""
    rows = []
    members = _intervals(
        replay, lambda epoch: epoch.members, alike=lambda a, b: a.traits == b.traits
    )
    for (client_id, channel_id), member, span in members:
        rows.append(
            {
                "client_id": client_id,
                "channel_id": channel_id,
                "subscriptions": sorted(member.subscriptions, key=java_string_key)
                if member.subscriptions_known
                else None,
                "strategy": member.strategy,
                "version": member.version,
                "message_model": member.message_model,
                "suspended": member.suspended,
                "rebalance_mode": member.rebalance_mode,
                "language": member.language,
            }
            | span
        )
    return rows


def load_rows(replay: Replay) -> list[Row]:
    """Return one row per client id and run of epochs in which a process has the same load.

    If several processes have the same id, the first by channel id represents all of them. A process
    has no row while its queues are unknown.
    """
    made: dict[tuple[bool, frozenset[MessageQueue], int], Row] = {}

    def load(held: frozenset[MessageQueue], shared_queues: int, suspended: bool) -> Row:
        """Return the same object for equal loads, which makes comparison fast."""
        key = suspended, held, shared_queues
        if key not in made:
            made[key] = _load(replay.history.settings, held, shared_queues) | {
                "suspended": suspended
            }
        return made[key]

    def loads(epoch: Epoch) -> dict[str, Row]:
        first: dict[str, ProcessKey] = {}
        for key in epoch.members:
            other = first.setdefault(key[0], key)
            if other is not key and (key[1] or "") < (other[1] or ""):
                first[key[0]] = key
        rows: dict[str, Row] = {}
        for kind in epoch.view.kinds:
            if not kind.example.share_known:
                continue
            suspended = kind.example.suspended
            idle = load(NO_QUEUES, 0, suspended)
            for key in kind.keys:
                if key in epoch.doubtful or first[key[0]] != key:
                    continue
                held = epoch.holdings.get(key, NO_QUEUES)
                shared_queues = len(process_reach(epoch, key).queues) if epoch.shared else 0
                busy = held or shared_queues
                rows[key[0]] = load(held, shared_queues, suspended) if busy else idle
        return rows

    return [
        {"client_id": client_id} | row | span
        for client_id, row, span in _intervals(replay, loads, java_string_key)
    ]


def _load(settings: GroupSettings, held: frozenset[MessageQueue], shared_queues: int) -> Row:
    by_topic = Counter(queue.topic for queue in held)
    retry_queues = sum(count for topic, count in by_topic.items() if is_retry_topic(topic))
    queues = len(held) - retry_queues
    row = {
        "topics": sum(not is_retry_topic(topic) for topic in by_topic),
        "queues": queues,
        "retry_queues": retry_queues,
        "pull_threshold_for_queue": pull_threshold_per_queue(
            for_topic=settings.pull_threshold_for_topic,
            current=settings.pull_threshold_for_queue,
            process_queues=len(held),
        ),
        "pull_threshold_size_for_queue": pull_threshold_per_queue(
            for_topic=settings.pull_threshold_size_for_topic,
            current=settings.pull_threshold_size_for_queue,
            process_queues=len(held),
        ),
        "shared_queues": shared_queues,
    }
    return CONSUMER_LOAD.with_derived(row)


def _intervals(
    replay: Replay,
    snapshot: Callable[[Epoch], Mapping[Key, Value]],
    order: Callable[[Key], Any] | None = None,
    alike: Callable[[Value, Value], bool] = operator.eq,
) -> list[tuple[Key, Value, Row]]:
    """Join equal values of consecutive epochs.

    Args:
        replay: supplies the epochs, in order.
        snapshot: epoch -> identity -> value; a changed or missing value ends its interval.
        order: the order of intervals that begin in the same epoch; None: as in the snapshot.
        alike: whether two values are equal.

    Returns:
        Identity, value and the columns of the interval.
    """
    closed: list[tuple[Key, Value, Row]] = []
    current: dict[Key, Value] = {}
    since: dict[Key, int] = {}
    for epoch in replay.epochs:
        values = snapshot(epoch)
        ended = [
            key
            for key, value in current.items()
            if key not in values or not ((now := values[key]) is value or alike(now, value))
        ]
        for key in ended:
            closed.append((key, current.pop(key), _span(replay, since.pop(key), epoch)))
        begun = [key for key in values if key not in current]
        for key in begun if order is None else sorted(begun, key=order):
            current[key], since[key] = values[key], epoch.number
    closed += ((key, value, _span(replay, since[key], None)) for key, value in current.items())
    return closed


def _span(replay: Replay, start: int, end: Epoch | None) -> Row:
    return {
        "from_epoch": start,
        "to_epoch": None if end is None else end.number,
        "from_ms": replay.epochs[start].from_ms,
        "to_ms": None if end is None else end.from_ms,
    }


def count_shared(holders: Iterable[Mapping[str, int]]) -> int:
    """Return the number of queues held by more than one process."""
    return sum(sum(counts.values()) > 1 for counts in holders)
