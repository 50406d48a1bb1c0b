"""The audit of every recording: what was planted is found, what is healthy is left alone."""

import re
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.collection import open_collection
from rebalance_core.process.audit import unwritten_inputs
from rebalance_core.process.simulate import simulate
from tests.recordings.audited import audit_folder, audited
from tests.recordings.recorded_events import REPLICATED
from tests.recordings.rewritten import files_of, written
from tests.recordings.tables import DATA, Tables
from tests.recordings.tables import RECORDINGS as DERIVED

RECORDINGS = (*DERIVED, "controller", "go-java", "grpc", "intervals-2", "no-notices", "pop")

EXPECTED = Path(__file__).with_name("audit_expected.tsv")
"""recording, severity, rule and group of each finding; looked at one by one, then kept."""

PLANTED = {
    "nightly": {
        "audit-writer": "IDLE_MEMBER",
        "batch-loader": "OFFLINE_WITH_LAG",
        "click-agg": "READ_FEWER_THAN_WRITTEN",
        "crm": "INCONSISTENT_SUBSCRIPTION",
        "legacy-reader": "TOPIC_GONE",
        "notify": "DUPLICATE_CLIENT_ID",
        "pay-service": "READ_MORE_THAN_WRITTEN",
        "report-old": "LEFTOVER_OFFSETS",
        "search": "UNSUBSCRIBED_SHARE",
        "stock-sync": "READ_ONLY_BROKER_COUNTED",
    },
    "grpc": {"g-fifo": "POP_ORDER_BLOCKED"},
    "pop": {
        "g-srvpull": "MISSING_POP_RETRY_TOPIC",
        "pop-1": "INVISIBLE_TIME_TOO_SHORT",
        "pop-mixed": "POP_MIXED_WITH_PULL",
        "pop-orderly": "POP_IGNORED",
    },
    "pathologies": {
        "p-dup": "DUPLICATE_CLIENT_ID",
        "p-idle": "IDLE_MEMBER",
        "p-mixed": "MIXED_STRATEGIES",
        "p-susp": "MEMBER_SUSPENDED",
        "p-topics": "INCONSISTENT_SUBSCRIPTION",
        "p-unsub": "UNSUBSCRIBED_SHARE",
    },
}
HEALTHY = {
    "go-java": {"g-mix", "g-ord"},
    "intervals-2": {"mix"},
    "nightly": {"order-service", "pay-service", "stock-sync"},
    "grpc": {"g-push", "g-remote", "g-simple", "g-slow", "CID_DefaultHeartBeatSyncerTopic"},
    "pop": {
        "g-pull", "pop-0", "pop-2", "pop-circ", "pop-m1", "pop-switch", "pops-0", "pops-1", "pops-2"
    },
}  # fmt: skip
ONLY_TRANSIENTS = (
    "broker-loss-4.9",
    "join-leave",
    "join-leave-5.5",
    "no-notices",
    "orderly",
    "scale-out",
    "scale-out-4.9",
    "silent-loss",
    "timing",
)
"""Recordings in which nothing is wrong but what a logged event explains."""
OUTAGES = {("BROKER_DOWN", "")}
"""A broker that was away for more than a minute is named though it is back."""


def found(tables: Tables) -> set[tuple[str, str, str]]:
    """Severity, rule and group of the audit's own findings."""
    return {
        (row["severity"], row["rule_id"], row["consumer_group"] or "")
        for row in tables["findings"]
        if not row["rule_id"].startswith("INGEST_")
    }


@pytest.mark.parametrize("recording", [*RECORDINGS, *REPLICATED])
def test_the_findings_of_a_recording(recording: str) -> None:
    lines = [line.split("\t") for line in EXPECTED.read_text().splitlines()]
    expected = {(a, b, c) for name, a, b, c in lines if name == recording}
    assert found(audited(recording)) == expected


@pytest.mark.parametrize("recording", PLANTED)
def test_everything_planted_is_found(recording: str) -> None:
    pairs = {(group, rule) for _, rule, group in found(audited(recording))}
    assert PLANTED[recording].items() <= pairs


@pytest.mark.parametrize("recording", RECORDINGS)
def test_no_false_alarm(recording: str) -> None:
    alarms = {one[1:] for one in found(audited(recording)) if one[0] != "INFO"}
    assert not {group for _, group in alarms} & HEALTHY.get(recording, set())
    if recording in ONLY_TRANSIENTS:
        assert alarms <= OUTAGES


