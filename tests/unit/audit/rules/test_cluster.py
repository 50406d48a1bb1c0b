"""Name servers that differ, brokers that flap, and slaves that refuse to be read."""

from collections.abc import Mapping
from typing import Any

import pytest

from rebalance_core.audit.broker_states import down_brokers
from rebalance_core.audit.coverage import Coverage, LogSpan
from rebalance_core.audit.group_snapshot import facts_by_kind
from rebalance_core.audit.unknowns import CLOCK_OFF
from rebalance_core.contracts.observed import STEADY
from rebalance_core.model.timeline import Timeline
from tests.unit.audit.group_rows import fact
from tests.unit.audit.snapshots import broker_logs, found_in_cluster, judge_cluster

NO_FACTS = facts_by_kind([])
DIFFER, FLAPS = "NAME_SERVERS_DIFFER", "BROKER_FLAPS"


def view(server: str, broker: str, registered: str) -> Any:
    details = {"name": server, "registered": registered}
    return fact("BROKER_REGISTERED", 1, broker_name=broker, details=details)


def server(name: str) -> Any:
    return fact("NAME_SERVER_FILE", 1, details={"name": name})


def cluster_event(at_ms: int, kind: str, detail: str | None = None, broker: str = "b") -> Any:
    return {
        "event_ms": at_ms,
        "sequence": 0,
        "source": None,
        "event_type": f"BROKER_{kind}",
        "broker_name": broker,
        "detail": detail,
    }


def test_a_broker_that_one_name_server_does_not_know() -> None:
    both = [server("n1"), server("n2")]
    same = [*both, view("n1", "b", "true"), view("n2", "b", "true")]
    assert found_in_cluster(DIFFER, same) == []
    (gone,) = found_in_cluster(DIFFER, [*both, view("n1", "b", "true"), view("n2", "b", "false")])
    (never,) = found_in_cluster(DIFFER, [*both, view("n1", "b", "true")])
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
    rows: Any = [
        {
            "host": name,
            "role": "NAME_SERVER",
            "kind": "namesrv_log",
            "from_ms": first,
            "to_ms": last,
            "note": STEADY,
        }
        for name, first, last in (("n1", 0, 900_000), ("n2", begin, end))
    ]
    facts = [server("n1"), server("n2"), view("n1", "b", "true") | {"first_ms": 200_000}]
    (found,) = found_in_cluster(DIFFER, facts, coverage=rows)
    assert found.severity == severity
    assert (found.remedy is not None) is (severity == "INFO")


def test_one_name_server_cannot_differ() -> None:
    assert found_in_cluster(DIFFER, [server("n1"), view("n1", "b", "false")]) == []


def test_a_broker_that_expired_and_was_back_at_once_flaps() -> None:
    flaps = [
        cluster_event(0, "DOWN", "EXPIRED"),
        cluster_event(60_000, "UP"),
        cluster_event(900_000, "DOWN", "EXPIRED"),
        cluster_event(1_000_000, "UP"),
    ]
    (found,) = found_in_cluster(FLAPS, events=flaps)
    assert (found.broker_name, found.evidence["times"]) == ("b", 2)
    assert (found.first_ms, found.last_ms) == (0, 1_000_000)


def test_a_broker_whose_own_log_starts_in_between_was_restarted() -> None:
    expired = [cluster_event(600_000, "DOWN", "EXPIRED"), cluster_event(623_000, "UP")]
    for started_ms in (500_000, 610_000, 624_000):
        start = fact("BROKER_STARTED", started_ms, broker_name="b")
        assert found_in_cluster(FLAPS, [start], expired) == [], started_ms
    for start in (
        fact("BROKER_STARTED", 100_000, broker_name="b"),
        fact("BROKER_STARTED", 700_000, broker_name="b"),
        fact("BROKER_STARTED", 610_000, broker_name="another"),
    ):
        assert len(found_in_cluster(FLAPS, [start], expired)) == 1


@pytest.mark.parametrize(("until_s", "severity"), [(900, None), (625, "INFO")])
def test_a_broker_whose_log_ends_too_early_may_have_been_restarted(
    until_s: int, severity: str | None
) -> None:
    log = (LogSpan(0, until_s * 1000, from_start=True),)
    covered = Coverage(broker_logs(b=log), known=True)
    flaps = [cluster_event(600_000, "DOWN", "EXPIRED"), cluster_event(623_000, "UP")]
    (found,) = found_in_cluster(FLAPS, events=flaps, covered=covered)
    assert found.severity == severity


def test_a_broker_of_a_wrong_clock_may_have_been_restarted() -> None:
    flaps = [cluster_event(600_000, "DOWN", "EXPIRED"), cluster_event(623_000, "UP")]
    (found,) = found_in_cluster(
        FLAPS, events=flaps, covered=Coverage(known=False, clocks={"": Timeline.always(CLOCK_OFF)})
    )
    assert found.severity == "INFO"


def test_a_restart_or_a_long_absence_is_no_flap() -> None:
    restart = [cluster_event(0, "DOWN", "STOPPED"), cluster_event(60_000, "UP")]
    absence = [cluster_event(0, "DOWN", "EXPIRED"), cluster_event(121_000, "UP")]
    for events in (restart, absence):
        assert found_in_cluster(FLAPS, events=events) == []
    assert down_brokers([*restart, cluster_event(1, "DOWN", "CLOSED", "c")]) == {"c"}


