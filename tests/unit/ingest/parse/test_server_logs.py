"""Logs of name servers and proxies."""

import pytest

from rebalance_core.ingest.fact import Fact, Stated, Unread
from rebalance_core.ingest.parse.log_lines import ServerClock
from rebalance_core.ingest.parse.server_logs import ProxyClock, parse_namesrv_line, parse_proxy_line
from tests.unit.ingest.proxy_lines import (
    JSON,
    START_MS,
    added,
    closed,
    connected,
    expired,
    grpc,
    heartbeat,
    left,
    line,
    remote,
    remoting,
    starting,
)

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


# Lines of a proxy's logs, those broken over several lines among them.

NETTY = "[id: 0x14f858ac, L:/10.0.9.1:10911 - R:/10.0.0.1:4001]"


def read(text: str) -> list[Fact | Unread]:
    """The facts of a log but for its signs of life."""
    clock = ProxyClock()
    found = [
        piece
        for number, one in enumerate(text.splitlines(), 1)
        for piece in parse_proxy_line(one, f"p:{number}", clock)
    ]
    return [one for one in found if not (isinstance(one, Stated) and one.kind == "proxy_alive")]


def kinds(text: str) -> list[str]:
    return [one.kind if isinstance(one, Stated) else one.code for one in read(text)]


def test_every_line_on_members() -> None:
    text = (
        connected(1, grpc()) + added(1) + heartbeat(2) + expired(3) + left(4, grpc())
        + closed(5, remoting("c", 4002), "c")
        + line(6, "unregister consumer ok, no any connection, and remove consumer group, g-push")
    )  # fmt: skip
    assert kinds(text) == [
        "consumer_connected", "group_topic", "consumer_expired", "consumer_left",
        "consumer_closed", "group_emptied",
    ]  # fmt: skip


def test_a_line_that_goes_on() -> None:
    """JSON of several lines, and the rest of the message after it: one statement of its first."""
    for make in (connected, left, closed):
        text = make(1, remote(attribute=JSON))
        assert text.count("\n") == JSON.count("\n") + 1
        (fact,) = read(line(0, "before") + text + line(2, "after"))
        assert isinstance(fact, Stated)
        (plain,) = read(make(1, remote()))
        assert isinstance(plain, Stated)
        assert (fact.kind, fact.values, fact.at_ms) == (plain.kind, plain.values, plain.at_ms)
        assert fact.at_ms == START_MS + 1000
        assert fact.source == "p:2"


def test_a_line_whose_end_is_missing_is_refused() -> None:
    begun = connected(1, remote(attribute=JSON)).splitlines()[0]
    (refused,) = read(begun + "\n" + line(2, "after"))
    assert isinstance(refused, Unread)
    assert refused.source == "p:1"
    assert "the lines that follow do not end it" in refused.message


def test_an_end_without_its_beginning_says_nothing() -> None:
    """As at the beginning of a split."""
    text = "\n".join(connected(1, remote(attribute=JSON)).splitlines()[1:])
    assert read(text) == []


def test_a_version_alone_is_noise_and_another_expression_is_none() -> None:
    assert kinds(heartbeat(1)) == []
    before, _, after = heartbeat(1).rpartition("subString=*")
    assert kinds(before + "subString=a" + after) == ["subscription_changed"]


def test_a_brokers_own_connection_is_none_of_a_proxys() -> None:
    assert kinds(connected(1, NETTY) + left(2, NETTY) + closed(3, NETTY)) == []


def test_a_member_line_without_its_fields_is_refused() -> None:
    cut = connected(1, grpc()).replace("remoteAddress", "addr")
    assert kinds(cut) == ["UNPARSABLE_LINE"]
    assert kinds(connected(1, remote(protocol="OTHER"))) == ["UNPARSABLE_LINE"]


def test_a_start_and_its_mode() -> None:
    text = (
        line(1, "Current configuration: {") + '\t"grpcServerPort":8081,\n'
        + '\t"proxyMode":"Cluster",\n}\n' + starting(2)
    )  # fmt: skip
    assert kinds(text) == ["proxy_starting", "proxy_mode", "proxy_starting"]
    assert read('\t"proxyMode":"CLUSTER",\n') == []  # nothing tells when


def test_a_sign_of_life_a_minute() -> None:
    clock = ProxyClock()
    text = "".join(heartbeat(second) for second in (1, 11, 59, 61, 62))
    found = [f for one in text.splitlines() for f in parse_proxy_line(one, "p:1", clock)]
    times = [fact.at_ms for fact in found if isinstance(fact, Stated)]
    assert times == [START_MS + 1_000, START_MS + 61_000]
