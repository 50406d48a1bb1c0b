"""Answers that were cut at the end of a line, which only another answer of their round shows."""

from dataclasses import replace
from pathlib import Path

import pytest

from rebalance_core.ingest.collection import open_collection
from rebalance_core.ingest.parse.command_output import is_partial
from rebalance_core.ingest.parse.server_config import parse_broker_config
from rebalance_core.ingest.short_answers import short_answers
from tests.unit.ingest.named_dumps import AT, of_dumps

STATUS_HEAD = f"{'#Broker Name':<32}  {'#QID':<4}  {'#Min Offset':<20}  {'#Max Offset':<20}    "
BROKERS = ("b-one", "b-two")
ROWS = [(broker, queue) for broker in BROKERS for queue in range(4)]


def route(queues: int = 4, brokers: tuple[str, ...] = BROKERS) -> str:
    datas = ",".join(
        f'{{"brokerName":"{b}","perm":6,"readQueueNums":{queues},"writeQueueNums":2}}'
        for b in brokers
    )
    addresses = ",".join(
        f'{{"brokerAddrs":{{0:"10.9.0.{n}:10911"}},"brokerName":"{b}","cluster":"C"}}'
        for n, b in enumerate(brokers)
    )
    return f'{{"brokerDatas":[{addresses}],"queueDatas":[{datas}]}}\n'


def status(rows: list[tuple[str, int]]) -> str:
    lines = [
        f"{broker:<32}  {queue:<4}  {0:<20}  {7:<20}    2026-11-21 03:50:24,113"
        for broker, queue in rows
    ]
    return "\n".join([STATUS_HEAD + "#Last Updated", *lines, ""])


def cluster_list(brokers: tuple[str, ...]) -> str:
    head = (
        f"{'#Cluster Name':<22}  {'#Broker Name':<22}  {'#BID':<4}  {'#Addr':<22} {'#Version':<16}"
    )
    rows = [
        f"{'C':<22}  {b:<22}  {'0':<4}  {f'10.9.0.{n}:10911':<22} {'V5_1_0':<16}"
        for n, b in enumerate(brokers)
    ]
    return "\n".join([f"{head} #ACTIVATED", *(f"{row} true" for row in rows), ""])


def not_read(tmp_path: Path, dumps: dict[str, str]) -> dict[str, str]:
    rows = of_dumps(tmp_path, dumps, brokers="").tables["observed_facts"]
    return {row["source"]: row["details"]["why"] for row in rows if row["kind"] == "NOT_READ"}


@pytest.mark.parametrize("left", range(1, len(ROWS)))
def test_a_topic_status_lacks_the_last_queues_of_its_route(left: int, tmp_path: Path) -> None:
    name = f"{AT + 10}-topicStatus-T.txt"
    cut = {f"{AT}-topicRoute-T.txt": route(), name: status(ROWS[:left])}
    broker, queue = ROWS[left]
    assert not_read(tmp_path, cut) == {
        f"mqadmin/{name}": f"is cut off: it ends before {broker}:{queue}, which "
        f"mqadmin/{AT}-topicRoute-T.txt has"
    }


@pytest.mark.parametrize(
    ("status_ms", "rows"),
    [
        (10, ROWS),
        # the topic had fewer queues before the route
        (-10, ROWS[:5]),
        # an hour later it may have fewer again
        (3_600_000, ROWS[:5]),
        # rows out of the middle: the topic was changed, or the text was edited
        (10, [row for row in ROWS if row[1] != 1]),
        (10, [("b-other", 0), *ROWS[:3]]),
    ],
)
def test_a_topic_status_that_nothing_shows_as_cut(
    status_ms: int, rows: list[tuple[str, int]], tmp_path: Path
) -> None:
    dumps = {
        f"{AT}-topicRoute-T.txt": route(),
        f"{AT + status_ms}-topicStatus-T.txt": status(rows),
    }
    assert not_read(tmp_path, dumps) == {}


def test_the_newest_route_before_a_topic_status_counts_alone(tmp_path: Path) -> None:
    dumps = {
        f"{AT}-topicRoute-T.txt": route(),
        f"{AT + 300_000}-topicRoute-T.txt": route(brokers=BROKERS[:1]),
        f"{AT + 301_000}-topicStatus-T.txt": status(ROWS[:4]),
    }
    assert not_read(tmp_path, dumps) == {}


def test_the_last_broker_may_have_fewer_queues_than_before(tmp_path: Path) -> None:
    now = route().replace(
        '"b-two","perm":6,"readQueueNums":4', '"b-two","perm":6,"readQueueNums":2'
    )
    assert now != route()
    dumps = {
        f"{AT}-topicRoute-T.txt": route(),
        f"{AT + 300_000}-topicRoute-T.txt": now,
        f"{AT + 300_500}-topicStatus-T.txt": status(ROWS[:6]),
    }
    assert not_read(tmp_path, dumps) == {}


@pytest.mark.parametrize(("turn_ms", "cut"), [(2_000, 0), (-10_000, 0), (-200_000, 1)])
@pytest.mark.parametrize(("left", "by"), [(4, "broker"), (4, "topic"), (5, "topic")])
def test_answers_around_a_turn_are_not_compared(
    turn_ms: int, cut: int, left: int, by: str, tmp_path: Path
) -> None:
    assert len(short_around(AT + turn_ms, left, by, tmp_path)) == cut


