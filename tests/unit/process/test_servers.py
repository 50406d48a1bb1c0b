"""The table of servers: what is down since when, what waits there, and what is not known."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from rebalance_core.audit.group_snapshot import AuditRun, BrokerOutage
from rebalance_core.process.servers import server_rows
from rebalance_core.report.server_table import ServerRow

NIGHT_MS = 1_000
PROGRESS = pa.schema(
    [
        ("cluster", pa.string()),
        ("consumer_group", pa.string()),
        ("broker_name", pa.string()),
        ("unread", pa.int64()),
        ("end_ms", pa.int64()),
    ]
)


def servers(
    run: AuditRun,
    progress: Sequence[tuple[Any, ...]] = (),
    coverage: Sequence[Any] = (),
    findings: Sequence[Any] = (),
) -> dict[str, ServerRow]:
    names = PROGRESS.names
    rows = [dict(zip(names, ("c", *row), strict=True)) for row in progress]

    def read(table: str, group: Any = None, columns: Sequence[str] | None = None) -> pa.Table:
        assert (table, group, sorted(columns or ())) == ("queue_progress", None, sorted(names))
        return pa.Table.from_pylist(rows, PROGRESS)

    covered = [dict(zip(("role", "host", "kind", "to_ms"), row, strict=True)) for row in coverage]
    table = pa.Table.from_pylist([{"cluster": "c", **row} for row in covered])
    found = server_rows({"c": run}, table if covered else None, read, findings)
    return {row.name: row for row in found}


def outage(down: int | None, up: int | None) -> tuple[BrokerOutage, ...]:
    return (BrokerOutage(down, up, "mqnamesrv", None),)


def test_states_of_brokers() -> None:
    run = AuditRun(
        0,
        9_000,
        night_ms=NIGHT_MS,
        versions={"fine": "5.3.3", "back": "5.3.3", "lost": "5.3.3", "old": "4.9.7"},
        outages={
            "lost": outage(7_000, None),
            "back": outage(5_000, 6_000),
            "old": outage(100, 200),  # before the night
            "gone": outage(None, None),
        },
        missing=frozenset({"away"}),
    )
    found = servers(run, [("g", "only-dumps", 3, 8_000)])
    assert {name: (row.state, row.since_ms) for name, row in found.items()} == {
        "gone": ("DOWN", None),
        "lost": ("DOWN", 7_000),
        "away": ("not collected", None),
        "back": ("up", 6_000),
        "fine": ("up", None),
        "old": ("up", None),
        "only-dumps": ("unknown", None),
    }
    assert list(found)[:2] == ["gone", "lost"]
    assert found["fine"].version == "5.3.3"


def test_what_waits_on_a_broker() -> None:
    progress = [
        ("g", "a", 5, 8_000),
        ("h", "a", 7, 8_500),
        ("h", "a", 0, 8_600),
        ("h", "a", None, None),
        ("h", "b", None, None),
        ("CID_RMQ_SYS_TRANS", "a", 1_000, 8_900),
        ("g", "c", 20, 100),
    ]
    found = servers(AuditRun(0, 9_000, versions=dict.fromkeys("abc", "5.3.3")), progress)
    assert [(r.name, r.queues, r.unread, r.seen_ms) for r in found.values()] == [
        ("c", 1, 20, 100),
        ("a", 2, 12, 8_600),
        ("b", 0, None, None),
    ]


def down(broker: str, group: str | None, behind: str, last_ms: int | None = None) -> Any:
    evidence = {"queues": "98", "behind": behind}
    return {
        "cluster": "c",
        "rule_id": "BROKER_DOWN",
        "consumer_group": group,
        "broker_name": broker,
        "last_ms": last_ms,
        "evidence": evidence if last_ms is None else {"outages": "1"},
    }


def test_a_broker_that_is_down_has_the_numbers_of_its_finding() -> None:
    """No row of queue_progress says that its queues cannot be read."""
    outages = {name: outage(7_000, None) for name in "ab"} | {"c": outage(5_000, 6_000)}
    findings = [
        down("a", None, "80"),
        down("a", "g", "3"),
        down("b", None, "unknown"),
        down("c", None, "0", last_ms=6_000),
    ]
    progress = [("g", "a", 0, 6_500), ("g", "b", 0, 6_400), ("g", "c", 5, 8_000)]
    found = servers(AuditRun(0, 9_000, outages=outages), progress, (), findings)
    assert {r.name: (r.queues, r.unread, r.seen_ms) for r in found.values()} == {
        "a": (98, 80, 6_500),
        "b": (98, None, 6_400),
        "c": (1, 5, 8_000),
    }


def test_name_servers_and_logs() -> None:
    coverage = [
        ("NAME_SERVER", "ns1", "namesrv_log", 8_000),
        ("NAME_SERVER", "ns2", "mqadmin", 9_000),
        ("BROKER", "a", "broker_log", 7_000),
        ("BROKER", "a", "lock_log", 7_500),
        ("BROKER", "a", "topics_json", 9_000),
        ("CLIENT", "app1", "client_log", 9_000),
    ]
    found = servers(AuditRun(0, 9_000, versions={"a": "5.3.3"}), (), coverage)
    assert [(row.name, row.kind, row.log_ms) for row in found.values()] == [
        ("a", "broker", 7_500),
        ("ns1", "name server", 8_000),
        ("ns2", "name server", None),
    ]
