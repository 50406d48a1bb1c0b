"""Logs that end before the dumps were taken: what only a dump shows is dated by it, and told."""

import shutil
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.model.queue import is_system_topic
from rebalance_core.model.times import SECOND_MS
from tests.recordings.audited import audit_folder
from tests.recordings.cut_logs import cut_collection
from tests.recordings.tables import DATA, RECORDINGS, Row, ingested_recording

START_MS = 6_500
"""A client says when start() began; on a busy host its first heartbeat came so much later."""
OVERLOADED_START_MS = {"join-leave-5.5": 12_000}
SHARES = (0.3, 0.8)
CONSUMER = ("CONSUMER_JOIN", "CONSUMER_LEAVE", "CONSUMER_LOST", "SUBSCRIBE", "UNSUBSCRIBE")
GONE = ("CONSUMER_LEAVE", "CONSUMER_LOST")


def all_logs(log: str) -> bool:
    return True


def logs_of_brokers(log: str) -> bool:
    return log.startswith("brokers/")


def logs_of_one_broker(log: str) -> bool:
    return "broker-a" in log or "mq-east" in log


SOME_LOGS = (logs_of_brokers, logs_of_one_broker)


@cache
def whole(name: str) -> Any:
    return ingested_recording(name).tables["cluster_events"]


def moment(name: str, share: float) -> int:
    """So far into what happened."""
    times = [row["event_ms"] for row in whole(name) if row.get("detail") != "OBSERVED"]
    first_ms = min(row["event_ms"] for row in whole(name))
    return first_ms + int(share * (max(times) - first_ms))


def what(row: Row) -> tuple[str | None, ...]:
    kind = "CONSUMER_GONE" if row["event_type"] in GONE else row["event_type"]
    return kind, row["consumer_group"], row["client_id"], row.get("topic")


def unlike(rows: list[Row], others: list[Row], slack_ms: int) -> list[Row]:
    """Events of members that the others do not have at about the same time."""
    times = defaultdict(list)
    for row in others:
        if row["event_type"] in CONSUMER:
            times[what(row)].append(row["event_ms"])
    left = []
    for row in rows:
        near = [ms for ms in times[what(row)] if abs(ms - row["event_ms"]) < slack_ms]
        if near:
            times[what(row)].remove(near[0])
        else:
            left.append(row)
    return left


def events_of_members(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["event_type"] in CONSUMER]


@pytest.mark.parametrize(
    ("share", "is_cut"),
    [
        *((share, all_logs) for share in SHARES),
        *((SHARES[0], is_cut) for is_cut in SOME_LOGS),
        *(pytest.param(SHARES[1], is_cut, marks=pytest.mark.slow) for is_cut in SOME_LOGS),
    ],
)
@pytest.mark.parametrize("name", RECORDINGS)
def test_no_event_of_members_is_made_up(
    name: str, share: float, is_cut: Callable[[str], bool], tmp_path: Path
) -> None:
    """By default all logs end early or late, and some of them early."""
    end_ms = moment(name, share)
    tables: Any = ingest_collection(cut_collection(name, end_ms, tmp_path, is_cut)).tables
    found = events_of_members(tables["cluster_events"])
    recorded = events_of_members(whole(name))
    told = {
        (row["consumer_group"], source)
        for row in tables["findings"]
        if row["rule_id"] in ("INGEST_LOG_ENDED", "INGEST_LEAVE_NOT_LOGGED")
        for source in row["evidence"].values()
    }
    slack_ms = OVERLOADED_START_MS.get(name, START_MS)
    for row in unlike(found, recorded, slack_ms):
        if is_cut is logs_of_one_broker and row["source"].startswith("brokers/"):
            # brokers learn of a change one after the other, and this one says it later
            assert any(what(one) == what(row) for one in recorded if one["event_ms"] >= end_ms), row
            continue
        assert row["source"].startswith("mqadmin/"), row
        assert row["event_ms"] >= end_ms, row
        assert row.get("detail") != "OBSERVED", row
        assert row["event_ms"] >= int(row["source"].split("/")[1].partition("-")[0]), row
        assert (row["consumer_group"], row["source"]) in told, row
    sure = [row for row in recorded if row["event_ms"] < end_ms - SECOND_MS]
    assert unlike(sure, found, slack_ms) == []


@pytest.mark.parametrize("name", ["scale-out", "scale-out-4.9", "timing"])
def test_a_topic_made_after_the_logs_is_not_said_to_be_old(name: str, tmp_path: Path) -> None:
    end_ms = moment(name, 0.3)
    tables: Any = ingest_collection(cut_collection(name, end_ms, tmp_path)).tables
    first_ms = {
        (row["topic"], row["broker_name"]): row["event_ms"]
        for row in reversed(whole(name))
        if row["event_type"] == "TOPIC_CONFIG"
    }
    found = [
        (row["event_ms"] >= end_ms, row.get("detail"))
        for row in tables["cluster_events"]
        if row["event_type"] == "TOPIC_CONFIG"
        and first_ms[row["topic"], row["broker_name"]] >= end_ms
        and not is_system_topic(row["topic"])
    ]
    assert set(found) == {(True, None)}


def test_who_came_after_the_logs_of_proxies_is_not_said_to_be_old(tmp_path: Path) -> None:
    tables: Any = ingest_collection(cut_collection("grpc", moment("grpc", 0.4), tmp_path)).tables
    joins = [row for row in tables["cluster_events"] if row["event_type"] == "CONSUMER_JOIN"]
    late = {row["client_id"] for row in joins if row["source"].startswith("mqadmin/")}
    assert late
    assert [row for row in joins if row["client_id"] in late and row.get("detail")] == []


def test_differences_after_the_logs_are_unknown_and_the_run_is_not_green(tmp_path: Path) -> None:
    """The brokers that went after the logs had ended are in no file; nor is it said they were."""
    name = "broker-loss-4.9"
    tables = audit_folder(cut_collection(name, moment(name, 0.3), tmp_path))
    verdicts = {row["consumer_group"]: row["reason"] for row in tables["group_verdicts"]}
    assert verdicts["GID_trade"] == "LOG_ENDED"
    rules = {row["rule_id"] for row in tables["findings"] if row["severity"] == "ERROR"}
    assert rules == {"COLLECTION_INCOMPLETE"}


@pytest.mark.parametrize("name", ["join-leave-5.5", "silent-loss", "strategies", "timing"])
def test_no_group_of_a_cut_collection_is_said_to_differ(name: str, tmp_path: Path) -> None:
    tables = audit_folder(cut_collection(name, moment(name, 0.3), tmp_path))
    assert "DIFFERS" not in {row["verdict"] for row in tables["group_verdicts"]}
    ended = [
        row["summary"]
        for row in tables["findings"]
        if row["rule_id"] == "COLLECTION_INCOMPLETE" and "before the newest dump" in row["summary"]
    ]
    assert len(ended) == (2 if name == "timing" else 0), "its dumps are 19 minutes later"


def test_a_log_that_is_cut_off_in_its_compressed_form_is_missing_something(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(DATA / "nightly" / "collection", tmp_path / "c"))
    log = folder / "brokers" / "broker-b" / "broker.log.gz"
    log.write_bytes(log.read_bytes()[:-2_000])
    found = [row for row in audit_folder(folder)["findings"] if row["severity"] == "ERROR"]
    incomplete = [row for row in found if row["rule_id"] == "COLLECTION_INCOMPLETE"]
    cut_off = "1 file of the broker.log of broker-b cannot be read to the end"
    assert sum(cut_off in row["summary"] for row in incomplete) == 1
