"""Groups that logs call by another name than dumps do."""

import gzip
import shutil
from pathlib import Path

import pytest

from rebalance_core.ingest.collection import ADMIN, BROKER_LOG, OFFSETS, TOPICS, open_collection
from rebalance_core.ingest.file_reader import COMMIT, MEMBER, MOST_WITNESSES, QUEUES, FileStats
from rebalance_core.ingest.group_names import OtherName
from rebalance_core.ingest.in_process import read_collection
from rebalance_core.ingest.renamed_groups import other_names
from tests.recordings.audited import audit_folder
from tests.recordings.tables import DATA

OWN = DATA / "join-leave" / "collection"
LOG, DUMP = "brokers/a/broker.log", "mqadmin/1-consumerConnection-orders-a.txt"
CLIENT = "10.0.0.1@7#123"


def shown(name: str, kind: str, *members: str) -> FileStats:
    stats = FileStats(name, kind)
    for member in members:
        stats.witness(f"{MEMBER}{member}", 0, 1)
    return stats


@pytest.fixture(scope="module")
def renamed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording, its group renamed in all logs and in nothing else."""
    folder = Path(shutil.copytree(OWN, tmp_path_factory.mktemp("renamed") / "join-leave"))
    for path in folder.rglob("*.log*"):
        packed = path.suffix == ".gz"
        text = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
        text = text.replace(b"order-service", b"grp-00")
        path.write_bytes(gzip.compress(text) if packed else text)
    return folder


def test_a_client_id_of_one_start_shows_that_two_names_are_of_one_group() -> None:
    log, dump = shown(LOG, BROKER_LOG, f"g1 {CLIENT}"), shown(DUMP, ADMIN, f"orders {CLIENT}")
    assert other_names([log, dump]) == (OtherName("g1", "orders", LOG, DUMP),)


@pytest.mark.parametrize(
    ("logged", "listed"),
    [
        (["g1 10.0.0.1@7"], ["orders 10.0.0.1@7"]),  # a process, which may have two groups
        ([f"g1 {CLIENT}", f"orders {CLIENT}"], [f"orders {CLIENT}"]),
        ([f"g1 {CLIENT}"], [f"orders {CLIENT}", f"g1 {CLIENT}"]),
        ([f"g1 {CLIENT}"], [f"orders {CLIENT}", f"others {CLIENT}"]),
        ([f"g1 {CLIENT}", f"g2 {CLIENT}"], [f"orders {CLIENT}"]),
        ([f"g1 {CLIENT}"], ["orders 10.0.0.2@7#124"]),
    ],
)
def test_what_may_be_two_groups_is_two(logged: list[str], listed: list[str]) -> None:
    assert other_names([shown(LOG, BROKER_LOG, *logged), shown(DUMP, ADMIN, *listed)]) == ()


def stored(*groups: str, more: int = 0) -> list[FileStats]:
    topics, offsets = FileStats("topics.json", TOPICS), FileStats("consumerOffset.json", OFFSETS)
    for number in range(more):
        topics.witness(f"{QUEUES}T{number} 4", 0, 1)
    for group in groups:
        topics.witness(f"{QUEUES}%RETRY%{group} 1", 0, 1)
        offsets.witness(f"{COMMIT}{group} T 0 a", 0, 7)
    return [topics, offsets]


def test_the_id_of_a_process_shows_it_too_if_stores_have_one_name_and_logs_the_other() -> None:
    process = "10.0.0.1@7"
    files = [shown(LOG, BROKER_LOG, f"g1 {process}"), shown(DUMP, ADMIN, f"orders {process}")]
    assert other_names([*files, *stored("orders")]) == (OtherName("g1", "orders", LOG, DUMP),)
    for topics_or_offsets in stored("orders"):
        assert len(other_names([*files, topics_or_offsets])) == 1
    assert other_names([*files, *stored()]) == ()
    assert other_names([*files, *stored("g1", "orders")]) == ()
    assert other_names([*files, *stored("orders", more=MOST_WITNESSES)]) == ()  # g1 may be cut off
    both = shown(LOG, BROKER_LOG, f"g1 {process}", f"orders {process}")
    assert other_names([both, files[1], *stored("orders")]) == ()
    two = shown(DUMP, ADMIN, f"orders {process}", f"others {process}")
    assert other_names([files[0], two, *stored("orders", "others")]) == ()


def test_logs_are_read_under_the_name_of_dumps(renamed: Path) -> None:
    whole = read_collection(open_collection(OWN)).tables
    tables = read_collection(open_collection(renamed)).tables
    for name in ("cluster_events", "consumer_groups", "committed_offsets", "observed_members"):
        assert tables[name] == whole[name], name


def test_an_audit_states_which_files_have_which_name_and_finds_nothing_else(renamed: Path) -> None:
    whole, tables = audit_folder(OWN), audit_folder(renamed)
    assert tables["group_verdicts"] == whole["group_verdicts"]
    (finding,) = (row for row in tables["findings"] if row not in whole["findings"])
    assert (finding["rule_id"], finding["severity"]) == ("COLLECTION_INCOMPLETE", "ERROR")
    assert "grp-00 (brokers/broker-a/broker.log" in finding["summary"]
    assert "has the client ids of order-service (mqadmin/" in finding["summary"]