def test_a_turn_of_a_broker_does_not_explain_that_some_of_its_queues_are_missing(
    tmp_path: Path,
) -> None:
    assert ROWS[4] == (BROKERS[1], 0)
    assert len(short_around(AT + 2_000, 5, "broker", tmp_path)) == 1


def short_around(turn_ms: int, left: int, by: str, tmp_path: Path) -> dict[str, str]:
    dumps = {
        f"{AT}-topicRoute-T.txt": route(),
        f"{AT + 3_000}-topicStatus-T.txt": status(ROWS[:left]),
    }
    done = of_dumps(tmp_path, dumps, brokers="")
    stats = [replace(each, partial="") for each in done.stats]
    brokers, topics = ({turn_ms}, {}) if by == "broker" else (set(), {"T": {turn_ms}})
    return short_answers(open_collection(tmp_path).files, stats, BROKERS, brokers, topics)


def test_a_cluster_list_is_compared_with_the_nearest_route(tmp_path: Path) -> None:
    dumps = {
        f"{AT}-topicRoute-T.txt": route(),
        f"{AT + 400_000}-topicRoute-U.txt": route(brokers=BROKERS[:1]),
        f"{AT + 401_000}-clusterList.txt": cluster_list(BROKERS[:1]),
    }
    assert not_read(tmp_path, dumps) == {}


@pytest.mark.parametrize(
    ("text", "code"),
    [(status(ROWS[:4]), "UNPARSABLE_DOCUMENT"), (status(ROWS)[:-90], "UNPARSABLE_LINE")],
)
def test_a_cut_answer_below_a_line_of_the_shell_has_the_code_of_its_reason(
    text: str, code: str, tmp_path: Path
) -> None:
    name = f"{AT + 10}-topicStatus-T.txt"
    cut = {f"{AT}-topicRoute-T.txt": route(), name: f"hello world\n{text}"}
    rows = of_dumps(tmp_path, cut, brokers="").tables["observed_facts"]
    (details,) = (row["details"] for row in rows if row["kind"] == "NOT_READ")
    assert details["why"].startswith("is cut off: ")
    assert details["code"] == code


@pytest.mark.parametrize("after_ms", [-500, 500])
def test_a_cluster_list_lacks_a_broker_of_a_route(after_ms: int, tmp_path: Path) -> None:
    name = f"{AT + after_ms}-clusterList.txt"
    cut = {f"{AT}-topicRoute-T.txt": route(), name: cluster_list(BROKERS[:1])}
    assert not_read(tmp_path, cut) == {
        f"mqadmin/{name}": "is cut off: it ends before b-two, which "
        f"mqadmin/{AT}-topicRoute-T.txt has"
    }
    whole = {f"{AT}-topicRoute-T.txt": route(), name: cluster_list(BROKERS)}
    assert not_read(tmp_path / "whole", whole) == {}


def test_a_cluster_list_of_another_hour_lacks_nothing(tmp_path: Path) -> None:
    dumps = {
        f"{AT}-topicRoute-T.txt": route(),
        f"{AT - 3_600_000}-clusterList.txt": cluster_list(BROKERS[:1]),
        f"{AT}-clusterList.txt": cluster_list(BROKERS),
    }
    assert not_read(tmp_path, dumps) == {}


def test_the_cut_part_is_in_rejected(tmp_path: Path) -> None:
    name = f"{AT}-clusterList.txt"
    cut = {f"{AT}-topicRoute-T.txt": route(), name: cluster_list(BROKERS[:1])}
    done = of_dumps(tmp_path, cut, brokers="")
    (row,) = done.tables["rejected"]
    assert row["source"] == f"mqadmin/{name}"
    assert row["issues"][0]["code"] == "UNPARSABLE_DOCUMENT"
    assert "b-two" in row["issues"][0]["message"]


CONFIG = [
    "============10.9.0.1:10911============",
    *(
        f"{name:<50}=  {value}"
        for name, value in (
            ("brokerClusterName", "C"),
            ("fileReservedTime", "72"),
            ("brokerName", "b-one"),
            ("brokerId", "0"),
            ("slaveReadEnable", "false"),
        )
    ),
]


@pytest.mark.parametrize("left", range(2, len(CONFIG) - 1))
def test_a_config_without_what_every_broker_has_is_cut(left: int, tmp_path: Path) -> None:
    name = f"{AT}-getBrokerConfig-b-one.txt"
    text = "\n".join([*CONFIG[:left], ""])
    (why,) = not_read(tmp_path, {name: text}).values() or [""]
    assert why.startswith("is cut off: it ends before ")


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\n", ""])
def test_a_whole_config_may_lack_its_empty_line(end: str, tmp_path: Path) -> None:
    text = "\r\n".join(CONFIG) if "\r" in end else "\n".join(CONFIG)
    assert not not_read(tmp_path, {f"{AT}-getBrokerConfig-b-one.txt": text + (end or "\n")})


NAMESRV_CONFIG = "\n".join(
    [
        "============10.9.0.9:9876============",
        f"{'rocketmqHome':<50}=  /home/rocketmq",
        f"{'kvConfigPath':<50}=  /home/rocketmq/namesrv/kvConfig.json",
        f"{'orderMessageEnable':<50}=  false",
        "",
    ]
)


def test_a_config_of_a_name_server_has_no_name_of_a_broker(tmp_path: Path) -> None:
    assert not_read(tmp_path, {f"{AT}-getNamesrvConfig.txt": NAMESRV_CONFIG}) == {}
    # `read` takes a pasted one for that of a broker
    assert not is_partial(parse_broker_config(NAMESRV_CONFIG, "f"))
