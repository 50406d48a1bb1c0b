"""Members behind proxies: which server's word counts, and when."""

from pathlib import Path

import pytest

from tests.unit.ingest.proxy_lines import (
    CLIENT,
    GROUP,
    JSON,
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

BEGIN = line(0, "anything")


def beats(*seconds: int) -> str:
    return "".join(map(heartbeat, seconds))


def test_two_proxies_log_one_process(tmp_path: Path) -> None:
    tables = ingested_files(
        tmp_path,
        logs(
            proxy_1=starting(0) + connected(10, grpc()) + added(10) + left(50, grpc()),
            proxy_2=starting(1)
            + connected(10, remote(attribute=JSON))
            + added(11)
            + left(50, remote()),
        ),
    )
    assert members(tables) == [("JOIN", CLIENT, 10, None), ("LEAVE", CLIENT, 50, None)]
    (join,) = joins(tables)
    assert (join["rebalance_mode"], join["subscriptions"]) == ("PROXY", [TOPIC])
    assert join["message_model"] == "CLUSTERING"
    assert join.get("version") is None  # the one printed is the proxy's
    assert join["channel_id"] == "10.0.0.1:4001"
    (group,) = tables["consumer_groups"]
    assert (group["rebalance_mode"], group["consumer_type"]) == ("PROXY", "PUSH")
    assert tables["rejected"] == []


def test_the_own_proxy_shows_when_a_killed_client_is_gone(tmp_path: Path) -> None:
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
            proxy_2=starting(0)
            + connected(10, remote())
            + beats(*range(20, 300, 10))
            + expired(155),
        ),
    )
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
            proxy_1=starting(0)
            + connected(10, grpc())
            + starting(60)
            + connected(back, grpc(port=4002))
            + beats(300)
        ),
    )
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


def test_what_one_proxy_drops_is_no_event_of_a_broker(tmp_path: Path) -> None:
    """No broker has the name of a proxy's connection, so a row that names one is refused."""
    noise = beats(*range(20, 300, 10))
    tables = ingested_files(
        tmp_path,
        logs(
            proxy_1=starting(0) + connected(10, grpc()) + noise + expired(180),
            proxy_2=starting(0) + connected(60, grpc(port=4002, proxy="proxy-2")) + noise,
        ),
    )
    assert members(tables) == [("JOIN", CLIENT, 10, None)]
    assert all(row.get("broker_name") is None for row in tables["cluster_events"])


def test_who_was_there_before_the_log_begins(tmp_path: Path) -> None:
    tables = ingested_files(
        tmp_path, logs(proxy_1=beats(0) + left(50, grpc()), proxy_2=beats(0) + left(50, remote()))
    )
    assert members(tables) == [("JOIN", CLIENT, 0, "OBSERVED"), ("LEAVE", CLIENT, 50, None)]


def test_a_scan_of_an_address_that_no_file_names_shows_nothing(tmp_path: Path) -> None:
    assert members(ingested_files(tmp_path, logs(proxy_1=beats(0) + expired(50)))) == []


def test_remoting_clients_are_classic_members(tmp_path: Path) -> None:
    """Two connections of one id are two processes, as at a broker; the other proxy's are none."""
    client = "10.0.0.1@7#1"
    listed = '[{"subString":"*","topic":"GA"}]'
    channels = [remoting(client, port) for port in (4001, 4002)]
    tables = ingested_files(
        tmp_path,
        logs(
            proxy_1=starting(0)
            + connected(10, channels[0], client)
            + connected(20, channels[1], client)
            + closed(60, channels[0].replace(" - R:", " ! R:"), client),
            proxy_2=starting(0)
            + connected(10, remote(4001, "proxy-1", "REMOTING", listed), client)
            + connected(20, remote(4002, "proxy-1", "REMOTING", listed), client)
            + expired(150),
        ),
    )
    assert members(tables) == [
        ("JOIN", client, 10, None),
        ("JOIN", client, 20, None),
        ("LOST", client, 60, None),
    ]
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
            proxy_1=starting(0)
            + connected(10, channels[0], dead)
            + connected(11, remote(4002, "proxy-2", "REMOTING"), other)
            + noise
            + closed(60, channels[0], dead),
            proxy_2=starting(0)
            + connected(10, remote(4001, "proxy-1", "REMOTING"), dead)
            + connected(11, channels[1], other)
            + noise
            + expired(170),
        ),
    )
    assert members(tables) == [
        ("JOIN", dead, 10, None),
        ("JOIN", other, 11, None),
        ("LOST", dead, 170, "EXPIRED"),
    ]


