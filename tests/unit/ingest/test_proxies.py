"""Members behind proxies: what proxies and brokers answer of them, whose word counts, and when."""

from pathlib import Path

import pytest

from tests.recordings.tables import Row, Tables
from tests.unit.ingest.proxy_lines import (
    CLIENT,
    GROUP,
    JSON,
    PROXY_ADDRESSES,
    START_MS,
    TOPIC,
    added,
    closed,
    connected,
    expired,
    grpc,
    heartbeat,
    ingested_files,
    joins,
    left,
    line,
    logs,
    members,
    remote,
    remoting,
    starting,
)

# What mqadmin answers when a proxy is asked, and what brokers answer of groups behind one.

CONNECTIONS = """#ClientId                            #ClientAddr            #Language  #Version
{}                             10.0.0.1:4001          JAVA       V5_5_0

Below is subscription:
#Topic               #SubExpression
GA                   *

ConsumeType: CONSUME_PASSIVELY
MessageModel: CLUSTERING
ConsumeFromWhere: CONSUME_FROM_LAST_OFFSET
"""
NOT_ONLINE = (
    "org.apache.rocketmq.tools.command.SubCommandException: failed\n"
    "Caused by: org.apache.rocketmq.client.exception.MQBrokerException: CODE: 206  DESC: the "
    "consumer group[g-push] not online BROKER: 10.0.0.9:10911\n"
)
NO_ROUTE = NOT_ONLINE.replace("CODE: 206", "CODE: 17")
_ROW = "%-8s  %-32s  %-4s  %-20s  %-20s  %-20s %-20s %s\n"
PROGRESS = _ROW % (
    "#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", "#Diff", "#Inflight",
    "#LastTime",
) + _ROW % ("GA", "b", 0, 5, 3, 2, 0, "2026-11-22 07:10:00")  # fmt: skip
AT_MS = START_MS + 20_000
PROXY_1 = starting(0) + connected(10, grpc())


def dumped(folder: Path, settings: str = "", **dumps: str) -> Tables:
    """A proxy's log and dumps, their names with ``_`` for ``-``."""
    files = {f"mqadmin/{AT_MS}-{name.replace('_', '-')}.txt": text for name, text in dumps.items()}
    return ingested_files(folder, logs(proxy_1=PROXY_1) | files, settings)


def facts(tables: Tables, kind: str) -> list[Row]:
    return [row for row in tables["observed_facts"] if row["kind"] == kind]


def groups(tables: Tables) -> set[str | None]:
    found = {row["consumer_group"] for row in tables["observed_facts"]}
    return found | {row["consumer_group"] for row in tables["consumer_groups"]}


def test_members_that_a_proxy_lists(tmp_path: Path) -> None:
    tables = dumped(tmp_path, consumerConnection_g_push_proxy_1=CONNECTIONS.format(CLIENT))
    assert members(tables) == [("JOIN", CLIENT, 10, None)]
    (listed,) = tables["observed_members"]
    assert (listed["consumer_group"], listed["client_id"]) == (GROUP, CLIENT)
    assert (listed["asked_broker"], listed["version"]) == (None, None)  # a proxy's own version
    (at_proxy,) = facts(tables, "GROUP_AT_PROXY")
    assert at_proxy["details"]["proxy"] == "proxy-1"
    assert (at_proxy["details"]["members"], at_proxy["broker_name"]) == ("1", None)
    assert facts(tables, "GROUP_AT_BROKER") == []
    (connection,) = facts(tables, "CONNECTION")
    assert (connection["details"]["proxy"], connection["details"]["version"]) == ("proxy-1", "")
    assert groups(tables) == {None, GROUP}
    (join,) = joins(tables)
    assert join["subscriptions"] == ["GA"]  # no line of the log tells


def test_a_member_that_no_proxys_log_has(tmp_path: Path) -> None:
    tables = dumped(tmp_path, consumerConnection_g_push_proxy_1=CONNECTIONS.format("vm@2@0@b"))
    found = {(what, client, detail) for what, client, _, detail in members(tables)}
    assert ("JOIN", "vm@2@0@b", "OBSERVED") in found
    assert [row for row in tables["findings"] if row["rule_id"] == "INGEST_JOIN_NOT_LOGGED"]


