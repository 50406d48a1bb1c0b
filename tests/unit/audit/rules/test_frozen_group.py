from rebalance_core.model.events import TOPIC_DELETED
from rebalance_core.model.group_settings import GroupSettings
from tests.unit.audit.cases import case_of, event, findings_of, join, leave, topic

RULE = "FROZEN_GROUP"
NEARBY = "MACHINE_ROOM_NEARBY-AVG(room_separator=-)"


def test_a_topic_that_does_not_exist():
    (one,) = findings_of(RULE, case_of(join("x")))
    assert "T has no readable queue (no broker has the topic)" in one.summary


def test_a_deleted_and_a_closed_topic():
    gone = event(TOPIC_DELETED, 100, topic="T", broker_name="a")
    assert "deleted from a" in findings_of(RULE, case_of(topic(), join("x"), gone))[0].summary
    closed = case_of(topic(), join("x"), topic(perm=2, at=100))
    assert "no read permission on a" in findings_of(RULE, closed)[0].summary


def test_rooms_that_are_null():
    case = case_of(topic(broker="r1-a"), join("plain", strategy=NEARBY))
    assert "machine room is null for plain" in findings_of(RULE, case)[0].summary


def test_a_strategy_that_brokers_do_not_know():
    case = case_of(topic(), join("x", strategy="CONSISTENT_HASH(virtual_nodes=10)"),
                   settings=GroupSettings(rebalance_mode="BROKER"))  # fmt: skip
    assert "brokers do not know the strategy CONSISTENT_HASH" in findings_of(RULE, case)[0].summary


def test_who_never_asks_a_broker_is_not_frozen_by_it():
    strategy = "CONSISTENT_HASH(virtual_nodes=10)"
    for settings, own in (({"ordered": True}, {}), ({"consumer_type": "PULL"}, {}),
                          ({}, {"version": "4.9.7"})):  # fmt: skip
        settings = GroupSettings(rebalance_mode="BROKER", **settings)
        case = case_of(topic(), join("x", strategy=strategy, **own), settings=settings)
        assert findings_of(RULE, case) == []
        # the topic is closed: that is why, and the broker's ignorance is not
        closed = case_of(topic(), join("x", strategy=strategy, **own), topic(perm=2, at=100),
                         settings=settings)  # fmt: skip
        (one,) = findings_of(RULE, closed)
        assert "brokers do not know" not in one.summary


def test_created_in_time_settling_or_offline():
    assert findings_of(RULE, case_of(join("x"), topic(at=100))) == []
    assert findings_of(RULE, case_of(topic(), join("x"), topic(perm=2, at=980))) == []
    assert findings_of(RULE, case_of(join("x"), leave("x", 100))) == []
