from rebalance_core.audit.case import GroupCase
from tests.unit.audit.cases import case_of, findings_of, join, topic

RULE = "MACHINE_ROOM_UNMATCHED"


def reading(rooms: str, *brokers: str) -> GroupCase:
    topics = [topic(broker=name, read=2) for name in brokers]
    return case_of(*topics, join("x", strategy=f"MACHINE_ROOM(consumer_idcs={rooms})"))


def test_queues_of_rooms_that_nobody_names() -> None:
    (one,) = findings_of(RULE, reading("r1", "r1@a", "r2@b", "plain"))
    assert "4 queues of T (plain:0-1, r2@b:0-1)" in one.summary
    assert "plain not named room@broker" in one.summary
    assert "nobody names the rooms r2" in one.summary


def test_all_rooms_named_and_other_strategies() -> None:
    assert findings_of(RULE, reading("r1|r2", "r1@a", "r2@b")) == []
    assert findings_of(RULE, case_of(topic(broker="plain"), join("x"))) == []
