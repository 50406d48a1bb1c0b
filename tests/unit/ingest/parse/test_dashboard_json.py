"""A dashboard's JSON states what the dump of mqadmin states that asks the same."""

import json
from typing import Any

import pytest

from rebalance_core.ingest.collection import CollectedFile
from rebalance_core.ingest.fact import Fact, Stated, Unread
from rebalance_core.ingest.file_reader import FileReader
from rebalance_core.ingest.parse.consumer_connection import parse_consumer_connection
from rebalance_core.ingest.parse.consumer_progress import parse_consumer_progress
from rebalance_core.ingest.parse.consumer_running_info import PROPERTIES
from rebalance_core.ingest.parse.consumer_status import parse_consumer_status
from rebalance_core.ingest.parse.dashboard_json import dashboard_answer

CLIENT = "10.0.0.1@7#11"


def answer(data: Any, error: str | None = None, status: int = 0) -> str:
    return json.dumps({"status": status, "data": data, "errMsg": error})


def facts(results: list[Fact | Unread] | None) -> list[tuple[str, dict[str, Any]]]:
    assert results is not None
    assert all(isinstance(piece, Stated) for piece in results), results
    return [(piece.kind, dict(piece.values)) for piece in results if isinstance(piece, Stated)]


def test_members_are_those_of_the_dump() -> None:
    text = (
        f"{'#ClientId':<35}  {'#ClientAddr':<21}  {'#Language':<9}  #Version\n"
        f"{CLIENT:<36} {'10.0.0.1:4000':<22} {'JAVA':<10} V5_3_2\n\n"
        "Below is subscription:\n#Topic               #SubExpression\n"
        f"{'T':<20} *\n\nConsumeType: CONSUME_PASSIVELY\nMessageModel: CLUSTERING\n"
        "ConsumeFromWhere: CONSUME_FROM_LAST_OFFSET\n"
    )
    data = {
        "connectionSet": [{"clientId": CLIENT, "clientAddr": "10.0.0.1:4000", "language": "JAVA",
                           "version": 477, "versionDesc": "V5_3_2"}],
        "subscriptionTable": {"T": {"topic": "T", "subString": "*"}},
        "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
    }  # fmt: skip
    expected = facts(parse_consumer_connection(text, "f"))
    assert len(expected) == 2
    assert facts(dashboard_answer("consumerConnection", answer(data), "f")) == expected


def test_no_member_is_online() -> None:
    error = "org.apache.rocketmq.client.exception.MQBrokerException: CODE: 206  DESC: not online"
    found = dashboard_answer("consumerConnection", answer(None, error, -1), "f")
    assert facts(found) == [("no_members", {"code": 206})]


def test_queues_and_holders_are_those_of_the_dump() -> None:
    widths = f"{'#Topic':<64}  {'#Broker Name':<32}  #QID  {'#Broker Offset':<20}  "
    row = f"{'T':<64}  {'broker-a':<32}  {'0':<4}  {'9':<20}  {'4':<20}  "
    text = (
        f"{widths}{'#Consumer Offset':<20}  {'#Client IP':<20} {'#Diff':<20}  #LastTime\n"
        f"{row}{'10.0.0.1':<20} {'5':<20}  2026-11-21 03:28:55\n\nDiff Total: 5\n"
    )
    data = [{"topic": "T", "diffTotal": 5, "queueStatInfoList": [
        {"brokerName": "broker-a", "queueId": 0, "brokerOffset": 9, "consumerOffset": 4,
         "clientInfo": CLIENT, "lastTimestamp": 1795231735000}]}]  # fmt: skip
    expected = facts(parse_consumer_progress(text, "f"))
    assert [kind for kind, _ in expected] == ["queue_progress", "progress_total"]
    found = facts(dashboard_answer("consumerProgress", answer(data), "f"))
    assert found[0][1].pop("client_id") == CLIENT, "the dump has the address alone"
    assert found == expected


def test_a_queue_without_a_holder_has_none() -> None:
    queue = {"brokerName": "b", "queueId": 0, "brokerOffset": 9, "consumerOffset": 4}
    for more, held in ((queue | {"clientInfo": None}, True), (queue, False)):
        data = [{"topic": "T", "queueStatInfoList": [more]}]
        (_, values), _ = facts(dashboard_answer("consumerProgress", answer(data), "f"))
        assert values["client_ip"] is None
        assert values["with_clients"] is held
        assert values["last_time_ms"] is None


