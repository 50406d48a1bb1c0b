"""Clocks of hosts against each other and times that are off by a zone: named, and read as
corrected.
"""

import gzip
import re
import shutil
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.contracts.observed import CLOCK_UNSURE
from rebalance_core.ingest.clock_offsets import ClockShifts
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.in_process import ingest_collection
from tests.recordings.tables import DATA, ingested_recording

# Clocks of hosts against each other: named, and read as corrected.

HEAD = re.compile(rb"(?m)^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
BEAT = re.compile(rb"(lastUpdateTimestamp=)(\d{13})")
STORED = re.compile(rb'("timestamp" *: *)(\d{13})')


def skewed(
    recording: str,
    hosts: str,
    seconds: int,
    target: Path,
    *,
    notices: bool = True,
    copies: bool = True,
) -> Any:
    """The tables of a recording with the clock of a host, or of several, off.

    Args:
        recording: its name.
        hosts: their folders, with blanks between them.
        seconds: how far the clock is ahead.
        target: a new folder for the collection.
        notices: keep what logs of clients have of brokers' notices.
        copies: keep dumps and copies of stores.
    """
    shutil.copytree(DATA / recording / "collection", target)
    if not notices:
        _without_notices(target)
    for path in () if copies else [target / "mqadmin", *target.glob("brokers/*/config*")]:
        shutil.rmtree(path)
    stamp = partial(_stamped, ms=1_000 * seconds)
    for path in (path for host in hosts.split() for path in (target / host).rglob("*.*")):
        if ".log" in path.name:
            text = path.read_bytes()
            packed = path.suffix == ".gz"
            text = HEAD.sub(
                lambda m: _later(m[1], seconds), gzip.decompress(text) if packed else text
            )
            text = BEAT.sub(stamp, text)
            path.write_bytes(gzip.compress(text, 1) if packed else text)
        elif path.suffix == ".json" and path.is_relative_to(target / "brokers"):
            path.write_bytes(STORED.sub(stamp, path.read_bytes()))
    return ingest_collection(target).tables


def _stamped(match: re.Match[bytes], ms: int) -> bytes:
    return match[1] + b"%d" % (int(match[2]) + ms)


def _without_notices(folder: Path) -> None:
    """Take the lines on a broker's notices out of the logs of clients."""
    for path in folder.glob("clients/*/*.log*"):
        packed, text = path.suffix == ".gz", path.read_bytes()
        lines = (gzip.decompress(text) if packed else text).splitlines(keepends=True)
        text = b"".join(line for line in lines if b"receive broker's notification" not in line)
        path.write_bytes(gzip.compress(text, 1) if packed else text)


def _later(text: bytes, seconds: int) -> bytes:
    at = datetime.fromisoformat(text.decode()) + timedelta(seconds=seconds)
    return at.strftime("%Y-%m-%d %H:%M:%S").encode()


def offsets(tables: Any) -> dict[str, int]:
    return {
        row["host"]: row["clock_offset_ms"] for row in tables["coverage"] if row["clock_offset_ms"]
    }


def named(tables: Any) -> list[str]:
    found = [row for row in tables["findings"] if row["rule_id"] == "INGEST_CLOCK_OFFSET"]
    return [row["summary"] for row in found]


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
    assert "whole time zone, and not corrected" in text


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
def test_what_a_client_says_by_its_clock_is_corrected_with_it(seconds: int, tmp_path: Path) -> None:
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
        900, said | {"last_pull_ms": 105, "start_ms": 103, "versions": {"T": 107}},
    )  # fmt: skip


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


# Brokers that clients visit one after the other: 16 of them, 0.16 s from one to the next.

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


# Times that are off by a whole zone: named, and read as corrected.

BEAT_MS = 1_795_231_735_100  # 2026-11-21 11:28:55 GMT+8
JOIN = (
    "2026-11-21 {} INFO t - new consumer connected, group: g CONSUME_PASSIVELY CLUSTERING "
    "channel: ClientChannelInfo [channel=[id: 0x1, L:/1.1.1.1:1 - R:/2.2.2.2:2], clientId=c1, "
    "language=JAVA, version=479, lastUpdateTimestamp={}]\n"
)
HEARTBEAT_LOG = (
    "2026-11-21 {},687 INFO RocketmqClient - HeartbeatData [clientID=c1, producerDataSet=[], "
    "consumerDataSet=[ConsumerData [groupName=g, consumeType=CONSUME_PASSIVELY, "
    "messageModel=CLUSTERING, consumeFromWhere=CONSUME_FROM_LAST_OFFSET, unitMode=false, "
    "subscriptionDataSet=[SubscriptionData [classFilterMode=false, topic=T, subString=*, "
    "tagsSet=[], codeSet=[], subVersion={}, expressionType=TAG]]]]]\n"
)
HOUR_MS = 3_600_000


