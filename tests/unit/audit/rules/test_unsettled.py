"""Groups that are frozen, suspended or between two states."""

from dataclasses import replace

from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.model.events import (
    CONSUMER_RESUME,
    CONSUMER_SUSPEND,
    TOPIC_DELETED,
    UNSUBSCRIBE,
)
from rebalance_core.model.group_settings import GroupSettings
from tests.unit.audit.snapshots import (
    Row,
    event,
    findings_of,
    join,
    leave,
    listed_at,
    of_member,
    of_unknown_strategy,
    severities,
    snapshot_of,
    topic,
)

FROZEN_GROUP = "FROZEN_GROUP"
NEARBY = "MACHINE_ROOM_NEARBY-AVG(room_separator=-)"


def test_a_topic_that_does_not_exist() -> None:
    (one,) = findings_of(FROZEN_GROUP, snapshot_of(join("x")))
    assert "T has no readable queue (no broker has the topic)" in one.summary


def test_a_deleted_and_a_closed_topic() -> None:
    gone = event(TOPIC_DELETED, 100, topic="T", broker_name="a")
    assert (
        "deleted from a"
        in findings_of(FROZEN_GROUP, snapshot_of(topic(), join("x"), gone))[0].summary
    )
    closed = snapshot_of(topic(), join("x"), topic(perm=2, at=100))
    assert "no read permission on a" in findings_of(FROZEN_GROUP, closed)[0].summary


def test_go_clients_let_go_of_a_topic_that_cannot_be_read() -> None:
    """Recorded with Go 2.1.2 beside Java: Go's set is empty 12 s later, Java's is what it was."""
    events = topic(), join("go"), join("java"), topic(perm=2, at=100)
    go, java = listed_at("a", 500, "go", language="GO"), listed_at("a", 500, "java")
    (one,) = findings_of(FROZEN_GROUP, snapshot_of(*events, members=[*go, *java]))
    assert "Members keep the queues they held" in one.summary
    assert "Go clients dropped the queues that they held: go." in one.summary
    (one,) = findings_of(FROZEN_GROUP, snapshot_of(*events[:2], events[3], members=go))
    assert "keep" not in one.summary
    (one,) = findings_of(FROZEN_GROUP, snapshot_of(*events, members=java))
    assert "Go clients" not in one.summary


def test_a_topic_that_cannot_be_read_is_reported_though_no_member_freezes() -> None:
    """Neither Go clients nor those of which it was only read are FROZEN in the ledger."""
    events = topic(), topic(perm=2, at=100)
    (one,) = findings_of(FROZEN_GROUP, snapshot_of(*events, join("x", language="GO")))
    assert "Allocation has failed on x since" in one.summary
    assert "T has no readable queue (no read permission on a). Go clients" in one.summary
    both = join("x", language="GO"), join("y", language="CPP")
    (one,) = findings_of(FROZEN_GROUP, snapshot_of(*events, *both))
    assert "It is untested which queues these other clients keep: y." in one.summary
    assert findings_of(FROZEN_GROUP, snapshot_of(topic(), *both)) == []
    other = topic("U"), topic("U", perm=2, at=100)
    assert findings_of(FROZEN_GROUP, snapshot_of(topic(), *other, *both)) == []


def test_rooms_that_are_null() -> None:
    group = snapshot_of(topic(broker="r1-a"), join("plain", strategy=NEARBY))
    assert "machine room is null for plain" in findings_of(FROZEN_GROUP, group)[0].summary


def test_rooms_that_no_file_gives_freeze_nothing() -> None:
    named = snapshot_of(topic(broker="r1-a"), join("plain", strategy=NEARBY))
    assert findings_of(FROZEN_GROUP, of_unknown_strategy(named)) == []
    closed = snapshot_of(topic(), join("plain", strategy=NEARBY), topic(perm=2, at=100))
    assert "no read permission" in findings_of(FROZEN_GROUP, of_unknown_strategy(closed))[0].summary


