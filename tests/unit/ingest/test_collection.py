"""Broken collections: a clear message or a rejected row each, never a stack trace or silence."""

import errno
import gzip
import json
import os
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from rebalance_core.cli.run.ingest_outcome import reading_line
from rebalance_core.contracts import unpacking
from rebalance_core.ingest.collection import (
    CollectedFile,
    _StoreListing,
    hosts_of_dumps,
    identify,
    open_collection,
    with_broker_name,
)
from rebalance_core.ingest.in_process import Ingested, ingest_collection
from rebalance_core.model.errors import InputRefused
from tests.recordings.tables import DATA

SETTINGS = 'cluster = "C"\n[expected]\nbrokers = ["a"]\nname_servers = ["n"]\n'
JOIN = (
    "2026-11-21 11:28:35 INFO t - new consumer connected, group: g CONSUME_PASSIVELY CLUSTERING "
    "channel: ClientChannelInfo [channel=[id: 0x1, L:/1.1.1.1:1 - R:/2.2.2.2:2], clientId={}, "
    "language=JAVA, version=479, lastUpdateTimestamp=1795231715100]\n"
)


CLUSTER_LIST = (
    "#Cluster Name           #Broker Name            #BID  #Addr                  #Version      "
    "        #InTPS(LOAD)                   #OutTPS(LOAD)  #Timer(Progress)        #PCWait(ms)  "
    "#Hour         #SPACE    #ACTIVATED\n"
    "C                       a                       0     127.0.0.1:28020        {}            "
    "     1.50(0,0ms)               2.99(0,0ms|0,0ms)  0-0(0.0w, 0.0, 0.0)               0  "
    "0.03          0.2100          true\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "collection"
    (root / "brokers" / "a").mkdir(parents=True)
    (root / "collection.toml").write_text(SETTINGS)
    (root / "brokers" / "a" / "broker.log").write_text(JOIN.format("c1"))
    return root


def codes(done: Any) -> dict[str, str]:
    return {row["source"]: row["issues"][0]["code"] for row in done.tables["rejected"]}


def rules(done: Ingested) -> set[str]:
    return {row["rule_id"] for row in done.tables["findings"]}


def joined(done: Any) -> list[str]:
    return [
        row["client_id"]
        for row in done.tables["cluster_events"]
        if row["event_type"] == "CONSUMER_JOIN"
    ]


@pytest.mark.parametrize(
    ("name", "kind", "place"),
    [
        ("namesrv/namesrv.log", "namesrv_log", "namesrv"),
        ("namesrv/namesrv-2.log", "namesrv_log", "namesrv-2"),
        ("namesrv/ns1/otherdays/namesrv.3.log.gz", "namesrv_log", "ns1"),
        ("brokers/b/otherdays/broker.12.log.gz", "broker_log", "b"),
        ("brokers/room1@b/b_0/broker.log", "broker_log", "room1@b"),
        ("brokers/b/filter.log", "lock_log", "b"),
        ("brokers/b/lock.log", "lock_log", "b"),
        ("brokers/b/otherdays/pop.3.log.gz", "pop_log", "b"),
        ("brokers/b/metrics-1795974572015.txt", "broker_metrics", "b"),
        ("brokers/b/config-1795231766663/topics.json", "topics_json", "b"),
        ("brokers/b/broker.log-20261121.gz", "broker_log", "b"),
        ("brokers/b/otherdays/broker-2026-11-21.1.log.gz", "broker_log", "b"),
        ("namesrv/namesrv-20261121.log", "namesrv_log", "namesrv"),
        ("clients/c/rocketmq_client.log", "client_log", "c"),
        ("clients/c/rocketmq_client.log.3", "client_log", "c"),
        ("clients/c/other_days/rocketmq_client-7.log.gz", "client_log", "c"),
        ("clients/c/rocketmq_offsets/1.1.1.1@DEFAULT/g/offsets.json", "local_offset_json", "c"),
        ("mqadmin/1795231765847-clusterList.txt", "mqadmin", ""),
        ("mqadmin/1795231765291-consumerStatus-g/10.0.0.1@1#2.txt", "mqadmin", ""),
        ("consumer_groups.jsonl", "consumer_groups", ""),
    ],
)
def test_a_file_is_known_by_its_path(name: str, kind: str, place: str) -> None:
    file = identify(name)
    assert file is not None
    assert (file.kind, file.place) == (kind, place)


def test_answers_of_a_recording_are_not_looked_at(folder: Path) -> None:
    (folder / "truth").mkdir()
    for name in ("truth/c1.jsonl", "cluster.json", "events.jsonl", "timing.csv", "timing.md"):
        (folder / name).write_text("\x00 no parser could read this")
    assert codes(ingest_collection(folder)) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "collection.toml is missing"),
        ("cluster = ", "not TOML"),
        ("", "cluster is missing"),
        ('cluster = "C"\nclusters = 1', "did you mean cluster?"),
        ('cluster = "C"\nadmin_time_zone = "Mars"', "is not a time zone"),
        ('cluster = "C"\n[time_zones]\n"../x/*" = "UTC"', "leaves the collection"),
        ('cluster = "C"\n[expected]\nbrokers = "a"', "must be a list of names"),
    ],
)
def test_a_wrong_collection_toml_is_refused_by_name(
    folder: Path, text: str | None, said: str
) -> None:
    path = folder / "collection.toml"
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(InputRefused, match=said.replace("?", r"\?")):
        ingest_collection(folder)


