"""Groups that logs call by another name than dumps do."""

import gzip
import shutil
from pathlib import Path

import pytest

from rebalance_core.ingest.collection import (
    ADMIN,
    BROKER_LOG,
    GROUPS,
    OFFSETS,
    PROXY_LOG,
    TOPICS,
    open_collection,
)
from rebalance_core.ingest.file_reader import (
    COMMIT,
    MEMBER,
    MOST_WITNESSES,
    NAMED,
    QUEUES,
    VERSION,
    FileStats,
)
from rebalance_core.ingest.group_names import OtherName
from rebalance_core.ingest.in_process import read_collection
from rebalance_core.ingest.renamed_groups import other_names
from tests.recordings.audited import audit_folder
from tests.recordings.tables import DATA
from tests.tree import TREE

CASES = TREE / "tests" / "cases" / "data"
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
    return renamed_in_logs(OWN, tmp_path_factory.mktemp("renamed") / "own", b"order-service")


def renamed_in_logs(collection: Path, to: Path, group: bytes) -> Path:
    folder = Path(shutil.copytree(collection, to))
    for path in folder.rglob("*.log*"):
        packed = path.suffix == ".gz"
        text = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
        text = text.replace(group, b"grp-00")
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
    groups = configured(*(f"g-{number}" for number in range(MOST_WITNESSES)))
    assert other_names([*files, *stored("orders"), groups])
    both = shown(LOG, BROKER_LOG, f"g1 {process}", f"orders {process}")
    assert other_names([both, files[1], *stored("orders")]) == ()
    two = shown(DUMP, ADMIN, f"orders {process}", f"others {process}")
    assert other_names([files[0], two, *stored("orders", "others")]) == ()


def made(*changes: str, broker: str = "a", at: int = 5, ends: int = 90) -> FileStats:
    """A broker's log that creates groups, or deletes those with a minus."""
    log = FileStats(f"brokers/{broker}/broker.log", BROKER_LOG, last_ms=1_000 * ends)
    for second, change in enumerate(changes, at):
        log.witness(f"{NAMED}{change.strip('-')}", 1_000 * second, -1 if change[0] == "-" else 1)
    return log


def configured(*groups: str, broker: str = "a", written: int = 60, copy: str = "1") -> FileStats:
    """A subscriptionGroup.json."""
    store = FileStats(f"brokers/{broker}/config-{copy}/subscriptionGroup.json", GROUPS)
    store.witness(VERSION, 1_000 * written, 0)
    for group in ("TOOLS_CONSUMER", *groups):
        store.witness(f"{NAMED}{group}", 0, 1)
    return store


def test_a_group_behind_proxies_is_the_only_one_that_its_brokers_store_has_instead() -> None:
    files = [made("g1", "both"), configured("orders", "both")]
    other = OtherName("g1", "orders", LOG, files[1].name)
    assert other_names(files) == (other,)
    assert other_names([*files, shown(LOG, BROKER_LOG, f"g1 {CLIENT}")]) == (other,)
    of_b = [made("g1", broker="b"), configured("orders", "both", broker="b")]
    assert other_names([*files, *of_b]) == ()  # nothing shows that b's store is of b
    of_b = [made("both", "g1", broker="b"), configured("orders", "both", broker="b")]
    assert other_names([*files, *of_b]) == (other,)
    older = configured("both", written=2, copy="0")
    assert other_names([older, *files]) == other_names([*files, older]) == (other,)


@pytest.mark.parametrize(
    "files",
    [
        [made("g1", "both"), configured("both")],
        [made("g1", "both"), configured("orders", "both", "g1")],
        [made("g1", "both"), configured("orders", "old", "both")],
        [made("g1", "g2", "both"), configured("orders", "both")],
        [made("g1", "both", "-g1"), configured("orders", "both")],
        [made("g1"), configured("orders")],
        # the end of the log may have its deletion
        [made("g1", "both", ends=59), configured("orders", "both")],
        [  # a slave logs no deletion
            made("g1", "both", "-g1"),
            made("g1", "both", broker="a-slave"),
            configured("orders", "both"),
            configured("orders", "both", broker="a-slave"),
        ],
        [made("g1", "both", at=70), configured("orders", "both")],
        [made("g1", "both"), configured("orders", "both"), made("orders", broker="b")],
        [
            *(made("g1", "both", broker=broker) for broker in "ab"),
            configured("orders", "both"),
            configured("g1", "both", broker="b"),
        ],
        [
            made("g1", "both"),
            configured("orders", "both"),
            shown(DUMP, ADMIN, f"g1 {CLIENT}"),
        ],
        [made("g1", "both"), configured("orders", "both"), shown(LOG, BROKER_LOG, "orders c")],
    ],
)
def test_stores_that_may_have_lost_a_group_are_of_no_renamed_one(files: list[FileStats]) -> None:
    assert other_names(files) == ()


def test_a_group_with_members_at_a_proxy_alone_is_named_by_a_log() -> None:
    proxy = FileStats("proxy/p/broker.log", PROXY_LOG)
    proxy.witness(f"{NAMED}orders", 1, 0)
    assert other_names([made("g1", "both"), configured("orders", "both"), proxy]) == ()


def test_a_group_of_proxies_is_judged_by_logs_with_another_name(tmp_path: Path) -> None:
    case = CASES / "fifo-push-restarts"
    folder = renamed_in_logs(case, tmp_path / "case", b"fifo-go")
    whole, tables = audit_folder(case), audit_folder(folder)
    assert tables["group_verdicts"] == whole["group_verdicts"]
    (finding,) = (row for row in tables["findings"] if row not in whole["findings"])
    assert (finding["rule_id"], finding["severity"]) == ("COLLECTION_INCOMPLETE", "ERROR")
    assert "brokers/broker-a/broker.log.gz creates grp-00, and the later " in finding["summary"]
    assert "/subscriptionGroup.json has fifo-go instead; " in finding["summary"]


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
