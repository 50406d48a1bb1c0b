"""Heartbeats to dead brokers, and what they cost the single thread of a client's timers."""

from dataclasses import replace
from typing import Any

from rebalance_core.audit.coverage import Coverage, LogSpan
from rebalance_core.model.times import MINUTE_MS
from tests.unit.audit.group_rows import fact
from tests.unit.audit.snapshots import (
    client_logs,
    found_in_cluster,
    judge_cluster,
    name_server_logs,
)

Row = Any
STARVED = "STARVED_TIMERS"


def failed(broker: str, minutes: int, log: str = "c1", since: int = 0) -> Row:
    row = fact(
        "HEARTBEAT_FAILED",
        since * MINUTE_MS,
        broker_name=broker,
        details={"address": f"{broker}:10911", "log": log, "pid": "7"},
    )
    return row | {"last_ms": (since + minutes) * MINUTE_MS, "times": minutes + 1}


def event(kind: str, minute: float, broker: str = "a") -> Row:
    return {
        "event_ms": int(minute * MINUTE_MS),
        "sequence": 0,
        "event_type": kind,
        "broker_name": broker,
        "detail": None,
    }


def severities(facts: list[Row], events: list[Row]) -> list[str | None]:
    return [one.severity for one in found_in_cluster(STARVED, facts, events)]


def test_one_dead_broker_costs_a_tenth() -> None:
    assert severities([failed("a", 3)], []) == []
    learnt = [event("BROKER_DOWN", 2)]
    assert severities([failed("a", 3)], learnt) == []


def test_several_at_once() -> None:
    two = [failed("a", 3), failed("b", 3)]
    (one,) = found_in_cluster(STARVED, two, [])
    assert one.severity == "INFO"
    assert "a, b from" in one.summary
    assert "up to 6 s of every 30 s" in one.summary
    assert severities([failed(name, 3) for name in "abcde"], []) == ["WARNING"]


def test_one_after_the_other_or_by_different_clients_are_not_at_once() -> None:
    assert severities([failed("a", 3), failed("b", 3, since=10)], []) == []
    assert severities([failed("a", 3), failed("b", 3, log="c2")], []) == []
    assert severities([failed("a", 0), failed("b", 0)], []) == []


def test_a_route_change_learnt_late() -> None:
    (one,) = found_in_cluster(STARVED, [failed("a", 9)], [event("BROKER_DOWN", 2)])
    assert one.severity == "WARNING"
    assert "still sent heartbeats there 7 min after the broker was out of the routes" in one.summary
    assert one.evidence["processes"] == "clients/c1, pid 7"


def test_a_broker_may_be_back_where_the_name_server_s_log_has_a_hole() -> None:
    late, down = [failed("a", 9)], [event("BROKER_DOWN", 2)]
    steady = LogSpan(0, 9 * MINUTE_MS, from_start=True)
    cut = (
        replace(steady, to_ms=4 * MINUTE_MS),
        replace(steady, from_ms=5 * MINUTE_MS, from_start=False),
    )
    for stretches, severity in (((steady,), "WARNING"), (cut, "INFO")):
        covered = Coverage(name_servers=name_server_logs(*stretches), known=True)
        (one,) = found_in_cluster(STARVED, late, down, covered)
        assert one.severity == severity
    assert "namesrv.log" in (one.remedy or "")


def test_heartbeats_that_arrive_again() -> None:
    late, down = [failed("a", 9)], [event("BROKER_DOWN", 2)]
    for minutes, severity in ((19, "INFO"), (10, "WARNING")):
        log = LogSpan(0, minutes * MINUTE_MS, from_start=True)
        (one,) = found_in_cluster(
            STARVED, late, down, Coverage(clients=client_logs(c1=(log,)), known=True)
        )
        assert one.severity == severity
    later = failed("b", 0, since=18)  # the worst time is over, failures are not
    log = LogSpan(0, 19 * MINUTE_MS, from_start=True)
    (one,) = found_in_cluster(
        STARVED, [*late, later], down, Coverage(clients=client_logs(c1=(log,)), known=True)
    )
    assert one.severity == "WARNING"


def test_a_broker_that_came_back_meanwhile() -> None:
    back = [event("BROKER_DOWN", 2), event("BROKER_UP", 3), event("BROKER_DOWN", 8)]
    assert severities([failed("a", 9)], back) == []
    assert severities([failed("a", 9)], [event("BROKER_DOWN", 2, "b")]) == []


def test_it_is_judged_with_the_cluster_and_a_known_issue_fits() -> None:
    facts = [fact("COLLECTED", 0, details={"start_ms": "0", "end_ms": "900000"}), failed("a", 9)]
    _, rows = judge_cluster(facts, [], [event("BROKER_DOWN", 2)], 6)
    (row,) = [row for row in rows if row["rule_id"] == "STARVED_TIMERS"]
    assert "apache/rocketmq#2763, client JAVA" in row["evidence"]["known"]