def test_the_older_generation_of_a_store_is_read_where_the_newer_is_gone(folder: Path) -> None:
    stores = folder / "brokers" / "a" / "config"
    stores.mkdir()
    (stores / "topics.json").write_text("{}")
    for name in ("topics.json.bak", "consumerOffset.json.bak", "delayOffset.json.bak"):
        (stores / name).write_text("{}")
    read = {file.name: file.kind for file in open_collection(folder).files}
    assert read == {
        "brokers/a/broker.log": "broker_log",
        "brokers/a/config/topics.json": "topics_json",
        "brokers/a/config/consumerOffset.json.bak": "consumer_offset_json",
    }


def test_a_byte_order_mark_of_windows_is_no_mistake(folder: Path) -> None:
    (folder / "collection.toml").write_text("\ufeff" + SETTINGS, "utf-8")
    assert open_collection(folder).settings.cluster == "C"


def test_no_folder_and_an_empty_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="no such folder"):
        open_collection(tmp_path / "nowhere")
    (tmp_path / "collection.toml").write_text(SETTINGS)
    with pytest.raises(InputRefused, match="nothing to read"):
        open_collection(tmp_path)


def test_a_folder_that_may_not_be_listed_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = folder / "brokers" / "closed"
    closed.mkdir()
    scandir = os.scandir

    def guarded(path: str) -> Any:
        if Path(path) == closed:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    (refused,) = open_collection(folder).refused
    assert (refused.code, refused.source) == ("UNREADABLE_FILE", "brokers/closed")
    assert "Permission denied; nothing below it is read" in refused.message


