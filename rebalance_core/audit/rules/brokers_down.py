"""BROKER_DOWN: brokers without a registered replica, and the effect on groups with their queues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from rebalance_core.audit.group_snapshot import (
    BROKER,
    BrokerOutage,
    Finding,
    GroupSnapshot,
    Rule,
    grouped,
    lasting,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.offsets import Offsets, messages
from rebalance_core.audit.topic_settings import last_topics, readable_queues
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import MINUTE_MS, utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING, Severity

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsRow

UNKNOWN = "unknown"


def queues_lost(group: GroupSnapshot, broker: str) -> set[MessageQueue]:
    """Return the queues that the group could read on a broker if the broker were up."""
    return {
        MessageQueue(topic, name, number)
        for topic in last_topics(group)
        for name, number in readable_queues(group, topic)
        if name == broker
    }


def brokers_lost(group: GroupSnapshot) -> dict[str, BrokerOutage]:
    """Return the brokers that are down at the end."""
    return {b: of[-1] for b, of in sorted(group.run.outages.items()) if of[-1].up_ms is None}


def find_unreadable(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield an INFO finding for each broker that is down and has queues of the group."""
    offsets = Offsets(group)
    for broker, outage in brokers_lost(group).items():
        queues = queues_lost(group, broker)
        if not queues:
            continue
        behind = offsets.behind(queues)
        topics = grouped(sorted(queues), lambda queue: queue.topic)
        names = [f"{t} {queue_names(queue[1:] for queue in of)}" for t, of in topics.items()]
        yield Finding(
            f"{plural(len(queues), 'queue')} cannot be read{_since(outage)}: {broker} is down "
            f"({listed(names, 5)}); {_last_known(behind, 0)}.",
            {
                "queues": len(queues),
                "behind": UNKNOWN if behind is None else behind,
                "names": listed(names),
            }
            | ({"planned": "true"} if outage.planned else {}),
            severity=INFO,
            broker_name=broker,
            first_ms=outage.down_ms,
        )


def find_down(
    outages: Mapping[str, tuple[BrokerOutage, ...]], of_groups: Iterable[FindingsRow]
) -> Iterator[Finding]:
    """Yield a finding for each broker that is down, or was down for more than a minute.

    Args:
        outages: the outages of one cluster's brokers.
        of_groups: findings of its groups; those of `find_unreadable` count.
    """
    rows = [row for row in of_groups if row["rule_id"] == DOWN.rule_id and row["consumer_group"]]
    by_broker = grouped(rows, lambda row: row["broker_name"])
    for broker, of_broker in sorted(outages.items()):
        last, long = of_broker[-1], tuple(filter(_is_long, of_broker))
        if last.up_ms is not None:
            if long:
                yield _was_down(broker, long)
            continue
        lost = [row["evidence"] for row in by_broker.get(broker, ())]
        queues = sum(int(evidence["queues"]) for evidence in lost)
        counted = [int(evidence["behind"]) for evidence in lost if evidence["behind"] != UNKNOWN]
        behind = sum(counted) if counted else None
        severity: Severity = ERROR if not last.planned else WARNING if behind else INFO
        before = "" if len(long) == 1 else f" Before: {_times(long[:-1])}."
        what = f"{plural(queues, 'queue')} of {plural(len(lost), 'group')} cannot be read"
        yield Finding(
            f"{broker} is down{_since(last)}: {last.evidence}. {what}"
            f"{f'; {_last_known(behind, len(lost) - len(counted))}' if lost else ''}.{before}",
            {
                "queues": queues,
                "groups": len(lost),
                "behind": UNKNOWN if behind is None else behind,
                "outages": len(long),
            },
            severity=severity,
            broker_name=broker,
            first_ms=last.down_ms,
            remedy=TAKEN_OUT if last.planned else None,
        )


def _is_long(outage: BrokerOutage) -> bool:
    """Return True for an outage of more than a minute, or one that has not ended."""
    down_ms, up_ms = outage.down_ms, outage.up_ms
    return up_ms is None or down_ms is None or up_ms - down_ms > MINUTE_MS


def _was_down(broker: str, outages: tuple[BrokerOutage, ...]) -> Finding:
    return Finding(
        f"{broker} was down: {_times(outages)}. It is back.",
        {"outages": len(outages)},
        severity=WARNING,
        broker_name=broker,
        first_ms=outages[0].down_ms,
        last_ms=outages[-1].up_ms,
        remedy="Find out why the broker stopped; accept the finding if the stop was planned.",
    )


def _times(outages: Iterable[BrokerOutage]) -> str:
    return listed(
        (
            f"for {lasting(outage.up_ms - outage.down_ms)} from {utc(outage.down_ms)} "
            f"to {utc(outage.up_ms)}"
            for outage in outages
            if outage.down_ms is not None and outage.up_ms is not None
        ),
        5,
    )


def _since(outage: BrokerOutage) -> str:
    if outage.down_ms is not None:
        return f" since {utc(outage.down_ms)}"
    return "" if outage.seen_ms is None else f", last seen at {utc(outage.seen_ms)}"


def _last_known(behind: int | None, unknown: int) -> str:
    if behind is None:
        return "the number of messages waiting there is unknown"
    more = f"; unknown for {plural(unknown, 'group')}" if unknown else ""
    return f"{messages(behind)} behind there at the last known offsets{more}"


TAKEN_OUT = (
    "Nothing if the broker was decommissioned and no message is left on it. Otherwise start it "
    "until consumers have read its queues."
)
DOWN = Rule(
    "BROKER_DOWN",
    ERROR,
    "No replica of a broker is registered at the end of the collection: consumers cannot read "
    "its queues, and the lag of its groups is unknown. WARNING if it was down for more than a "
    "minute and is back. For each affected group, an INFO finding lists the queues that it lost.",
    "BROKER_DOWN and BROKER_UP, EXPECTED_BROKER, BROKER_IN_CLUSTER; topics, queue_offsets",
    "Start the broker. If it was decommissioned, remove its name from [expected] in "
    "collection.toml once its queues are drained.",
    find_unreadable,
    about=BROKER,
)
