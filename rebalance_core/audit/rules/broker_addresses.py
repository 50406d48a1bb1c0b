"""Go clients that hold queues of a broker whose address they do not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebalance_core.audit.group_snapshot import (
    ClusterSnapshot,
    Finding,
    Rule,
    listed,
    plural,
)
from rebalance_core.audit.recovery import goes_on_until
from rebalance_core.model.times import ROUTE_POLL_MS, utc
from rebalance_core.model.verdicts import INFO, WARNING

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        NoBrokerAddressFact,
    )


def find_no_broker_address(group: ClusterSnapshot) -> Iterator[Finding]:
    """Yield a finding for each log and broker, INFO if the log continues without the trouble."""
    by_log: dict[tuple[str, str], list[NoBrokerAddressFact]] = {}
    for row in group.facts["NO_BROKER_ADDRESS"]:
        by_log.setdefault((row["details"]["log"], row["broker_name"]), []).append(row)
    for (log, broker), rows in sorted(by_log.items()):
        first, last = min(row["first_ms"] for row in rows), max(row["last_ms"] for row in rows)
        queues = sorted({(row["topic"], row["queue_id"]) for row in rows})
        topics = sorted({topic for topic, _ in queues})
        until_ms = goes_on_until(group.run.coverage, log, last)
        yield Finding(
            f"The Go client that wrote clients/{log} has no address for {broker} and does not "
            f"pull {plural(len(queues), 'queue')} of {listed(topics, 3)} there (from {utc(first)} "
            f"to {utc(last)}).",
            {"log": log, "topics": listed(topics), "queues": str(len(queues))},
            severity=None if last - first >= ROUTE_POLL_MS else INFO,
            broker_name=broker,
            topic=topics[0] if len(topics) == 1 else None,
            first_ms=first,
            last_ms=last,
            ended_by=without_lines(log, until_ms) if until_ms else "",
        )


def without_lines(log: str, until_ms: int) -> str:
    """State that a log has no further such line until a time, epoch ms."""
    return f"the log in clients/{log} continues until {utc(until_ms)} without it"


NO_BROKER_ADDRESS = Rule(
    "NO_BROKER_ADDRESS",
    WARNING,
    "A Go client owns queues on a broker whose address its routes lack, for example while the "
    "broker has no master, and does not pull them (no broker found for mq). INFO if this lasted "
    "no longer than one route poll.",
    "NO_BROKER_ADDRESS",
    "Check the broker in clusterList and in topicRoute from every name server: it needs a master "
    "(BID 0). If it has one, restart the named client.",
    files=("client_log",),
    find_in_cluster=find_no_broker_address,
)
