from dataclasses import replace

import pytest

from rebalance_core.model.group_settings import GroupSettings
from tests.unit.audit.cases import Row, case_of, fact, findings_of, join, ms, severities, topic

RULE = "NOTICES_OFF"


def config(broker: str, switch: str, at: float = 1000) -> Row:
    details: Row = {"notify_consumer_ids_changed_enable": switch}
    return fact("GROUP_CONFIG", at, at, broker_name=broker, **details)


def test_a_group_that_is_not_told_of_changes_is_named_with_what_it_means() -> None:
    case = case_of(topic(), join("x"), facts=[config("a", "false"), config("b", "true")])
    (one,) = findings_of(RULE, case)
    assert severities(RULE, case) == ["INFO"]
    assert "see it in a pass of their own, up to 23 s later" in one.summary
    assert "A member whose connection closes is told of all the same." in one.summary
    assert (one.broker_name, one.evidence) == ("a", {"brokers": "a"})


@pytest.mark.parametrize(
    ("facts", "settings"),
    [
        ([config("a", "true")], GroupSettings()),
        ([config("a", "")], GroupSettings()),  # that version has no such field
        ([config("a", "false", 500), config("a", "true")], GroupSettings()),
        ([config("a", "false")], GroupSettings(message_model="BROADCASTING")),
    ],
)
def test_nothing_is_said_where_members_are_told_or_need_not_be(
    facts: list[Row], settings: GroupSettings
) -> None:
    assert findings_of(RULE, case_of(topic(), join("x"), facts=facts, settings=settings)) == []


def test_brokers_that_tell_nobody_and_slow_clients_are_named() -> None:
    case = case_of(topic(), join("x", wait_interval_ms=60_000))
    off = {"a": ("OFF",), "b": ("OFF", "ON"), "elsewhere": ("OFF",)}
    (one,) = findings_of(RULE, replace(case, run=replace(case.run, notices=off)))
    assert "at a for the whole broker: " in one.summary
    assert "up to 63 s later" in one.summary
    assert "is told of all the same" not in one.summary


@pytest.mark.parametrize(
    ("beat_ms", "of_group_ms", "found"),
    [(200_000, 30_000, 1), (None, 130_000, 1), (120_000, 30_000, 0), (None, 30_000, 0)],
)
def test_heartbeats_rarer_than_brokers_wait_are_a_warning(
    beat_ms: int | None, of_group_ms: int, found: int
) -> None:
    its = GroupSettings(heartbeat_broker_interval_ms=of_group_ms)
    case = case_of(topic(), join("x", heartbeat_broker_interval_ms=beat_ms), settings=its)
    assert severities("RARE_HEARTBEATS", case) == ["WARNING"] * found


def test_a_window_without_moves_is_that_of_the_slowest_client() -> None:
    slow = case_of(topic(), join("x", poll_name_server_interval_ms=90_000), topic(at=100, read=9))
    assert slow.settled_by[1] - ms(100) == 113_000
    quiet = case_of(
        topic(), join("x"), join("y", "U", at=50), settings=GroupSettings(notified=False)
    )
    assert quiet.settled_by[1] - ms(50) == 23_000
