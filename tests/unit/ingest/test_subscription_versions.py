"""When a member subscribed: by its own subVersion, where a line can only be its own."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.ingest.in_process import ingest_collection

START_MS = 1795231700000
ONE, TWO, THREE = "1@1", "2@2", "3@3"
Lines = list[tuple[int, str]]
"""Milliseconds after START_MS and the message."""


def port(client_id: str) -> int:
    return 1_000 + int(client_id[0])


def joins(after_ms: int, client_id: str, **versions: int) -> Lines:
    channel = (
        f"ClientChannelInfo [channel=[id: 0x{port(client_id)}, L:/9.9.9.9:1 - R:/1.1.1.1:"
        f"{port(client_id)}], clientId={client_id}, language=JAVA, version=513, "
        f"lastUpdateTimestamp={START_MS + after_ms}]"
    )
    head = "new consumer connected, group: g CONSUME_PASSIVELY CLUSTERING channel: "
    return [(after_ms, head + channel), *heartbeat_lines(after_ms, client_id, **versions)]


def heartbeat_lines(after_ms: int, client_id: str, **versions: int) -> Lines:
    """A heartbeat that changes the group's table."""
    data = ", ".join(data_of(topic, version) for topic, version in versions.items())
    line = (
        f"ClientManageProcessor: registerConsumer info changed, SDK address=1.1.1.1:"
        f"{port(client_id)}, consumerData=ConsumerData [groupName=g, consumeType=CONSUME_PASSIVELY,"
        " messageModel=CLUSTERING, consumeFromWhere=CONSUME_FROM_LAST_OFFSET, unitMode=false, "
        f"subscriptionDataSet=[{data}]]"
    )
    return [(after_ms, line)]


def newer(after_ms: int, topic: str, version: int) -> Lines:
    """A heartbeat of somebody with a newer subVersion."""
    old = data_of(topic, version - 1)
    return [(after_ms, f"subscription changed, group: g OLD: {old} NEW: {data_of(topic, version)}")]


def data_of(topic: str, version: int) -> str:
    return (
        f"SubscriptionData [classFilterMode=false, topic={topic}, subString=*, tagsSet=[], "
        f"codeSet=[], subVersion={START_MS + version}, expressionType=TAG]"
    )


def subscribed(folder: Path, *parts: Lines) -> list[tuple[str, str, int]]:
    """Client, topic and milliseconds of each SUBSCRIBE; the log goes on for a minute."""
    lines = sorted((line for part in parts for line in part), key=lambda line: line[0])
    lines.append((lines[-1][0] + 60_000, "brokerPermission=6"))
    log = folder / "brokers" / "b" / "broker.log"
    log.parent.mkdir(parents=True)
    log.write_text("".join(f"{server_time(at)} INFO t - {message}\n" for at, message in lines))
    (folder / "collection.toml").write_text('cluster = "C"\n[expected]\nbrokers = ["b"]\n')
    found: Any = ingest_collection(folder).tables["cluster_events"]
    return [
        (row["client_id"], row["topic"], row["event_ms"] - START_MS)
        for row in found
        if row["event_type"] == "SUBSCRIBE"
    ]


def server_time(after_ms: int) -> str:
    at = datetime.fromtimestamp((START_MS + after_ms) / 1_000, UTC) + timedelta(hours=8)
    return at.strftime("%Y-%m-%d %H:%M:%S")


def flips(*seconds: int) -> Lines:
    """Heartbeats of one that subscribes A and B, and 15 s later of another with A alone."""
    return [
        line
        for second in seconds
        for line in (
            *heartbeat_lines(1_000 * second, ONE, A=500, B=900),
            *heartbeat_lines(1_000 * second + 15_000, TWO, A=1_500),
        )
    ]


BOTH = [*joins(1_000, ONE, A=500, B=510), *joins(2_000, TWO, A=1_500), *flips(30, 60, 90)]
FLIP = heartbeat_lines(120_000, ONE, A=500, B=900)


@pytest.mark.parametrize(
    ("version", "dated"),
    [
        (118_321, 118_321),  # its own millisecond
        (117_400, 117_400),  # its queues changed before this line: later than the subscription
        (120_000, 118_500),  # a clock that is fast: not after the line
        (1_000, 118_500),  # before it joined: a clock that is slow
    ],
)
def test_the_member_s_own_line_dates_it(version: int, dated: int, tmp_path: Path) -> None:
    line = heartbeat_lines(118_000, TWO, A=1_500, B=version)
    assert subscribed(tmp_path, BOTH, line) == [(TWO, "B", dated)]