def test_their_severities() -> None:
    facts = [server("n1"), server("n2"), view("n1", "b", "true")]
    events = [cluster_event(0, "DOWN", "EXPIRED"), cluster_event(60_000, "UP")]
    _, rows = judge_cluster(facts, [], events, 6.0)
    found = {row["rule_id"]: row["severity"] for row in rows}
    assert found["NAME_SERVERS_DIFFER"] == "ERROR"
    assert found["BROKER_FLAPS"] == "WARNING"


def test_a_broker_goes_on_whose_return_came_after_the_name_servers_logs() -> None:
    row: Any = {
        "host": "n",
        "role": "NAME_SERVER",
        "kind": "namesrv_log",
        "from_ms": 0,
        "to_ms": 70_000,
    }
    row |= {"complete": True, "note": None, "clock_offset_ms": None}
    dump: Any = {"broker_name": "b", "last_ms": 900_000, "command": "consumerConnection"}
    events = [cluster_event(60_000, "DOWN", "EXPIRED")]
    run, _ = judge_cluster([], [dump], events, 6.0, coverage=[row])
    assert run.down == frozenset()
    assert run.returned == {"b": 60_000}


@pytest.mark.parametrize(("log_ends_ms", "returned"), [(130_000, {"a": 60_000}), (100_000, {})])
def test_a_master_whose_log_goes_on_is_back_though_no_line_states_it(
    log_ends_ms: int, returned: dict[str, int]
) -> None:
    row: Any = {"host": "a", "role": "BROKER", "kind": "broker_log", "from_ms": 0, "complete": True}
    row |= {"to_ms": log_ends_ms, "note": None, "clock_offset_ms": None}
    gone = cluster_event(60_000, "DOWN", "REFUSED", "a") | {"event_type": "MASTER_DOWN"}
    file = fact("BROKER_FILE", 1, broker_name="a", details={"folders": "a", "file": "broker_log"})
    run, _ = judge_cluster([file], [], [gone], 6.0, coverage=[row])
    assert run.returned == returned


def test_a_process_without_a_log_may_have_become_the_master() -> None:
    gone = cluster_event(60_000, "DOWN", "REFUSED", "a") | {"event_type": "MASTER_DOWN"}
    details = {"folders": "a-1, a-2", "file": "broker_log", "unlogged": "a-1"}
    file = fact("BROKER_FILE", 1, broker_name="a", details=details)
    run, _ = judge_cluster([file], [], [gone], 6.0)
    assert run.returned == {"a": 60_000}


def test_slaves_that_refuse_are_reported_of_the_cluster() -> None:
    def turn(at_ms: int, kind: str, detail: str | None = None) -> Any:
        return {
            "event_ms": at_ms,
            "sequence": 0,
            "source": None,
            "event_type": kind,
            "broker_name": "a",
            "detail": detail,
        }

    for mode, rules in (("REFUSED", ["SLAVE_NOT_READABLE"]), ("SLAVE_READ", []), (None, [])):
        turns = [turn(1, "MASTER_DOWN", mode), turn(2, "MASTER_UP")]
        run, rows = judge_cluster([], [], turns, 6)
        assert [r["rule_id"] for r in rows if r["rule_id"] == "SLAVE_NOT_READABLE"] == rules
        assert run.masters["a"][0].up_ms == 2


def slaves(**modes: str) -> list[Any]:
    return [
        {
            "kind": "BROKER_SLAVES",
            "broker_name": name,
            "first_ms": 0,
            "last_ms": 9,
            "details": {"mode": mode},
        }
        for name, mode in modes.items()
    ]


def not_readable(facts: list[Any], turns: list[Any]) -> list[tuple[str, Mapping[str, str]]]:
    _, rows = judge_cluster(facts, [], turns, 6)
    found = [row for row in rows if row["rule_id"] == "SLAVE_NOT_READABLE"]
    assert all((row["severity"], row["broker_name"]) == ("INFO", None) for row in found)
    return [(row["summary"], row["evidence"]) for row in found]


def test_slaves_that_refuse_are_reported_before_any_master_goes() -> None:
    ((summary, evidence),) = not_readable(slaves(b="REFUSED", a="REFUSED", c="ACTING"), [])
    assert summary == (
        "Slaves of 2 brokers refuse reads, so if a master goes down, its queues stay allocated "
        "and no client reads them: a, b."
    )
    assert evidence == {"refuse": "a, b", "by_default": ""}
    ((summary, evidence),) = not_readable(slaves(b="REFUSED", a=""), [])
    assert "(the default; the files do not show every broker's setting)" in summary
    assert evidence == {"refuse": "b", "by_default": "a"}


def test_slaves_that_are_read_or_act_are_none() -> None:
    assert not_readable(slaves(a="SLAVE_READ", b="ACTING"), []) == []
    assert not_readable([], []) == []
    gone = {
        "event_ms": 1,
        "sequence": 0,
        "source": None,
        "event_type": "MASTER_DOWN",
        "broker_name": "a",
        "detail": "REFUSED",
    }
    assert not_readable(slaves(a="SLAVE_READ"), [gone]) == []  # set since then
