from typing import Any

from rebalance_core.audit.case import GroupCase
from tests.unit.audit.cases import case_of, end, findings_of, join, severities, topic


def group(**own: Any) -> GroupCase:
    return case_of(topic(**own), join("x"), ends=[end(n, 7) for n in range(8)])


def test_queues_that_are_written_and_not_read() -> None:
    (one,) = findings_of("READ_FEWER_THAN_WRITTEN", group(read=2, write=4))
    assert "2 queues that nobody may read (a:2-3; a read 2 / write 4): 14 messages" in one.summary
    assert findings_of("READ_FEWER_THAN_WRITTEN", group(read=4)) == []


def test_a_broker_that_is_not_readable_or_not_written() -> None:
    assert findings_of("READ_FEWER_THAN_WRITTEN", group(read=2, write=4, perm=2)) == []
    empty = case_of(topic(read=2, write=4, perm=4), join("x"))
    assert findings_of("READ_FEWER_THAN_WRITTEN", empty) == []


def test_a_change_under_way_is_for_information() -> None:
    case = case_of(topic(read=4), join("x"), topic(read=2, write=4, at=980))
    assert severities("READ_FEWER_THAN_WRITTEN", case) == ["INFO"]


def test_a_topic_nobody_subscribes_is_not_the_group_s() -> None:
    case = case_of(topic(), topic("Other", read=1, write=4), join("x"))
    assert findings_of("READ_FEWER_THAN_WRITTEN", case) == []


def test_queues_that_are_read_and_not_written() -> None:
    (one,) = findings_of("READ_MORE_THAN_WRITTEN", group(read=4, write=2))
    assert "2 queues that nobody writes (a:2-3" in one.summary
    assert findings_of("READ_MORE_THAN_WRITTEN", group(read=4)) == []


def test_a_broker_that_cannot_be_written() -> None:
    case = case_of(topic(), topic(broker="b", read=2, perm=4), join("x"))
    (one,) = findings_of("READ_ONLY_BROKER_COUNTED", case)
    assert "2 queues there hold whole shares: x 2" in one.summary
    assert findings_of("READ_ONLY_BROKER_COUNTED", group(read=2)) == []
