"""Clocks of hosts against each other: named, and read as corrected."""

import gzip
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.contracts.observed import CLOCK_UNSURE
from rebalance_core.ingest.clock_offsets import ClockShifts
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.in_process import ingest_collection
from tests.recordings.tables import DATA, ingested_recording
from tests.unit.ingest.skewed_clocks import (
    BEAT_MS,
    HEAD,
    JOIN,
    _later,
    ingested,
    named,
    offsets,
    skewed,
)


@pytest.mark.parametrize(
    ("recording", "host", "seconds"),
    [
        ("start-offsets", "clients/c2", -5),
        ("join-leave", "clients/c3", 60),
        ("join-leave", "brokers/broker-a", 5),
        # its second heartbeat is nearer to the broker's moment than its first
        ("silent-loss", "clients/c1", -60),
        # many come and go: what is near in time there is not what the two of them saw
        ("pop", "clients/c3", -5),
    ],
)
def test_a_clock_that_is_off_is_named_and_corrected(
    recording: str, host: str, seconds: int, tmp_path: Path
) -> None:
    whole = ingested_recording(recording).tables
    tables = skewed(recording, host, seconds, tmp_path / "c")
    (text,) = named(tables)
    assert host in text
    assert ("behind" in text) is (seconds < 0)
    ((name, behind),) = offsets(tables).items()
    assert host.endswith(name)
    assert abs(behind + 1000 * seconds) < 500
    (error,) = {row["clock_error_ms"] for row in tables["coverage"]} - {None}
    assert abs(behind + 1000 * seconds) <= error < 1_000
    for row, same in zip(tables["cluster_events"], whole["cluster_events"], strict=True):
        assert row["event_type"] == same["event_type"], row
        assert abs(row["event_ms"] - same["event_ms"]) < 1_000, row
    commits, right = (
        sorted(row["observed_ms"] for row in of["committed_offsets"] if row["client_id"])
        for of in (tables, whole)
    )
    # dated when they were surely sent, whatever the clock still is off
    assert all(ms <= late <= ms + 2 * error for ms, late in zip(right, commits, strict=True))


@pytest.mark.parametrize("seconds", [-60, -8 * 3600, 8 * 3600])
def test_the_clock_of_a_name_server_is_compared_with_starts_of_brokers(
    seconds: int, tmp_path: Path
) -> None:
    tables = skewed("timing", "namesrv", seconds, tmp_path / "c")
    (text,) = named(tables)
    assert "namesrv" in text
    assert "Its times are read as corrected." in text
    whole = ingested_recording("timing").tables
    for row, same in zip(_of_brokers(tables), _of_brokers(whole), strict=True):
        assert row["event_type"] == same["event_type"]
        whole_zone = seconds % 3600 == 0
        assert abs(row["event_ms"] - same["event_ms"]) <= (0 if whole_zone else 5_000)


def test_a_name_server_that_starts_without_its_old_logs_has_the_brokers_clock(
    tmp_path: Path,
) -> None:
    """All brokers register with it at once, as after their own start (a replaced pod)."""
    shutil.copytree(DATA / "join-leave-5.5" / "collection", tmp_path / "c")
    (path,) = (tmp_path / "c" / "namesrv").rglob("namesrv.log*")
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    start = [line for line in lines if line[:19] <= b"2026-11-22 15:18:00"]
    again = [HEAD.sub(lambda m: _later(m[1], 300), line) for line in start]
    assert sum(b"new broker registered" in line for line in again) == 2
    rest = [line for line in lines if line[:19] > b"2026-11-22 15:23:00"]
    path.write_bytes(gzip.compress(b"".join(again + rest), 1))
    tables = ingest_collection(tmp_path / "c").tables
    assert (named(tables), offsets(tables)) == ([], {})


def _of_brokers(tables: Any) -> list[Any]:
    return [row for row in tables["cluster_events"] if row["event_type"].startswith("BROKER_")]


def test_moments_of_others_alone_make_no_difference_of_clocks(tmp_path: Path) -> None:
    # of k1's log the first joins are gone: a later line of the same client is not that moment
    shutil.copytree(DATA / "strategies" / "collection", tmp_path / "c")
    path = tmp_path / "c" / "clients" / "k1" / "rocketmq_client.log.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    late = [line for line in lines if not HEAD.match(line) or line[:19] > b"2026-11-21 11:45:35"]
    path.write_bytes(gzip.compress(b"".join(late), 1))
    assert offsets(ingest_collection(tmp_path / "c").tables) == {}