def ingested(folder: Path, files: Mapping[str, str], settings: str = "") -> Any:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "collection.toml").write_text(f'cluster = "C"\n{settings}')
    return ingest_collection(folder).tables


def zones(tables: Any) -> list[str]:
    found = [row for row in tables["findings"] if row["rule_id"] == "INGEST_TIME_ZONE"]
    return [row["summary"] for row in found]


def joins(tables: Any) -> list[int]:
    rows = tables["cluster_events"]
    return [row["event_ms"] for row in rows if row["event_type"] == "CONSUMER_JOIN"]


@pytest.mark.parametrize(
    ("head", "off"),
    [("11:28:55", ""), ("03:28:55", "8 h"), ("16:58:55", "5 h 30 min"), ("11:43:55", "")],
)
def test_a_broker_s_log_is_off_by_the_beats_that_it_prints(
    tmp_path: Path, head: str, off: str
) -> None:
    tables = ingested(tmp_path, {"brokers/a/broker.log": JOIN.format(head, BEAT_MS)})
    (joined,) = joins(tables)
    assert [off in text and "brokers/a" in text for text in zones(tables)] == [True] * bool(off)
    assert (joined == BEAT_MS) is (head != "11:43:55")


def test_a_log_with_lines_of_two_zones_is_left_as_it_is(tmp_path: Path) -> None:
    lines = JOIN.format("03:28:55", BEAT_MS) + JOIN.format("11:28:56", BEAT_MS + 1000)
    assert zones(ingested(tmp_path, {"brokers/a/broker.log": lines})) == []


@pytest.mark.parametrize(
    ("zone", "off"),
    [("Asia/Shanghai", ""), ("UTC", "8 h, all too late"), ("Asia/Tokyo", "1 h, all too early")],
)
def test_the_zone_of_a_client_s_host_by_its_heartbeats(tmp_path: Path, zone: str, off: str) -> None:
    """Its lines are local time, 11:28 in Shanghai."""
    files = {
        "brokers/a/broker.log": JOIN.format("11:28:55", BEAT_MS),
        "clients/c/rocketmq_client.log": HEARTBEAT_LOG.format("11:28:55", BEAT_MS),
    }
    tables = ingested(tmp_path, files, f'[time_zones]\n"clients/c/*" = "{zone}"\n')
    assert [off in text for text in zones(tables)] == [True] * bool(off)


def test_a_client_that_ran_for_long_has_an_old_subscription_and_no_wrong_clock(
    tmp_path: Path,
) -> None:
    """8 h before, to the second; its log ends with the broker's."""
    files = {
        "brokers/a/broker.log": JOIN.format("11:28:55", BEAT_MS),
        "clients/c/rocketmq_client.log": HEARTBEAT_LOG.format("11:28:55", BEAT_MS - 8 * HOUR_MS),
    }
    tables = ingested(tmp_path, files, '[time_zones]\n"clients/c/*" = "Asia/Shanghai"\n')
    assert zones(tables) == []


def test_two_joins_of_one_second_stay_two_though_the_times_in_them_are_off(tmp_path: Path) -> None:
    """Who came first had all queues, and may have committed before the second came."""
    second = JOIN.replace("clientId=c1", "clientId=c2")
    log = JOIN.format("11:28:53", BEAT_MS) + second.format("11:28:53", BEAT_MS + 700)
    events = ingested(tmp_path, {"brokers/a/broker.log": log})["cluster_events"]
    (first_ms, one), (second_ms, other) = (
        (row["event_ms"], row["client_id"])
        for row in events
        if row["event_type"] == "CONSUMER_JOIN"
    )
    assert (one, other) == ("c1", "c2")
    assert 0 < second_ms - first_ms < 1_000


@pytest.mark.parametrize(("hour", "ends_at"), [("11", "11:29:55"), ("19", "11:28:55")])
def test_a_client_whose_clock_is_hours_ahead_does_not_make_all_else_old(
    hour: str, ends_at: str, tmp_path: Path
) -> None:
    files = {
        "brokers/a/broker.log": JOIN.format("11:28:55", BEAT_MS),
        "clients/c/rocketmq_client.log": HEARTBEAT_LOG.format(f"{hour}:29:55", BEAT_MS),
    }
    rows = ingested(tmp_path, files, '[time_zones]\n"clients/*" = "Asia/Shanghai"\n')[
        "observed_facts"
    ]
    (collected,) = (row for row in rows if row["kind"] == "COLLECTED")
    end = datetime.fromtimestamp(collected["last_ms"] // 1000, timezone(timedelta(hours=8)))
    assert f"{end:%H:%M:%S}" == ends_at
