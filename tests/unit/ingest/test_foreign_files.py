"""Lists of members that are of other clients than those of the collection."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from rebalance_core.ingest.collection import (
    ADMIN,
    BROKER_LOG,
    TOPICS,
    CollectedFile,
    Collection,
)
from rebalance_core.ingest.collection_settings import CollectionSettings
from rebalance_core.ingest.file_reader import (
    ANSWER,
    LIST,
    MEMBER,
    QUEUES,
    SUBSCRIBED,
    UP,
    FileStats,
)
from rebalance_core.ingest.foreign_files import foreign_files
from rebalance_core.storage.place import place_of
from tests.recordings.audited import audit_folder
from tests.recordings.tables import DATA

OWN = DATA / "join-leave" / "collection"
OTHERS = DATA / "broker-loss-4.9" / "collection"
LOG, LISTED, STORE = "brokers/a/broker.log", "mqadmin/1-consumerConnection-g-a.txt", "topics.json"
MORE = "mqadmin/2-consumerConnection-g-a.txt"
AT_MS = 600_000
CLIENT = "10.0.0.1@7#1"


def log(*changes: tuple[str, int, int], until: int = 900, booted: int | None = None) -> FileStats:
    stats = FileStats(LOG, BROKER_LOG, last_ms=1_000 * until)
    for client_id, second, change in changes:
        stats.witness(f"{MEMBER}g {client_id}", 1_000 * second, change)
    if booted is not None:
        stats.mark(f"{UP}a", 1_000 * booted)
    return stats


def listing(*client_ids: str, group: str = "g", topic: str = "T") -> FileStats:
    stats = FileStats(LISTED, ADMIN)
    stats.witness(f"{LIST}{group} a", 0, 1)
    for client_id in client_ids:
        stats.witness(f"{MEMBER}{group} {client_id}", 0, 1)
    stats.witness(f"{SUBSCRIBED}{topic}", 0, 1)
    stats.witness(f"{ANSWER}{client_ids}", 0, 0)
    return stats


def store(*topics: str) -> FileStats:
    stats = FileStats(STORE, TOPICS)
    for topic in topics:
        stats.witness(f"{QUEUES}{topic} 4", 0, 1)
    return stats


def found(
    *stats: FileStats,
    answered: str = "",
    more: FileStats | None = None,
    code: str = "OTHER_CLUSTER",
    beside: bool = False,
) -> dict[str, str]:
    asked = CollectedFile(LISTED, ADMIN, "", 0, AT_MS, ("consumerConnection", "g-a"))
    files = [CollectedFile(LOG, BROKER_LOG, "a"), CollectedFile(STORE, TOPICS, "a"), asked]
    if more is not None:
        files.append(replace(asked, name=MORE, written_ms=AT_MS + 120_000))
        stats = (*stats, replace(more, name=MORE))
    if beside:  # broker b lists the same clients each time
        of_b = FileStats("b1", ADMIN)
        of_b.witnessed |= {f"{LIST}g b": [(0, 1)], f"{MEMBER}g {CLIENT}": [(0, 1)]}
        of_b.witnessed |= {f"{ANSWER}b": [(0, 0)]}
        for name, at_ms in (("b1", AT_MS + 1_000), ("b2", AT_MS + 121_000)):
            files.append(replace(asked, name=name, written_ms=at_ms))
            stats = (*stats, replace(of_b, name=name))
    if answered:
        status = ("consumerStatus", "g", answered)
        files.append(replace(asked, name=f"mqadmin/2-{answered}", arguments=status))
    root, settings = place_of("nowhere"), CollectionSettings("c", brokers=("a",))
    why = foreign_files(Collection(root, settings, tuple(files), ()), stats)
    assert {refusal.code for refusal in why.values()} <= {code}
    return {name: refusal.message for name, refusal in why.items()}


def test_a_list_without_the_members_that_are_connected_is_of_others() -> None:
    joined = log((CLIENT, 100, 1))
    assert found(joined, listing("10.9.0.1@7#1")) == {
        LISTED: "it lists other clients, which no other file names, and "
        "according to brokers/a/broker.log, 10.0.0.1@7#1 was connected then"
    }
    assert found(joined, listing("10.9.0.1@7#1", CLIENT)) == {}
    assert found(joined, listing("10.9.0.1@7#1"), answered="10.9.0.1@7#1") == {}


def test_a_list_is_of_others_with_one_that_lists_the_same() -> None:
    """The first was made before the member had been there for a while."""
    joined, later = log((CLIENT, 590, 1)), listing("10.9.0.1@7#1", "10.9.0.2@7#1")
    assert found(joined, later) == {}
    shown = found(joined, later, more=listing("10.9.0.1@7#1"))
    assert shown.keys() == {LISTED, MORE}
    assert shown[LISTED] == f"it lists other clients, which no log names; {MORE} does too"


@pytest.mark.parametrize(
    "logged",
    [
        log((CLIENT, 100, 1), (CLIENT, 590, -1)),  # it may have left before
        log((CLIENT, 590, 1)),
        log((CLIENT, 100, 1), (CLIENT, 630, -1)),
        log((CLIENT, 100, 1), until=500),
        log((CLIENT, 100, 1), booted=400),  # whoever is there has connected since
        log((CLIENT, 100, 1), ("10.9.0.1@7#1", 700, -1)),
    ],
)
def test_a_log_may_not_name_a_client_that_came_before_it(logged: FileStats) -> None:
    assert found(logged, listing("10.9.0.1@7#1")) == {}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ((CLIENT, 640, -1), f"{CLIENT} left"),
        (("10.0.0.2@7#1", 640, 1), "10.0.0.2@7#1 came"),
        ((CLIENT, 590, -1), None),  # before the first list, by a clock that may be off
        ((CLIENT, 715, -1), None),  # about when the later list was made
        (("10.0.0.2@7#1", 640, -1), None),  # it was not listed before either
    ],
)
def test_a_list_that_repeats_an_earlier_one_although_its_members_changed_is_that_one(
    change: tuple[str, int, int], why: str | None
) -> None:
    logged = log((CLIENT, 100, 1), change)
    why = f"it repeats {LISTED}, and according to {LOG}, {why} in between" if why else None
    shown = found(logged, listing(CLIENT), more=listing(CLIENT), code="OLD_ANSWER")
    assert shown == ({MORE: why} if why else {})
    other = found(logged, listing(CLIENT), more=listing(CLIENT, "10.0.0.3@7#1"), code="OLD_ANSWER")
    assert other == {}


def test_a_repeated_list_of_another_broker_is_old_beside_one_that_is() -> None:
    """Its own log may not have the change."""
    for change, old in ((640, {MORE, "b2"}), (590, set())):
        logged = log((CLIENT, 100, 1), (CLIENT, change, -1))
        more = listing(CLIENT)
        shown = found(logged, listing(CLIENT), more=more, beside=True, code="OLD_ANSWER")
        assert shown.keys() == old
        assert not old or shown["b2"] == f"it repeats b1, as {MORE} does"


def test_a_list_is_of_others_if_the_brokers_know_neither_its_group_nor_its_topics() -> None:
    other = listing("10.9.0.1@7#1", group="h", topic="U")
    assert found(log((CLIENT, 100, 1)), store("T", "%RETRY%g"), other) == {
        LISTED: "it lists other clients, which no log names, and no log or store names h or its "
        "topics"
    }
    for known in (("T", "U"), ("T", "%RETRY%h")):
        assert found(log((CLIENT, 100, 1)), store(*known), other) == {}
    assert found(log((CLIENT, 100, 1)), other) == {}  # no store shows what there is
    assert found(log(("10.9.0.1@7#1", 100, 1)), store("T"), other) == {}


def audited(folder: Path) -> tuple[dict[str, str], list[str]]:
    tables = audit_folder(folder)
    verdicts = {row["consumer_group"]: row["verdict"] for row in tables["group_verdicts"]}
    summaries = [
        row["summary"] for row in tables["findings"] if row["rule_id"] == "COLLECTION_INCOMPLETE"
    ]
    return verdicts, summaries


def test_an_audit_names_the_lists_and_nothing_that_they_state(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(OWN, tmp_path / "own"))
    for path in (OTHERS / "mqadmin").glob("*-consumerConnection-*"):
        shutil.copy(path, folder / "mqadmin" / path.name)
    (whole, _), (verdicts, (summary,)) = audited(OWN), audited(folder)
    assert verdicts == whole
    assert "files of consumerConnection" in summary
    assert "were left out: it lists other clients, which no log names" in summary


def test_lists_of_another_environment_count_as_none(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(OWN, tmp_path / "own"))
    lists = sorted((folder / "mqadmin").glob("*-consumerConnection-*"))
    for path in lists:
        path.write_text(re.sub(r"(?m)^10\.0\.0\.", "10.9.0.", path.read_text()))
    with_lists, summaries = audited(folder)
    (summary,) = (text for text in summaries if "lists other clients" in text)
    assert f"{len(lists)} files of consumerConnection" in summary
    for path in lists:
        path.unlink()
    assert with_lists == audited(folder)[0]


@pytest.mark.parametrize("broker", ["broker-a", "broker-b"])
def test_a_store_of_offsets_of_another_cluster_is_set_apart(tmp_path: Path, broker: str) -> None:
    folder = Path(shutil.copytree(OWN, tmp_path / "c"))
    newest = max((folder / "brokers" / broker).glob("config*/consumerOffset.json"))
    newest.write_text(
        '{"offsetTable":{"Bills@bill-run":{0:7,1:9},"%RETRY%bill-run@bill-run":{0:0}}}'
    )
    tables = audit_folder(folder)
    groups = {row["consumer_group"] for row in tables["group_verdicts"]}
    assert "bill-run" not in groups
    (finding,) = (r for r in tables["findings"] if "has offsets of" in r["summary"])
    assert (finding["rule_id"], finding["severity"]) == ("COLLECTION_INCOMPLETE", "ERROR")
    assert "was left out: it has offsets of bill-run for Bills, " in finding["summary"]
    assert "LEFTOVER_OFFSETS" not in {row["rule_id"] for row in tables["findings"]}
