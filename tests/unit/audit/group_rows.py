"""One group's rows for tests of the comparison: two members, four queues, a join at 1,000,000."""

from typing import Any

from rebalance_core.audit.group_snapshot import AuditRun, GroupSnapshot, snapshot_rows
from rebalance_core.contracts.inputs import CONSUMER_GROUPS
from rebalance_core.contracts.observed import FACT_KINDS

Row = Any

A, B = "10.0.0.1@1#1", "10.0.0.2@2#2"
RUN = AuditRun(0, 10_000_000)
JOINED_MS = 1_000_000
DUMPED_MS = 9_000_000


def holding(queue_id: int, client_id: str | None, from_ms: int, to_ms: int | None) -> Row:
    """A row of ownership."""
    return {
        "topic": "T",
        "broker_name": "b",
        "queue_id": queue_id,
        "client_id": client_id,
        "holders": int(client_id is not None),
        "from_epoch": int(from_ms > 0),
        "to_epoch": None if to_ms is None else 1,
        "from_ms": from_ms,
        "to_ms": to_ms,
    }


def member(client_id: str, from_ms: int, to_ms: int | None = None, channel: str = "c") -> Row:
    """A row of memberships."""
    return {
        "client_id": client_id, "channel_id": channel, "subscriptions": ["T"], "strategy": "AVG",
        "version": "5.3.3", "message_model": "CLUSTERING", "suspended": False,
        "rebalance_mode": "CLIENT", "from_epoch": 0,
        "to_epoch": None, "from_ms": from_ms, "to_ms": to_ms, "language": None,
    }  # fmt: skip


def ledger() -> dict[str, list[Row]]:
    """A alone from 0; B joins: 0 and 1 stay with A, 2 and 3 go to B."""
    epochs: list[Row] = [
        {"epoch": 0, "from_ms": 0, "to_ms": JOINED_MS, "causes": ["CONSUMER_JOIN"], "queues": 4},
        {"epoch": 1, "from_ms": JOINED_MS, "to_ms": None, "causes": ["CONSUMER_JOIN"], "queues": 4},
    ]
    kept = [holding(q, A, 0, None) for q in (0, 1)]
    given = [holding(q, A, 0, JOINED_MS) for q in (2, 3)]
    taken = [holding(q, B, JOINED_MS, None) for q in (2, 3)]
    return {
        "epochs": [row | {"status": "SETTLED", "transient": False} for row in epochs],
        "ownership": kept + given + taken,
        "memberships": [member(A, 0), member(B, JOINED_MS)],
        "diffs": [
            {
                "epoch": 1,
                "topic": "T",
                "broker_name": "b",
                "queue_id": q,
                "change_ms": JOINED_MS,
                "latest_ms": JOINED_MS + 3_000,
            }
            for q in (2, 3)
        ],
    }


def declared_details(kind: str) -> dict[str, Any]:
    """The fields that each row of the kind has, unknown."""
    return {field.name: "" for field in FACT_KINDS[kind].details if not field.optional}


def fact(kind: str, at_ms: int, source: str = "dump", **fields: Any) -> Row:
    """A row of observed_facts; ``details`` apart, other fields are columns."""
    columns = {"topic": None, "broker_name": None, "queue_id": None, "client_id": None}
    return (
        columns
        | {
            "kind": kind,
            "first_ms": at_ms,
            "last_ms": at_ms,
            "times": 1,
            "source": source,
        }
        | fields
        | {"details": declared_details(kind) | fields.get("details", {})}
    )


def status(client_id: str, at_ms: int, *queues: int) -> list[Row]:
    """What consumerStatus says of a client that holds these queues."""
    source = f"{at_ms}-{client_id}"
    asked = fact("DUMP", at_ms, source, client_id=client_id, details={"command": "consumerStatus"})
    held = [
        fact(
            "HELD_QUEUE",
            at_ms,
            source,
            client_id=client_id,
            topic="T",
            broker_name="b",
            queue_id=q,
            details={"dropped": "false"},
        )
        for q in queues
    ]
    return [asked, *held]


def progress(at_ms: int, *addresses: str) -> list[Row]:
    """What consumerProgress -s says: the holder's address of queue 0, 1 and so on."""
    source = f"{at_ms}-progress"
    details = {"command": "consumerProgress"}
    rows = [fact("DUMP", at_ms, source, details=details)]
    return rows + [
        fact(
            "QUEUE_PROGRESS",
            at_ms,
            source,
            topic="T",
            broker_name="b",
            queue_id=q,
            details={"with_clients": "true", "client_ip": address},
        )
        for q, address in enumerate(addresses)
    ]


def snapshot(*facts: Row, run: AuditRun = RUN, **tables: Any) -> GroupSnapshot:
    """The group with these facts; tables replace those of `ledger`."""
    settings = tables.get("consumer_groups", ())
    names = CONSUMER_GROUPS.column_names
    tables["consumer_groups"] = [dict.fromkeys(names) | row for row in settings]
    return GroupSnapshot(
        "c", "g", run, snapshot_rows({**ledger(), "observed_facts": facts, **tables})
    )
