"""Queues on brokers of rooms that no member names."""

from collections.abc import Iterator

from rebalance_core.audit import dumps
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.offsets import Offsets, messages
from rebalance_core.audit.orphans import orphans
from rebalance_core.audit.subjects import MEMBERS, TOPICS
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.verdicts import WARNING
from rebalance_core.strategies import parse_strategy
from rebalance_core.strategies.machine_room import MachineRoom, java_split


def find_unmatched_rooms(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic with queues outside all configured rooms.

    See rocketmq.md §2.5.
    """
    strategies = [parse_strategy(text) for text in {row["strategy"] for row in group.members}]
    if not strategies or not all(isinstance(strategy, MachineRoom) for strategy in strategies):
        return
    rooms = {
        room
        for strategy in strategies
        if isinstance(strategy, MachineRoom)
        for room in strategy.consumer_idcs or ()
    }
    offsets = Offsets(group)
    for topic, rows in dumps.by_topic(orphans(group)).items():
        if is_retry_topic(topic):
            continue
        brokers = sorted({row["broker_name"] for row in rows})
        nameless = [name for name in brokers if room_of(name) is None]
        other = sorted({room_of(name) or "" for name in brokers} - rooms - {""})
        inside = [name for name in brokers if room_of(name) in rooms]
        queues = queue_names((row["broker_name"], row["queue_id"]) for row in rows)
        behind = offsets.behind(dumps.queue_of(row) for row in rows)
        why = [
            f"the names of {listed(nameless, 3)} do not have the form room@broker"
            if nameless
            else "",
            f"no member names the rooms {listed(other, 3)}" if other else "",
            f"members disagree on the rooms of {listed(inside, 3)}" if inside else "",
        ]
        yield Finding(
            f"No client reads {plural(len(rows), 'queue')} of {topic} ({queues}): "
            f"{'; '.join(text for text in why if text)}. Configured rooms: "
            f"{listed(sorted(rooms)) or 'none'}; {messages(behind)} behind.",
            {"queues": queues, "brokers": listed(brokers), "rooms": listed(sorted(rooms))},
            topic=topic,
            broker_name=brokers[0] if len(brokers) == 1 else None,
            first_ms=min(row["from_ms"] for row in rows),
        )


def room_of(broker_name: str) -> str | None:
    """Return the room of a broker named ``room@broker``, or None for any other name."""
    parts = java_split(broker_name, "@")
    return parts[0] if len(parts) == 2 else None


UNMATCHED_ROOMS = Rule(
    "MACHINE_ROOM_UNMATCHED",
    WARNING,
    "MACHINE_ROOM assigns only queues on brokers named room@broker whose room is configured. "
    "Queues on other brokers never get an owner.",
    "memberships, ownership",
    "Name all rooms with queues in consumeridcs of every member, use MACHINE_ROOM_NEARBY, or "
    "remove the topic from the other brokers.",
    find_unmatched_rooms,
    by_owners=True,
    reads=(TOPICS, MEMBERS),
)