def test_brokers_that_know_nobody_do_not_end_a_member(tmp_path: Path) -> None:
    tables = dumped(
        tmp_path,
        '[expected]\nbrokers = ["b"]\n',
        consumerConnection_g_push_b=NOT_ONLINE,
        consumerConnection_g_push_proxy_1=NOT_ONLINE,
    )
    assert ("JOIN", CLIENT, 10, None) in members(tables)
    asked = [(row["broker_name"], row["details"]) for row in facts(tables, "NOT_ONLINE")]
    assert asked == [("b", {}), (None, {"proxy": "proxy-1"})]
    assert tables["rejected"] == []


def test_a_broker_with_a_proxy_inside_answers_its_own_version(tmp_path: Path) -> None:
    """LOCAL mode: the broker itself lists its gRPC clients."""
    name = f"mqadmin/{AT_MS}-consumerConnection-{GROUP}-b.txt"
    files = {"brokers/b/broker.log": connected(10, grpc()), name: CONNECTIONS.format(CLIENT)}
    tables = ingested_files(tmp_path, files)
    (listed,) = tables["observed_members"]
    assert (listed["asked_broker"], listed["version"]) == ("b", None)
    (join,) = joins(tables)
    assert join.get("version") is None
    assert tables["consumer_groups"][0]["client_version"] == "5.3"  # the assumed one


def test_failures_are_facts(tmp_path: Path) -> None:
    tables = dumped(
        tmp_path, consumerProgress_g_push=NO_ROUTE, consumerStatus_g_push_proxy_1=NO_ROUTE,
        clusterList_proxy_1=NO_ROUTE,
    )  # fmt: skip
    rows = {(r["details"]["command"], r["consumer_group"], r["details"].get("proxy"))
            for r in facts(tables, "DUMP")}  # fmt: skip
    assert rows == {
        ("consumerProgress", GROUP, None), ("consumerStatus", GROUP, "proxy-1"),
        ("clusterList", None, "proxy-1"),
    }  # fmt: skip
    assert all("CODE 17" in row["details"]["error"] for row in facts(tables, "DUMP"))
    assert tables["rejected"] == []


def test_a_proxys_route_is_no_address_of_a_broker(tmp_path: Path) -> None:
    route = (
        '{"brokerDatas":[{"brokerAddrs":{0:"10.0.9.1:8080"},"brokerName":"b","cluster":"C"}],'
        + (
            '"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":4,"topicSysFlag":0,'
            '"writeQueueNums":4}]}'
        )
    )
    tables = dumped(tmp_path, topicRoute_GA_proxy_1=route)
    assert {row["event_type"] for row in tables["cluster_events"]} == {"CONSUMER_JOIN"}
    (dump,) = facts(tables, "DUMP")
    assert (dump["topic"], dump["details"]["proxy"]) == ("GA", "proxy-1")


def test_progress_of_one_topic_is_the_groups(tmp_path: Path) -> None:
    tables = dumped(tmp_path, consumerProgress_t_GA_g_push=PROGRESS)
    assert groups(tables) == {None, GROUP}
    (commit,) = tables["committed_offsets"]
    assert (commit["consumer_group"], commit["committed_offset"]) == (GROUP, 3)


def test_the_groups_of_pop_retry_topics_are_none(tmp_path: Path) -> None:
    row = "%-32s  %-6s  %-24s %-5s  %-14s  %-7s  %s\n"
    header = row % (
        "#Group", "#Count", "#Version", "#Type", "#Model", "#TPS", "#Diff Total",
    )  # fmt: skip
    text = header + row % ("g-push_GA", 0, "OFFLINE", "", "", 0, 0)
    tables = dumped(tmp_path, consumerProgress_all=text)
    assert groups(tables) == {None, GROUP}
    assert tables["rejected"] == []


def test_a_proxy_is_named_with_its_mode_and_addresses(tmp_path: Path) -> None:
    config = {"proxy/proxy-1/rmq-proxy.json": '{"proxyMode":"CLUSTER"}'}
    settings = '[expected]\nproxies = ["proxy-1", "proxy-9"]\n'
    tables = ingested_files(tmp_path, logs(proxy_1=PROXY_1) | config, settings)
    rows = {row["details"]["name"]: row["details"] for row in facts(tables, "PROXY")}
    assert rows == {
        "proxy-1": {"name": "proxy-1", "mode": "CLUSTER", "files": "2",
                    "addresses": PROXY_ADDRESSES["proxy-1"]},
        "proxy-9": {"name": "proxy-9", "mode": "", "files": "0", "addresses": ""},
    }  # fmt: skip