def test_a_strategy_that_brokers_do_not_know() -> None:
    group = snapshot_of(
        topic(),
        join("x", strategy="CONSISTENT_HASH(virtual_nodes=10)"),
        settings=GroupSettings(rebalance_mode="BROKER"),
    )
    assert (
        "brokers do not know the strategy CONSISTENT_HASH"
        in findings_of(FROZEN_GROUP, group)[0].summary
    )


def test_who_never_asks_a_broker_is_not_frozen_by_it() -> None:
    strategy = "CONSISTENT_HASH(virtual_nodes=10)"
    asked = GroupSettings(rebalance_mode="BROKER")
    never: list[tuple[GroupSettings, Row]] = [
        (replace(asked, ordered=True), {}),
        (replace(asked, consumer_type="PULL"), {}),
        (asked, {"version": "4.9.7"}),
    ]
    for settings, own in never:
        group = snapshot_of(topic(), join("x", strategy=strategy, **own), settings=settings)
        assert findings_of(FROZEN_GROUP, group) == []
        # the topic is closed: that is why, and the broker's ignorance is not
        closed = snapshot_of(
            topic(), join("x", strategy=strategy, **own), topic(perm=2, at=100), settings=settings
        )
        (one,) = findings_of(FROZEN_GROUP, closed)
        assert "brokers do not know" not in one.summary


def test_created_in_time_settling_or_offline() -> None:
    assert findings_of(FROZEN_GROUP, snapshot_of(join("x"), topic(at=100))) == []
    assert findings_of(FROZEN_GROUP, snapshot_of(topic(), join("x"), topic(perm=2, at=980))) == []
    assert findings_of(FROZEN_GROUP, snapshot_of(join("x"), leave("x", 100))) == []


MEMBER_SUSPENDED = "MEMBER_SUSPENDED"
BASE = topic(), join("x"), join("y"), of_member(CONSUMER_SUSPEND, "x", 100)


def test_suspended_at_the_end() -> None:
    (one,) = findings_of(MEMBER_SUSPENDED, snapshot_of(*BASE))
    assert "it keeps 3 queues" in one.summary  # two of T, one of the retry topic
    assert one.last_ms is None


def test_who_else_holds_its_queues() -> None:
    (one,) = findings_of(MEMBER_SUSPENDED, snapshot_of(*BASE, leave("y", 200), join("z", at=300)))
    assert "T a:0-1" in one.summary


def test_long_and_short_suspensions_that_are_over() -> None:
    def until(at: float) -> GroupSnapshot:
        return snapshot_of(*BASE, of_member(CONSUMER_RESUME, "x", at))

    assert severities(MEMBER_SUSPENDED, until(161)) == ["INFO"]
    assert severities(MEMBER_SUSPENDED, until(130)) == ["INFO"]
    assert severities(MEMBER_SUSPENDED, snapshot_of(*BASE)) == ["WARNING"]


def test_no_member_is_suspended() -> None:
    assert findings_of(MEMBER_SUSPENDED, snapshot_of(*BASE[:-1])) == []


TRANSIENT_OWNERSHIP = "TRANSIENT_OWNERSHIP"
TOPICS = topic("A"), topic("B")


def test_queues_without_an_owner_for_a_moment() -> None:
    group = snapshot_of(*TOPICS, join("x", "A", "B"), join("y", "A", at=100), leave("y", 140))
    (one,) = findings_of(TRANSIENT_OWNERSHIP, group)
    assert "2 queues without an owner for a while" in one.summary
    assert "for 40 s; explained by CONSUMER_JOIN of y" in one.summary


def test_persistent_offline_or_duplicate_ids_are_not_transient() -> None:
    less = of_member(UNSUBSCRIBE, "y", 100, topic="B")
    standing = snapshot_of(*TOPICS, join("x", "A", "B"), join("y", "A", "B"), less)
    assert findings_of(TRANSIENT_OWNERSHIP, standing) == []
    offline = snapshot_of(topic(), join("x"), leave("x", 100), join("x", at=150, channel="n"))
    assert findings_of(TRANSIENT_OWNERSHIP, offline) == []
    duplicate = topic(), join("x"), join("x", at=100, channel="n"), leave("x", 140, "n")
    assert findings_of(TRANSIENT_OWNERSHIP, snapshot_of(*duplicate)) == []
