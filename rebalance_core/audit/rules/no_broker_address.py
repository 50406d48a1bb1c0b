"""NO_BROKER_ADDRESS: Go clients that hold queues of a broker of which they know no address."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rebalance_core.audit.case import Finding, Row, Rule, listed, plural
from rebalance_core.model.times import ROUTE_POLL_MS, utc
from rebalance_core.model.verdicts import INFO, WARNING

RULE = Rule(
    "NO_BROKER_ADDRESS",
    WARNING,
    "A Go client holds queues of a broker, and its routes have no address of that broker, as while "
    "it has no master: it does not pull them and says so for each (no broker found for mq). "
    "Messages there wait, though the queues have a holder. INFO where it lasted no longer than a "
    "poll of the routes.",
    "facts NO_BROKER_ADDRESS (client log)",
    "Look at the broker in clusterList and in topicRoute of every name server: it needs a master "
    "(BID 0). If it has one, restart the client named.",
    files=("client_log",),
)


def no_broker_address(facts: Iterable[Row]) -> Iterator[Finding]:
    """One finding for each log and broker.

    Args:
        facts: of one cluster; NO_BROKER_ADDRESS counts.
    """
    found: dict[tuple[str, str], list[Row]] = {}
    for row in facts:
        if row["kind"] == "NO_BROKER_ADDRESS":
            key = row["details"].get("log", ""), row["broker_name"]
            found.setdefault(key, []).append(row)
    for (log, broker), rows in sorted(found.items()):
        first, last = min(row["first_ms"] for row in rows), max(row["last_ms"] for row in rows)
        queues = sorted({(row["topic"], row["queue_id"]) for row in rows})
        topics = sorted({topic for topic, _ in queues})
        yield Finding(
            f"The Go client of clients/{log} has no address of {broker} and does not pull "
            f"{plural(len(queues), 'queue')} of {listed(topics, 3)} there (from {utc(first)} to "
            f"{utc(last)}).",
            {"log": log, "topics": listed(topics), "queues": str(len(queues))},
            severity=None if last - first >= ROUTE_POLL_MS else INFO,
            broker_name=broker,
            topic=topics[0] if len(topics) == 1 else None,
            first_ms=first,
            last_ms=last,
        )
