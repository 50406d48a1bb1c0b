"""Offsets that a broker logs as reset; the lines are of 5.4.0."""

import pytest

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.broker_log import parse_broker_line
from rebalance_core.ingest.parse.log_lines import ServerClock

AT = "2026-11-24 00:33:19 INFO AdminBrokerThread_10 - "
AT_MS = 1795451599000  # GMT+8
TWO_QUEUES = (
    'Reset offset, topic=R, group=off, queues={"offsetTable":{{"brokerName":"mq1","queueId":2,'
    '"topic":"R"}:4,{"brokerName":"mq1","queueId":1,"topic":"R"}:5}}'
)


def read(message: str) -> tuple[Fact | Unread, ...]:
    return parse_broker_line(AT + message, "broker.log:492", ServerClock())


def test_each_queue_of_a_reset_is_a_fact() -> None:
    assert read(TWO_QUEUES) == tuple(
        Fact(
            "offset_reset",
            AT_MS,
            {"group": "off", "topic": "R", "broker": "mq1", "queue_id": queue_id, "offset": offset},
            "broker.log:492",
        )
        for queue_id, offset in ((2, 4), (1, 5))
    )


@pytest.mark.parametrize(
    "message",
    [
        "Reset offset, topic=R, group=off",
        TWO_QUEUES.replace("4,", "four,"),
        TWO_QUEUES.replace('"queueId":1', '"queueId":-1'),
        TWO_QUEUES.replace("group=off", "group="),
        TWO_QUEUES[:-20],
        TWO_QUEUES[:-1],
    ],
)
def test_a_line_that_is_not_whole_is_refused(message: str) -> None:
    (refused,) = read(message)
    assert isinstance(refused, Unread)


@pytest.mark.parametrize(
    "message",
    [
        "[reset-offset] reset offset started by 127.0.0.1:37124. topic=R, group=off, timestamp=1, "
        "isForce=true",
        "Reset offset aborted: no queues to reset",
    ],
)
def test_what_begins_a_reset_tells_no_offset(message: str) -> None:
    assert read(message) == ()


def test_a_commit_that_a_reset_refuses() -> None:
    line = (
        "Update consumer offset is rejected because of previous offset-reset. Group=ledger, "
        "Topic=R, QueueId=3, Offset=11"
    )
    (fact,) = read(line)
    assert isinstance(fact, Fact)
    assert (fact.kind, dict(fact.values)) == (
        "commit_refused",
        {"group": "ledger", "topic": "R", "queue_id": 3},
    )
    (refused,) = read(line.replace("QueueId=3", "QueueId=x"))
    assert isinstance(refused, Unread)
