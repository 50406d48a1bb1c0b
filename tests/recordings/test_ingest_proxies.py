"""gRPC clients behind two proxies of a real 5.5.0 cluster: who was a member when.

A killed client stays one until its proxy's channel expires (rocketmq.md §14). `k2` was cut off
while its proxy was dead: its members are gone once the other proxy drops them.
"""

import shutil
from functools import cache
from pathlib import Path

import pytest

from rebalance_core.ingest.in_process import Ingested, ingest_collection
from tests.recordings.tables import DATA, Row, Tables, ingested_recording, rows

NAME = "grpc"
GRPC = {"g-push": "GA", "g-slow": "GA", "g-fifo": "GF", "g-simple": "GS"}
REMOTING = {"g-remote": "GR"}
SYNCER = "CID_DefaultHeartBeatSyncerTopic"
START_MS = 2_000
"""A client is a member up to so long before start() returns: its first heartbeat comes before."""
SHUTDOWN_MS = 20_000
"""The four clients of a process shut down one after the other; the host was overloaded."""
EXPIRY_MS = (119_000, 131_000)
"""Channel expiry 120 s after the last heartbeat, found by a scan each 10 s; times have seconds."""
SECOND_MS = 1_000


@cache
def ingested() -> Ingested:
    return ingested_recording(NAME)


def tables() -> Tables:
    return ingested().tables


def happened(event: str, who: str) -> list[int]:
    key = "proxy" if event.startswith("proxy") else "client"
    return [
        row["t"]
        for row in rows(DATA / NAME / "events.jsonl")
        if row["event"] == event and row.get(key) == who
    ]


@cache
def started() -> dict[tuple[str, str], tuple[str, int, int]]:
    """Client file, and when start() was called and had returned, by group and client id."""
    found = {}
    for path in sorted((DATA / NAME / "truth").glob("*.jsonl")):
        called = 0
        for line in rows(path):
            if line["kind"] == "starting":
                called = line["t"]
            elif line["kind"] == "started":
                found[line["group"], line["client_id"]] = (path.stem, called, line["t"])
    return found


def events_of(group: str, client_id: str) -> list[tuple[str, int, str | None]]:
    return [
        (row["event_type"].removeprefix("CONSUMER_"), row["event_ms"], row.get("detail"))
        for row in tables()["cluster_events"]
        if (row.get("consumer_group"), row.get("client_id")) == (group, client_id)
    ]


def ids_of(file: str, n: int = 0) -> dict[str, str]:
    """Client ids by group of the nth run of a client."""
    runs: dict[str, list[str]] = {}
    for (group, client_id), (of_file, _, _) in started().items():
        if of_file == file:
            runs.setdefault(group, []).append(client_id)
    return {group: ids[n] for group, ids in runs.items()}


def facts(kind: str) -> list[Row]:
    return [row for row in tables()["observed_facts"] if row["kind"] == kind]


def test_everything_is_understood() -> None:
    assert tables()["rejected"] == []
    warned = {row["rule_id"] for row in tables()["findings"] if row["severity"] != "INFO"}
    assert warned == set()


def test_the_groups_are_those_that_there_were() -> None:
    """Pop retry topics are topics: consumerProgress lists g-push_GA, g-slow_GA and g-simple_GS."""
    found = {row["consumer_group"]: row for row in tables()["consumer_groups"]}
    assert found.keys() == {*GRPC, *REMOTING, SYNCER}
    for table in ("observed_facts", "observed_members", "committed_offsets"):
        named = {row["consumer_group"] for row in tables()[table]} - {None}
        assert {name for name in named if name.startswith("g-")} <= {
            *GRPC,
            *REMOTING,
            "g-classic",
        }
    modes = {group: row["rebalance_mode"] for group, row in found.items()}
    assert modes == dict.fromkeys(GRPC, "PROXY") | {"g-remote": "CLIENT", SYNCER: "CLIENT"}
    assert {group for group, row in found.items() if row["ordered"]} == {"g-fifo"}
    assert {group for group, row in found.items() if row["consumer_type"] != "PUSH"} == {"g-simple"}


def test_every_client_joins_once_and_when_it_started() -> None:
    joined = [row for row in tables()["cluster_events"] if row["event_type"] == "CONSUMER_JOIN"]
    of_proxies = [row for row in joined if row["consumer_group"] != SYNCER]
    keys = {(row["consumer_group"], row["client_id"]) for row in of_proxies}
    assert keys == started().keys()
    assert len(of_proxies) == len(keys) + len(GRPC)  # k2 came back to its proxy
    topics = GRPC | REMOTING
    for row in of_proxies:
        group = row["consumer_group"]
        assert row["subscriptions"] == [topics[group]]
        assert row.get("rebalance_mode") == ("PROXY" if group in GRPC else "CLIENT")
        assert row.get("version") is None
        assert row.get("detail") is None
    for (group, client_id), (_, called, returned) in started().items():
        at_ms = events_of(group, client_id)[0][1]
        assert max(called, returned - START_MS) <= at_ms <= returned, (group, client_id)


@pytest.mark.parametrize("group", GRPC)
def test_a_shutdown_is_a_leave(group: str) -> None:
    (at_ms,) = happened("client_shutdown", "k2")
    (join, leave) = events_of(group, ids_of("k2")[group])
    assert (join[0], leave[0], leave[2]) == ("JOIN", "LEAVE", None)
    assert at_ms <= leave[1] <= at_ms + SHUTDOWN_MS


