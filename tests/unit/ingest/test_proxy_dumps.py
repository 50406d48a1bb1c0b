"""What mqadmin answers when a proxy is asked, and brokers of groups behind a proxy."""

from pathlib import Path

from tests.recordings.tables import Row, Tables
from tests.unit.ingest.proxy_lines import (
    CLIENT,
    GROUP,
    PROXY_ADDRESSES,
    START_MS,
    connected,
    grpc,
    ingested_files,
    joins,
    logs,
    members,
    starting,
)

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
    "#Topic",
    "#Broker Name",
    "#QID",
    "#Broker Offset",
    "#Consumer Offset",
    "#Diff",
    "#Inflight",
    "#LastTime",
) + _ROW % ("GA", "b", 0, 5, 3, 2, 0, "2026-11-22 07:10:00")
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
    assert join["subscriptions"] == ["GA"]  # no line of the log states it


def test_a_member_that_no_proxys_log_has(tmp_path: Path) -> None:
    tables = dumped(tmp_path, consumerConnection_g_push_proxy_1=CONNECTIONS.format("vm@2@0@b"))
    found = {(what, client, detail) for what, client, _, detail in members(tables)}
    assert ("JOIN", "vm@2@0@b", "OBSERVED") in found
    assert [row for row in tables["findings"] if row["rule_id"] == "INGEST_JOIN_NOT_LOGGED"]


def test_brokers_that_know_no_member_do_not_end_a_member(tmp_path: Path) -> None:
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
        tmp_path,
        consumerProgress_g_push=NO_ROUTE,
        consumerStatus_g_push_proxy_1=NO_ROUTE,
        clusterList_proxy_1=NO_ROUTE,
    )
    rows = {
        (r["details"]["command"], r["consumer_group"], r["details"].get("proxy"))
        for r in facts(tables, "DUMP")
    }
    assert rows == {
        ("consumerProgress", GROUP, None),
        ("consumerStatus", GROUP, "proxy-1"),
        ("clusterList", None, "proxy-1"),
    }
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
        "#Group",
        "#Count",
        "#Version",
        "#Type",
        "#Model",
        "#TPS",
        "#Diff Total",
    )
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
        "proxy-1": {
            "name": "proxy-1",
            "mode": "CLUSTER",
            "files": "2",
            "addresses": PROXY_ADDRESSES["proxy-1"],
        },
        "proxy-9": {"name": "proxy-9", "mode": "", "files": "0", "addresses": ""},
    }


def test_a_proxy_that_only_the_settings_name_is_known_in_dumps(tmp_path: Path) -> None:
    files = {f"mqadmin/{AT_MS}-consumerConnection-{GROUP}-px.txt": CONNECTIONS.format(CLIENT)}
    tables = ingested_files(tmp_path, files, '[expected]\nproxies = ["px"]\n')
    assert groups(tables) == {None, GROUP}