def test_where_another_brought_the_topic_the_next_subversion_is_the_silent_member_s(
    tmp_path: Path,
) -> None:
    """The other's heartbeat put the topic into the table 6 s before."""
    itself, its_queues = newer(126_000, "B", 126_013), newer(127_000, "B", 127_450)
    assert subscribed(tmp_path, BOTH, FLIP, itself, its_queues) == [(TWO, "B", 126_013)]


def test_without_such_a_line_the_other_s_line_dates_it_as_before(tmp_path: Path) -> None:
    assert subscribed(tmp_path, BOTH, FLIP) == [(TWO, "B", 120_500)]


@pytest.mark.parametrize("lost", [0, 1])
def test_who_changes_the_table_again_is_not_silent(lost: int, tmp_path: Path) -> None:
    """The line with its member was dropped, those of the topics it adds and removes were not."""
    moves = [
        (125_000, f"subscription changed, add new topic, group: g {data_of('C', 400)}"),
        (125_000, f"subscription changed, group: g remove topic B {data_of('B', 900)}"),
    ]
    assert subscribed(tmp_path, BOTH, FLIP, moves[lost:]) == []


def test_a_change_after_every_member_was_heard_ends_no_silence(tmp_path: Path) -> None:
    moves = [(156_000, f"subscription changed, group: g remove topic B {data_of('B', 900)}")]
    assert subscribed(tmp_path, BOTH, FLIP, moves) == [(TWO, "B", 120_500)]


@pytest.mark.parametrize(
    "line",
    [
        newer(126_000, "B", 122_000),  # came late: no subscription sends no heartbeat
        newer(126_000, "B", 850),  # not newer than the table's
        newer(126_000, "A", 126_013),  # of another topic
        newer(156_000, "B", 156_013),  # silent for longer than between two heartbeats
    ],
)
def test_a_subversion_that_is_not_of_that_moment_shows_nothing(line: Lines, tmp_path: Path) -> None:
    assert subscribed(tmp_path, BOTH, FLIP, line) == [(TWO, "B", 120_500)]


def test_while_queues_move_a_newer_subversion_may_be_anybody_s(tmp_path: Path) -> None:
    third = joins(125_000, THREE, A=124_500, B=124_510)
    itself = newer(126_000, "B", 126_013)
    found = subscribed(tmp_path, BOTH, FLIP, third, itself)
    assert (TWO, "B", 126_013) not in found


def test_of_two_silent_members_it_may_be_either_s(tmp_path: Path) -> None:
    third = joins(3_000, THREE, A=2_500)
    itself = newer(126_000, "B", 126_013)
    found = subscribed(tmp_path, BOTH, third, FLIP, itself)
    assert sorted(found) == [(TWO, "B", 120_500), (THREE, "B", 120_500)]


def test_the_reporter_s_own_subscription_is_over_once_its_queues_came(tmp_path: Path) -> None:
    """Shortly after the first one's own: its subVersion rose, so the next is the other's."""
    two = [*joins(1_000, ONE, A=500), *joins(2_000, TWO, A=1_500)]
    first = heartbeat_lines(100_000, ONE, A=500, B=100_004)
    flip = [
        *heartbeat_lines(110_000, TWO, A=1_500),
        *heartbeat_lines(120_000, ONE, A=500, B=101_200),
    ]
    itself = newer(126_000, "B", 126_013)
    found = subscribed(tmp_path, two, first, flip, itself)
    assert sorted(found) == [(ONE, "B", 100_004), (TWO, "B", 126_013)]


def test_before_its_queues_came_a_newer_subversion_may_be_its_own(tmp_path: Path) -> None:
    two = [*joins(1_000, ONE, A=500), *joins(2_000, TWO, A=1_500)]
    first = heartbeat_lines(100_000, ONE, A=500, B=100_004)
    its_queues, itself = newer(101_000, "B", 101_200), newer(106_000, "B", 106_013)
    found = subscribed(tmp_path, two, first, its_queues, itself)
    assert sorted(found) == [(ONE, "B", 100_004), (TWO, "B", 100_500)]
