"""Lines on queues that a client holds and does not pull, or does not take over."""

import json
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from rebalance_core.ingest.collection import CLIENT_LOG
from rebalance_core.ingest.fact import Fact, Stated, Unread
from rebalance_core.ingest.log_block import LogBlock
from rebalance_core.ingest.parse.client_log import parse_client_line
from rebalance_core.ingest.parse.go_and_cpp_logs import Translator
from rebalance_core.ingest.parse.log_lines import ClientClock, Clock

AT = "2026-11-21 11:47:31,000 WARN RocketmqClient - "
QUEUE = "MessageQueue [topic=T, brokerName=a, queueId=3]"
REQUEST = f"PullRequest [consumerGroup=g, messageQueue={QUEUE}, nextOffset=1092]"
NAMED = {"group": "g", "topic": "T", "broker_name": "a", "queue_id": 3}


def states(message: str) -> list[Fact | Unread]:
    """Also asserts that the reader of blocks hands the line over to the parser."""
    clock = ClientClock(Clock(ZoneInfo("UTC")))
    pieces = list(parse_client_line(AT + message, "client.log:1", clock))
    block = LogBlock(pa.array([AT + message]), CLIENT_LOG)
    assert not pieces or block.rows_to_read(ZoneInfo("UTC")) == [0]
    return pieces


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        # 4.3 and later; 3.x had one line for the count
        (
            "the cached message count exceeds the threshold 1000, so do flow control, "
            f"minOffset=68, maxOffset=1091, count=1024, size=0 MiB, pullRequest={REQUEST}, "
            "flowControlTimes=711001",
            "COUNT",
        ),
        (
            "the cached message size exceeds the threshold 100 MiB, so do flow control, "
            f"minOffset=68, maxOffset=91, count=24, size=101 MiB, pullRequest={REQUEST}, "
            "flowControlTimes=1",
            "SIZE",
        ),
        (
            "the consumer message buffer is full, so do flow control, minOffset=68, "
            f"maxOffset=1091, size=1024, pullRequest={REQUEST}, flowControlTimes=1",
            "COUNT",
        ),
        (
            "the queue's messages, span too long, so do flow control, minOffset=68, "
            f"maxOffset=2070, maxSpan=2002, pullRequest={REQUEST}, flowControlTimes=1",
            "SPAN",
        ),
    ],
)
def test_flow_control_names_the_queue_and_why(message: str, reason: str) -> None:
    (found,) = states(message)
    assert isinstance(found, Stated)
    values = {**NAMED, "reason": reason, "min_offset": 68}
    assert (found.kind, found.values) == ("flow_controlled", values)
    (found,) = states(message.replace("minOffset=68", "minOffset=-1"))
    assert isinstance(found, Stated)
    assert found.values == {**NAMED, "reason": reason}


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (f"doRebalance, g, add a new mq failed, {QUEUE}, because lock failed", "LOCK_FAILED"),
        (f"doRebalance, g, add new mq failed, {QUEUE}, because lock failed", "LOCK_FAILED"),
        (f"doRebalance, g, add new mq failed, {QUEUE}", "NO_OFFSET"),
        (f"doRebalance, g, compute offset failed, {QUEUE}", "OFFSET_FAILED"),
    ],
)
def test_a_pass_that_does_not_take_over_a_queue_is_a_refused_start(
    message: str, reason: str
) -> None:
    (found,) = states(message)
    assert isinstance(found, Stated)
    assert (found.kind, found.values) == ("start_refused", {**NAMED, "reason": reason})


def test_a_queue_that_is_there_already_states_nothing() -> None:
    assert states(f"doRebalance, g, mq already exists, {QUEUE}") == []


def test_a_topic_without_a_route() -> None:
    (found,) = states("doRebalance, g, but the topic[T] not exist.")
    assert isinstance(found, Stated)
    assert (found.kind, found.values) == ("topic_missing", {"group": "g", "topic": "T"})


def test_an_order_lock_that_a_client_keeps_names_no_group() -> None:
    words = "[WRONG]mq is consuming, so can not unlock it, "
    (found,) = states(f"{words}{QUEUE}. maybe hanged for a while, 3")
    assert isinstance(found, Stated)
    named = {name: value for name, value in NAMED.items() if name != "group"}
    assert (found.kind, found.values) == ("unlock_failed", named)
    assert all(isinstance(one, Unread) for one in states(words + QUEUE[:30]))


EXPIRED = (
    "send expire msg back. topic=T, msgId=7F0000010DE218B4AAC2, storeHost=/10.0.0.1:10911, "
    "queueId=3, queueOffset=70"
)
EXPIRED_VALUES = {"topic": "T", "address": "10.0.0.1:10911", "queue_id": 3, "offset": 70}


