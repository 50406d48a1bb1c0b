"""Groups that brokers have disabled, set up unusually, or not alike."""

from dataclasses import replace
from typing import Any

import pytest

from rebalance_core.audit.coverage import CollectedLog, LogSpan
from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.audit.rules.group_settings import SETTINGS
from rebalance_core.audit.unknowns import client_log
from rebalance_core.contracts.observed import FACT_KINDS
from rebalance_core.model.times import utc
from tests.unit.audit.snapshots import (
    Row,
    commit,
    end,
    fact,
    findings_of,
    join,
    ms,
    severities,
    snapshot_of,
    topic,
)

DISABLED, UNUSUAL, DIFFER = "GROUP_DISABLED", "GROUP_SETTING_UNUSUAL", "GROUP_SETTINGS_DIFFER"
USUAL: dict[str, Any] = {
    "consume_enable": True,
    "consume_broadcast_enable": True,
    "consume_from_min_enable": True,
    "notify_consumer_ids_changed_enable": True,
    "retry_queue_nums": 1,
    "retry_max_times": 16,
    "broker_id": 0,
    "which_broker_when_consume_slowly": 1,
    "consume_timeout_minute": 15,
}
BEHIND: dict[str, Any] = {"commits": [commit(0, 4)], "ends": [end(0, 9)]}
REASON = "CODE 16: subscription group no permission, g"


def config(broker: str = "a", **own: Any) -> Row:
    return fact("GROUP_CONFIG", 0, 1000, broker_name=broker, **USUAL | own)


def update(changes: str, at: float, broker: str = "a") -> Row:
    return fact("GROUP_UPDATED", at, broker_name=broker, changes=changes)


def refused(until: float) -> Row:
    where = {"address": "10.0.0.1:1", "log": "app"}
    return fact("REQUEST_FAILED", 300, until, 9, request="PULL", reason=REASON, **where)


def group(*facts: Row, **own: Any) -> GroupSnapshot:
    return snapshot_of(topic(), join("x"), facts=facts, **BEHIND | own)


def test_a_disabled_group_with_messages_is_an_error_and_states_since_when() -> None:
    off = update("consumeEnable: true → false, retryMaxTimes: 16 → 3", 300)
    case = group(config(consume_enable=False), off, refused(990))
    (one,) = findings_of(DISABLED, case)
    assert severities(DISABLED, case) == ["ERROR"]
    assert "consumeEnable=false at a: brokers refuse every pull" in one.summary
    assert f"set by an administrator at {utc(ms(300))}" in one.summary
    assert "clients/app has refusals until" in one.summary
    assert "5 messages not read: T 5" in one.summary
    assert one.first_ms == ms(300)


def test_its_end_is_shown_by_the_change_that_enabled_it_again() -> None:
    off, on = "consumeEnable: true → false", "consumeEnable: false → true"
    case = group(config(), update(off, 300), update(on, 700))
    (one,) = findings_of(DISABLED, case)
    assert (one.first_ms, one.last_ms) == (ms(300), ms(700))
    assert severities(DISABLED, case) == ["INFO"]
    (one,) = findings_of(DISABLED, group(config(), update(on, 700)))
    assert (one.first_ms, one.last_ms) == (None, ms(700))
    again = group(config(), update(on, 700), update(off, 800), config(consume_enable=False))
    assert severities(DISABLED, again) == ["ERROR"]


def test_a_disabled_group_that_has_read_all_is_a_warning() -> None:
    done = {"commits": [commit(0, 9)], "ends": [end(0, 9)]}
    assert severities(DISABLED, group(config(consume_enable=False), **done)) == ["WARNING"]


def test_one_broker_of_two_has_it_disabled() -> None:
    (one,) = findings_of(DISABLED, group(config("a", consume_enable=False), config("b")))
    assert one.broker_name == "a"
    assert "b allow the group to read" in one.summary


def test_messages_of_a_broker_that_lets_it_read_do_not_count() -> None:
    case = group(config("a"), config("b", consume_enable=False))
    assert severities(DISABLED, case) == ["WARNING"]


def test_a_change_after_the_newest_store_counts() -> None:
    stored = fact("GROUP_CONFIG", 0, 1000, broker_name="a", **USUAL)
    assert severities(DISABLED, group(stored, update("consumeEnable: true → false", 1005)))
    on = update("consumeEnable: false → true", 1006)
    off = update("consumeEnable: true → false", 1005)
    assert severities(DISABLED, group(stored, off, on)) == ["INFO"]
    assert findings_of(DISABLED, group(stored, update("consumeEnable: true → false", 500))) == []


