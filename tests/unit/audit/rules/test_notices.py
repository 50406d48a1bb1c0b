"""Notices that are off, come in storms, or show differing subscriptions."""

from dataclasses import replace

import pytest

from rebalance_core.model.events import BROKER_DOWN, BROKER_UP, CONSUMER_LOST, UNSUBSCRIBE
from rebalance_core.model.group_settings import GroupSettings
from tests.unit.audit.snapshots import (
    Row,
    event,
    fact,
    findings_of,
    join,
    leave,
    ms,
    of_member,
    severities,
    snapshot_of,
    topic,
)

NOTICES_OFF = "NOTICES_OFF"


def config(broker: str, switch: str, at: float = 1000) -> Row:
    details: Row = {"notify_consumer_ids_changed_enable": switch}
    return fact("GROUP_CONFIG", at, at, broker_name=broker, **details)


def test_a_group_without_notices_of_changes_is_named_with_what_it_means() -> None:
    group = snapshot_of(topic(), join("x"), facts=[config("a", "false"), config("b", "true")])
    (one,) = findings_of(NOTICES_OFF, group)
    assert severities(NOTICES_OFF, group) == ["INFO"]
    assert "so each member notices in its own pass, up to 23 s later" in one.summary
    assert "Brokers still announce a member whose connection closes." in one.summary
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
def test_nothing_is_said_where_members_get_notices_or_need_not_be(
    facts: list[Row], settings: GroupSettings
) -> None:
    assert (
        findings_of(NOTICES_OFF, snapshot_of(topic(), join("x"), facts=facts, settings=settings))
        == []
    )


def test_brokers_that_send_no_notices_and_slow_clients_are_named() -> None:
    group = snapshot_of(topic(), join("x", wait_interval_ms=60_000))
    off = {"a": ("OFF",), "b": ("OFF", "ON"), "elsewhere": ("OFF",)}
    (one,) = findings_of(NOTICES_OFF, replace(group, run=replace(group.run, notices=off)))
    assert "at a for the whole broker: " in one.summary
    assert "up to 63 s later" in one.summary
    assert "Brokers still announce" not in one.summary


@pytest.mark.parametrize(
    ("beat_ms", "of_group_ms", "found"),
    [(200_000, 30_000, 1), (None, 130_000, 1), (120_000, 30_000, 0), (None, 30_000, 0)],
)
def test_heartbeats_rarer_than_brokers_wait_are_a_warning(
    beat_ms: int | None, of_group_ms: int, found: int
) -> None:
    its = GroupSettings(heartbeat_broker_interval_ms=of_group_ms)
    group = snapshot_of(topic(), join("x", heartbeat_broker_interval_ms=beat_ms), settings=its)
    assert severities("RARE_HEARTBEATS", group) == ["WARNING"] * found


def test_rare_heartbeats_of_a_client_that_went_are_over() -> None:
    rare = join("x", heartbeat_broker_interval_ms=200_000)
    assert severities("RARE_HEARTBEATS", snapshot_of(topic(), rare, leave("x", 500))) == ["INFO"]


def test_a_window_without_moves_is_that_of_the_slowest_client() -> None:
    slow = snapshot_of(
        topic(), join("x", poll_name_server_interval_ms=90_000), topic(at=100, read=9)
    )
    assert slow.settled_by[1] - ms(100) == 113_000
    quiet = snapshot_of(
        topic(), join("x"), join("y", "U", at=50), settings=GroupSettings(notified=False)
    )
    assert quiet.settled_by[1] - ms(50) == 23_000


REBALANCE_STORM = "REBALANCE_STORM"
TOPICS = topic("T"), topic("U")
UNLIKE = join("x", "T"), join("y", "U")
ALIKE = join("x", "T"), join("y", "T")


def notified(at: float, until: float, times: int, broker: str | None = "a") -> Row:
    return fact("NOTIFIED", at, until, times, broker_name=broker, address="10.0.0.1:10911")


