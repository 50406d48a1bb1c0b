"""What a thawed broker listed: every connection that had queued up, as consumer events of its own.

No derived table and no collection has them as events, so they are read from its broker.log.
"""

from __future__ import annotations

import gzip
import re

from tests.recordings.tables import DATA, Row, Tables

RECORDING, GROUP, BROKER = "silent-loss", "order-service", "broker-c"
_CONNECTED = re.compile(
    r"new consumer connected, group: order-service .*? R:/[\d.]+:(?P<port>\d+)\], "
    r"clientId=(?P<id>[^,]+), .*lastUpdateTimestamp=(?P<ms>\d+)"
)
_REMOVED = re.compile(
    r"(?:NETTY EVENT: remove|SCAN: remove expired channel|unregister a? ?consumer)"
    r".*?(?:R:/|channel=)[\d.]+:(?P<port>\d+)"
)


def with_multiplied_members(tables: Tables) -> Tables:
    """The tables with one JOIN for each connection that the broker kept when it was thawed.

    Args:
        tables: derived ones of `RECORDING`.
    """
    events = tables["cluster_events"]
    thawed_ms = next(
        row["event_ms"] for row in reversed(events) if row["event_type"] == "BROKER_UP"
    )
    joins = {row["client_id"]: row for row in events if row["event_type"] == "CONSUMER_JOIN"}
    kept = _kept(thawed_ms)
    found = [
        joins[client_id]
        | {"event_ms": at_ms, "channel_id": f"{BROKER}:{port}", "broker_name": BROKER}
        for port, (client_id, at_ms) in kept.items()
    ]
    rows = sorted([*events, *found], key=lambda row: row["event_ms"])
    numbered = [row | {"sequence": number} for number, row in enumerate(rows)]
    return tables | {"cluster_events": numbered}


def _kept(thawed_ms: int) -> dict[str, tuple[str, int]]:
    """(client_id, when) by port, of connections from then on that the broker did not drop."""
    kept: dict[str, tuple[str, int]] = {}
    path = DATA / RECORDING / "collection" / "brokers" / BROKER / "broker.log.gz"
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        connected = _CONNECTED.search(line)
        if connected and int(connected["ms"]) >= thawed_ms:
            kept[connected["port"]] = connected["id"], int(connected["ms"])
        removed = _REMOVED.search(line)
        if removed:
            kept.pop(removed["port"], None)
    return kept


def listed_at(tables: Tables, at_ms: int) -> list[Row]:
    """The additional entries at a time."""
    return [
        row
        for row in tables["cluster_events"]
        if row.get("broker_name") == BROKER
        and row["event_type"] == "CONSUMER_JOIN"
        and row["event_ms"] <= at_ms
    ]
