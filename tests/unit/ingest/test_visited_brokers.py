"""Clocks of brokers that clients visit one after the other: 16, 0.16 s from each to the next."""

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.ingest.in_process import ingest_collection
from tests.unit.ingest.skewed_clocks import HEARTBEAT_LOG, named, offsets, skewed

BROKERS, NEXT_MS, GROUP_JOINS_MS = 16, 160, 50_000
FIRST_JOIN_MS = 1_795_230_060_000
CREATED = (
    "Created a new client Instance, InstanceIndex:0, ClientID:{}, ClientConfig:ClientConfig{{}}, "
    "ClientVersion:V5_3_3"
)
CONNECTED = (
    "{} INFO t - new consumer connected, group: g CONSUME_PASSIVELY CLUSTERING channel: {}\n"
)
NOTICE = (
    "receive broker's notification[10.0.1.{}:1], the consumer group: g changed, rebalance "
    "immediately"
)
ENDED = (
    "{} WARN t - NETTY EVENT: remove not active channel[{}] from ConsumerGroupInfo "
    "groupChannelTable, consumer group: g\n"
)


def at(ms: int) -> str:
    moment = datetime.fromtimestamp(ms / 1000, timezone(timedelta(hours=8)))
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def visited(
    folder: Path, skew: Mapping[int, int], *, notices: bool = True, clients: bool = True
) -> Any:
    """The tables of six clients that came to all brokers in turn; three of them were killed.

    Args:
        folder: where the collection is written.
        skew: by number of a broker how much its clock is ahead, in ms.
        notices: clients log which broker notified them.
        clients: their logs are in the collection.
    """
    brokers: dict[int, list[tuple[int, str]]] = {k: [] for k in range(BROKERS)}
    logs: dict[int, list[tuple[int, str]]] = {}
    channel = (
        "ClientChannelInfo [channel=[id: 0x{0}{1:02}, L:/10.0.1.{1}:1 - R:/10.0.2.{0}:{1}], "
        "clientId=10.0.2.{0}@1#{0}99, language=JAVA, version=479, lastUpdateTimestamp={2}]"
    )

    def logged(member: int, ms: int, text: str) -> None:
        line = f"{at(ms)}.{ms % 1000:03} INFO  [1] [main] [o.a.r.c.X#?:?] - {text}\n"
        logs.setdefault(member, []).append((ms, line))

    for member in range(6):
        begin_ms = FIRST_JOIN_MS + member * GROUP_JOINS_MS
        client_id = f"10.0.2.{member}@1#{member}99"
        logged(member, begin_ms - 300, CREATED.format(client_id))
        beat = HEARTBEAT_LOG.partition(" - ")[2].strip().replace("clientID=c1", "clientID={}")
        logged(member, begin_ms + 5, beat.format(client_id, begin_ms - 200))
        for k in range(BROKERS):
            ms = begin_ms + k * NEXT_MS
            own_ms = ms + skew.get(k, 0)
            line = CONNECTED.format(at(own_ms), channel.format(member, k, own_ms))
            brokers[k].append((own_ms, line))
            for other in range(member + 1) if notices else ():
                logged(other, ms + 8, NOTICE.format(k))
    for member in range(3):
        ms = FIRST_JOIN_MS + (7 + member) * GROUP_JOINS_MS + 300 * member
        for k in range(BROKERS):
            own_ms = ms + skew.get(k, 0)
            line = ENDED.format(at(own_ms), channel.format(member, k, own_ms - 9_000))
            brokers[k].append((own_ms, line))
    for k, lines in brokers.items():
        path = folder / "brokers" / f"b{k}" / "broker.log"
        path.parent.mkdir(parents=True)
        path.write_text("".join(line for _, line in sorted(lines)))
    for member, lines in logs.items() if clients else ():
        path = folder / "clients" / f"c{member}" / "rocketmq_client.log"
        path.parent.mkdir(parents=True)
        path.write_text("".join(line for _, line in sorted(lines)))
    (folder / "collection.toml").write_text('cluster = "C"\n')
    return ingest_collection(folder).tables


@pytest.mark.parametrize("clients", [True, False])
@pytest.mark.parametrize("notices", [True, False])
def test_a_round_of_visits_is_no_difference_of_clocks(
    notices: bool, clients: bool, tmp_path: Path
) -> None:
    tables = visited(tmp_path / "c", {}, notices=notices, clients=clients)
    assert (named(tables), offsets(tables)) == ([], {})
    joined = [row["event_ms"] for row in tables["cluster_events"] if row.get("client_id")]
    assert joined[:6] == [FIRST_JOIN_MS + member * GROUP_JOINS_MS for member in range(6)]


@pytest.mark.parametrize("clients", [True, False])
@pytest.mark.parametrize("skew", [{15: 5_000}, {15: -5_000}, {0: 5_000, 7: 5_000}, {3: -40_000}])
def test_a_clock_is_off_beyond_the_round_of_visits(
    skew: Mapping[int, int], clients: bool, tmp_path: Path
) -> None:
    """By the broker's own notices, or by the connections of clients that were killed."""
    tables = visited(tmp_path / "c", skew, clients=clients)
    found = offsets(tables)
    assert {f"b{k}" for k in skew} == {host for host, ms in found.items() if abs(ms) > 1_000}
    for k, ahead_ms in skew.items():
        assert abs(found[f"b{k}"] + ahead_ms) <= 100


def test_a_notice_shows_a_clock_where_all_clients_came_late(tmp_path: Path) -> None:
    """They were at the broker half a minute after the others, with the next heartbeat."""
    tables = skewed("scale-out-4.9", "brokers/mq-west", 5, tmp_path / "c")
    (text,) = named(tables)
    assert "The clock of brokers/mq-west is 5.0 s ahead" in text