@pytest.mark.parametrize("group", GRPC)
def test_a_killed_client_stays_a_member_until_its_channel_expires(group: str) -> None:
    (killed_ms,) = happened("client_killed", "k3")
    (_, lost) = events_of(group, ids_of("k3")[group])
    assert (lost[0], lost[2]) == ("LOST", "EXPIRED")
    assert EXPIRY_MS[0] <= lost[1] - killed_ms <= EXPIRY_MS[1]


@pytest.mark.parametrize("group", GRPC)
def test_a_client_without_its_proxy_is_gone_until_it_comes_back(group: str) -> None:
    (killed_ms,) = happened("proxy_killed", "proxy-2")
    back_ms = happened("proxy_started", "proxy-2")[-1]
    (_, lost, join) = events_of(group, ids_of("k2", 1)[group])
    assert (lost[0], lost[2], join[0]) == ("LOST", "EXPIRED", "JOIN")
    assert EXPIRY_MS[0] <= lost[1] - killed_ms <= EXPIRY_MS[1]
    assert join[1] >= back_ms


def test_a_killed_remoting_client_is_lost_at_once() -> None:
    (killed_ms,) = happened("client_killed", "m2")
    (_, lost) = events_of("g-remote", ids_of("m2")["g-remote"])
    assert (lost[0], lost[2]) == ("LOST", None)
    assert abs(lost[1] - killed_ms) <= SECOND_MS


def test_who_was_still_there() -> None:
    """k1's shutdown had reached its first client alone when the recording ended."""
    (push, *others) = [events_of(group, ids_of("k1")[group]) for group in GRPC]
    assert [what for what, _, _ in push] == ["JOIN", "LEAVE"]
    assert [[what for what, _, _ in one] for one in others] == [["JOIN"]] * 3


def test_two_proxies_of_a_host_share_an_id() -> None:
    """Each is a process: one is lost with proxy-2 and comes back with it."""
    found = events_of(SYNCER, "10.0.9.1@DEFAULT")
    assert [what for what, _, _ in found] == ["JOIN", "JOIN", "LOST", "JOIN"]
    assert 0 <= found[2][1] - happened("proxy_killed", "proxy-2")[0] <= 2 * SECOND_MS


def test_blocked_queues_are_in_the_snapshot_after_the_kill() -> None:
    """Both queues of broker-a waited for what the dead client held, renewed by its proxy."""
    (killed_ms,) = happened("client_killed", "k3")
    snapshot_ms = [
        row["t"] for row in rows(DATA / NAME / "events.jsonl") if row["event"] == "snapshot"
    ][1]
    blocked = [
        row
        for row in facts("ORDER_BLOCK")
        if row["first_ms"] == snapshot_ms
        and int(row["details"]["blocked_until_ms"] or 0) > snapshot_ms
    ]
    assert {(r["broker_name"], r["topic"], r["queue_id"]) for r in blocked} == {
        ("broker-a", "GF", 0),
        ("broker-a", "GF", 1),
    }
    for row in blocked:
        assert row["consumer_group"] == "g-fifo"
        assert row["details"]["invisible_ms"] == "60000"
        assert int(row["details"]["blocked_until_ms"]) - killed_ms > 100_000  # it was renewed
    stores, queues = 8, 2  # config/ is of the same moment as the last snapshot
    assert sum(row["times"] for row in facts("ORDER_BLOCK")) == stores * queues


def test_proxies_and_what_they_answer() -> None:
    named = {row["details"]["name"]: row["details"] for row in facts("PROXY")}
    assert named.keys() == {"proxy-1", "proxy-2"}
    assert named["proxy-1"]["mode"] == "CLUSTER"
    assert named["proxy-1"]["addresses"] == "127.0.0.1:24070"
    assert {row["details"]["proxy"] for row in facts("GROUP_AT_PROXY")} == named.keys()
    assert {row["broker_name"] for row in facts("GROUP_AT_BROKER")} == {"broker-a", "broker-b"}
    assert {row["details"]["members"] for row in facts("GROUP_AT_BROKER")} == {"0"}
    assert [row["consumer_group"] for row in facts("NOT_ONLINE")] == ["g-push"]


def test_one_proxys_log_is_enough_for_who_there_was(tmp_path: Path) -> None:
    """Without proxy-2's own word its clients are dated by what proxy-1 was told."""
    folder = Path(shutil.copytree(DATA / NAME / "collection", tmp_path / "c"))
    shutil.rmtree(folder / "proxy" / "proxy-2")
    settings = folder / "collection.toml"
    settings.write_text(settings.read_text() + 'proxies = ["proxy-1", "proxy-2"]\n')
    found = ingest_collection(folder).tables

    def key(row: Row) -> tuple[str, str, str]:
        return (row["event_type"], row["consumer_group"], row["client_id"])

    def of_grpc(one: Tables) -> dict[tuple[str, str, str], list[int]]:
        times: dict[tuple[str, str, str], list[int]] = {}
        for row in one["cluster_events"]:
            if row.get("consumer_group") in GRPC:
                times.setdefault(key(row), []).append(row["event_ms"])
        return times

    whole, part = of_grpc(tables()), of_grpc(found)
    assert whole.keys() == part.keys()
    for what, times in whole.items():
        assert len(times) == len(part[what])
        for one, other in zip(times, part[what], strict=True):
            assert abs(one - other) <= 2 * SECOND_MS, what