def test_whole_recordings_have_clocks_that_agree() -> None:
    for recording in ("scale-out-4.9", "silent-loss", "slave-read", "pathologies", "rocksdb"):
        tables = ingested_recording(recording).tables
        assert (named(tables), offsets(tables)) == ([], {}), recording


def test_a_whole_zone_is_said_and_not_applied(tmp_path: Path) -> None:
    tables = skewed("join-leave", "brokers/broker-a", 8 * 3600, tmp_path / "c")
    (text,) = named(tables)
    assert "whole time zone, and the times are not corrected" in text


def test_heartbeats_at_the_end_of_a_log_are_not_the_joins_of_its_clients(tmp_path: Path) -> None:
    # two consumers of one process: 0.1 s apart when they start, and when they end
    shutil.copytree(DATA / "no-notices" / "collection", tmp_path / "c")
    path = tmp_path / "c" / "clients" / "c2" / "rocketmq_client.log"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if line[:19] > b"2026-11-26 07:08:06"))
    tables = ingest_collection(tmp_path / "c").tables
    assert (named(tables), offsets(tables)) == ([], {})


@pytest.mark.parametrize("begin", ["11:46:22.200", "11:46:18.600", "11:46:43.600"])
def test_heartbeats_without_the_client_s_start_are_not_the_first_ones(
    begin: str, tmp_path: Path
) -> None:
    """Five groups of one process: all of them are 100 s later than when they came."""
    shutil.copytree(DATA / "strategies" / "collection", tmp_path / "c")
    path = tmp_path / "c" / "clients" / "k1" / "rocketmq_client.log.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    kept = b"".join(line for line in lines if line[:23] > f"2026-11-21 {begin}".encode())
    assert b"send heart beat" in kept
    path.write_bytes(gzip.compress(kept, 1))
    tables = ingest_collection(tmp_path / "c").tables
    assert (named(tables), offsets(tables)) == ([], {})


def test_a_log_that_was_cut_by_whole_heartbeats_has_no_clock_that_is_ahead(tmp_path: Path) -> None:
    """No client of this recording logs its start."""
    shutil.copytree(DATA / "pop" / "collection", tmp_path / "c")
    path = tmp_path / "c" / "clients" / "c3" / "rocketmq_client.log"
    lines = path.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if line[:19] > b"2026-11-22 15:12:39"]
    assert 0 < len(kept) < len(lines)
    path.write_bytes(b"".join(kept))
    tables = ingest_collection(tmp_path / "c").tables
    assert (named(tables), offsets(tables)) == ([], {})


def test_lines_of_a_broker_later_than_the_epoch_times_in_them(tmp_path: Path) -> None:
    """Its clock is right, as the stamps are, and the times of its lines are not."""
    whole = ingested_recording("timing").tables
    shutil.copytree(DATA / "timing" / "collection", tmp_path / "c")
    path = tmp_path / "c" / "brokers" / "broker-a" / "broker.log.gz"
    late = HEAD.sub(lambda m: _later(m[1], 60), gzip.decompress(path.read_bytes()))
    path.write_bytes(gzip.compress(late, 1))
    tables = ingest_collection(tmp_path / "c").tables
    (text,) = named(tables)
    assert text.startswith("The lines of brokers/broker-a are 60.")
    for row, same in zip(tables["cluster_events"], whole["cluster_events"], strict=True):
        assert row["event_type"] == same["event_type"], row
        assert abs(row["event_ms"] - same["event_ms"]) < 2_000, row


def test_brokers_are_compared_by_the_clients_that_came_to_both(tmp_path: Path) -> None:
    """Without a log of any client: three against one tell, one against one do not."""
    for recording, told in (("rocksdb", {"broker-a": -60}), ("join-leave", {})):
        folder = tmp_path / recording / "c"
        skewed(recording, "brokers/broker-a", 60, folder)
        shutil.rmtree(folder / "clients", ignore_errors=True)
        tables = ingest_collection(folder).tables
        assert {host: round(ms / 1000) for host, ms in offsets(tables).items()} == told
        (text,) = named(tables)
        assert "broker-a" in text
        assert ("nothing shows which is right" in text) is (not told)
        notes = {row["host"] for row in tables["coverage"] if CLOCK_UNSURE in (row["note"] or "")}
        assert notes == (set() if told else {"broker-a", "broker-b"})


