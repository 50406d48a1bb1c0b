"""Requests that servers refused or did not answer, in clients' logs."""

from zoneinfo import ZoneInfo

import pytest

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.client_log import parse_client_line
from rebalance_core.ingest.parse.failed_requests import REASON_CHARACTERS, reason_of
from rebalance_core.ingest.parse.go_and_cpp_logs import Translator
from rebalance_core.ingest.parse.log_lines import ClientClock, Clock

NEW = "2024-05-06 09:00:01.000 WARN  [7] [Public_1] [o.a.r.c.i.c.X#?:?] - "
OLD = "2024-05-06 09:00:01,000 WARN RocketmqClient - "
PULL = "execute the pull request exception"
REFUSED = "org.apache.rocketmq.client.exception.MQBrokerException: CODE: "
TIMED_OUT = "org.apache.rocketmq.remoting.exception.RemotingTimeoutException: wait response on the "
QUEUE = "MessageQueue [topic=T, brokerName=b, queueId=0]"


def read(*lines: str) -> list[Fact | Unread]:
    clock = ClientClock(Clock(ZoneInfo("UTC")))
    facts = [parse_client_line(line, f"c.log:{n}", clock) for n, line in enumerate(lines, 1)]
    return [fact for of_line in facts for fact in of_line]


def values(*lines: str) -> dict[str, object]:
    (fact,) = read(*lines)
    assert not isinstance(fact, Unread)
    return dict(fact.values) | {"kind": fact.kind}


@pytest.mark.parametrize(
    ("lines", "reason", "address"),
    [
        (
            (
                NEW + PULL,
                f"{REFUSED}16  DESC: subscription group no permission, g BROKER: 1.1.1.1:1",
            ),
            "CODE 16: subscription group no permission, g",
            "1.1.1.1:1",
        ),
        (
            (
                OLD + PULL,
                f"{REFUSED}26  DESC: subscription group [g] does not exist, See "
                "http://rocketmq.apache.org/docs/faq/ for further details.",
            ),
            "CODE 26: subscription group [g] does not exist",
            "",
        ),
        (
            (
                f"{NEW}{PULL}, group=g, messageQueue={QUEUE}",
                f"{REFUSED}24  DESC: the consumer's group info not exist\r",
            ),
            "CODE 24: the consumer's group info not exist",
            "",
        ),
        (
            (
                f"{NEW}{PULL}, group=g, messageQueue={QUEUE}",
                f"{TIMED_OUT}channel <1.1.1.1:1> timeout, 3000(ms)",
            ),
            "wait response on the channel <1.1.1.1:1> timeout, 3000(ms)",
            "",
        ),
        (
            (
                f"{NEW}getConsumerIdListByGroup exception, 1.1.1.1:1 g",
                "org.apache.rocketmq.remoting.exception.RemotingConnectException: connect to "
                "<1.1.1.1:1> failed",
            ),
            "connect to <1.1.1.1:1> failed",
            "1.1.1.1:1",
        ),
    ],
)
def test_the_reason_is_what_the_server_or_the_network_gave(
    lines: tuple[str, str], reason: str, address: str
) -> None:
    found = values(*lines)
    assert (found["kind"], found["group"]) == ("request_failed", "g")
    assert (found["reason"], found["address"]) == (reason, address)
    assert found["request"] == ("MEMBER_LIST" if "IdList" in lines[0] else "PULL")


def test_a_refusal_without_a_group_is_of_the_broker_that_refused() -> None:
    refused = f"{REFUSED}24  DESC: the consumer's group info not exist"
    found = values(OLD + PULL, f"{refused} BROKER: 1.1.1.1:1")
    reason = "CODE 24: the consumer's group info not exist"
    assert found == {"kind": "pull_refused", "address": "1.1.1.1:1", "reason": reason}
    assert read(OLD + PULL, refused) == []


def test_exceptions_of_other_requests_state_nothing() -> None:
    exception = f"{REFUSED}16  DESC: subscription group no permission, g BROKER: 1.1.1.1:1"
    assert read(exception) == []
    assert len(read(NEW + PULL, exception, exception)) == 1, "the second has no line before it"
    assert read(NEW + PULL, f"Caused by: {exception}") == []