def test_links_out_of_the_folder_are_refused_and_links_inside_are_read_once(
    folder: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "secret.log"
    outside.write_text(JOIN.format("stolen"))
    (folder / "brokers" / "b").mkdir()
    (folder / "brokers" / "b" / "broker.log").symlink_to(outside)
    (folder / "brokers" / "up").symlink_to("../../..")
    (folder / "brokers" / "a" / "broker.1.log").symlink_to("broker.log")
    done = ingest_collection(folder)
    assert codes(done) == {
        "brokers/b/broker.log": "LEAVES_COLLECTION",
        "brokers/up": "LEAVES_COLLECTION",
    }
    assert joined(done) == ["c1"]


def test_what_is_no_text_file_is_refused_by_name(folder: Path) -> None:
    logs = folder / "brokers" / "a"
    (logs / "broker.1.log").write_bytes(b"\x00\x01\x02" * 100)
    (logs / "broker.2.log.gz").write_bytes(b"plain text")
    (logs / "broker.3.log.gz").write_bytes(gzip.compress(JOIN.format("c3").encode() * 9)[:-12])
    (logs / "broker.4.log.gz").write_bytes(gzip.compress(b" " * (80 * 1024**2)))
    (logs / "broker.5.log").write_bytes(gzip.compress(b"x"))
    (logs / "notes.txt").write_text("remember the milk")
    (logs / "bad\nname.log").write_text("x")
    os.mkfifo(logs / "broker.6.log")
    done = ingest_collection(folder)
    assert {Path(name).name.partition("\\")[0]: code for name, code in codes(done).items()} == {
        "broker.1.log": "BINARY",
        "broker.2.log.gz": "WRONG_FILE",
        "broker.3.log.gz": "BROKEN_GZIP",
        "broker.3.log.gz:8": "UNPARSABLE_LINE",
        "broker.4.log.gz": "GZIP_BOMB",
        "broker.5.log": "BINARY",
        "notes.txt": "UNKNOWN_FILE",
        "bad\nname.log": "BAD_NAME",
        "broker.6.log": "NO_PLAIN_FILE",
    }
    assert sorted(joined(done)) == ["c1", "c3"]


def test_a_packed_log_is_read_up_to_a_limit_of_unpacked_bytes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = folder / "brokers" / "a" / "broker.1.log.gz"
    text = JOIN.format("c7").encode() + b"\n" + bytes(50 * 1024**2)
    log.write_bytes(gzip.compress(text))
    monkeypatch.setattr(unpacking, "UNPACKED_LIMIT", 10 * 1024**2)
    done = ingest_collection(folder)
    assert codes(done) == {"brokers/a/broker.1.log.gz": "GZIP_BOMB"}
    (message,) = [row["issues"][0]["message"] for row in done.tables["rejected"]]
    assert "unpacks to more than 10485760 bytes, the limit of one packed file" in message
    assert "c7" in joined(done)


@pytest.mark.parametrize("name", ["app.log", "logs/console-2026-11-21.txt", "rocketmq.log.gz"])
def test_a_client_s_log_under_another_name_is_known_by_its_templates(
    name: str, folder: Path
) -> None:
    log = DATA / "join-leave" / "collection" / "clients" / "c1" / "rocketmq_client.log.gz"
    text = gzip.decompress(log.read_bytes())
    path = folder / "clients" / "host-1" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    (folder / "clients" / "host-1" / "other.log").write_text("2026-11-21 11:28:55 INFO hello\n")
    done = ingest_collection(folder)
    assert codes(done) == {"clients/host-1/other.log": "UNKNOWN_FILE"}
    (row,) = (row for row in done.tables["coverage"] if row["role"] == "CLIENT")
    assert row["facts"] > 0


@pytest.mark.parametrize(
    "carrier",
    [
        "{}",
        "app-1  | {}",
        "\x1b[33m{}\x1b[0m",
        "2026-11-21T11:28:54.663Z stdout F {}",
        "[pod/app-7d9f/app] {}",
        "2026-11-21T11:28:54.663Z {}",
    ],
)
@pytest.mark.parametrize("language", ["GO", "CPP"])
def test_a_log_of_go_or_cpp_is_known_within_a_container_s_form(
    language: str, carrier: str, folder: Path
) -> None:
    queue = "MessageQueue [topic=T, brokerName=a, queueId=0]"
    if language == "GO":
        said = f'MessageQueue="{queue}" consumerGroup=g offset=7'
        line = (
            f'time="2026-11-21T11:28:54Z" level=info msg="update offset to broker success" {said}'
        )
    else:
        line = "[2026-Nov-21 11:28:54.663](info):DefaultMQPushConsumerImpl:g start\n"
        line += "[2026-Nov-21 11:28:54.663](info):oneway updateConsumeOffsetToBroker of "
        line += f"mq:{queue}, its offset is:7"
    path = folder / "clients" / "host-1" / "app.log"
    path.parent.mkdir(parents=True)
    path.write_text("".join(carrier.format(each) + "\n" for each in line.splitlines()))
    done = ingest_collection(folder)
    assert codes(done) == {}
    commits = [row for row in done.tables["committed_offsets"] if row["consumer_group"] == "g"]
    assert [row["committed_offset"] for row in commits] == [7]


def test_broken_lines_are_rejected_one_by_one_and_the_rest_counts(folder: Path) -> None:
    log = folder / "brokers" / "a" / "broker.log"
    lines = [
        JOIN.format("c1").encode(),
        JOIN.format("two\nlines").encode(),
        b"\x1b[31m" + JOIN.format("coloured").encode() + b"\x1b[0m",
        JOIN.format("esc\x1bape").encode(),
        JOIN.format("名前").encode("gbk"),
        JOIN.format("<script>alert(1)</script>").encode(),
        JOIN.format("c9").encode()[:-40],
    ]
    log.write_bytes(b"".join(lines))
    done = ingest_collection(folder)
    found = [row["issues"][0]["code"] for row in done.tables["rejected"]]
    assert found == ["UNPARSABLE_LINE", *["BROKEN_TEXT"] * 3, "UNPARSABLE_LINE"]
    assert sorted(joined(done)) == ["<script>alert(1)</script>", "c1"]


def test_two_lines_that_run_together_are_rejected(folder: Path) -> None:
    """Neither is read: the name at the end of the first would go on with the second."""
    log = folder / "brokers" / "a" / "broker.log"
    start = "2026-11-21 11:28:53 INFO main - one thing"
    ends = JOIN.format("c1").rstrip("\n")
    log.write_text(f"{ends}{JOIN.format('c2')}{start}{JOIN.format('c3')}{JOIN.format('c4')}")
    done = ingest_collection(folder)
    issues = [row["issues"][0] for row in done.tables["rejected"]]
    assert [issue["code"] for issue in issues] == ["UNPARSABLE_LINE"] * 2
    assert "two lines that run together" in issues[0]["message"]
    assert joined(done) == ["c4"]


def test_a_line_of_ten_megabytes_is_read(folder: Path) -> None:
    log = folder / "brokers" / "a" / "broker.log"
    log.write_text("x" * 10_000_000 + "\n" + JOIN.format("y" * 10_000_000) + JOIN.format("c2"))
    done = ingest_collection(folder)
    assert sorted(map(len, joined(done))) == [2, 10_000_000]


def test_a_wrong_file_in_a_place_is_reported(folder: Path) -> None:
    (folder / "namesrv").mkdir()
    (folder / "namesrv" / "namesrv.log").write_text(JOIN.format("c1"))
    (folder / "clients" / "c").mkdir(parents=True)
    (folder / "clients" / "c" / "rocketmq_client.log").write_text("<html>404</html>\n" * 3)
    (folder / "brokers" / "a" / "config").mkdir()
    (folder / "brokers" / "a" / "config" / "topics.json").write_text('{"offsetTable":{}}')
    done = ingest_collection(folder)
    assert not_understood(done) == {"namesrv/namesrv.log", "clients/c/rocketmq_client.log"}
    assert "brokers/a/config/topics.json" in codes(done)


def not_understood(done: Ingested) -> set[str]:
    return {
        row["evidence"]["file"]
        for row in done.tables["findings"]
        if row["rule_id"] == "INGEST_NOT_UNDERSTOOD"
    }


def test_a_rotated_log_of_a_quiet_time_and_one_of_a_producer_are_no_wrong_files(
    folder: Path,
) -> None:
    quiet = "2026-11-21 10:00:00 INFO t - nothing of ours\n" * 3
    (folder / "brokers" / "a" / "otherdays").mkdir()
    (folder / "brokers" / "a" / "otherdays" / "broker.1.log").write_text(quiet)
    producer = folder / "clients" / "p" / "rocketmq_client.log"
    producer.parent.mkdir(parents=True)
    producer.write_text(quiet.replace("00 INFO", "00,123 INFO"))
    assert not_understood(ingest_collection(folder)) == set()
    producer.write_text(quiet)  # a server's log among the clients' ones
    assert not_understood(ingest_collection(folder)) == {"clients/p/rocketmq_client.log"}


def test_a_clock_set_back_an_empty_log_and_missing_ones_are_findings(folder: Path) -> None:
    log = folder / "brokers" / "a" / "broker.log"
    log.write_text(JOIN.format("c1") + JOIN.format("c2").replace("11:28:35", "11:08:35"))
    (folder / "clients" / "c").mkdir(parents=True)
    (folder / "clients" / "c" / "rocketmq_client.log").write_text("")
    done = ingest_collection(folder)
    assert {
        "INGEST_CLOCK_SET_BACK",
        "INGEST_EMPTY_FILE",
        "INGEST_NAMESRV_LOG_MISSING",
        "INGEST_ASSUMED",
    } <= rules(done)


def test_the_given_settings_are_checked_line_by_line(folder: Path) -> None:
    (folder / "consumer_groups.jsonl").write_text(
        '{"consumer_group": "g", "strategy": "CONSISTENT_HASH(virtual_nodes=3)"}\n'
        '{"consumer_group": "g"}\n{"consumer_group": "h", "strategy": "AVGG"}\n'
        '{"consumer_group": "i", "ordered": 1}\n{"consumer_group": "j", "colour": "red"}\n[\n'
    )
    done = ingest_collection(folder)
    (row,) = done.tables["consumer_groups"]
    assert row["strategy"] == "CONSISTENT_HASH(virtual_nodes=3)"
    assert [r["issues"][0]["code"] for r in done.tables["rejected"]] == [
        "DUPLICATE_KEY",
        "BAD_STRATEGY",
        "BAD_ENTRY",
        "BAD_ENTRY",
        "UNPARSABLE_LINE",
    ]


@pytest.mark.parametrize(
    "value",
    [
        '"subscriptions": ["T", 1]',
        '"subscriptions": [null]',
        '"consume_timestamp_ms": 9223372036854775808',
        '"pull_threshold_for_queue": 2147483648',
        '"client_version": "\\ud800"',
    ],
)
def test_a_given_value_that_its_column_cannot_hold_is_refused(folder: Path, value: str) -> None:
    (folder / "consumer_groups.jsonl").write_text(f'{{"consumer_group": "g", {value}}}\n')
    done = ingest_collection(folder)
    assert [r["issues"][0]["code"] for r in done.tables["rejected"]] == ["BAD_ENTRY"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ('"rebalance_mode": "SERVER"', "rebalance_mode is 'SERVER'; valid: CLIENT, BROKER, PROXY"),
        ('"consumer_type": "NONE"', "consumer_type is 'NONE'; valid: PUSH, LITE_PULL, PULL"),
        ('"message_model": ""', "message_model is ''; valid: CLUSTERING, BROADCASTING"),
        (
            '"consume_from_where": "NEVER"',
            "consume_from_where is 'NEVER'; valid: CONSUME_FROM_LAST_OFFSET, "
            "CONSUME_FROM_FIRST_OFFSET, CONSUME_FROM_TIMESTAMP, "
            "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST, CONSUME_FROM_MIN_OFFSET, "
            "CONSUME_FROM_MAX_OFFSET",
        ),
        (
            '"pull_threshold_for_topic": 0',
            "pull_threshold_for_topic is 0; valid: -1 (off), 1 and more",
        ),
        (
            '"consume_timestamp_ms": -4',
            "consume_timestamp_ms is -4; valid: 0 to 253402387199999 (epoch ms)",
        ),
        ('"consumer_group": ""', "consumer_group is ''; valid: the name of a group"),
        (
            '"broker_version": "3.2"',
            "broker_version: RocketMQ 3.2 is not modelled; the oldest supported line is 4.9",
        ),
        (
            '"client_version": "x"',
            "client_version: 'x' is not a RocketMQ version; expected e.g. 4.9.7 or 5.3",
        ),
    ],
)
def test_a_given_value_that_is_not_allowed_is_refused_at_its_line(
    folder: Path, value: str, why: str
) -> None:
    (folder / "consumer_groups.jsonl").write_text(f'\n{{"consumer_group": "g", {value}}}\n')
    (refused,) = ingest_collection(folder).tables["rejected"]
    assert refused["source"] == "consumer_groups.jsonl:2"
    assert [(i["code"], i["message"]) for i in refused["issues"]] == [("BAD_ENTRY", why)]