@pytest.mark.parametrize("recording", [*RECORDINGS, *REPLICATED])
def test_live_ownership_is_the_predicted_one_wherever_it_settled(recording: str) -> None:
    verdicts = {row["verdict"] for row in audited(recording)["group_verdicts"]}
    assert verdicts <= {"EQUAL", "SHARED", "UNSTABLE", "OFFLINE", "UNKNOWN"}
    if recording in ("nightly", "pathologies"):
        assert verdicts - {"OFFLINE"} == {"EQUAL"}


def test_of_a_switch_of_masters_only_what_stood_is_a_warning() -> None:
    rules = {rule for severity, rule, _ in found(audited("controller")) if severity != "INFO"}
    assert rules == {"MASTER_GONE_NOT_READ"}


def test_a_member_that_brokers_expire_is_reported_with_its_interval() -> None:
    (one,) = (
        row for row in audited("intervals-2")["findings"] if row["rule_id"] == "EXPIRED_WHILE_ALIVE"
    )
    assert one["severity"] == "WARNING"
    assert "expired 3 times by broker-a, broker-b" in one["summary"]
    assert one["evidence"]["interval_ms"] == "200000"
    assert "heartbeatBrokerInterval" in one["remedy"]


def test_members_share_queues_as_predicted() -> None:
    pop, grpc = (verdicts(audited(recording)) for recording in ("pop", "grpc"))
    assert pop["pop-0"] == pop["pop-1"] == grpc["g-push"] == ("SHARED", "")
    assert pop["pop-switch"] == pop["pop-orderly"] == ("EQUAL", "")
    # of pop-mixed consumerProgress alone was dumped last, of g-slow nothing at all
    assert pop["pop-mixed"] == grpc["g-slow"] == ("UNKNOWN", "NO_DUMP")
    # a client that lost its proxy comes back while the group is dumped
    assert grpc["g-fifo"][0] == grpc["g-simple"][0] == "UNSTABLE"
    assert grpc["CID_DefaultHeartBeatSyncerTopic"] == ("UNKNOWN", "SYSTEM")
    differing = [
        row
        for name in ("pop", "grpc")
        for row in audited(name)["group_verdicts"]
        if row["differences"]
    ]
    assert differing == []


def test_a_proxied_group_without_its_proxies(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(DATA / "grpc" / "collection", tmp_path / "c"))
    for name in ("proxy", "clients"):
        shutil.rmtree(folder / name)
    for path in (folder / "mqadmin").glob("*-proxy-?.txt"):
        path.unlink()
    tables = audit_folder(folder)
    unseen = {group for severity, rule, group in found(tables) if rule == "PROXY_GROUP_UNSEEN"}
    assert unseen >= {"g-push", "g-fifo", "g-simple", "g-slow"}
    offline = {group for _, rule, group in found(tables) if rule == "OFFLINE_WITH_LAG"}
    assert not offline & unseen


def test_proxies_that_the_names_of_dumps_alone_tell_of(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(DATA / "grpc" / "collection", tmp_path / "c"))
    shutil.rmtree(folder / "proxy")
    tables = audit_folder(folder)
    groups = {row["consumer_group"] for row in tables["group_verdicts"]}
    assert not [group for group in groups if "-proxy-" in group]
    unseen = {group for _, rule, group in found(tables) if rule == "PROXY_GROUP_UNSEEN"}
    assert unseen == {"g-slow"}  # nobody was asked for its members


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """A copy of the recording `nightly`, to take things away from."""
    return Path(shutil.copytree(DATA / "nightly" / "collection", tmp_path / "collection"))


def verdicts(tables: Tables) -> dict[str, tuple[str, str]]:
    return {
        row["consumer_group"]: (row["verdict"], row["reason"]) for row in tables["group_verdicts"]
    }


def incomplete(tables: Tables) -> list[str]:
    return [
        row["summary"] for row in tables["findings"] if row["rule_id"] == "COLLECTION_INCOMPLETE"
    ]


def test_a_missing_broker_makes_the_run_incomplete_and_what_depends_on_it_unknown(
    collection: Path,
) -> None:
    shutil.rmtree(collection / "brokers" / "broker-c")
    for path in (collection / "mqadmin").glob("*-broker-c*"):
        path.unlink()
    tables = audit_folder(collection)
    assert any("broker-c" in text for text in incomplete(tables))
    compared = verdicts(tables)
    assert compared["stock-sync"] == compared["search"] == ("UNKNOWN", "INCOMPLETE")
    assert compared["click-agg"][0] == "EQUAL"


