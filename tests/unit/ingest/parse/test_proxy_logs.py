"""Logs of proxies, with lines broken over several."""

from rebalance_core.ingest.fact import Fact, Stated, Unread
from rebalance_core.ingest.parse.server_logs import ProxyClock, parse_proxy_line
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
        connected(1, grpc())
        + added(1)
        + heartbeat(2)
        + expired(3)
        + left(4, grpc())
        + closed(5, remoting("c", 4002), "c")
        + line(6, "unregister consumer ok, no any connection, and remove consumer group, g-push")
    )
    assert kinds(text) == [
        "consumer_connected",
        "group_topic",
        "consumer_expired",
        "consumer_left",
        "consumer_closed",
        "group_emptied",
    ]


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


def test_an_end_without_its_beginning_shows_nothing() -> None:
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
        line(1, "Current configuration: {")
        + '\t"grpcServerPort":8081,\n'
        + '\t"proxyMode":"Cluster",\n}\n'
        + starting(2)
    )
    assert kinds(text) == ["proxy_starting", "proxy_mode", "proxy_starting"]
    assert read('\t"proxyMode":"CLUSTER",\n') == []  # the line has no time


def test_a_sign_of_life_a_minute() -> None:
    clock = ProxyClock()
    text = "".join(heartbeat(second) for second in (1, 11, 59, 61, 62))
    found = [f for one in text.splitlines() for f in parse_proxy_line(one, "p:1", clock)]
    times = [fact.at_ms for fact in found if isinstance(fact, Stated)]
    assert times == [START_MS + 1_000, START_MS + 61_000]
