"""The clocks of the machines that make dumps and copy stores, against what these show."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.audit.coverage import coverage_of
from rebalance_core.ingest.admin_clock import DUMPS, LogClocks, clocks_off
from rebalance_core.ingest.collection import (
    ADMIN,
    BROKER_LOG,
    MODES,
    OFFSETS,
    CollectedFile,
)
from rebalance_core.ingest.file_reader import FileStats
from rebalance_core.ingest.in_process import ingest_collection
from tests.recordings.audited import audit_folder
from tests.recordings.tables import DATA, ingested_recording


def named_late(recording: str, folder: Path, *, dumps: int = 0, stores: int = 0) -> Any:
    """The tables of a recording whose dumps and stores are named by clocks that are off."""
    shutil.copytree(DATA / recording / "collection", folder)
    for path in sorted((folder / "mqadmin").iterdir()):
        ms, _, rest = path.name.partition("-")
        if ms.isdigit():
            path.rename(path.with_name(f"{int(ms) + 1000 * dumps}-{rest}"))
    for path in sorted(folder.glob("brokers/*/config-*"), reverse=stores > 0):
        path.rename(path.with_name(f"config-{int(path.name[7:]) + 1000 * stores}"))
    return ingest_collection(folder).tables


def named(tables: Any) -> list[str]:
    return [r["summary"] for r in tables["findings"] if r["rule_id"] == "INGEST_CLOCK_OFFSET"]


def zones(tables: Any) -> list[str]:
    return [r["summary"] for r in tables["findings"] if r["rule_id"] == "INGEST_TIME_ZONE"]


@pytest.mark.parametrize("seconds", [300, -300, 60, -60, 3600, -3600])
def test_the_clock_of_the_machine_that_dumps(seconds: int, tmp_path: Path) -> None:
    """A whole zone, too: what members were there shows that it is the clock."""
    tables = named_late("join-leave", tmp_path / "c", dumps=seconds)
    (text,) = named(tables)
    assert text.startswith("The clock of the machine that makes the dumps is ")
    assert ("ahead of" in text) is (seconds > 0)
    assert zones(tables) == []
    (off,) = {row["clock_offset_ms"] for row in tables["coverage"] if row["role"] == "ADMIN"}
    (error,) = {row["clock_error_ms"] for row in tables["coverage"] if row["role"] == "ADMIN"}
    assert abs(off + 1000 * seconds) <= min(error, 5_000)
    assert coverage_of(tables["coverage"], {}).clock_error_ms(0) == error
    whole = ingested_recording("join-leave").tables
    for row, same in zip(tables["cluster_events"], whole["cluster_events"], strict=True):
        assert row["event_type"] == same["event_type"]
        assert abs(row["event_ms"] - same["event_ms"]) <= error


def test_ends_below_commits_of_before_show_that_dumps_are_named_late(tmp_path: Path) -> None:
    """Lists and commits alone allow the dumps of `pop` ten seconds either way."""
    tables = named_late("pop", tmp_path / "c", dumps=5)
    (text,) = (text for text in named(tables) if "makes the dumps" in text)
    assert "ahead of" in text
    ((off, error),) = {
        (row["clock_offset_ms"], row["clock_error_ms"])
        for row in tables["coverage"]
        if row["role"] == "ADMIN"
    }
    assert off - error <= -5_000 <= off + error < 0
    tables = named_late("pop", tmp_path / "both", dumps=5, stores=5)
    (maybe,) = (text for text in named(tables) if "copies the stores" in text)
    (error,) = {row["clock_error_ms"] for row in tables["coverage"] if row["kind"] == MODES}
    assert "may be" in maybe
    assert error >= 5_000


@pytest.mark.parametrize(
    ("recording", "seconds"),
    [("join-leave", 300), ("join-leave", -60), ("join-leave", 3600), ("controller", 60)],
)
def test_the_clock_of_the_machine_that_copies_stores(
    recording: str, seconds: int, tmp_path: Path
) -> None:
    """The folders of one recording are named after processes, not after their broker."""
    tables = named_late(recording, tmp_path / "c", stores=seconds)
    (text,) = named(tables)
    assert text.startswith("The clock of the machine that copies the stores is ")
    offsets = [row for row in tables["coverage"] if row["kind"] == OFFSETS]
    known = {(row["clock_offset_ms"], row["clock_error_ms"]) for row in offsets}
    ((off, error),) = known
    assert abs(off + 1000 * seconds) <= error
    assert coverage_of(tables["coverage"], {}).clock_error_ms(0) == 0  # it dates no event


def test_one_machine_does_both(tmp_path: Path) -> None:
    tables = named_late("strategies", tmp_path / "c", dumps=-60, stores=-60)
    dumps, stores = named(tables)
    assert dumps.replace("makes the dumps", "") == stores.replace("copies the stores", "").replace(
        "according to the stores", "according to the dumps"
    )


def test_all_stores_of_a_copy_are_of_its_time(tmp_path: Path) -> None:
    """What clients got since shows that a copy is older than a change of the mode."""

    def changes(tables: Any) -> list[tuple[str, str, int]]:
        rows = (row for row in tables["cluster_events"] if row["event_type"] == "REQUEST_MODE")
        return [(r["consumer_group"], r["detail"], r["event_ms"]) for r in rows]

    tables = named_late("pop", tmp_path / "c", stores=-60)
    (error,) = {r["clock_error_ms"] for r in tables["coverage"] if r["kind"] == MODES}
    whole = changes(ingested_recording("pop").tables)
    for (group, mode, at_ms), (same_group, same, true_ms) in zip(
        changes(tables), whole, strict=True
    ):
        assert (group, mode) == (same_group, same)
        assert abs(at_ms - true_ms) <= 2 * error


@pytest.mark.parametrize(("dumps", "stores"), [(0, -60), (600, 600)])
def test_a_topic_is_not_older_than_its_line_by_a_copy_whose_clock_is_off(
    dumps: int, stores: int, tmp_path: Path
) -> None:
    """How far it is off, these stores do not show, or not exactly: they may be of any time then."""

    def changes(tables: Any) -> list[str]:
        rows = (row for row in tables["cluster_events"] if row["event_type"].startswith("TOPIC"))
        names = ("event_ms", "event_type", "topic", "broker_name", "read_queue_nums")
        return sorted(str([row.get(name) for name in names]) for row in rows)

    tables = named_late("scale-out", tmp_path / "c", dumps=dumps, stores=stores)
    assert changes(tables) == changes(ingested_recording("scale-out").tables)


def test_one_old_store_of_several_sets_no_clock(tmp_path: Path) -> None:
    """Half of each of its offsets had been committed before; a healthy group is no less so."""
    case = DATA.parents[1] / "cases" / "data" / "live-slow-mended"
    folder = Path(shutil.copytree(case, tmp_path / "c"))
    store = folder / "brokers/broker-a/config-1795934423949/consumerOffset.json"
    halves = re.sub(
        r"(\b\d+ *: *)(\d+)", lambda found: f"{found[1]}{int(found[2]) // 2}", store.read_text()
    )
    assert halves != store.read_text()
    store.write_text(halves)
    tables = audit_folder(folder)
    (text,) = named(tables)
    assert f"or {store.relative_to(folder)} is older than its name states" in text
    assert text.endswith("No time is corrected.")
    assert "COMMITS_ABOVE_END" not in {row["rule_id"] for row in tables["findings"]}


def test_dumps_of_another_day_are_old_and_no_clock_is_off(tmp_path: Path) -> None:
    tables = named_late("join-leave", tmp_path / "c", dumps=-25 * 3600)
    assert named(tables) == []


def test_whole_recordings_are_named_rightly() -> None:
    for recording in ("start-offsets", "nightly", "pathologies", "slave", "rocksdb"):
        assert named(ingested_recording(recording).tables) == [], recording


@pytest.mark.parametrize(("committed", "off"), [(140, True), (200, False)])
def test_a_store_that_lost_its_end_is_no_late_name(committed: int, *, off: bool) -> None:
    """Every 5 s a commit of 10 more, to 200 at 50 s; three dumps after that show an end of 140."""
    queues = [f"T {number} a" for number in range(4)]
    log = CollectedFile("brokers/a/broker.log", BROKER_LOG, "a")
    commits = [(5_000 * number, 100 + 10 * number) for number in range(11)]
    stats = [FileStats(log.name, log.kind, witnessed={f"commit g {q}": commits for q in queues})]
    dumps = []
    for seconds in (55, 60, 65):
        name = f"mqadmin/{1_000 * seconds}-consumerProgress-g.txt"
        of_dump = CollectedFile(
            name, ADMIN, written_ms=1_000 * seconds, arguments=("consumerProgress", "g")
        )
        shown = {f"commit g {q}": [(0, committed)] for q in queues}
        shown |= {f"end {q}": [(0, 140)] for q in queues}
        stats.append(FileStats(name, ADMIN, witnessed=shown))
        dumps.append(of_dump)
    clocks = LogClocks({}, {}, {}, frozenset())
    assert (DUMPS in clocks_off([log, *dumps], stats, clocks)) is off
