"""BROKER_DOWN: brokers of which no replica is registered, and what their queues mean to groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from rebalance_core.audit.case import (
    BROKER,
    BrokerOutage,
    Finding,
    GroupCase,
    Rule,
    grouped,
    lasting,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.coverage import LOG_SILENT_MS, Coverage
from rebalance_core.audit.dumps import last_topics, readable_queues
from rebalance_core.audit.orphans import Offsets, messages
from rebalance_core.audit.rules.cluster import flap_times
from rebalance_core.model.events import BROKER_DOWN, BROKER_UP, OBSERVED
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import MINUTE_MS, utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING, Severity

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import BrokerEventsRow, FactsByKind, FindingsRow

STOPPED = "STOPPED"
"""Detail of a BROKER_DOWN: the broker took itself off the name servers."""
UNKNOWN = "unknown"

# When a broker was away, from events and clusterList: never from a file that is missing.


def broker_outages(
    events: Iterable[BrokerEventsRow],
    facts: FactsByKind,
    signs: Mapping[str, int],
    covered: Coverage,
    *,
    heard_to_the_end: bool,
) -> dict[str, tuple[BrokerOutage, ...]]:
    """By broker its outages of more than a minute, and the one that lasts.

    Args:
        events: BROKER_UP and BROKER_DOWN of one cluster.
        facts: of the cluster; EXPECTED_BROKER, BROKER_IN_CLUSTER and BROKER_STARTED count.
        signs: by broker its last sign of life in its own log or answers, epoch ms.
        covered: of which times the files tell.
        heard_to_the_end: the name servers' logs reach to the last dump.
    """
    events = list(events)
    flaps = flap_times(events, facts)  # BROKER_FLAPS: it never went
    expected = {row["broker_name"] for row in facts["EXPECTED_BROKER"]}
    listed_ms: dict[str, int] = {}
    for fact in facts["BROKER_IN_CLUSTER"]:
        name = fact["broker_name"]
        listed_ms[name] = max(fact["last_ms"], listed_ms.get(name, 0))
    list_ms = max(listed_ms.values(), default=0)
    ordered = sorted(events, key=lambda row: (row["event_ms"], row["sequence"]))
    turns = grouped(ordered, lambda row: row["broker_name"])
    outages: dict[str, tuple[BrokerOutage, ...]] = {}
    for broker in sorted(turns.keys() | expected):
        rows = turns.get(broker, [])
        ended = _ended(rows, set(flaps.get(broker, ())))
        lives = max(signs.get(broker, 0), listed_ms.get(broker, 0))
        lacking = broker in expected and lives < list_ms - LOG_SILENT_MS
        lasts: BrokerOutage | None = None
        if rows and rows[-1]["event_type"] == BROKER_DOWN:
            down_ms = rows[-1]["event_ms"]
            heard = heard_to_the_end and covered.hears_name_servers
            if lives <= down_ms + MINUTE_MS and (heard or down_ms < list_ms):
                leaves = bool(expected) and broker not in expected
                planned = leaves and rows[-1]["detail"] == STOPPED
                lasts = BrokerOutage(down_ms, None, REMOVED, planned=planned)
        elif lacking and not _registered(rows, covered, list_ms):
            evidence = f"clusterList of {utc(list_ms)} lacks it"
            lasts = BrokerOutage(None, None, evidence, lives or None)
        found = (*ended, *([lasts] if lasts else []))
        if found:
            outages[broker] = found
    return outages


REMOVED = "it was removed from the name servers, and has not registered again"


def _ended(rows: Iterable[BrokerEventsRow], flaps: set[tuple[int, int]]) -> Iterator[BrokerOutage]:
    """The outages of one broker of more than a minute, by its events in order."""
    down_ms: int | None = None
    for row in rows:
        if row["event_type"] == BROKER_DOWN:
            down_ms = row["event_ms"] if down_ms is None else down_ms
        elif row["event_type"] == BROKER_UP and down_ms is not None:
            span = (down_ms, row["event_ms"])
            if span[1] - span[0] > MINUTE_MS and span not in flaps:
                yield BrokerOutage(*span, REMOVED)
            down_ms = None


def _registered(rows: Iterable[BrokerEventsRow], covered: Coverage, at_ms: int) -> bool:
    """True if the name servers' logs of that time have the broker: another one than clusterList
    asked knows it.
    """
    logged = any(row["detail"] != OBSERVED for row in rows)
    return logged and covered.known and covered.routes.gap(at_ms, at_ms) is None


# What it means to one group, and to all of them.


def queues_lost(case: GroupCase, broker: str) -> set[MessageQueue]:
    """The queues on a broker that the group could read if the broker was there."""
    return {
        MessageQueue(topic, name, number)
        for topic in last_topics(case)
        for name, number in readable_queues(case, topic)
        if name == broker
    }


def brokers_lost(case: GroupCase) -> dict[str, BrokerOutage]:
    """The brokers that are down at the end."""
    return {b: of[-1] for b, of in sorted(case.run.outages.items()) if of[-1].up_ms is None}


def find_unreadable(case: GroupCase) -> Iterator[Finding]:
    """One finding, for information, for each broker that is down and has queues of the group."""
    offsets = Offsets(case)
    for broker, outage in brokers_lost(case).items():
        queues = queues_lost(case, broker)
        if not queues:
            continue
        behind = offsets.behind(queues)
        topics = grouped(sorted(queues), lambda queue: queue.topic)
        names = [f"{t} {queue_names(queue[1:] for queue in of)}" for t, of in topics.items()]
        yield Finding(
            f"{plural(len(queues), 'queue')} cannot be read{_since(outage)}: {broker} is down "
            f"({listed(names, 5)}); {_last_known(behind)}.",
            {
                "queues": len(queues),
                "behind": UNKNOWN if behind is None else behind,
                "names": listed(names),
            },
            severity=INFO,
            broker_name=broker,
            first_ms=outage.down_ms,
        )


def find_down(
    outages: Mapping[str, tuple[BrokerOutage, ...]], of_groups: Iterable[FindingsRow]
) -> Iterator[Finding]:
    """One finding for each broker that is down, or was for more than a minute.

    Args:
        outages: of one cluster's brokers.
        of_groups: findings of its groups; those of `find_unreadable` count.
    """
    rows = [row for row in of_groups if row["rule_id"] == DOWN.rule_id and row["consumer_group"]]
    by_broker = grouped(rows, lambda row: row["broker_name"])
    for broker, of_broker in sorted(outages.items()):
        last = of_broker[-1]
        if last.up_ms is not None:
            yield _was_down(broker, of_broker)
            continue
        lost = [row["evidence"] for row in by_broker.get(broker, ())]
        queues = sum(int(one["queues"]) for one in lost)
        known = [int(one["behind"]) for one in lost if one["behind"] != UNKNOWN]
        behind = sum(known) if known else None
        severity: Severity = ERROR if not last.planned else WARNING if behind else INFO
        before = "" if len(of_broker) == 1 else f" Before: {_times(of_broker[:-1])}."
        what = f"{plural(queues, 'queue')} of {plural(len(lost), 'group')} cannot be read"
        yield Finding(
            f"{broker} is down{_since(last)}: {last.evidence}. {what}"
            f"{f'; {_last_known(behind)}' if lost else ''}.{before}",
            {
                "queues": queues,
                "groups": len(lost),
                "behind": UNKNOWN if behind is None else behind,
                "outages": len(of_broker),
            },
            severity=severity,
            broker_name=broker,
            first_ms=last.down_ms,
            remedy=TAKEN_OUT if last.planned else None,
        )


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
            f"for {lasting(one.up_ms - one.down_ms)} from {utc(one.down_ms)} to {utc(one.up_ms)}"
            for one in outages
            if one.down_ms is not None and one.up_ms is not None
        ),
        5,
    )


def _since(outage: BrokerOutage) -> str:
    if outage.down_ms is not None:
        return f" since {utc(outage.down_ms)}"
    return "" if outage.seen_ms is None else f", last seen at {utc(outage.seen_ms)}"


def _last_known(behind: int | None) -> str:
    if behind is None:
        return "how much waits there is unknown"
    return f"{messages(behind)} behind there when last known"


TAKEN_OUT = (
    "Nothing, if the broker was taken out on purpose and no message is left on it. Else start it "
    "until its queues are read."
)
DOWN = Rule(
    "BROKER_DOWN",
    ERROR,
    "No replica of a broker is registered at the end: its queues cannot be read, and how far "
    "behind its groups are is unknown. WARNING if it was away for more than a minute and is back. "
    "Of a group, INFO: which of its queues are lost.",
    "BROKER_DOWN and BROKER_UP, EXPECTED_BROKER, BROKER_IN_CLUSTER; topics, queue_offsets",
    "Start the broker. If it was taken out for good, remove its name from [expected] of "
    "collection.toml, after its queues are read.",
    find_unreadable,
    about=BROKER,
)