def test_a_proxy_that_only_the_settings_name_is_known_in_dumps(tmp_path: Path) -> None:
    files = {f"mqadmin/{AT_MS}-consumerConnection-{GROUP}-px.txt": CONNECTIONS.format(CLIENT)}
    tables = ingested_files(tmp_path, files, '[expected]\nproxies = ["px"]\n')
    assert groups(tables) == {None, GROUP}


# Members behind proxies: whose word counts, and when.

BEGIN = line(0, "anything")


def beats(*seconds: int) -> str:
    return "".join(map(heartbeat, seconds))


def test_two_proxies_log_one_process(tmp_path: Path) -> None:
    tables = ingested_files(
        tmp_path,
        logs(
            proxy_1=starting(0) + connected(10, grpc()) + added(10) + left(50, grpc()),
            proxy_2=starting(1) + connected(10, remote(attribute=JSON)) + added(11)
            + left(50, remote()),
        ),
    )  # fmt: skip
    assert members(tables) == [("JOIN", CLIENT, 10, None), ("LEAVE", CLIENT, 50, None)]
    (join,) = joins(tables)
    assert (join["rebalance_mode"], join["subscriptions"]) == ("PROXY", [TOPIC])
    assert join["message_model"] == "CLUSTERING"
    assert join.get("version") is None  # the one printed is the proxy's
    assert join["channel_id"] == "10.0.0.1:4001"
    (group,) = tables["consumer_groups"]
    assert (group["rebalance_mode"], group["consumer_type"]) == ("PROXY", "PUSH")
    assert tables["rejected"] == []


def test_the_own_proxy_tells_when_a_killed_client_is_gone(tmp_path: Path) -> None:
    noise = beats(*range(20, 150, 10))
    tables = ingested_files(
        tmp_path,
        logs(
            proxy_1=starting(0) + connected(10, grpc()) + noise + expired(139),
            proxy_2=starting(0) + connected(10, remote()) + expired(120) + noise,
        ),
    )
    assert members(tables) == [("JOIN", CLIENT, 10, None), ("LOST", CLIENT, 139, "EXPIRED")]


def test_a_proxy_whose_log_is_not_there_is_stood_in_for(tmp_path: Path) -> None:
    """By the last of those that know of the client to drop it."""
    seen = starting(0) + connected(10, remote(proxy="proxy-2"))
    tables = ingested_files(
        tmp_path, logs(proxy_1=seen + expired(130), proxy_3=seen + expired(136))
    )
    assert members(tables) == [("JOIN", CLIENT, 10, None), ("LOST", CLIENT, 136, "EXPIRED")]


def test_a_dead_proxys_clients_are_lost_when_the_others_drop_them(tmp_path: Path) -> None:
    tables = ingested_files(
        tmp_path,
        logs(
            proxy_1=starting(0) + connected(10, grpc()) + beats(20, 30),
            proxy_2=starting(0) + connected(10, remote()) + beats(*range(20, 300, 10))
            + expired(155),
        ),
    )  # fmt: skip
    assert members(tables) == [("JOIN", CLIENT, 10, None), ("LOST", CLIENT, 155, "EXPIRED")]


def test_a_proxy_that_lives_knows_better_than_one_that_drops_its_client(tmp_path: Path) -> None:
    tables = ingested_files(
        tmp_path,
        logs(
            proxy_1=starting(0) + connected(10, grpc()) + beats(*range(20, 300, 10)),
            proxy_2=starting(0) + connected(10, remote()) + expired(155),
        ),
    )
    assert members(tables) == [("JOIN", CLIENT, 10, None)]


@pytest.mark.parametrize(("back", "expected"), [
    (100, [("JOIN", CLIENT, 10, None)]),
    (200, [("JOIN", CLIENT, 10, None), ("LOST", CLIENT, 60, None), ("JOIN", CLIENT, 200, None)]),
])  # fmt: skip
def test_a_client_comes_back_after_its_proxys_start(
    tmp_path: Path, back: int, expected: list[object]
) -> None:
    tables = ingested_files(
        tmp_path,
        logs(
            proxy_1=starting(0) + connected(10, grpc()) + starting(60)
            + connected(back, grpc(port=4002)) + beats(300)
        ),
    )  # fmt: skip
    assert members(tables) == expected