RUNNING = (
    '{"properties":{"PROP_CONSUME_TYPE":"CONSUME_PASSIVELY","clientIP":"10.0.0.1",'
    '"instanceName":"7#11","allocateMessageQueueStrategy":'
    '"org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely@1b2"},'
    '"subscriptionSet":[{"classFilterMode":false,"subString":"*","topic":"T"}],'
    '"mqTable":{{"brokerName":"b","queueId":3,"topic":"T"}:{"cachedMsgCount":0,'
    '"cachedMsgMaxOffset":0,"cachedMsgMinOffset":0,"commitOffset":403,"droped":false,'
    '"lastConsumeTimestamp":1745303120000,"lastLockTimestamp":1745303120000,'
    '"lastPullTimestamp":1745305619100,"locked":true,"tryUnlockTimes":0}}}'
)


def test_what_a_client_reports_of_itself() -> None:
    found = facts(dashboard_answer("consumerStatus", RUNNING, "f"))
    assert [kind for kind, _ in found] == ["client", "client_subscription", "client_queue"]
    client, subscription, queue = (values for _, values in found)
    assert client["strategy"] == "AVG"
    assert client["queues_told"] is False  # a person copied it: what it lacks proves nothing
    assert subscription == {"topic": "T", "expression": "*", "class_filter": False}
    assert queue["last_pull_ms"] == 1745305619100
    assert queue["queue_id"] == 3
    line = (
        "ProcessQueueInfo [commitOffset=403, cachedMsgMinOffset=0, cachedMsgMaxOffset=0, "
        "cachedMsgCount=0, transactionMsgMinOffset=0, transactionMsgMaxOffset=0, "
        "transactionMsgCount=0, locked=true, tryUnlockTimes=0, "
        "lastLockTimestamp=20250422062520000, droped=false, lastPullTimestamp=20250422070659100, "
        "lastConsumeTimestamp=20250422062520000]"
    )
    text = (
        f"{PROPERTIES}\n{'PROP_CONSUME_TYPE':<40}: CONSUME_PASSIVELY\n\n#Consumer MQ Detail#\n"
        f"{'#Topic':<32}  #Broker Name\n{'T':<32}  {'b':<32}  {'3':<4}  {line}\n"
    )
    of_text: list[Fact | Unread] = [
        one for one in parse_consumer_status(text, "f") if isinstance(one, Stated)
    ]
    _, (_, of_dump) = facts(of_text)
    assert queue == of_dump


def test_it_belongs_to_the_client_that_it_names() -> None:
    file = CollectedFile(
        "mqadmin/1-consumerStatus-g.txt",
        "mqadmin",
        written_ms=1745305620000,
        arguments=("consumerStatus", "g"),
    )
    reader = FileReader(file, "UTC", ())
    assert [*reader.read_document(answer(None).replace("null", RUNNING, 1))]
    assert reader.file.arguments == ("consumerStatus", "g", CLIENT)


@pytest.mark.parametrize(
    "text",
    [
        answer({}), answer([]), answer(None), answer(None, "java.lang.RuntimeException", -1),
        answer({"connectionSet": []})[:-4], '{"status":0}', "[]", "", "#ClientId",
    ],
)  # fmt: skip
def test_what_states_nothing_is_no_answer(text: str) -> None:
    for command in ("consumerConnection", "consumerProgress", "consumerStatus"):
        assert not facts(dashboard_answer(command, text, "f") or [])


def test_an_entry_that_is_not_one_is_refused() -> None:
    data = [{"topic": "T", "queueStatInfoList": [{"brokerName": "b", "queueId": -1}]}]
    assert dashboard_answer("consumerProgress", answer(data), "f") is None
    queue = {"brokerName": "b", "queueId": 0, "brokerOffset": 9, "consumerOffset": 4}
    queues = [queue | {"consumerOffset": -2}, queue | {"queueId": 1}]
    data = [{"topic": "T", "queueStatInfoList": queues}]
    pieces = dashboard_answer("consumerProgress", answer(data), "f")
    assert pieces is not None
    refused, read = pieces
    assert isinstance(refused, Unread)
    assert refused.message == "consumerOffset of T, queue 0 is -2; an offset is -1 or more"
    assert facts([read])[0][1]["queue_id"] == 1
    named = RUNNING.replace('"queueId":3', '"queueId":-3')
    pieces = dashboard_answer("consumerStatus", named, "f")
    assert pieces is not None
    assert [piece.code for piece in pieces if isinstance(piece, Unread)] == ["BAD_NUMBER"]
