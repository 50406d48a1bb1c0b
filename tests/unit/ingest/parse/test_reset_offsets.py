"""Offsets that a broker logs as reset or moved."""

import pytest

from rebalance_core.ingest.fact import Fact, Stated, Unread
from rebalance_core.ingest.parse.broker_log import parse_broker_line
from rebalance_core.ingest.parse.lock_and_pop_logs import parse_pop_line
from rebalance_core.ingest.parse.log_lines import ServerClock

# Lines of 5.4.0.
RESET_HEAD = "2026-11-24 00:33:19 INFO AdminBrokerThread_10 - "
RESET_MS = 1795451599000  # GMT+8
TWO_QUEUES = (
    'Reset offset, topic=R, group=off, queues={"offsetTable":{{"brokerName":"mq1","queueId":2,'
    '"topic":"R"}:4,{"brokerName":"mq1","queueId":1,"topic":"R"}:5}}'
)


def read(message: str) -> tuple[Fact | Unread, ...]:
    return parse_broker_line(RESET_HEAD + message, "broker.log:492", ServerClock())


def test_each_queue_of_a_reset_is_a_fact() -> None:
    assert read(TWO_QUEUES) == tuple(
        Fact(
            "offset_reset",
            RESET_MS,
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


def test_what_begins_a_reset_shows_no_offset() -> None:
    (asked,) = read(
        "[reset-offset] reset offset started by 127.0.0.1:37124. topic=R, group=off, timestamp=1, "
        "isForce=true"
    )
    assert isinstance(asked, Stated)
    assert (asked.kind, dict(asked.values)) == (
        "reset_asked",
        {"by": "127.0.0.1:37124", "topic": "R", "group": "off"},
    )
    assert read("Reset offset aborted: no queues to reset") == ()


def test_a_commit_that_a_reset_refuses() -> None:
    line = (
        "Update consumer offset is rejected because of previous offset-reset. Group=ledger, "
        "Topic=R, QueueId=3, Offset=11"
    )
    (fact,) = read(line)
    assert isinstance(fact, Stated)
    assert (fact.kind, dict(fact.values)) == (
        "commit_refused",
        {"group": "ledger", "topic": "R", "queue_id": 3},
    )
    (refused,) = read(line.replace("QueueId=3", "QueueId=x"))
    assert isinstance(refused, Unread)


POP_MOVED = "WARN PullMessageThread_1 - Pop initial offset, because store is no correct, "


@pytest.mark.parametrize("topic", ["orders", "%RETRY%g_orders"])
def test_an_offset_of_pop_that_the_queue_lacks_is_moved(topic: str) -> None:
    """PopMessageProcessor, 5.0 to 5.3; the key is topic@group@queue."""
    line = f"2026-11-21 11:47:31 {POP_MOVED}{topic}@g@3, 120->7"
    values = {"topic": topic, "group": "g", "asked": 120, "given": 7}
    moved = Fact("offset_corrected", 1795232851000, values, "pop.log:1")
    assert parse_pop_line(line, "pop.log:1", ServerClock()) == (moved,)


@pytest.mark.parametrize("rest", ["orders@g, 1->2", "@g@0, 1->2", "t@g@0, 1->null", "t@g@0, 1"])
def test_a_moved_offset_of_another_form_is_rejected(rest: str) -> None:
    line = f"2026-11-21 11:47:31 {POP_MOVED}{rest}"
    (refused,) = parse_pop_line(line, "pop.log:1", ServerClock())
    assert isinstance(refused, Unread)


def test_routine_lines_of_pop_log_state_nothing() -> None:
    line = "2026-11-22 15:05:45 INFO PopReviveService_0 - reviveQueueId=0, old offset is -1 "
    assert parse_pop_line(line, "pop.log:1", ServerClock()) == ()


REVIVE = "2026-11-30 01:51:10 {} PopReviveService_3 - {}"


@pytest.mark.parametrize(
    ("level", "message", "kind", "values"),
    [
        (  # 5.5.0, recorded; 5.0 to 5.1 print it without the blank
            "INFO",
            "reviveQueueId=3, revive finish,old offset is 2, new offset is 5, ckDelay=86  ",
            "revive_pass",
            {"revive_queue": 3, "late_s": 60, "stands": False},
        ),
        (
            "INFO",
            "reviveQueueId=3,revive finish,old offset is 5, new offset is 5, ckDelay=3  ",
            "revive_pass",
            {"revive_queue": 3, "late_s": 0, "stands": False},
        ),
        (
            "INFO",
            "reviveQueueId=0, revive finish,old offset is 5, new offset is 5, ckDelay=9000 ",
            "revive_pass",
            {"revive_queue": 0, "late_s": 7_200, "stands": True},
        ),
        (
            "WARN",
            "skip revive topic because timerWheelEnable is false",
            "revive_trouble",
            {"reason": "SWITCHED_OFF"},
        ),
        (
            "ERROR",
            "reviveQueueId=3, revive error",
            "revive_trouble",
            {"reason": "FAILED", "revive_queue": 3},
        ),
        (
            "ERROR",
            "reviveQueueId=3, revive error, msg is: MessageExtBrokerInner [queueId=0]",
            "revive_trouble",
            {"reason": "PUT_FAILED", "revive_queue": 3},
        ),
        (
            "ERROR",
            "reviveQueueId=3, OFFSET_ILLEGAL 7, result is PullResult [pullStatus=X]",
            "revive_trouble",
            {"reason": "OFFSET_ILLEGAL", "revive_queue": 3},
        ),
        (
            "INFO",
            "reviveQueueId=3, can not get biz msg, topic:T, qid:0, offset:7, brokerName:b, "
            "info:, retry:true, then continue",
            "revive_trouble",
            {"reason": "MESSAGE_NOT_READ", "topic": "T"},
        ),
        (
            "INFO",
            "reviveQueueId=3, can not get biz msg, topic:T, qid:0, offset:7, brokerName:b, "
            "info:NO_MESSAGE, retry:false, then continue",
            "revive_trouble",
            {"reason": "MESSAGE_GONE", "topic": "T"},
        ),
        (
            "WARN",
            "reviveQueueId=3,can not get biz msg topic is T, offset is 7 , then continue ",
            "revive_trouble",
            {"reason": "MESSAGE_NOT_READ", "topic": "T"},
        ),
        (
            "WARN",
            "stay too long, remove from reviveRequestMap, T, b, 0, 7",
            "revive_trouble",
            {"reason": "TOO_SLOW", "topic": "T"},
        ),
        (
            "WARN",
            "rePut CK reach max times, drop it. T, g, b, 0-7, 1795974440000, 60000, 17",
            "revive_trouble",
            {"reason": "GIVEN_UP", "topic": "T"},
        ),
        (
            "ERROR",
            "PopConsumerService drop record, message may be lost, record=PopConsumer{",
            "revive_trouble",
            {"reason": "GIVEN_UP"},
        ),
    ],
)
def test_what_the_revive_service_logs(
    level: str, message: str, kind: str, values: dict[str, object]
) -> None:
    """PopReviveService and PopConsumerService, by their source from 5.0.0 to 5.5.0."""
    stated = Fact(kind, 1795974670000, values, "pop.log:1")
    line = REVIVE.format(level, message)
    assert parse_pop_line(line, "pop.log:1", ServerClock()) == (stated,)


@pytest.mark.parametrize(
    "message",
    [
        "reviveQueueId=3, revive finish,old offset is -1, new offset is -1, ckDelay=0  ",
        "reviveQueueId=3, old offset is 7 ",
        "reviveQueueId=3, ck listSize=0",
        "reviveQueueId=3, has no new msg, take a rest 3",
        "start revive topic=rmq_sys_REVIVE_LOG_c, reviveQueueId=3",
        "skip start revive topic=rmq_sys_REVIVE_LOG_c, reviveQueueId=3",
    ],
)
def test_a_queue_without_checkpoints_and_routine_lines_state_nothing(message: str) -> None:
    assert parse_pop_line(REVIVE.format("INFO", message), "pop.log:1", ServerClock()) == ()


@pytest.mark.parametrize(
    "message",
    [
        "reviveQueueId=x, revive finish,old offset is 1, new offset is 2, ckDelay=3",
        "reviveQueueId=3, revive finish,old offset is 1, new offset is 2",
        "reviveQueueId=3, revive finish,old offset is 1, new offset is 2, ckDelay=soon",
        "reviveQueueId=3, can not get biz msg",
        "stay too long, remove from reviveRequestMap, T",
    ],
)
def test_a_pass_whose_fields_are_not_there_is_rejected(message: str) -> None:
    (refused,) = parse_pop_line(REVIVE.format("INFO", message), "pop.log:1", ServerClock())
    assert isinstance(refused, Unread)