def test_a_client_of_several_proxies_is_one_process(tmp_path: Path) -> None:
    second = grpc(port=4002, proxy="proxy-2")
    tables = ingested_files(
        tmp_path,
        logs(
            proxy_1=starting(0) + connected(10, grpc()) + left(60, grpc()),
            proxy_2=starting(0) + connected(20, second) + left(90, second),
        ),
    )
    assert members(tables) == [("JOIN", CLIENT, 10, None), ("LEAVE", CLIENT, 90, None)]


def test_who_was_there_before_the_log_begins(tmp_path: Path) -> None:
    tables = ingested_files(
        tmp_path, logs(proxy_1=beats(0) + left(50, grpc()), proxy_2=beats(0) + left(50, remote()))
    )
    assert members(tables) == [("JOIN", CLIENT, 0, "OBSERVED"), ("LEAVE", CLIENT, 50, None)]


def test_a_scan_of_an_address_that_no_file_names_says_nothing(tmp_path: Path) -> None:
    assert members(ingested_files(tmp_path, logs(proxy_1=beats(0) + expired(50)))) == []


def test_remoting_clients_are_classic_members(tmp_path: Path) -> None:
    """Two connections of one id are two processes, as at a broker; the other proxy's are none."""
    client = "10.0.0.1@7#1"
    listed = '[{"subString":"*","topic":"GA"}]'
    channels = [remoting(client, port) for port in (4001, 4002)]
    tables = ingested_files(
        tmp_path,
        logs(
            proxy_1=starting(0) + connected(10, channels[0], client)
            + connected(20, channels[1], client)
            + closed(60, channels[0].replace(" - R:", " ! R:"), client),
            proxy_2=starting(0)
            + connected(10, remote(4001, "proxy-1", "REMOTING", listed), client)
            + connected(20, remote(4002, "proxy-1", "REMOTING", listed), client) + expired(150),
        ),
    )  # fmt: skip
    assert members(tables) == [
        ("JOIN", client, 10, None), ("JOIN", client, 20, None), ("LOST", client, 60, None),
    ]  # fmt: skip
    assert [join["subscriptions"] for join in joins(tables)] == [[TOPIC], [TOPIC]]
    assert [join.get("rebalance_mode") for join in joins(tables)] == [None, None]
    assert tables["consumer_groups"][0]["rebalance_mode"] == "CLIENT"


def test_a_remoting_client_that_died_counts_until_the_last_proxy_drops_it(tmp_path: Path) -> None:
    """Proxies tell each other who unregistered, and nothing of a connection that broke."""
    dead, other = "10.0.0.1@7#1", "10.0.0.2@8#1"
    channels = remoting(dead, 4001), remoting(other, 4002, "proxy-2")
    noise = beats(*range(20, 150, 10))
    tables = ingested_files(
        tmp_path,
        logs(
            proxy_1=starting(0) + connected(10, channels[0], dead)
            + connected(11, remote(4002, "proxy-2", "REMOTING"), other) + noise
            + closed(60, channels[0], dead),
            proxy_2=starting(0) + connected(10, remote(4001, "proxy-1", "REMOTING"), dead)
            + connected(11, channels[1], other) + noise + expired(170),
        ),
    )  # fmt: skip
    assert members(tables) == [
        ("JOIN", dead, 10, None), ("JOIN", other, 11, None), ("LOST", dead, 170, "EXPIRED"),
    ]  # fmt: skip


def test_a_remoting_client_that_reconnects_is_one_process(tmp_path: Path) -> None:
    one, other = "10.0.0.1@7#1", "10.0.0.2@8#1"
    channels = [remoting(one, port) for port in (4001, 4003)]
    tables = ingested_files(
        tmp_path,
        logs(
            proxy_1=starting(0) + connected(10, channels[0], one) + closed(60, channels[0], one)
            + connected(61, channels[0], one) + connected(62, channels[1], one),
            proxy_2=starting(0) + connected(10, remote(4001, "proxy-1", "REMOTING"), one)
            + connected(11, remoting(other, 4002, "proxy-2"), other) + beats(*range(20, 150, 10))
            + expired(170),
        ),
    )  # fmt: skip
    assert sorted(members(tables)[2:]) == [("JOIN", one, 62, None), ("LOST", one, 62, None)]


