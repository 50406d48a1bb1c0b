"""Lines of Go and C++ clients, in the words of the Java client."""

import json

from rebalance_core.ingest.parse.go_and_cpp_logs import Translated, Translator

QUEUE = "MessageQueue [topic=T, brokerName=b, queueId=1]"


def messages(*lines: str, group: str = "") -> list[str]:
    translator = Translator(group)
    read = [translator.line(line) for line in lines]
    return [line.message for line in read if line is not None]


def cpp(message: str, place: str = "") -> str:
    return f"[2021-Jun-30 11:18:31.401570](info):{message}{place}"


def commit(group: str, offset: int) -> str:
    return f"[persistAll] Group: {group} ClientId:  updateConsumeOffsetToBroker {QUEUE} {offset}"


def test_columns_of_zap() -> None:
    fields = json.dumps({"consumerGroup": "g", "MessageQueue": QUEUE, "offset": 553})
    said = "update offset to broker success"
    for caller in ("", "mq/producer.go:100\t"):
        for more in ("", "\tgoroutine 7"):
            written = f"2023-07-31T13:13:57.195Z\tINFO\t{caller}{said}\t{fields}{more}"
            line = Translator().line(written)
            assert line == Translated("2023-07-31T13:13:57.195Z", commit("g", 553))
    # fields that end in the middle
    assert Translator().line(f"2023-07-31T13:13:57.195Z\tINFO\t{said}\t{fields[:-5]}") == (
        Translated("2023-07-31T13:13:57.195Z", said)
    )


def test_the_place_that_ends_a_line_of_a_cpp_client_is_no_part_of_it() -> None:
    empty = "[ERROR] Get empty consumer IDs. Consumer Group: g, Topic: T"
    for place in ("", "[doRebalance:94]"):
        assert messages(cpp(empty, place)) == ["doRebalance, g T, get consumer id list failed"]


def test_lines_of_a_cpp_client_that_name_the_group_of_its_commits() -> None:
    committed = cpp(f"oneway updateConsumeOffsetToBroker of mq:{QUEUE}, its offset is:7", "[x:1]")
    for named in (
        "[ERROR] Get empty consumer IDs. Consumer Group: g, Topic: T",
        "DefaultMQPushConsumerImpl:g start",
        f"Start to pull {QUEUE}, offset:5, GroupName g",
    ):
        assert messages(cpp(named, "[start:9]"), committed)[-1] == commit("g", 7)
        assert messages(cpp(named), committed, group="other")[-1] == commit("g", 7)
    (unattributed,) = messages(committed)
    assert unattributed.startswith("oneway updateConsumeOffsetToBroker of mq:")
    assert messages(committed, group="given") == [commit("given", 7)]
    start = "DefaultMQPushConsumerImpl:{} start"
    two = messages(cpp(start.format("g")), cpp(start.format("h")), committed, group="given")
    assert not two[-1].startswith("[persistAll]")
