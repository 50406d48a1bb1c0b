"""Evidence on one group for tests of what dumps list: a broker's log from 0:10 to 1:40."""

from typing import Any

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence import Evidence

CONTEXT = ClusterContext(
    "C", 10_000, 900_000, logged={"a": 100_000}, starts={"a": ((10_000, "a:1"),)}
)


def said(second: int, kind: str, place: str = "a", **values: Any) -> Any:
    """One statement; its source is the place and the second."""
    at_ms, source = second * 1_000, f"{place}-{second}:{len(values)}"
    return Evidence("group", "g", kind, at_ms, place, second, source, values)


def connected(second: int, client_id: str, channel: str, place: str = "a") -> Evidence:
    """A line on a new connection."""
    return said(second, "consumer_connected", place, client_id=client_id, channel=channel)


def listed(second: int, client_id: str, channel: str, place: str = "a") -> Evidence:
    """A row of ``consumerConnection``; the group subscribes T and its retry topic."""
    return said(
        second,
        "member",
        place,
        client_id=client_id,
        client_addr=channel,
        subscriptions=(("T", "*"), ("%RETRY%g", "*")),
        message_model="CLUSTERING",
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
    )


def started(second: int, client_id: str, start_ms: int) -> Evidence:
    """``consumerStatus``: when the client says it started."""
    return said(second, "client", "", client_file=client_id, start_ms=start_ms)