def test_a_remoting_client_that_leaves_is_gone_at_once(tmp_path: Path) -> None:
    one, other = "10.0.0.1@7#1", "10.0.0.2@8#1"
    channels = remoting(one, 4001), remoting(other, 4002, "proxy-2")
    told = remote(4001, "proxy-1", "REMOTING")
    tables = ingested_files(
        tmp_path,
        logs(
            proxy_1=starting(0) + connected(10, channels[0], one) + left(60, channels[0], one),
            proxy_2=starting(0) + connected(10, told, one) + connected(11, channels[1], other)
            + left(60, told, one),
        ),
    )  # fmt: skip
    assert members(tables)[2:] == [("LEAVE", one, 60, None)]


def test_a_proxy_inside_the_brokers(tmp_path: Path) -> None:
    """LOCAL mode: a client has a connection to each broker's proxy and is one process."""
    logged = {
        f"brokers/{name}/broker.log": line(0, "brokerPermission=6")
        + connected(10, grpc(port=port, proxy=proxy), CLIENT, "CONSUME_ACTIVELY")
        + added(10)
        + expired(gone, port)
        for name, port, proxy, gone in (
            ("broker-a", 4001, "proxy-1", 135), ("broker-b", 4002, "proxy-2", 131)
        )
    }  # fmt: skip
    tables = ingested_files(tmp_path, logged, '[expected]\nbrokers = ["broker-a", "broker-b"]\n')
    assert members(tables) == [("JOIN", CLIENT, 10, None), ("LOST", CLIENT, 131, "EXPIRED")]
    (join,) = joins(tables)
    assert (join["rebalance_mode"], join["subscriptions"]) == ("PROXY", [TOPIC])
    assert join.get("version") is None
    (group,) = tables["consumer_groups"]
    assert (group["rebalance_mode"], group["consumer_type"]) == ("PROXY", "PULL")
    assert tables["rejected"] == []


def test_a_group_of_both_kinds_is_no_groups_mode(tmp_path: Path) -> None:
    classic = "10.0.0.1@7#1"
    tables = ingested_files(
        tmp_path,
        logs(proxy_1=starting(0) + connected(10, grpc()) + connected(20, remoting(classic, 4002),
                                                                     classic)),
    )  # fmt: skip
    assert [join.get("rebalance_mode") for join in joins(tables)] == ["PROXY", None]
    assert tables["consumer_groups"][0]["rebalance_mode"] == "CLIENT"


def test_a_fifo_group_is_ordered_as_the_brokers_store_says(tmp_path: Path) -> None:
    def ordered(orderly: str) -> bool:
        folder = tmp_path / orderly
        folder.mkdir()
        store = f'{{"{GROUP}":{{"groupName":"{GROUP}","consumeMessageOrderly":{orderly},' + (
            '"retryQueueNums":1}}'
        )
        files = logs(proxy_1=starting(0) + connected(10, grpc()))
        files["brokers/b/config/subscriptionGroup.json"] = f'{{"subscriptionGroupTable":{store}}}'
        (group,) = ingested_files(folder, files)["consumer_groups"]
        return bool(group["ordered"])

    assert ordered("true")
    assert not ordered("false")


def test_members_take_the_topics_of_the_groups_table(tmp_path: Path) -> None:
    """As long as it has members: with the last of them the table goes."""
    emptied = f"unregister consumer ok, no any connection, and remove consumer group, {GROUP}"
    one, two, three = grpc("a", 4001), grpc("b", 4002), grpc("c", 4003)
    tables = ingested_files(
        tmp_path,
        logs(
            proxy_1=starting(0) + connected(10, one, "a") + added(10, "T1")
            + connected(20, two, "b") + added(21, "T2")
            + left(40, one, "a") + left(40, two, "b") + line(40, emptied)
            + connected(60, three, "c") + added(60, "T3")
        ),
    )  # fmt: skip
    assert [join["subscriptions"] for join in joins(tables)] == [["T1"], ["T1", "T2"], ["T3"]]