def test_clients_that_come_back_together_are_no_difference_of_clocks(tmp_path: Path) -> None:
    """Of one broker the log begins with a later start of it: all clients came back then."""
    line = (
        "2026-11-21 11:{:02}:{:02} INFO t - new consumer connected, group: g CONSUME_PASSIVELY "
        "CLUSTERING channel: ClientChannelInfo [channel=[id: 0x1, L:/1.1.1.1:1 - R:/2.2.2.2:2], "
        "clientId={}, language=JAVA, version=479, lastUpdateTimestamp={}]\n"
    )
    begin_ms = 1_795_230_000_000  # 11:00:00

    def log(minute: int) -> str:
        beats = [(second, f"10.0.0.{second}@1") for second in range(5)]
        at_ms = begin_ms + 60_000 * minute
        return "".join(line.format(minute, s, name, at_ms + 1000 * s) for s, name in beats)

    for name, minute in (("a", 1), ("b", 20)):
        path = tmp_path / "brokers" / name / "broker.log"
        path.parent.mkdir(parents=True)
        path.write_text(log(minute))
    (tmp_path / "collection.toml").write_text('cluster = "C"\n')
    assert named(ingest_collection(tmp_path).tables) == []


@pytest.mark.parametrize("seconds", [-5, -60, -8 * 3600, 60])
def test_what_a_client_reports_by_its_clock_is_corrected_with_it(
    seconds: int, tmp_path: Path
) -> None:
    """Its subVersions and its start; broker-a's log begins late: it may have come back to it."""
    shutil.copytree(DATA / "join-leave" / "collection", tmp_path / "c")
    for host in ("a", "b"):
        (path,) = (tmp_path / "c" / "brokers" / f"broker-{host}").glob("broker.log*")
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(line for line in lines if line[:19] > b"2026-11-21 11:28:50"))
    right = _joined(ingest_collection(tmp_path / "c").tables)
    own = (tmp_path / "c" / "clients" / "c3" / "rocketmq_client.log").read_bytes()
    versions = set(re.findall(rb"subVersion=(\d{13})", own))
    for path in (tmp_path / "c").rglob("*"):
        if path.is_file():
            text = path.read_bytes()
            for version in versions:
                text = text.replace(version, b"%d" % (int(version) + 1000 * seconds))
            path.write_bytes(text)
    path = tmp_path / "c" / "clients" / "c3" / "rocketmq_client.log"
    path.write_bytes(HEAD.sub(lambda m: _later(m[1], seconds), path.read_bytes()))
    assert _joined(ingest_collection(tmp_path / "c").tables) == right


def test_what_mqadmin_shows_of_a_client_is_by_its_clock() -> None:
    said = {
        "client_file": "x",
        "last_pull_ms": 5,
        "start_ms": 3,
        "queue_id": 1,
        "versions": {"T": 7},
    }
    piece = Evidence("group", "g", "client_queue", 900, "", 0, "mqadmin/1-consumerStatus-g", said)
    (right,) = ClockShifts(clients={"x": 100}).corrected([piece])
    assert (right.at_ms, right.values) == (
        900,
        said | {"last_pull_ms": 105, "start_ms": 103, "versions": {"T": 107}},
    )


def _joined(tables: Any) -> list[tuple[Any, ...]]:
    return [
        (row["client_id"], row["event_ms"], row.get("detail"))
        for row in tables["cluster_events"]
        if row["event_type"] == "CONSUMER_JOIN"
    ]


def test_what_others_did_at_a_time_does_not_make_a_clock_right(tmp_path: Path) -> None:
    """Of notify2 itself nothing is at the same time: two processes have its client id."""
    tables = skewed("nightly", "clients/notify2", -5, tmp_path / "c")
    (row,) = [row for row in tables["coverage"] if row["host"] == "notify2"]
    assert row["clock_offset_ms"] is None


def test_a_later_heartbeat_is_not_the_moment_that_the_broker_saw(tmp_path: Path) -> None:
    """A minute slow, its second heartbeats are near to the time at which brokers saw the first."""
    tables = skewed("rocksdb", "clients/c2", -60, tmp_path / "c")
    (row,) = [row for row in tables["coverage"] if row["host"] == "c2"]
    assert row["clock_offset_ms"] is None or abs(row["clock_offset_ms"] - 60_000) < 1_000


