"""What the recorder knew and no input table has: processes that it stopped, registrations.

``stopped.csv`` has each SIGSTOP and SIGCONT, ``registered.csv`` when a restarted broker was in the
name server's answers, for which the recorder asked every 10 ms. Both are from its events.jsonl.
"""

from __future__ import annotations

import csv
from pathlib import Path

from rebalance_core.timing.group_timeline import GroupTimeline, ProcessStop, WatcherKnowledge
from tests.recordings.tables import DATA, Row, Tables


def recorder_tables(name: str, tables: Tables) -> Tables:
    """The tables with brokers that come when name servers hear of them."""
    registered = {
        (row["broker"], int(row["up_ms"])): int(row["registered_ms"])
        for row in _rows(DATA / name / "registered.csv")
    }
    events = [
        row | {"event_ms": registered.get((row["broker_name"], row["event_ms"]), row["event_ms"])}
        if row["event_type"] == "BROKER_UP"
        else row
        for row in tables["cluster_events"]
    ]
    return tables | {"cluster_events": sorted(events, key=lambda row: row["event_ms"])}


def known_of(
    name: str, timeline: GroupTimeline, names: dict[tuple[str, str | None], str]
) -> WatcherKnowledge:
    """What the recorder knew of a group.

    Args:
        name: of the recording.
        timeline: of the group.
        names: the recording's names of clients by (client_id, channel_id).
    """
    return WatcherKnowledge(
        tuple(
            ProcessStop(lifetime.index, int(row["from_ms"]) * 1_000, int(row["until_ms"]) * 1_000)
            for row in _rows(DATA / name / "stopped.csv")
            for lifetime in timeline.lifetimes
            if names[lifetime.client_id, lifetime.channel_id] == row["client"]
        )
    )


def _rows(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