def test_the_smallest_given_numbers_that_are_valid_are_read(folder: Path) -> None:
    numbers = {
        "pull_threshold_for_queue": 1,
        "pull_threshold_for_topic": -1,
        "consume_timestamp_ms": 0,
        "consume_from_where": "CONSUME_FROM_TIMESTAMP",
    }
    (folder / "consumer_groups.jsonl").write_text(json.dumps({"consumer_group": "g"} | numbers))
    done = ingest_collection(folder)
    assert done.tables["rejected"] == []
    (row,) = done.tables["consumer_groups"]
    assert row.items() >= numbers.items()


def test_a_client_of_a_version_that_is_not_modelled_still_counts(folder: Path) -> None:
    log = folder / "brokers" / "a" / "broker.log"
    log.write_text(JOIN.format("old").replace("version=479", "version=273") + JOIN.format("new"))
    done = ingest_collection(folder)
    versions = {
        row["client_id"]: row.get("version")
        for row in done.tables["cluster_events"]
        if row["event_type"] == "CONSUMER_JOIN"
    }
    assert versions == {"old": "4.9.0", "new": "5.3.3"}
    assert "INGEST_VERSION_NOT_MODELLED" in rules(done)


@pytest.mark.parametrize(
    ("ordinal", "version", "found"),
    [(513, "5.5.0", False), (515, "5.5.1", False), (533, "5.6.0", True), (612, "5.5.0", True)],
)
def test_a_client_after_the_newest_known_line_is_a_finding(
    folder: Path, ordinal: int, version: str | None, found: bool
) -> None:
    log = folder / "brokers" / "a" / "broker.log"
    log.write_text(JOIN.format("new").replace("version=479", f"version={ordinal}"))
    done = ingest_collection(folder)
    (row,) = (r for r in done.tables["cluster_events"] if r["event_type"] == "CONSUMER_JOIN")
    assert row.get("version") == version
    assert ("INGEST_VERSION_NOT_MODELLED" in rules(done)) is found