def test_the_refusals_alone_show_it_where_no_store_was_collected() -> None:
    case = group(refused(990), stores=())
    (one,) = findings_of(DISABLED, case)
    assert "consumeEnable=false at 10.0.0.1:1" in one.summary
    assert findings_of(DISABLED, group(refused(500), stores=())) == [], "they have ended"
    assert findings_of(DISABLED, group(refused(990), config())) == [], "the store is newer"


@pytest.mark.parametrize(("logged_s", "goes_on"), [(700, True), (850, False)])
def test_refusals_have_ended_where_the_client_s_log_goes_on_without_them(
    logged_s: float, *, goes_on: bool
) -> None:
    """Nine from 300 to 600: each some 40 s after the one before."""
    log = CollectedLog(client_log("app"), (LogSpan(ms(0), ms(logged_s), from_start=True),))
    case = group(refused(600), stores=(), until=880)
    coverage = replace(case.run.coverage, clients={"app": log})
    case = replace(case, run=replace(case.run, coverage=coverage))
    assert bool(findings_of(DISABLED, case)) is goes_on


@pytest.mark.parametrize(
    ("own", "severity"),
    [
        ({"retry_queue_nums": 0}, "WARNING"),
        ({"retry_max_times": 0}, "INFO"),
        ({"which_broker_when_consume_slowly": 2}, "INFO"),
        ({"broker_id": 1}, "INFO"),
        ({"consume_timeout_minute": 1}, "INFO"),
    ],
)
def test_a_setting_that_is_easily_overlooked(own: dict[str, Any], severity: str) -> None:
    case = group(config(**own))
    (one,) = findings_of(UNUSUAL, case)
    assert severities(UNUSUAL, case) == [severity]
    (value,) = own.values()
    assert one.summary.split(" at a")[0].endswith(f"={value}")
    assert one.remedy


def test_defaults_and_versions_without_a_setting_are_silent() -> None:
    for usual in (config(), fact("GROUP_CONFIG", 0, 1000, broker_name="a")):
        case = group(usual)
        assert [findings_of(rule, case) for rule in (DISABLED, UNUSUAL, DIFFER)] == [[], [], []]


def test_settings_that_differ_between_brokers() -> None:
    case = group(config("a"), config("b", retry_max_times=3, consume_enable=False))
    (one,) = findings_of(DIFFER, case)
    assert "retryMaxTimes is 16 at a, 3 at b" in one.summary
    assert "consumeEnable" not in one.summary, "GROUP_DISABLED has it"
    assert "for the group: " in one.summary
    older = config("b", consume_timeout_minute="")
    assert findings_of(DIFFER, group(config("a"), older)) == []


@pytest.mark.parametrize(
    ("changes", "since_s"),
    [
        ((("b", 40, "16 → 3"),), 40),
        # they differed before
        ((("b", 90, "5 → 3"),), None),
        ((("b", 40, "16 → 5"), ("b", 90, "5 → 3")), 40),
        # the administrator changed both, and one of them twice
        ((("a", 30, "5 → 16"), ("b", 40, "5 → 16"), ("b", 90, "16 → 3")), 90),
        ((("a", 30, "3 → 16"), ("b", 20, "5 → 3")), 30),
        # a change is not logged
        ((("b", 40, "16 → 5"),), None),
    ],
)
def test_settings_differ_since_the_change_of_equal_values(
    changes: tuple[tuple[str, int, str], ...], since_s: int | None
) -> None:
    updates = [update(f"retryMaxTimes: {change}", at, broker) for broker, at, change in changes]
    (one,) = findings_of(DIFFER, group(config("a"), config("b", retry_max_times=3), *updates))
    since = None if since_s is None else ms(since_s)
    dated = "" if since is None else f", since {utc(since)}"
    assert one.summary.endswith(f"for the group: retryMaxTimes is 16 at a, 3 at b{dated}.")
    assert one.first_ms == since


def test_each_setting_that_differs_has_its_own_date() -> None:
    own = {"retry_max_times": 3, "consume_timeout_minute": 9}
    retries = update("retryMaxTimes: 16 → 3", 40, "b")
    (one,) = findings_of(DIFFER, group(config("a"), config("b", **own), retries))
    assert f"16 at a, 3 at b, since {utc(ms(40))}; consumeTimeoutMinute is" in one.summary
    assert one.summary.endswith("15 at a, 9 at b.")
    assert one.first_ms is None
    minutes = update("consumeTimeoutMinute: 15 → 9", 90, "b")
    (one,) = findings_of(DIFFER, group(config("a"), config("b", **own), retries, minutes))
    assert one.summary.endswith(f"15 at a, 9 at b, since {utc(ms(90))}.")
    assert one.first_ms == ms(40)


def test_every_setting_of_the_table_is_collected() -> None:
    known = {field.name for field in FACT_KINDS["GROUP_CONFIG"].details}
    assert {setting.name for setting in SETTINGS} <= known
