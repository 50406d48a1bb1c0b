"""Two small groups as input tables, with rows that are bad in several ways."""

import json
from pathlib import Path
from typing import Any

T0 = 1_700_000_000_123
Row = dict[str, Any]


def _events() -> list[Row]:
    rows: list[Row] = []

    def add(at: int, kind: str, **values: object) -> None:
        rows.append(
            {
                "cluster": "c",
                "event_ms": T0 + at,
                "sequence": len(rows),
                "event_type": kind,
                **values,
            }
        )

    for broker in ("a", "b"):
        for topic in ("T", "U"):
            add(
                0,
                "TOPIC_CONFIG",
                topic=topic,
                broker_name=broker,
                read_queue_nums=3,
                write_queue_nums=3,
                detail="OBSERVED",
            )
    for group, topic in (("orders", "T"), ("letters", "U")):
        for client in ("c1", "c2"):
            add(
                0,
                "CONSUMER_JOIN",
                consumer_group=group,
                client_id=client,
                channel_id=client,
                subscriptions=[topic],
                detail="OBSERVED",
            )
    add(
        100_000,
        "CONSUMER_JOIN",
        consumer_group="orders",
        client_id="c3",
        channel_id="c3",
        subscriptions=["T"],
    )
    add(500_000, "CONSUMER_LOST", consumer_group="orders", client_id="c1", channel_id="c1")
    add(900_000, "BROKER_DOWN", broker_name="b")
    add(1_300_000, "CONSUMER_LEAVE", consumer_group="letters", client_id="c2", channel_id="c2")
    return rows


def unknown_member() -> Row:
    return {"cluster": "c", "event_ms": T0 + 1_400_000, "sequence": 99, "client_id": "c9",
            "event_type": "CONSUMER_LEAVE", "consumer_group": "orders"}  # fmt: skip


def lost_at_one_broker() -> Row:
    return {"cluster": "c", "event_ms": T0 + 600_000, "sequence": 98, "client_id": "c2",
            "channel_id": "c2", "event_type": "CONSUMER_LOST", "consumer_group": "orders",
            "broker_name": "a"}  # fmt: skip


def write_tables(folder: Path, *more_events: Row) -> Path:
    """A folder with ``cluster_events``, ``consumer_groups`` and ``queue_offsets``."""
    folder.mkdir(parents=True)
    groups = [{"cluster": "c", "consumer_group": "letters", "message_model": "BROADCASTING"}]
    offsets = [
        {
            "cluster": "c",
            "topic": "T",
            "broker_name": broker,
            "queue_id": queue,
            "observed_ms": T0 + at,
            "min_offset": 0,
            "max_offset": at // 10,
        }
        for broker in ("a", "b")
        for queue in range(3)
        for at in (0, 2_000_000)
    ]
    for name, rows in (
        ("cluster_events", [*_events(), *more_events]),
        ("consumer_groups", groups),
        ("queue_offsets", offsets),
    ):
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text)
    return folder