def test_members_that_subscribe_differently() -> None:
    group = snapshot_of(*TOPICS, *UNLIKE, facts=[notified(10, 990, 66)])
    (one,) = findings_of(REBALANCE_STORM, group)
    assert one.last_ms is None
    assert one.broker_name == "a"
    assert "explain 4 at most; members subscribe to different topics" in one.summary
    assert severities(REBALANCE_STORM, group) == ["WARNING"]


def test_a_client_whose_clock_may_be_off_logs_a_notice_twice() -> None:
    drops = [fact("TOPIC_DROPPED", 10, 990, 33, topic="T", broker_name="a")]
    for facts, unknown, severity in (
        ([], True, "INFO"),
        ([], False, "WARNING"),
        (drops, True, "WARNING"),
    ):
        group = snapshot_of(*TOPICS, *UNLIKE, facts=[notified(10, 990, 66), *facts])
        coverage = replace(group.run.coverage, client_clock_unknown=unknown)
        group = replace(group, run=replace(group.run, coverage=coverage))
        (one,) = findings_of(REBALANCE_STORM, group)
        assert severities(REBALANCE_STORM, group) == [severity]
        assert (one.unknown is not None) is (severity == "INFO")


def test_the_brokers_log_alone_shows_it() -> None:
    drops = [fact("TOPIC_DROPPED", 10, 990, 33, topic=name, broker_name="a") for name in "TU"]
    (one,) = findings_of(REBALANCE_STORM, snapshot_of(*TOPICS, *UNLIKE, facts=drops))
    assert one.evidence["seconds_with_change"] == "33"
    assert "took T, U out of the group's table 66 times" in one.summary


def test_a_member_that_unsubscribed() -> None:
    gone = of_member(UNSUBSCRIBE, "y", 100, topic="U")
    both = join("x", "T", "U"), join("y", "T", "U")
    (one,) = findings_of(
        REBALANCE_STORM, snapshot_of(*TOPICS, *both, gone, facts=[notified(10, 990, 40)])
    )
    assert "y unsubscribed U, which others subscribe" in one.summary


def test_a_storm_that_nothing_explains() -> None:
    (one,) = findings_of(
        REBALANCE_STORM, snapshot_of(*TOPICS, *ALIKE, facts=[notified(10, 990, 40, None)])
    )
    assert one.broker_name == "10.0.0.1:10911"
    assert "no event and no subscription explains it" in one.summary


def test_one_that_is_over_is_for_information() -> None:
    group = snapshot_of(*TOPICS, *ALIKE, facts=[notified(10, 600, 40)])
    assert severities(REBALANCE_STORM, group) == ["INFO"]
    assert findings_of(REBALANCE_STORM, group)[0].last_ms is not None


def test_comings_and_goings_explain_as_many() -> None:
    happened = [join(f"c{n}", "T", at=20 + 10 * n) for n in range(20)]
    happened += [leave(f"c{n}", 300 + 10 * n) for n in range(20)]
    assert (
        findings_of(REBALANCE_STORM, snapshot_of(*TOPICS, *happened, facts=[notified(20, 500, 80)]))
        == []
    )
    assert severities(
        REBALANCE_STORM, snapshot_of(*TOPICS, *happened, facts=[notified(20, 500, 90)])
    ) == ["INFO"]


def test_a_broker_that_comes_back_is_reported_by_each_member() -> None:
    back = event(BROKER_DOWN, 100, broker_name="a"), event(BROKER_UP, 300, broker_name="a")
    group = snapshot_of(*TOPICS, *ALIKE, *back, facts=[notified(300, 330, 5)])
    assert findings_of(REBALANCE_STORM, group) == []


def test_few_or_rare_ones_are_no_storm() -> None:
    lost = of_member(CONSUMER_LOST, "y", 500)
    for quiet in (notified(10, 40, 8), notified(10, 990, 12)):
        assert findings_of(REBALANCE_STORM, snapshot_of(*TOPICS, *ALIKE, lost, facts=[quiet])) == []