def test_clients_of_one_version_that_is_not_modelled_are_one_finding(folder: Path) -> None:
    log = folder / "brokers" / "a" / "broker.log"
    old = JOIN.replace("version=479", "version=273")
    log.write_text("".join(old.format(f"c{number}") for number in range(12)))
    done = ingest_collection(folder)
    (row,) = (r for r in done.tables["findings"] if r["rule_id"] == "INGEST_VERSION_NOT_MODELLED")
    assert row["summary"] == (
        "4.3.0 (12 of the clients) is older than the oldest known line; 4.9.0's rules are used."
    )
    assert row["consumer_group"]
    assert row["client_id"] is None


@pytest.mark.parametrize(
    ("stated", "taken_as", "said"),
    [
        ("V5_5_1", "5.5.1", ""),
        ("V5_3_4_SNAPSHOT", "5.3.4", ""),
        ("V5_6_0", "5.6.0", "later than the newest known line"),
        ("HIGHER_VERSION", "5.5.0", "later than the newest known line"),
        ("V4_8_0", "4.9.0", "a: V4_8_0 (clusterList) is older than the oldest known line; 4.9.0's"),
        ("V3_0_0_BETA1", "4.9.0", "older than the oldest known line"),
    ],
)
def test_a_broker_of_a_version_that_is_not_modelled_has_the_rules_of_the_nearest(
    folder: Path, stated: str, taken_as: str, said: str
) -> None:
    dump = folder / "mqadmin" / "1795231735135-clusterList.txt"
    dump.parent.mkdir(exist_ok=True)
    dump.write_text(CLUSTER_LIST.format(stated))
    (folder / "brokers" / "a" / "broker.log").write_text(JOIN.format("new"))
    done = ingest_collection(folder)
    (row,) = done.tables["consumer_groups"]
    assert row["broker_version"] == taken_as
    findings = done.tables["findings"]
    texts = [r["summary"] for r in findings if r["rule_id"] == "INGEST_VERSION_NOT_MODELLED"]
    assert [said in text for text in texts] == [True] * bool(said)
    assert not [r for r in findings if r["summary"].startswith("broker_version")]
    assert not done.tables["rejected"]


def test_a_broker_that_refuses_the_tool_has_no_version(folder: Path) -> None:
    """clusterList leaves the version and all loads empty, as for wrong credentials."""
    dump = folder / "mqadmin" / "1795231735135-clusterList.txt"
    dump.parent.mkdir(exist_ok=True)
    dump.write_text(CLUSTER_LIST.format("      "))
    done = ingest_collection(folder)
    assert not done.tables["rejected"]
    (row,) = (r for r in done.tables["observed_facts"] if r["kind"] == "BROKER_IN_CLUSTER")
    assert dict(row["details"])["version"] == ""


def test_a_group_s_broker_version_is_of_the_brokers_that_its_members_know(folder: Path) -> None:
    head, own = CLUSTER_LIST.format("V4_9_7").splitlines(keepends=True)
    other = own.replace("C                       a", "C                       z")
    other = other.replace("28020", "28030").replace("V4_9_7", "V5_3_3")
    dump = folder / "mqadmin" / "1795231735135-clusterList.txt"
    dump.parent.mkdir()
    dump.write_text(head + own + other)
    (row,) = ingest_collection(folder).tables["consumer_groups"]
    assert row["broker_version"] == "4.9.7"


DASHBOARD = '{\n "status": 0,\n "data": {},\n "errMsg": null\n}\n'


def not_read(done: Ingested) -> list[tuple[str, str, str]]:
    """What, broker and what it looks like of each file that states nothing."""
    return [
        (row["details"]["what"], row["broker_name"] or "", row["details"]["looks_like"])
        for row in done.tables["observed_facts"]
        if row["kind"] == "NOT_READ"
    ]


