"""Answers of mqadmin that end inside a line, as a full disk leaves them."""

from pathlib import Path
from shutil import copytree

import pytest

from rebalance_core.ingest.collection import identify
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.file_reader import FileReader, FileStats
from rebalance_core.ingest.in_process import ingest_collection
from tests.recordings.audited import audit_folder

DATA = Path(__file__).parent / "data"
ANSWERS = (
    "broker-loss-4.9/collection/mqadmin/1795232174680-clusterList.txt",
    "join-leave/collection/mqadmin/1795231765847-clusterList.txt",
    "broker-loss-4.9/collection/mqadmin/1795232174562-topicStatus-TRADE.txt",
    "nightly/collection/mqadmin/1795233095709-topicList.txt",
    "broker-loss-4.9/collection/mqadmin/1795232296043-consumerStatus-GID_trade.txt",
    "broker-loss-4.9/collection/mqadmin/1795232296042-consumerStatus-GID_trade/"
    "172.16.7.3@32372#2486940284290.txt",
)
STEPS = 120


def read(name: str, text: str) -> tuple[FileStats, list[Evidence]]:
    file = identify(name.partition("/collection/")[2])
    assert file is not None
    reader = FileReader(file, "UTC", ())
    pieces = [p for p in reader.read_document(text) if not isinstance(p, Unread)]
    return reader.stats, [piece for piece in pieces if piece.kind != "dump"]


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_ends_inside_a_line_is_whole_or_is_refused(name: str) -> None:
    text = (DATA / name).read_text()
    _, whole = read(name, text)
    places = {*range(1, len(text), len(text) // STEPS), *range(len(text) - 60, len(text))}
    for place in sorted(places):
        if text[place - 1] != "\n":
            stats, pieces = read(name, text[:place])
            silent = not stats.partial and (stats.understood or not stats.rejected)
            assert not silent or pieces == whole, place


def test_rows_before_the_cut_are_kept() -> None:
    name = ANSWERS[0]
    text = (DATA / name).read_text()
    stats, pieces = read(name, text[:-40])
    brokers = [piece for piece in pieces if piece.kind == "broker"]
    assert len(brokers) == text.count("\n") - 2
    assert stats.partial == "is cut off: it ends inside a row"


@pytest.mark.parametrize("left", [300, -40])
def test_an_audit_with_cut_answers_is_not_green(left: int, tmp_path: Path) -> None:
    folder = copytree(DATA / "join-leave" / "collection", tmp_path / "collection")
    for file in folder.glob("mqadmin/*clusterList*"):
        file.write_text(file.read_text()[:left])
    errors = [row for row in audit_folder(folder)["findings"] if row["severity"] == "ERROR"]
    assert [row["rule_id"] for row in errors] == ["COLLECTION_INCOMPLETE"]
    assert errors[0]["summary"].startswith("3 files of clusterList")
    assert errors[0]["summary"].endswith("are cut off: the first ends inside a row.")


def test_each_cut_answer_is_counted_and_its_end_named(tmp_path: Path) -> None:
    """Of answers with equal refusals, too, and of JSON, which is no wrong format for being cut."""
    folder = copytree(DATA / "slave" / "collection", tmp_path / "collection")
    lists = sorted(folder.glob("mqadmin/*consumerConnection-ledger*"))[-4:]
    route = max(folder.glob("mqadmin/*topicRoute*"))
    for file in (*lists, route):
        text = file.read_text()
        file.write_text(text[: len(text) // 2])
    found = [r["summary"] for r in audit_folder(folder)["findings"] if "cut off" in r["summary"]]
    of_lists, of_route = sorted(found, key=lambda summary: "topicRoute" in summary)
    assert of_lists.startswith("4 files of consumerConnection")
    assert of_lists.endswith("are cut off: the first ends before ConsumeFromWhere.")
    assert of_route.endswith("is cut off: it ends before its JSON does.")


@pytest.mark.parametrize(
    ("recording", "command", "missing"),
    [
        ("nightly", "clusterList", "before broker-c, which mqadmin/"),
        ("broker-loss-4.9", "topicStatus-TRADE", "before mq-west:2, which mqadmin/"),
        ("no-notices", "getBrokerConfig-broker-a", "before "),
    ],
)
def test_an_answer_cut_at_the_end_of_a_line_is_named_by_what_it_lacks(
    recording: str, command: str, missing: str, tmp_path: Path
) -> None:
    folder = copytree(DATA / recording / "collection", tmp_path / "collection")
    newest = max(folder.glob(f"mqadmin/*-{command}.txt"))
    rows = newest.read_text().splitlines(keepends=True)
    ends = {"getBrokerConfig-broker-a": len(rows) // 4}
    newest.write_text("".join(rows[: ends.get(command, len(rows) - 1)]))
    facts = ingest_collection(folder).tables["observed_facts"]
    (cut,) = [row for row in facts if row["kind"] == "NOT_READ"]
    assert cut["source"] == f"mqadmin/{newest.name}"
    assert cut["details"]["why"].startswith(f"is cut off: it ends {missing}")


def test_a_slaves_cut_store_counts_while_its_master_is_gone(tmp_path: Path) -> None:
    folder = copytree(DATA / "slave-read" / "collection", tmp_path / "collection")
    for copied in ("config-1795332917016", "config-1795332993566"):
        store = folder / "brokers" / "broker-a-s" / copied / "consumerOffset.json"
        store.write_text(store.read_text()[:200])
    facts = ingest_collection(folder).tables["observed_facts"]
    cut = [(row["broker_name"], row["source"]) for row in facts if row["kind"] == "NOT_READ"]
    gone = "brokers/broker-a-s/config-1795332993566/consumerOffset.json"
    assert cut == [("broker-a", gone)]


def test_an_answer_without_a_time_is_named(tmp_path: Path) -> None:
    folder = copytree(DATA / "join-leave" / "collection", tmp_path / "collection")
    dated = max(folder.glob("mqadmin/*consumerProgress*"))
    name = dated.name.partition("-")[2]
    dated.rename(dated.with_name(name))
    findings = audit_folder(folder)["findings"]
    (finding,) = [row for row in findings if f"mqadmin/{name}" in row["summary"]]
    assert finding["rule_id"] == "COLLECTION_INCOMPLETE"
    assert f"name it <epoch ms>-{name}" in finding["summary"]
    assert finding["remedy"].startswith("Put the epoch milliseconds")