def test_a_remoting_client_that_reconnects_is_one_process(tmp_path: Path) -> None:
    one, other = "10.0.0.1@7#1", "10.0.0.2@8#1"
    channels = [remoting(one, port) for port in (4001, 4003)]
    tables = ingested_files(
        tmp_path,
        logs(
            proxy_1=starting(0)
            + connected(10, channels[0], one)
            + closed(60, channels[0], one)
            + connected(61, channels[0], one)
            + connected(62, channels[1], one),
            proxy_2=starting(0)
            + connected(10, remote(4001, "proxy-1", "REMOTING"), one)
            + connected(11, remoting(other, 4002, "proxy-2"), other)
            + beats(*range(20, 150, 10))
            + expired(170),
        ),
    )
    assert sorted(members(tables)[2:]) == [("JOIN", one, 62, None), ("LOST", one, 62, None)]


def test_a_remoting_client_that_leaves_is_gone_at_once(tmp_path: Path) -> None:
    one, other = "10.0.0.1@7#1", "10.0.0.2@8#1"
    channels = remoting(one, 4001), remoting(other, 4002, "proxy-2")
    announced = remote(4001, "proxy-1", "REMOTING")
    tables = ingested_files(
        tmp_path,
        logs(
            proxy_1=starting(0) + connected(10, channels[0], one) + left(60, channels[0], one),
            proxy_2=starting(0)
            + connected(10, announced, one)
            + connected(11, channels[1], other)
            + left(60, announced, one),
        ),
    )
    assert members(tables)[2:] == [("LEAVE", one, 60, None)]


def test_a_proxy_inside_the_brokers(tmp_path: Path) -> None:
    """LOCAL mode: a client has a connection to each broker's proxy and is one process."""
    logged = {
        f"brokers/{name}/broker.log": line(0, "brokerPermission=6")
        + connected(10, grpc(port=port, proxy=proxy), CLIENT, "CONSUME_ACTIVELY")
        + added(10)
        + expired(gone, port)
        for name, port, proxy, gone in (
            ("broker-a", 4001, "proxy-1", 135),
            ("broker-b", 4002, "proxy-2", 131),
        )
    }
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
        logs(
            proxy_1=starting(0)
            + connected(10, grpc())
            + connected(20, remoting(classic, 4002), classic)
        ),
    )
    assert [join.get("rebalance_mode") for join in joins(tables)] == ["PROXY", None]
    assert tables["consumer_groups"][0]["rebalance_mode"] == "CLIENT"


def test_a_fifo_group_is_ordered_as_the_brokers_store_states(tmp_path: Path) -> None:
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
            proxy_1=starting(0)
            + connected(10, one, "a")
            + added(10, "T1")
            + connected(20, two, "b")
            + added(21, "T2")
            + left(40, one, "a")
            + left(40, two, "b")
            + line(40, emptied)
            + connected(60, three, "c")
            + added(60, "T3")
        ),
    )
    assert [join["subscriptions"] for join in joins(tables)] == [["T1"], ["T1", "T2"], ["T3"]]


@pytest.mark.parametrize(
    ("printed", "language"),
    [("GO", "GO"), ("PYTHON", "PYTHON"), ("HTTP", "NODE_JS"), ("KLINGON", "OTHER")],
)
def test_a_grpc_clients_language_is_the_one_that_its_proxy_prints(
    printed: str, language: str, tmp_path: Path
) -> None:
    """Node's client names itself HTTP. Neither the library nor the strategy follows from it."""
    text = starting(0) + connected(10, grpc(), language=printed) + added(10)
    tables = ingested_files(tmp_path, logs(proxy_1=text))
    (join,) = joins(tables)
    assert (join["language"], join["rebalance_mode"]) == (language, "PROXY")
    assert {row["rule_id"] for row in tables["findings"]}.isdisjoint(
        {"INGEST_RELEASE_NOT_TOLD", "INGEST_TAKEN_AS_JAVA"}
    )
