"""Logs of name servers."""

import pytest

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.log_lines import ServerClock
from rebalance_core.ingest.parse.server_logs import parse_namesrv_line

AT = "2026-11-21 11:35:53 INFO RemotingExecutorThread_1 - "
AT_MS = 1795232153000
QUEUES = "QueueData [brokerName=b, readQueueNums={}, writeQueueNums=4, perm=6, topicSysFlag=0]"
ROUTE = {"broker_name": "b", "read": 5, "write": 4, "perm": 6}


@pytest.mark.parametrize(
    ("message", "kind", "fields"),
    [
        (
            "new broker registered, 127.0.0.1:28040 HAServer: 127.0.0.1:28041",
            "broker_registered",
            {"address": "127.0.0.1:28040"},
        ),
        (
            "new broker registered, BrokerIdentityInfo [clusterName=C, brokerAddr=127.0.0.1:23030] "
            "HAService: 127.0.0.1:23031",
            "broker_registered",
            {"address": "127.0.0.1:23030", "cluster": "C"},
        ),
        (  # 5.0.0
            "new broker registered, BrokerAddrInfo [clusterName=C, brokerAddr=127.0.0.1:26100] "
            "HAService: 127.0.0.1:26101",
            "broker_registered",
            {"address": "127.0.0.1:26100", "cluster": "C"},
        ),
        (
            "unregisterBroker, remove addr from brokerAddrTable OK, BrokerAddrInfo "
            "[clusterName=C, brokerAddr=127.0.0.1:26120]",
            "replica_removed",
            {"address": "127.0.0.1:26120"},
        ),
        (
            "new broker registered, BrokerIdentityInfo [clusterName=C, brokerAddr=[fe80:0:0:0:a:b%"
            "eth0]:23030] HAService: [fe80:0:0:0:a:b%eth0]:23031",
            "broker_registered",
            {"address": "[fe80:0:0:0:a:b%eth0]:23030", "cluster": "C"},
        ),
        (
            "remove brokerAddr[1, [::1]:2] from brokerAddrTable, because channel destroyed",
            "replica_removed",
            {"address": "[::1]:2"},
        ),
        ("shutdown hook was invoked, 1 times.", "name_server_stopping", {}),
        ("kvConfigPath=/root/namesrv/kvConfig.json", "name_server_starting", {}),
        (
            "cluster [C] brokerName [b] master address change from null to 127.0.0.1:28040",
            "broker_address",
            {"broker": "b", "address": "127.0.0.1:28040", "cluster": "C"},
        ),
        (
            "cluster [C] brokerName [b] master address change from 1.1.1.1:1 to 1.1.1.1:1",
            "broker_known",
            {"broker": "b", "address": "1.1.1.1:1", "cluster": "C"},
        ),
        (
            "unregisterBroker, remove addr from brokerAddrTable OK, BrokerIdentityInfo "
            "[clusterName=C, brokerAddr=127.0.0.1:26020]",
            "replica_removed",
            {"address": "127.0.0.1:26020"},
        ),
        (
            "unregisterBroker, remove addr from brokerAddrTable OK, 127.0.0.1:28040",
            "replica_removed",
            {"address": "127.0.0.1:28040"},
        ),
        (
            "remove brokerAddr[1, 127.0.0.1:28050] from brokerAddrTable, because channel destroyed",
            "replica_removed",
            {"address": "127.0.0.1:28050"},
        ),
        (
            "unregisterBroker, remove name from brokerAddrTable OK, broker-c",
            "broker_removed",
            {"broker": "broker-c"},
        ),
        (
            "unregisterBroker, remove name from clusterAddrTable OK, broker-c",
            "broker_removed",
            {"broker": "broker-c"},
        ),
        (
            "remove brokerName[mq-north] from brokerAddrTable, because channel destroyed",
            "broker_removed",
            {"broker": "mq-north"},
        ),
        (
            "the broker's channel destroyed, 127.0.0.1:28030, clean it's data structure at once",
            "broker_channel_closed",
            {},
        ),
        (
            "The broker channel expired, BrokerIdentityInfo [clusterName=C, brokerAddr=1.1.1.1:1] "
            "120000ms",
            "broker_expired",
            {"address": "1.1.1.1:1"},
        ),
        (
            "supportActingMaster=true",
            "name_server_property",
            {"name": "supportActingMaster", "value": "true"},
        ),
        (f"new topic registered, T {QUEUES.format(5)}", "topic_registered", ROUTE | {"topic": "T"}),
        (
            f"topic changed, T OLD: {QUEUES.format(4)} NEW: {QUEUES.format(5)}",
            "topic_route",
            ROUTE | {"topic": "T", "old": ROUTE | {"read": 4}},
        ),
    ],
)
def test_each_line_of_ours_is_one_fact(message: str, kind: str, fields: dict[str, object]) -> None:
    found = parse_namesrv_line(AT + message, "namesrv.log:3", ServerClock())
    assert found == (Fact(kind, AT_MS, fields, "namesrv.log:3"),)


def test_a_line_like_ours_that_does_not_parse_is_named() -> None:
    (refused,) = parse_namesrv_line(AT + "topic changed, T OLD: ", "n:1", ServerClock())
    assert isinstance(refused, Unread)


def test_a_controller_inside_gives_ids() -> None:
    words = "BrokerIdentityInfo{clusterName='C', brokerName='b', brokerId=1}, brokerId:1"
    line = AT + "new broker registered, " + words
    assert parse_namesrv_line(line, "namesrv.log:1", ServerClock()) == ()
