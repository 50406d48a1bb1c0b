"""Run-length intervals along the epochs: ownership, memberships, load."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import (
    MessageQueue,
    is_retry_topic,
    java_string_key,
    sort_client_ids,
)
from rebalance_core.protocol.members import pull_threshold_per_queue
from rebalance_core.replay.changes import holders_by_queue
from rebalance_core.replay.group_state import ProcessKey
from rebalance_core.replay.history import Epoch, Replay
from rebalance_core.replay.pop_tables import client_reaches, process_reach

Row = dict[str, Any]
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def ownership_rows(replay: Replay) -> list[Row]:
    """One row per unbroken holding with a constant number of holders; no owner is a row too.

    While it is not known whether a queue has an owner, it has no row.
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
    """One row per client id, entry of its reach and stretch of epochs in which it has it."""

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
    """One row per queue and stretch of epochs in which it is not plainly readable and owned.

    It is held and cannot be read, several processes of one client id may hold it, or it is a
    readable one of a shared topic.
    """

    def states(epoch: Epoch) -> dict[MessageQueue, tuple[bool, tuple[str | None, ...]]]:
        processes = Counter(client_id for client_id, _ in epoch.members)
        readable = {queue for queues in epoch.readable.values() for queue in queues}
        channels: dict[MessageQueue, set[str | None]] = {}
        for (client_id, channel_id), queues in epoch.holdings.items():
            for queue in queues:
                of_queue = channels.setdefault(queue, set())
                if processes[client_id] > 1:
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
    """One row per process and stretch of epochs with the same settings."""

    def members(epoch: Epoch) -> dict[ProcessKey, Row]:
        return {
            key: {
                "client_id": member.client_id,
                "channel_id": member.channel_id,
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
            for key, member in epoch.members.items()
        }

    return [row | span for _, row, span in _intervals(replay, members)]


def load_rows(replay: Replay) -> list[Row]:
    """One row per distinct client id and stretch of epochs with the same load of one process.

    Of several processes with one id the first by channel id stands for all. A process has no row
    while it is not known which queues it takes.
    """
    settings = replay.history.settings

    def loads(epoch: Epoch) -> dict[str, Row]:
        processes: dict[str, ProcessKey] = {}
        for key in sorted(epoch.members, key=lambda key: key[1] or ""):
            processes.setdefault(key[0], key)
        return {
            client_id: _load(settings, epoch, processes[client_id])
            for client_id in sort_client_ids(processes)
            if epoch.members[processes[client_id]].share_known
            and processes[client_id] not in epoch.doubtful
        }

    return [row | span for _, row, span in _intervals(replay, loads)]


def _load(settings: GroupSettings, epoch: Epoch, process: ProcessKey) -> Row:
    held, shared_queues = epoch.holdings[process], process_reach(epoch, process).queues
    by_topic = Counter(queue.topic for queue in held)
    retry_queues = sum(count for topic, count in by_topic.items() if is_retry_topic(topic))
    queues = len(held) - retry_queues
    return {
        "client_id": process[0],
        "suspended": epoch.members[process].suspended,
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
        "idle": queues == 0 and not shared_queues,
        "shared_queues": len(shared_queues),
    }


def _intervals(
    replay: Replay, snapshot: Callable[[Epoch], Mapping[Key, Value]]
) -> list[tuple[Key, Value, Row]]:
    """Join equal values of consecutive epochs.

    Args:
        replay: gives the epochs, in order.
        snapshot: epoch -> identity -> value; one that changes or goes away ends its interval.

    Returns:
        Identity, value and the columns of the interval.
    """
    closed: list[tuple[Key, Value, Row]] = []
    current: dict[Key, tuple[int, Value]] = {}
    for epoch in replay.epochs:
        values = snapshot(epoch)
        ended = [k for k, (_, value) in current.items() if k not in values or values[k] != value]
        for key in ended:
            start, value = current.pop(key)
            closed.append((key, value, _span(replay, start, epoch)))
        for key, value in values.items():
            if key not in current:
                current[key] = (epoch.number, value)
    closed += ((key, value, _span(replay, start, None)) for key, (start, value) in current.items())
    return closed


def _span(replay: Replay, start: int, end: Epoch | None) -> Row:
    return {
        "from_epoch": start,
        "to_epoch": None if end is None else end.number,
        "from_ms": replay.epochs[start].from_ms,
        "to_ms": None if end is None else end.from_ms,
    }


def count_shared(holders: Iterable[Mapping[str, int]]) -> int:
    """Queues held by more than one process."""
    return sum(sum(counts.values()) > 1 for counts in holders)
