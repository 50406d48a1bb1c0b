"""The load of a group at the end of its history: members, queues, rates and unread messages."""

from collections.abc import Iterable
from typing import TypeVar

from rebalance_core.model.events import TOPIC_CONFIG
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.times import MINUTE_MS, SECOND_MS
from rebalance_core.planning.group_sizes import Load
from rebalance_core.planning.rollout.futures import at_rest
from rebalance_core.replay.history import CommittedOffset, GroupHistory, QueueOffset

_Look = TypeVar("_Look", QueueOffset, CommittedOffset)


FALLS_BEHIND = 0.95
"""A group that commits less than this share of its arrivals is at its limit."""
READ_APART_MS = MINUTE_MS
"""The maximum time between observations of an end and a commit that together still show how much is
unread.
"""


def load_of(history: GroupHistory) -> Load:
    """Return the load of a group; broadcasting groups have no queue to allocate."""
    rest = at_rest(history)
    members = {(e.client_id, e.channel_id) for e in rest.events if e.client_id is not None}
    named = set(rest.settings.subscriptions or ())
    for event in rest.events:
        named.update(event.subscriptions or ())
    queues: dict[str, dict[str, int]] = {}
    for event in rest.events:
        topic, broker, number = event.topic, event.broker_name, event.read_queue_nums
        if event.event_type != TOPIC_CONFIG or topic is None or broker is None or not number:
            continue
        if topic in named and not is_retry_topic(topic):
            queues.setdefault(topic, {})[broker] = number
    ends, commits = _by_queue(rest.queue_offsets), _by_queue(rest.committed_offsets)
    read = [
        MessageQueue(topic, broker, number)
        for topic, brokers in queues.items()
        for broker, count in brokers.items()
        for number in range(count)
    ]
    come = {
        queue: _rate([(o.observed_ms, o.max_offset) for o in ends.get(queue, ())]) for queue in read
    }
    rates: dict[str, float | None] = {}
    for topic in queues:
        of_topic = [rate for queue, rate in come.items() if queue.topic == topic]
        known = [rate for rate in of_topic if rate is not None]
        rates[topic] = sum(known) if len(known) == len(of_topic) else None
    unread = [
        max(0, end.max_offset - commit.committed_offset)
        for queue in read
        for end in ends.get(queue, ())[-1:]
        for commit in commits.get(queue, ())[-1:]
        if abs(end.observed_ms - commit.observed_ms) <= READ_APART_MS
    ]
    taken = [
        _rate([(o.observed_ms, o.committed_offset) for o in commits.get(queue, ())])
        for queue in read
    ]
    known_taken = [rate for rate in taken if rate is not None]
    total = sum(rate or 0.0 for rate in rates.values())
    behind = (
        members
        and len(known_taken) == len(read)
        and sum(unread)
        and 0 < sum(known_taken) < total * FALLS_BEHIND
    )
    return Load(
        cluster=rest.cluster,
        consumer_group=rest.consumer_group,
        ordered=rest.settings.ordered,
        members=len(members),
        queues=queues,
        rates=rates,
        unread=sum(unread) if len(unread) == len(read) else None,
        capacity=sum(known_taken) / len(members) if behind else None,
    )


def _by_queue(looks: Iterable[_Look] | None) -> dict[MessageQueue, list[_Look]]:
    by_queue: dict[MessageQueue, list[_Look]] = {}
    for look in sorted(looks or (), key=lambda look: look.observed_ms):
        by_queue.setdefault(look.queue, []).append(look)
    return by_queue


def _rate(looks: list[tuple[int, int]]) -> float | None:
    """Return messages per second between the first and the last observation, or None without two
    observations.
    """
    if len(looks) < 2 or looks[0][0] == looks[-1][0]:
        return None
    (first_ms, first), (last_ms, last) = looks[0], looks[-1]
    return max(0, last - first) * SECOND_MS / (last_ms - first_ms)