def threaded(thread: str) -> str:
    """Return the head of a line of 5.1 and later, as ProcessQueue logs it."""
    return f"2026-11-21 11:47:31.000 INFO  [7] [{thread}] [RocketmqClient#cleanExpiredMsg:106] - "


@pytest.mark.parametrize(
    ("head", "group"),
    [
        (threaded("CleanExpireMsgScheduledThread_orders_v2_1"), "orders_v2"),  # 5.1.1+
        (threaded("CleanExpireMsgScheduledThread_1"), None),  # 5.1.0
        (threaded(f"CleanExpireMsgScheduledThread_{'g' * 100}_1"), None),  # cut off
        (AT, None),  # 4.9
    ],
)
def test_a_message_that_expired_names_the_group_by_its_thread(head: str, group: str | None) -> None:
    clock = ClientClock(Clock(ZoneInfo("UTC")))
    (found,) = parse_client_line(head + EXPIRED, "client.log:1", clock)
    assert isinstance(found, Stated)
    values = dict(found.values)
    values.pop("pid", None)
    kind = "message_expired" if group else "message_of_any_expired"
    assert (found.kind, values) == (kind, EXPIRED_VALUES | ({"group": group} if group else {}))
    block = LogBlock(pa.array([head + EXPIRED]), CLIENT_LOG)
    assert block.rows_to_read(ZoneInfo("UTC")) == [0]


def test_a_message_that_expired_is_not_read_if_its_line_is_cut_off() -> None:
    assert all(isinstance(one, Unread) for one in states(EXPIRED[:90]))


def test_an_illegal_offset_has_both_offsets() -> None:
    result = "PullResult [pullStatus=OFFSET_ILLEGAL, nextBeginOffset=7358, minOffset=0, "
    result += "maxOffset=7358, msgFoundList=0]"
    (found,) = states(f"the pull request offset illegal, {REQUEST} {result}")
    assert isinstance(found, Stated)
    assert (found.kind, found.values) == ("offset_illegal", {**NAMED, "asked": 1092, "given": 7358})


@pytest.mark.parametrize(
    "message",
    [
        "the queue's messages, span too long, so do flow control, pullRequest=PullRequest [consum",
        f"the cached message count exceeds the threshold 1, pullRequest={REQUEST[:60]}",
        f"the pull request offset illegal, {REQUEST} PullResult [pullStatus=OFFSET_ILLEGAL]",
        f"the pull request offset illegal, {REQUEST} PullResult [x, nextBeginOffset=many, ]",
    ],
)
def test_a_line_that_is_cut_off_is_not_read_as_another(message: str) -> None:
    found = states(message)
    assert all(isinstance(one, Unread) for one in found)


def test_a_lite_pull_consumer_names_no_queue() -> None:
    words = "The cached message count exceeds the threshold 1000, so do flow control, minOffset=1"
    assert states(words) == []


@pytest.mark.parametrize(
    "said",
    [
        "the queue's messages span too long, so do flow control",
        "the cached message count exceeds the threshold, so do flow control",
        "the cached message size exceeds the threshold, so do flow control",
    ],
)
def test_go_logs_it_with_fields(said: str) -> None:
    request = "[ConsumerGroup: g, Topic: T, MessageQueue: brokerName=a, queueId=3, nextOffset=7]"
    fields = {"level": "warning", "msg": said, "time": "2022-10-14T10:24:00Z"}
    line = json.dumps(fields | {"PullRequest": request, "minOffset": 68})
    translated = Translator().line(line)
    assert translated is not None
    (found,) = states(translated.message)
    assert isinstance(found, Stated)
    assert found.kind == "flow_controlled"
    assert found.values.items() >= {**NAMED, "min_offset": 68}.items()


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("do defaultConsumer, add a new mq failed, because lock failed", "LOCK_FAILED"),
        ("do defaultConsumer, add a new mq failed", "NO_OFFSET"),
    ],
)
def test_go_passes_do_not_take_over_a_queue_either(said: str, reason: str) -> None:
    """``defaultConsumer.updateProcessQueueTable``, as JSON and as logrus' text."""
    fields = {"level": "warning", "msg": said, "time": "2022-10-14T10:24:00Z"}
    queue = {"consumerGroup": "g", "MessageQueue": QUEUE}
    text = f'time="{fields["time"]}" level=warning msg="{said}" MessageQueue="{QUEUE}"'
    for line in (json.dumps(fields | queue), f"{text} consumerGroup=g"):
        translated = Translator().line(line)
        assert translated is not None
        (found,) = states(translated.message)
        assert isinstance(found, Stated)
        assert (found.kind, found.values) == ("start_refused", {**NAMED, "reason": reason})