def test_a_dump_that_states_nothing_is_one_row_and_named(folder: Path) -> None:
    dump = folder / "mqadmin" / "1795231735135-consumerProgress-s-g.txt"
    dump.parent.mkdir()
    dump.write_text(DASHBOARD)
    done = ingest_collection(folder)
    (row,) = done.tables["rejected"]
    assert (row["source"], row["raw"]) == (f"mqadmin/{dump.name}", "{")
    assert row["issues"][0]["message"].startswith("all 5 lines: ")
    assert not_read(done) == [("consumerProgress", "", "a dashboard's JSON, not mqadmin's output")]
    (counted,) = (one for one in done.stats if one.kind == "mqadmin")
    assert (counted.rejected, counted.codes) == (5, {"UNPARSABLE_LINE": 5})


@pytest.mark.parametrize(
    "text",
    ["", "\n", "Picked up JAVA_TOOL_OPTIONS: -Xmx1g\n", "org.x.MQException: CODE: 17  DESC: no\n"],
)
def test_a_dump_that_is_empty_or_states_what_failed_is_understood(folder: Path, text: str) -> None:
    dump = folder / "mqadmin" / "1795231735135-consumerProgress-s-g.txt"
    dump.parent.mkdir()
    dump.write_text(text)
    assert not_read(ingest_collection(folder)) == []


def test_a_command_that_is_not_read_is_no_unreadable_dump(folder: Path) -> None:
    dump = folder / "mqadmin" / "1795231735135-statsAll.txt"
    dump.parent.mkdir()
    dump.write_text("#Topic  #Consumer Group\n")
    assert not_read(ingest_collection(folder)) == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize("packed", [False, True])
def test_what_editors_of_windows_write_is_read(folder: Path, encoding: str, packed: bool) -> None:
    log = (JOIN.format("c1") + JOIN.format("c2")).replace("\n", "\r\n").encode(encoding)
    path = folder / "brokers" / "a" / "broker.log"
    path.unlink()
    path = path.with_name("broker.log.gz") if packed else path
    path.write_bytes(gzip.compress(log) if packed else log)
    store = folder / "brokers" / "a" / "config-1795231735135" / "topics.json"
    store.parent.mkdir()
    topic = '{"readQueueNums":4,"writeQueueNums":4,"perm":6,"topicName":"T"}'
    store.write_bytes(f'{{"topicConfigTable":{{"T":{topic}}}}}'.encode(encoding))
    done = ingest_collection(folder)
    assert joined(done) == ["c1", "c2"]
    assert done.tables["rejected"] == []
    topics = [
        r["topic"] for r in done.tables["cluster_events"] if r["event_type"] == "TOPIC_CONFIG"
    ]
    assert topics == ["%RETRY%g", "T"]


@pytest.mark.parametrize(
    "head",
    [
        "Nov 21 03:30:00 host-1 rocketmq[12]: ",
        "<134>Nov  1 03:30:00 host-1 mqbroker: ",
        "<34>1 2026-11-21T03:30:00.123Z host-1 rocketmq 12 - - ",
        '1 2026-11-21T03:30:00+08:00 host-1 mq 12 ID47 [a@1 b="c"] ',
        "2026-11-21T03:30:00+0000 host-1 rocketmq[12]: ",
        "2026-11-21T03:30:00.123456+08:00 host-1 rocketmq[12]: ",
        "Sat 2026-11-21 03:30:00 UTC host-1 rocketmq[12]: ",
        "1795231800.123456 host-1 rocketmq[12]: ",
        "2026-11-21T03:30:00.1Z stdout F ",
    ],
)
def test_what_syslog_and_journald_put_before_lines_is_taken_off(folder: Path, head: str) -> None:
    lines = [JOIN.format(client) for client in ("c1", "c2")]
    other = "Nov 21 03:30:00 host-1 systemd[1]: Started RocketMQ.\n" if "[12]" in head else ""
    text = other + "".join(head + line for line in lines)
    (folder / "brokers" / "a" / "broker.log").write_text(text)
    assert joined(ingest_collection(folder)) == ["c1", "c2"]


@pytest.mark.parametrize("end", ["\r\n", "\r\r\n", "\r\r\r\n", "\x00\n", "\r\n\x00\x00"])
def test_what_copies_and_crashes_leave_at_the_ends_of_lines_is_none_of_them(
    folder: Path, end: str
) -> None:
    text = (JOIN.format("c1") + JOIN.format("c2")).replace("\n", end)
    (folder / "brokers" / "a" / "broker.log").write_bytes(b"\x00" * 5000 + text.encode())
    done = ingest_collection(folder)
    assert joined(done) == ["c1", "c2"]
    assert done.tables["rejected"] == []


def test_another_charset_beside_what_a_line_states_refuses_nothing(folder: Path) -> None:
    line = JOIN.format("c1").rstrip("\n").encode() + " 订单".encode("gbk") + b"\n"
    (folder / "brokers" / "a" / "broker.log").write_bytes(line)
    assert joined(ingest_collection(folder)) == ["c1"]


WRAPPED = {
    "JSON of Docker or a log collector": '{{"log":"{}\\n","stream":"stdout"}}',
    "a container's log as CRI writes it": "2026-11-21T03:28:35.1Z stdout F {}",
    "kubectl logs --prefix": "[pod/broker-0/broker] {}",
    "docker compose logs": "broker-a-1  | {}",
    "CSV of a search engine": '"2026-11-21T03:28:35.1Z","broker-0","{}"',
    "a terminal's colours": "\x1b[32m{}\x1b[0m",
    "a time before each line": "2026-11-21T03:28:35.1Z {}",
}
JOINS = [JOIN.format(f"c{number}").rstrip() for number in range(3)]