def test_no_broker_saw_a_process_before_it_began(tmp_path: Path) -> None:
    """A minute ahead, it starts when clients come back to a broker: equal clocks look right."""
    tables = skewed("broker-loss-4.9", "clients/l1", 60, tmp_path / "c")
    assert {name: round(ms / 1000) for name, ms in offsets(tables).items()} == {"l1": -60}


def test_a_moment_of_a_process_elsewhere_with_the_same_client_id_is_not_the_client_s(
    tmp_path: Path,
) -> None:
    assert offsets(skewed("pathologies", "clients/y2", -5, tmp_path / "c")) == {}


def test_a_name_server_s_clock_is_not_off_by_one_broker_s(tmp_path: Path) -> None:
    """Of no other broker the log has a start that it heard of."""
    tables = skewed("go-java", "brokers/broker-b", 60, tmp_path / "c")
    assert "namesrv" not in offsets(tables)
    assert not any("The clock of namesrv" in text for text in named(tables))


@pytest.mark.parametrize(
    ("recording", "broker", "seconds"), [("nightly", "broker-b", -10), ("pop", "broker-b", -60)]
)
def test_what_is_no_proof_that_a_broker_s_clock_is_off_is_said(
    recording: str, broker: str, seconds: int, tmp_path: Path
) -> None:
    """All clients at once, who may have come long before it had a topic of theirs; or one broker
    alone, where clients' logs may have been cut by whole heartbeats.
    """
    tables = skewed(recording, f"brokers/{broker}", seconds, tmp_path / "c", notices=False)
    assert offsets(tables) == {}
    (text,) = named(tables)
    assert text.startswith(f"The clocks of brokers/{broker} and of others differ by up to ")
    notes = {row["host"] for row in tables["coverage"] if CLOCK_UNSURE in (row["note"] or "")}
    assert notes == {broker}


@pytest.mark.parametrize(
    ("recording", "broker", "seconds"),
    [
        ("scale-out-4.9", "mq-west", 5),
        ("nightly", "broker-b", -10),
        ("pathologies", "broker-a", -5),
        # by heartbeats alone the logs of its clients may have been cut by two of them
        ("pop", "broker-b", -60),
        # a client whose log begins late shows another difference by its heartbeats
        ("slave-read", "broker-a-s", -30),
    ],
)
def test_own_notices_show_a_broker_s_clock_where_joins_do_not(
    recording: str, broker: str, seconds: int, tmp_path: Path
) -> None:
    known = offsets(skewed(recording, f"brokers/{broker}", seconds, tmp_path / "c"))
    assert abs(known.pop(broker) + 1_000 * seconds) <= 300
    assert known == {}


def test_notices_that_are_near_by_chance_do_not_make_a_broker_s_clock_right(
    tmp_path: Path,
) -> None:
    """So many come and go that half of them have another near them, at no difference, too."""
    known = offsets(skewed("pop", "brokers/broker-b", -5, tmp_path / "c"))
    assert known.keys() == {"broker-b"}
    assert abs(known["broker-b"] - 5_000) <= 300


def test_the_machine_that_dumps_decides_whether_brokers_or_as_many_clients_are_right(
    tmp_path: Path,
) -> None:
    """By two brokers and the hosts of two clients alone it would be the clients' that are off."""
    brokers = "brokers/broker-a brokers/broker-b namesrv"
    tables = skewed("start-offsets", brokers, -60, tmp_path / "c")
    known = offsets(tables)
    hosts = ("broker-a", "broker-b", "namesrv")
    assert {host: round(ms, -3) for host, ms in known.items()} == dict.fromkeys(hosts, 60_000)
    assert not any("the machine that" in text for text in named(tables))
    without = skewed("start-offsets", brokers, -60, tmp_path / "c2", copies=False)
    assert {host for host, ms in offsets(without).items()} == {"c1", "c2"}


def test_one_line_of_a_broker_later_than_the_time_in_it_is_said_and_not_corrected(
    tmp_path: Path,
) -> None:
    """It was frozen, or its lines have another clock."""
    tables = ingested(tmp_path, {"brokers/a/broker.log": JOIN.format("11:29:55", BEAT_MS)})
    (text,) = named(tables)
    assert text.startswith("The clocks of brokers/a and of others differ by up to 6")
    assert offsets(tables) == {}