@pytest.mark.parametrize("end", ["failed", "exception, because the broker not up, forget it"])
@pytest.mark.parametrize("version", ["", "sendHeartbeatToAllBrokerV2 "])
def test_a_heartbeat_that_a_broker_refuses_has_its_words(end: str, version: str) -> None:
    line = f"{NEW}{version}send heart beat to broker[b 0 1.1.1.1:1] {end}"
    refused = f"{REFUSED}1  DESC: User:u has no permission to access Group:g BROKER: 1.1.1.1:1"
    failed, why = read(line, refused)
    assert not isinstance(failed, Unread)
    assert not isinstance(why, Unread)
    assert (failed.kind, why.kind) == ("heartbeat_failed", "heartbeat_refused")
    assert why.values == {
        "address": "1.1.1.1:1",
        "reason": "CODE 1: User:u has no permission to access Group:g",
    }


def test_a_heartbeat_that_arrives_has_no_exception() -> None:
    refused = f"{REFUSED}1  DESC: no BROKER: 1.1.1.1:1"
    assert read(f"{NEW}send heart beat to broker[b 0 1.1.1.1:1] success", refused) == []


def test_the_same_reason_is_the_same_text() -> None:
    reset = "read tcp 10.0.0.1:{}->1.1.1.1:10911: connection reset"
    assert len({reason_of(reset.format(port)) for port in (40001, 40002)}) == 1
    busy = "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: {}ms"
    assert len({reason_of(busy.format(ms)) for ms in (201, 203)}) == 1
    assert len(reason_of("x" * 1_000)) == REASON_CHARACTERS


def go(*lines: str) -> list[Fact | Unread]:
    translator, head = Translator(), 'time="2021-05-12T01:59:40Z" level=error msg='
    return read(
        *(f"{NEW}{one.message}" for one in map(translator.line, map(head.__add__, lines)) if one)
    )


LIST = (
    '"get consumer list of group from broker error" broker="10.0.0.1:10911" consumerGroup=g '
    'underlayError="dial tcp 10.0.0.1:10911: i/o timeout"'
)


def test_a_go_client_logs_why_in_underlay_error() -> None:
    (fact,) = go(LIST)
    assert not isinstance(fact, Unread)
    assert {name: fact.values[name] for name in ("group", "request", "address", "reason")} == {
        "group": "g",
        "request": "MEMBER_LIST",
        "address": "10.0.0.1:10911",
        "reason": "dial tcp 10.0.0.1:10911: i/o timeout",
    }


def test_a_go_client_s_failed_pull_is_of_the_one_group_of_its_log() -> None:
    pull = '"pull message from broker error" broker="10.0.0.1:10911" underlayError="code 16, no"'
    facts = go(LIST, pull)
    assert [fact.values["request"] for fact in facts if not isinstance(fact, Unread)] == [
        "MEMBER_LIST",
        "PULL",
    ]
    assert len(go(LIST, LIST.replace("=g ", "=h "), pull)) == 2, "of g or of h"
    assert go(pull) == []


@pytest.mark.parametrize("asked", ["<1.1.1.1:10911>", "1.1.1.1:10911", "<b-0.svc:10911>"])
def test_a_connection_that_failed_has_the_address_that_was_asked(asked: str) -> None:
    exception = "org.apache.rocketmq.remoting.exception.RemotingConnectException: connect to "
    failed = values(f"{NEW}{PULL}, group=g", f"{exception}{asked} failed")
    assert (failed["kind"], failed["group"]) == ("request_failed", "g")
    assert (failed["address"], failed["reason"]) == (
        asked.strip("<>"),
        f"connect to {asked} failed",
    )


def test_a_go_client_s_refusal_is_one_line_in_a_java_client_s_words() -> None:
    said = (
        r"unknown Response Code: 24, remark: the consumer's group info not exist\nSee "
        "https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
    )
    fields = f'broker="1.1.1.1:1" underlayError="{said}"'
    head = 'time="2023-12-19T11:11:36+08:00" level=warning msg="pull message from broker error" '
    refused = head + fields
    line = Translator("g").line(refused)
    assert line is not None
    assert line.message.endswith(
        "PULL, group=g, address=1.1.1.1:1, reason=CODE 24: the consumer's group info not exist"
    )
    line = Translator().line(refused)
    assert line is not None
    assert line.message == "pull message from broker error"


def test_a_refusal_without_a_group_belongs_to_the_only_one_of_the_log() -> None:
    for blanks in (" ", "  "):  # a page may collapse two blanks
        refused = f"{REFUSED}24{blanks}DESC: the consumer's group info not exist"
        clock = ClientClock(Clock(ZoneInfo("UTC")), "g")
        parse_client_line(OLD + PULL, "c.log:1", clock)
        (fact,) = parse_client_line(refused, "c.log:2", clock)
        assert not isinstance(fact, Unread)
        assert (fact.kind, fact.values["group"]) == ("request_failed", "g")
        assert fact.values["reason"] == "CODE 24: the consumer's group info not exist"
        assert read(OLD + PULL, refused) == []
