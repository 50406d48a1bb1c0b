"""What is wrong with the cluster as a whole: its name servers and brokers."""

from typing import Any

import pytest

from rebalance_core.audit.coverage import Coverage, Stretch
from rebalance_core.audit.findings import run_cluster_rules
from rebalance_core.audit.rules.cluster import broker_flaps, down_brokers, name_servers_differ
from rebalance_core.contracts.observed import STEADY
from tests.unit.audit.comparison.group_rows import fact


def view(server: str, broker: str, registered: str) -> dict[str, Any]:
    details = {"name": server, "registered": registered}
    return fact("BROKER_REGISTERED", 1, broker_name=broker, details=details)


def server(name: str) -> dict[str, Any]:
    return fact("NAME_SERVER_FILE", 1, details={"name": name})


def event(at_ms: int, kind: str, detail: str | None = None, broker: str = "b") -> dict[str, Any]:
    return {
        "event_ms": at_ms, "sequence": 0, "event_type": f"BROKER_{kind}", "broker_name": broker,
        "detail": detail,
    }  # fmt: skip


def test_a_broker_that_one_name_server_does_not_know() -> None:
    both = [server("n1"), server("n2")]
    same = [*both, view("n1", "b", "true"), view("n2", "b", "true")]
    assert list(name_servers_differ(same)) == []
    (gone,) = name_servers_differ([*both, view("n1", "b", "true"), view("n2", "b", "false")])
    (never,) = name_servers_differ([*both, view("n1", "b", "true")])
    assert gone.broker_name == never.broker_name == "b"
    assert "n2" in gone.summary
    assert never.evidence == {"n1": "registered", "n2": "not there"}


@pytest.mark.parametrize(
    ("begin", "end", "severity"),
    [(0, 900_000, None), (0, 500_000, "INFO"), (300_000, 900_000, "INFO")],
)
def test_a_name_server_whose_log_is_cut_may_know_it(
    begin: int, end: int, severity: str | None
) -> None:
    rows = [
        {"host": name, "role": "NAME_SERVER", "kind": "namesrv_log", "from_ms": first,
         "to_ms": last, "note": STEADY}
        for name, first, last in (("n1", 0, 900_000), ("n2", begin, end))
    ]  # fmt: skip
    facts = [server("n1"), server("n2"), view("n1", "b", "true") | {"first_ms": 200_000}]
    (found,) = name_servers_differ(facts, rows)
    assert found.severity == severity
    assert (found.remedy is not None) is (severity == "INFO")


def test_one_name_server_cannot_differ() -> None:
    assert list(name_servers_differ([server("n1"), view("n1", "b", "false")])) == []


def test_a_broker_that_expired_and_was_back_at_once_flaps() -> None:
    flaps = [event(0, "DOWN", "EXPIRED"), event(60_000, "UP"),
             event(900_000, "DOWN", "EXPIRED"), event(1_000_000, "UP")]  # fmt: skip
    (found,) = broker_flaps(flaps)
    assert (found.broker_name, found.evidence["times"]) == ("b", 2)
    assert (found.first_ms, found.last_ms) == (0, 1_000_000)


def test_a_broker_whose_own_log_starts_in_between_was_restarted() -> None:
    expired = [event(600_000, "DOWN", "EXPIRED"), event(623_000, "UP")]
    for started_ms in (500_000, 610_000, 624_000):
        start = fact("BROKER_STARTED", started_ms, broker_name="b")
        assert list(broker_flaps(expired, [start])) == [], started_ms
    for start in (
        fact("BROKER_STARTED", 100_000, broker_name="b"),
        fact("BROKER_STARTED", 700_000, broker_name="b"),
        fact("BROKER_STARTED", 610_000, broker_name="another"),
    ):
        assert len(list(broker_flaps(expired, [start]))) == 1


@pytest.mark.parametrize(("until_s", "severity"), [(900, None), (625, "INFO")])
def test_a_broker_whose_log_ends_too_early_may_have_been_restarted(
    until_s: int, severity: str | None
) -> None:
    log = (Stretch(0, until_s * 1000, from_start=True),)
    covered = Coverage({"b": log}, known=True)
    flaps = [event(600_000, "DOWN", "EXPIRED"), event(623_000, "UP")]
    (found,) = broker_flaps(flaps, (), covered)
    assert found.severity == severity


def test_a_broker_of_a_wrong_clock_may_have_been_restarted() -> None:
    flaps = [event(600_000, "DOWN", "EXPIRED"), event(623_000, "UP")]
    (found,) = broker_flaps(flaps, (), Coverage(known=False, clock_off=True))
    assert found.severity == "INFO"


def test_a_restart_or_a_long_absence_is_no_flap() -> None:
    restart = [event(0, "DOWN", "STOPPED"), event(60_000, "UP")]
    absence = [event(0, "DOWN", "EXPIRED"), event(121_000, "UP")]
    assert [*broker_flaps(restart), *broker_flaps(absence)] == []
    assert down_brokers([*restart, event(1, "DOWN", "CLOSED", "c")]) == {"c"}


def test_their_severities() -> None:
    facts = [server("n1"), server("n2"), view("n1", "b", "true")]
    events = [event(0, "DOWN", "EXPIRED"), event(60_000, "UP")]
    _, rows = run_cluster_rules(facts, [], events, 6.0)
    found = {row["rule_id"]: row["severity"] for row in rows}
    assert found["NAME_SERVERS_DIFFER"] == "ERROR"
    assert found["BROKER_FLAPS"] == "WARNING"


def test_a_broker_goes_on_whose_return_came_after_the_name_servers_logs() -> None:
    row = {"host": "n", "role": "NAME_SERVER", "kind": "namesrv_log", "from_ms": 0, "to_ms": 70_000}
    row |= {"complete": True, "note": None, "clock_offset_ms": None}
    dump = {"broker_name": "b", "last_ms": 900_000, "details": {"command": "consumerConnection"}}
    events = [event(60_000, "DOWN", "EXPIRED")]
    run, _ = run_cluster_rules([], [dump], events, 6.0, coverage=[row])
    assert run.down == frozenset()
    assert run.returned == {"b": 60_000}