def of_rule(done: Any, rule: str) -> list[dict[str, Any]]:
    return [row for row in done.tables["findings"] if row["rule_id"] == rule]


@pytest.mark.parametrize("wrapping", WRAPPED)
def test_a_log_that_something_wrapped_is_read_and_reported(folder: Path, wrapping: str) -> None:
    log = folder / "brokers" / "a" / "broker.log"
    log.write_text("\n".join(JOINS) + "\n")
    plain = ingest_collection(folder)
    log.write_text("\n".join(WRAPPED[wrapping].format(line) for line in JOINS) + "\n")
    done = ingest_collection(folder)
    assert joined(done) == joined(plain) == ["c0", "c1", "c2"]
    assert not_read(done) == []
    (one,) = of_rule(done, "INGEST_WRAPPED")
    assert one["evidence"] == {"files": "brokers/a/broker.log", "wrapping": wrapping}
    assert of_rule(plain, "INGEST_WRAPPED") == []


def test_a_log_whose_head_is_not_known_does_not_pass_as_collected(folder: Path) -> None:
    unknown = [f"broker-0 {line}" for line in JOINS]
    (folder / "brokers" / "a" / "broker.log").write_text("\n".join(unknown) + "\n")
    done = ingest_collection(folder)
    assert not_read(done) == [("broker.log", "a", "")]
    (row,) = done.tables["rejected"]
    assert (row["source"], row["raw"][:20]) == ("brokers/a/broker.log", unknown[0][:20])
    older = folder / "brokers" / "a" / "otherdays" / "broker.1.log"
    older.parent.mkdir()
    older.write_text("".join(JOIN.format(f"d{number}") for number in range(4)))
    assert not_read(ingest_collection(folder)) == []  # all its files together


@pytest.fixture
def with_name_server(folder: Path) -> Path:
    (folder / "namesrv").mkdir(exist_ok=True)
    line = (
        "2026-11-21 11:28:01 INFO t - new broker registered, 10.0.0.1:10911 HAServer: 10.0.0.1:1\n"
    )
    (folder / "namesrv" / "namesrv.log").write_text(line)
    return folder


def test_lines_of_several_containers_do_not_pass_as_collected(with_name_server: Path) -> None:
    folder = with_name_server
    lines = [f"broker-{name}-1  | {line}" for line in JOINS for name in "ab"]
    log = folder / "brokers" / "a" / "broker.log"
    log.write_text("\n".join(lines) + "\n")
    done = ingest_collection(folder)
    assert [code for code, *_ in not_read(done)] == ["broker.log"]
    (row,) = done.tables["rejected"]
    assert "WRONG_FILE" in str(row)
    assert "broker-a-1 and broker-b-1" in str(row)
    late = [f"broker-a-1  | {line}" for line in JOINS * 20]
    log.write_text("\n".join([*late, "broker-b-1  | x", *late]) + "\n")
    done = ingest_collection(folder)
    assert joined(done) == ["c0", "c1", "c2"]
    assert "broker-a-1 and broker-b-1" in str(done.tables["rejected"])


def test_a_server_s_log_in_local_time_needs_its_zone(with_name_server: Path) -> None:
    folder = with_name_server
    log = folder / "brokers" / "a" / "broker.log"
    log.write_text("\n".join(line.replace(" INFO", ".123 INFO", 1) for line in JOINS) + "\n")
    done = ingest_collection(folder)
    assert [code for code, *_ in not_read(done)] == ["broker.log"]
    assert "NO_TIME_ZONE" in str(done.tables["rejected"])
    settings = folder / "collection.toml"
    zone = '"brokers/a/*" = "Asia/Shanghai"\n'
    text = settings.read_text()
    if "[time_zones]\n" in text:
        settings.write_text(text.replace("[time_zones]\n", f"[time_zones]\n{zone}"))
    else:
        settings.write_text(f"{text}\n[time_zones]\n{zone}")
    assert joined(ingest_collection(folder)) == ["c0", "c1", "c2"]


def test_a_client_log_without_a_fact_and_a_foreign_one_are_warnings(
    folder: Path,
) -> None:
    log = folder / "clients" / "p" / "rocketmq_client.log"
    log.parent.mkdir(parents=True)
    log.write_text("2026-11-21 11:28:35,123 INFO RocketmqClient - a producer\n")
    found = ingest_collection(folder).tables["findings"]
    assert [r["severity"] for r in found if r["rule_id"] == "INGEST_STATES_NOTHING"] == ["WARNING"]
    foreign = "11/10/2026 11:28:35 INFO [t] RocketmqClient : suspend this consumer, g\n"
    log.write_text((foreign + "org.x.MQException: no\n\tat a.B.c(D.java:1)\n") * 3)
    found = ingest_collection(folder).tables["findings"]
    (row,) = (r for r in found if r["rule_id"] == "INGEST_NOT_UNDERSTOOD")
    assert row["severity"] == "WARNING"
    assert "0 of 9 lines" in row["summary"]
    assert "It begins '11/10/2026 11:28:35 INFO [t]" in row["summary"]
    assert not any(r["rule_id"] == "INGEST_STATES_NOTHING" for r in found)


