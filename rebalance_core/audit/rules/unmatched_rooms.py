"""MACHINE_ROOM_UNMATCHED: queues on brokers of rooms that no member names."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import Finding, GroupCase, Rule, listed, plural, queue_names
from rebalance_core.audit.dumps import by_topic, queue_of
from rebalance_core.audit.orphans import Offsets, messages, orphans
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.verdicts import WARNING
from rebalance_core.strategies import parse_strategy
from rebalance_core.strategies.machine_room import MachineRoom, java_split


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding a topic with queues outside all configured rooms
    (rocketmq.md §2.5, §11 no. 13).
    """
    strategies = [parse_strategy(text) for text in {row["strategy"] for row in case.members}]
    if not strategies or not all(isinstance(one, MachineRoom) for one in strategies):
        return
    rooms = {
        room
        for one in strategies
        if isinstance(one, MachineRoom)
        for room in one.consumer_idcs or ()
    }
    offsets = Offsets(case)
    for topic, rows in by_topic(orphans(case)).items():
        if is_retry_topic(topic):
            continue
        brokers = sorted({row["broker_name"] for row in rows})
        nameless = [name for name in brokers if room_of(name) is None]
        other = sorted({room_of(name) or "" for name in brokers} - rooms - {""})
        inside = [name for name in brokers if room_of(name) in rooms]
        queues = queue_names((row["broker_name"], row["queue_id"]) for row in rows)
        behind = offsets.behind(queue_of(row) for row in rows)
        why = [
            f"{listed(nameless, 3)} not named room@broker" if nameless else "",
            f"nobody names the rooms {listed(other, 3)}" if other else "",
            f"members disagree on the rooms of {listed(inside, 3)}" if inside else "",
        ]
        yield Finding(
            f"Nobody reads {plural(len(rows), 'queue')} of {topic} ({queues}): "
            f"{'; '.join(text for text in why if text)}. Configured rooms: "
            f"{listed(sorted(rooms)) or 'none'}; {messages(behind)} behind.",
            {"queues": queues, "brokers": listed(brokers), "rooms": listed(sorted(rooms))},
            topic=topic,
            broker_name=brokers[0] if len(brokers) == 1 else None,
            first_ms=min(row["from_ms"] for row in rows),
        )


def room_of(broker_name: str) -> str | None:
    """The room of a broker named ``room@broker``; None for any other name."""
    parts = java_split(broker_name, "@")
    return parts[0] if len(parts) == 2 else None


RULE = Rule(
    "MACHINE_ROOM_UNMATCHED",
    WARNING,
    "MACHINE_ROOM reads only brokers named room@broker whose room is configured. Queues of other "
    "brokers never get an owner.",
    "memberships (strategy), ownership",
    "Name all rooms that hold queues in consumeridcs of every member, or use MACHINE_ROOM_NEARBY, "
    "or take the topic off the brokers outside.",
    find,
    by_owners=True,
)