def renamed(folder: Path, rename: Callable[[int, str], int]) -> None:
    """Give each dump the time that `rename` says of its time and command."""
    for path in list(folder.iterdir()):
        ms, _, command = path.name.partition("-")
        path.rename(folder / f"{rename(int(ms), command)}-{command}")


def test_dumps_of_yesterday_are_stale(collection: Path) -> None:
    renamed(collection / "mqadmin", lambda ms, command: ms - 25 * 3_600_000)
    tables = audit_folder(collection)
    texts = incomplete(tables)
    assert any("who holds which queue" in text and "25 h" in text for text in texts)
    assert {v for v, _ in verdicts(tables).values()} == {"UNKNOWN", "OFFLINE"}


def test_one_group_whose_dump_is_stale(collection: Path) -> None:
    def yesterday(ms: int, command: str) -> int:
        return ms - 25 * 3_600_000 * command.endswith(("order-service", "order-service.txt"))

    renamed(collection / "mqadmin", yesterday)
    tables = audit_folder(collection)
    compared = verdicts(tables)
    assert compared["order-service"] == ("UNKNOWN", "STALE_DUMP")
    assert compared["pay-service"][0] == "EQUAL"
    assert any("order-service" in text for text in incomplete(tables))


def test_a_group_that_changes_during_the_dump_is_unstable(collection: Path) -> None:
    history = unwritten_inputs(open_collection(collection), Assumptions()).history
    joined = next(
        row["from_ms"]
        for row in simulate(history).epochs.to_pylist()
        if row["consumer_group"] == "order-service" and row["epoch"] == 2
    )

    def long_dump(ms: int, command: str) -> int:
        return joined - 500 if command.startswith("consumerStatus-order-service") else ms

    renamed(collection / "mqadmin", long_dump)
    tables = audit_folder(collection)
    assert verdicts(tables)["order-service"][0] == "UNSTABLE"
    assert verdicts(tables)["pay-service"][0] == "EQUAL"
    rules = {
        (row["rule_id"], row["severity"])
        for row in tables["findings"]
        if row["consumer_group"] == "order-service"
    }
    assert ("GROUP_UNSTABLE", "INFO") in rules
    assert all(severity == "INFO" for _, severity in rules)


def test_a_collection_without_any_dump_is_not_green(collection: Path) -> None:
    shutil.rmtree(collection / "mqadmin")
    tables = audit_folder(collection)
    dumps, members, unsure = sorted(incomplete(tables), key=lambda text: "not sure" in text)
    assert "no dump of" in dumps.lower()
    assert "no dump of" in members.lower()
    assert "audit-writer (IDLE_MEMBER), crm (ORPHAN_QUEUES)" in unsure
    assert {v for v, _ in verdicts(tables).values()} == {"UNKNOWN", "OFFLINE"}


def test_a_name_server_whose_log_is_missing(collection: Path) -> None:
    settings = collection / "collection.toml"
    settings.write_text(settings.read_text().replace('["namesrv-1"]', '["namesrv-1", "namesrv-2"]'))
    assert any("name servers" in text for text in incomplete(audit_folder(collection)))


def test_a_broker_s_clock_that_is_off_costs_no_finding(tmp_path: Path) -> None:
    """Its own notices show by how much, and its times are read as corrected."""
    files = files_of("pathologies")
    for name in files:
        if name.startswith("brokers/broker-a/") and ".log" in name:
            files[name] = HEAD_OR_BEAT.sub(_five_seconds_later, files[name])
    tables = audit_folder(written(files, tmp_path))
    assert incomplete(tables) == incomplete(audited("pathologies"))
    (clock,) = (r for r in tables["findings"] if r["rule_id"] == "INGEST_CLOCK_OFFSET")
    assert clock["summary"].startswith("The clock of brokers/broker-a is 4.9 s ahead")
    whole, off = (
        {(rule, group) for severity, rule, group in found(one) if severity != "INFO"}
        for one in (audited("pathologies"), tables)
    )
    assert whole == off


HEAD_OR_BEAT = re.compile(rb"(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|(?<=lastUpdateTimestamp=)\d+")


def _five_seconds_later(found: re.Match[bytes]) -> bytes:
    text = found[0].decode()
    if text.isdigit():
        return str(int(text) + 5_000).encode()
    return str(datetime.fromisoformat(text) + timedelta(seconds=5)).encode()