def test_a_collection_toml_that_is_a_pipe_is_refused_and_not_waited_for(folder: Path) -> None:
    (folder / "collection.toml").unlink()
    os.mkfifo(folder / "collection.toml")
    with pytest.raises(InputRefused, match="not a plain file"):
        open_collection(folder)


def test_links_that_name_each_other_are_refused_by_name(folder: Path) -> None:
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    (folder / "c").symlink_to("c")
    refused = codes(ingest_collection(folder))
    assert refused == dict.fromkeys(("a", "b", "c"), "UNREADABLE_FILE")


def files(*names: str) -> list[CollectedFile]:
    found = [identify(f"mqadmin/1795000000000-{name}.txt") for name in names]
    return [one for one in found if one is not None]


BROKERS = "consumerConnection-g-a", "consumerConnection-h-a"


@pytest.mark.parametrize(
    ("names", "hosts"),
    [
        (("consumerConnection-g-p1", "consumerConnection-h-p1"), {"p1"}),
        # of one group alone it may be another group
        (("consumerConnection-g-dlq",), set()),
        # brokers were asked for it: it is a group
        (("consumerConnection-g-dlq", "consumerConnection-g-dlq-a", "consumerConnection-h-dlq",
          "consumerConnection-h-dlq-a"), set()),
        (("consumerProgress-g-p1", "consumerProgress-h-p1"), set()),
        (("clusterList-p1", "clusterList", "clusterList-a"), {"p1"}),
    ],
)  # fmt: skip
def test_a_word_after_several_groups_is_a_host(names: tuple[str, ...], hosts: set[str]) -> None:
    assert hosts_of_dumps(files(*BROKERS, *names), {"a"}) == hosts


@pytest.mark.parametrize(
    ("argument", "brokers", "named"),
    [
        ("g-room1-broker-a", {"room1@broker-a"}, "g-room1@broker-a"),
        ("g-room1_broker-a", {"room1@broker-a", "b"}, "g-room1@broker-a"),
        ("g-room1-broker-a", {"room1@broker-a", "broker-a"}, "g-room1-broker-a"),
        ("g-mq_east", {"mq-east"}, "g-mq_east"),
        ("groom1-broker-a", {"room1@broker-a"}, "groom1-broker-a"),
    ],
)
def test_a_broker_whose_name_a_program_escaped(
    argument: str, brokers: set[str], named: str
) -> None:
    (file,) = files(f"consumerConnection-{argument}")
    assert with_broker_name(file, brokers).arguments == ("consumerConnection", named)


@dataclass(frozen=True)
class _Store:
    """A folder of a store that counts what it is asked for."""

    url: str
    files: dict[str, bytes]
    asked: list[str]
    name: str = ""
    is_local = False

    @property
    def path(self) -> str:
        return self.url

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> "_Store":
        return replace(self, url=f"{self.url}/{name}", name=name)

    def sizes(self) -> list[tuple[str, int]]:
        return sorted((name, len(content)) for name, content in self.files.items())

    def head(self, size: int) -> bytes:
        self.asked.append(self.name)
        return self.files[self.name][:size]

    def open(self, at: int = 0) -> BinaryIO:
        opened = BytesIO(self.files[self.name])
        opened.seek(at)
        return opened

    def read_bytes(self) -> bytes:
        return self.files[self.name]


def test_first_bytes_of_a_store_are_read_once_and_few_are_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Copies and older generations, which are not asked for, stop no window."""
    monkeypatch.setattr("rebalance_core.ingest.collection._AHEAD", 4)
    held: list[int] = []
    first_bytes = _StoreListing._first_bytes

    def counted(listing: _StoreListing, name: str) -> Any:
        found = first_bytes(listing, name)
        held.append(len(listing._heads))
        return found

    monkeypatch.setattr(_StoreListing, "_first_bytes", counted)
    line = JOIN.format("c").encode()
    files = {f"brokers/b{n}/broker.log": line for n in range(20)}
    files |= {f"brokers/b{n}/config/topics{end}": b"{}" for n in range(9) for end in TOPICS}
    files["collection.toml"] = SETTINGS.encode()
    asked: list[str] = []
    collection = open_collection(_Store("x://h/c", files, asked))
    assert len(collection.files) == 29
    assert len(collection.unused) == 9 * 2 + 1
    assert max(held) < 4
    assert len({*asked}) == len(asked)
    assert {file.name for file in collection.files} <= {*asked}


TOPICS = (".json", " (1).json", ".json.bak")


def test_no_message_shows_a_password() -> None:
    """Neither a refusal nor the line of progress."""
    url, line = "sftp://ops:S3CRET@host/c", JOIN.format("c").encode()

    class Failing(_Store):
        def sizes(self) -> list[tuple[str, int]]:
            raise OSError("Auth fail")

    full = {"collection.toml": SETTINGS.encode(), "brokers/a/broker.log": line}
    only_settings = {"collection.toml": full["collection.toml"]}
    for store in (_Store(url, {}, []), _Store(url, only_settings, []), Failing(url, {}, [])):
        with pytest.raises(InputRefused, match=r"sftp://\*\*\*@host/c") as refused:
            open_collection(store)
        assert "S3CRET" not in str(refused.value)
    told = reading_line(url, f"{url}/earlier", open_collection(_Store(url, full, [])))
    assert told == (
        "reading 1 file of sftp://***@host/c, 0 logs from where sftp://***@host/c/earlier ended"
    )
