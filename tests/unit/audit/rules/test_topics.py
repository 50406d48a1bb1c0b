"""Topics: numbers of queues, retry queues, topics that are gone."""

from typing import Any

from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.model.events import TOPIC_DELETED, Event
from rebalance_core.model.times import utc
from tests.unit.audit.snapshots import (
    Row,
    end,
    event,
    fact,
    findings_of,
    join,
    leave,
    ms,
    severities,
    snapshot_of,
    topic,
)


def group(**own: Any) -> GroupSnapshot:
    return snapshot_of(topic(**own), join("x"), ends=[end(n, 7) for n in range(8)])


def test_queues_that_are_written_and_not_read() -> None:
    (one,) = findings_of("READ_FEWER_THAN_WRITTEN", group(read=2, write=4))
    assert (
        "2 queues that no consumer may read (a:2-3; a read 2 / write 4): 14 messages"
    ) in one.summary
    assert findings_of("READ_FEWER_THAN_WRITTEN", group(read=4)) == []


def test_a_broker_that_is_not_readable_or_not_written() -> None:
    assert findings_of("READ_FEWER_THAN_WRITTEN", group(read=2, write=4, perm=2)) == []
    empty = snapshot_of(topic(read=2, write=4, perm=4), join("x"))
    assert findings_of("READ_FEWER_THAN_WRITTEN", empty) == []


def test_a_change_under_way_is_for_information() -> None:
    group = snapshot_of(topic(read=4), join("x"), topic(read=2, write=4, at=980))
    assert severities("READ_FEWER_THAN_WRITTEN", group) == ["INFO"]


def test_a_topic_without_a_subscriber_is_not_the_group_s() -> None:
    group = snapshot_of(topic(), topic("Other", read=1, write=4), join("x"))
    assert findings_of("READ_FEWER_THAN_WRITTEN", group) == []


def test_queues_that_are_read_and_not_written() -> None:
    (one,) = findings_of("READ_MORE_THAN_WRITTEN", group(read=4, write=2))
    assert "2 queues that no producer writes to (a:2-3" in one.summary
    assert findings_of("READ_MORE_THAN_WRITTEN", group(read=4)) == []


def test_a_broker_that_cannot_be_written() -> None:
    snapshot = snapshot_of(topic(), topic(broker="b", read=2, perm=4), join("x"))
    (one,) = findings_of("READ_ONLY_BROKER_COUNTED", snapshot)
    assert "2 queues there count as whole shares: x 2" in one.summary
    assert findings_of("READ_ONLY_BROKER_COUNTED", group(read=2)) == []


IMBALANCE, UNREAD = "RETRY_IMBALANCE", "RETRY_QUEUES_UNREAD"
RETRY = "%RETRY%g"
TWO = topic(), join("x"), join("y")


def test_more_members_than_retry_queues() -> None:
    (one,) = findings_of(IMBALANCE, snapshot_of(*TWO, ends=[end(0, 3, name=RETRY)]))
    assert "2 members share 1 retry queue" in one.summary
    assert "3 messages waiting" in one.summary


def test_no_retry_waits_or_enough_queues() -> None:
    assert findings_of(IMBALANCE, snapshot_of(*TWO, ends=[end(0, 0, name=RETRY)])) == []
    assert findings_of(IMBALANCE, snapshot_of(*TWO, topic(broker="b"))) == []


def config(queues: int) -> Row:
    return fact("GROUP_CONFIG", 0, 1000, broker_name="a", retry_queue_nums=queues)


def test_retries_go_to_queues_that_no_member_reads() -> None:
    retry = topic(RETRY, read=1)
    (one,) = findings_of(
        UNREAD, snapshot_of(*TWO, retry, facts=[config(4)], ends=[end(2, 6, name=RETRY)])
    )
    assert "4 queues (retryQueueNums)" in one.summary
    assert "6 messages in the rest" in one.summary
    assert findings_of(UNREAD, snapshot_of(*TWO, retry, facts=[config(1)])) == []
    assert findings_of(UNREAD, snapshot_of(*TWO, facts=[config(4)])) == []


RULE = "TOPIC_GONE"


def deleted(at: float, broker: str = "a", source: str | None = None) -> Event:
    return event(TOPIC_DELETED, at, topic="T", broker_name=broker, source=source)


def test_the_topic_of_a_member() -> None:
    (one,) = findings_of(RULE, snapshot_of(topic(), join("x"), deleted(100)))
    assert "T, subscribed by x, was deleted from a" in one.summary


def test_a_deletion_that_only_a_file_shows_is_not_dated_to_it() -> None:
    two, file = (topic(), topic(broker="b"), join("x")), "mqadmin/1-topicRoute-T.txt"
    (one,) = findings_of(RULE, snapshot_of(*two, deleted(100, source=file)))
    assert f"T, subscribed by x, was gone from a by {utc(ms(100))} ({file}; no log shows its " in (
        one.summary
    )
    (one,) = findings_of(RULE, snapshot_of(*two, deleted(100, source="brokers/a/broker.log:7")))
    assert f"was deleted from a at {utc(ms(100))}; b still" in one.summary
    (one,) = findings_of(
        RULE, snapshot_of(*two, deleted(100, source=file), deleted(200, "b", "b/broker.log:7"))
    )
    assert f"was gone from a, b by {utc(ms(100))} ({file}; no log shows its deletion from a)" in (
        one.summary
    )


def test_the_topic_of_the_last_members() -> None:
    group = snapshot_of(topic(), join("x"), leave("x", 50), deleted(100))
    assert severities(RULE, group) == ["WARNING"]


def test_a_route_that_still_has_it() -> None:
    group = snapshot_of(
        topic(), topic(broker="b"), join("x"), leave("x", 50), deleted(100), topic(at=900)
    )
    (one,) = findings_of(RULE, group)
    assert "b still has it; a has it again, or its route includes it again" in one.summary


def test_created_again_for_members_that_run() -> None:
    two = topic(), topic(broker="b"), join("x")
    assert severities(RULE, snapshot_of(*two, deleted(100))) == ["WARNING"]
    assert severities(RULE, snapshot_of(*two, deleted(100), topic(at=200))) == ["INFO"]


def test_broker_after_broker_the_last_one_too() -> None:
    """Members keep the queues of the last broker, so nothing of theirs ends with it."""
    two = topic(), topic(broker="b"), join("x"), deleted(100), deleted(130, "b")
    for made in ((), (topic(at=200), topic(broker="b", at=201)), (topic(broker="b", at=200),)):
        (one,) = findings_of(RULE, snapshot_of(*two, *made))
        assert "was deleted from a, b at" in one.summary
    assert severities(RULE, snapshot_of(*two, topic(at=200), topic(broker="b", at=201))) == ["INFO"]
    changed = topic(), topic(broker="b"), join("x"), deleted(100), topic(broker="b", perm=4, at=130)
    (one,) = findings_of(RULE, snapshot_of(*changed))
    assert "was deleted from a at" in one.summary


def test_a_deletion_before_the_group_had_the_topic() -> None:
    made = topic(), topic("U"), deleted(5), topic(at=6)
    assert findings_of(RULE, snapshot_of(*made, join("x", at=10))) == []
    assert findings_of(RULE, snapshot_of(*made, join("x", "U", at=1), join("y", at=10))) == []


def test_a_topic_that_no_member_asked_for() -> None:
    other = event(TOPIC_DELETED, 100, topic="Other", broker_name="a")
    assert findings_of(RULE, snapshot_of(topic(), topic("Other"), join("x"), other)) == []
