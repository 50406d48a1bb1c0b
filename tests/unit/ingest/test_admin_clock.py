"""The clocks of the machines that make dumps and copy stores, against what these show."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.audit.coverage import coverage_of
from rebalance_core.contracts.observed import CLOCK_UNSURE
from rebalance_core.ingest.admin_clock import DUMPS, STORES, ClockOff, LogClocks, clocks_off
from rebalance_core.ingest.broker_folders import BrokerFolder
from rebalance_core.ingest.clock_offsets import ClockShifts, offset_findings
from rebalance_core.ingest.collection import (
    ADMIN,
    BROKER_LOG,
    CLIENT_LOG,
    MODES,
    OFFSETS,
    CollectedFile,
)
from rebalance_core.ingest.file_reader import COMMIT, LIST, MEMBER, QUEUES, VERSION, FileStats
from rebalance_core.ingest.in_process import ingest_collection
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
    assert coverage_of(tables["coverage"], {}).clock_error_ms == error
    whole = ingested_recording("join-leave").tables
    for row, same in zip(tables["cluster_events"], whole["cluster_events"], strict=True):
        assert row["event_type"] == same["event_type"]
        assert abs(row["event_ms"] - same["event_ms"]) <= error


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
    assert coverage_of(tables["coverage"], {}).clock_error_ms == 0  # it dates no event


def test_one_machine_does_both(tmp_path: Path) -> None:
    tables = named_late("strategies", tmp_path / "c", dumps=-60, stores=-60)
    dumps, stores = named(tables)
    assert dumps.replace("makes the dumps", "") == stores.replace("copies the stores", "").replace(
        "by what the stores show", "by what the dumps show"
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


def test_dumps_of_another_day_are_old_and_no_clock_is_off(tmp_path: Path) -> None:
    tables = named_late("join-leave", tmp_path / "c", dumps=-25 * 3600)
    assert named(tables) == []


def test_whole_recordings_are_named_rightly() -> None:
    for recording in ("start-offsets", "nightly", "pathologies", "slave", "rocksdb"):
        assert named(ingested_recording(recording).tables) == [], recording


# What each statement allows, in seconds.

CLOCKS = LogClocks({}, {}, {}, frozenset())
ALONE = ClockOff(0, None, compared=False)


def off(
    *files: tuple[str, int, dict[str, list[tuple[int, int]]]], clocks: LogClocks = CLOCKS
) -> dict[str, ClockOff]:
    """The clocks that are off by the files: kind, when they are named after, what dates them."""
    places = {BROKER_LOG: "a", OFFSETS: "a", CLIENT_LOG: "c"}
    listed, stats = [], []
    for number, (kind, at_s, dated) in enumerate(files):
        name = f"f{number}"
        arguments = ("consumerConnection", "g-a") if kind == ADMIN else ()
        written = at_s * 1_000 if kind in (ADMIN, OFFSETS) else None
        listed.append(
            CollectedFile(name, kind, places.get(kind, ""), written_ms=written, arguments=arguments)
        )
        one = FileStats(name, kind, first_ms=0, last_ms=1_000_000)
        for what, moments in dated.items():
            one.witnessed[what] = [(at * 1_000, value) for at, value in moments]
        stats.append(one)
    return clocks_off(listed, stats, clocks)


LOG = (BROKER_LOG, 0, {MEMBER + "g x": [(100, 1), (500, -1)], MEMBER + "g y": [(300, 1)]})


def listing(at_s: int, *clients: str) -> tuple[str, int, dict[str, list[tuple[int, int]]]]:
    return ADMIN, at_s, {LIST + "g a": [(0, 1)], **{f"{MEMBER}g {c}": [(0, 1)] for c in clients}}


def test_members_date_a_dump() -> None:
    assert off(LOG, listing(200, "x"), listing(400, "x", "y"), listing(600, "y")) == {}
    # a minute ahead at 290 and 350, when y was not there or came, and at 550, when x was there
    found = off(LOG, listing(310, "x"), listing(360, "x"), listing(560, "x", "y"))
    assert found[DUMPS].behind_ms < 0
    assert abs(found[DUMPS].behind_ms + 60_000) <= (found[DUMPS].error_ms or 0)


def test_what_nobody_logged_dates_nothing() -> None:
    assert off(LOG, listing(310, "x", "y", "z"), listing(360, "x", "y"), listing(2_000)) == {}


def test_one_statement_is_not_enough() -> None:
    assert off(LOG, listing(600, "x", "y"), listing(400, "x", "y")) == {}


def test_commits_date_a_store() -> None:
    commits = {COMMIT + f"g T {n} a": [(10 * s, s) for s in range(1, 90)] for n in range(3)}

    def copy(at_s: int, offset: int) -> tuple[str, int, dict[str, list[tuple[int, int]]]]:
        return OFFSETS, at_s, {name: [(0, offset)] for name in commits}

    log = (CLIENT_LOG, 0, commits)
    assert off(log, copy(205, 20), copy(412, 40)) == {}
    found = off(log, copy(265, 20), copy(472, 40))
    assert abs(found[STORES].behind_ms + 60_000) <= 15_000
    again = {name: [*moments, (895, 3)] for name, moments in commits.items()}
    went_back = off((CLIENT_LOG, 0, again), copy(265, 20), copy(472, 40))
    assert went_back == {STORES: ALONE}, "offsets went back, and nothing else compares"


@pytest.mark.parametrize("is_slave", [False, True])
def test_commits_date_the_stores_of_masters_by_whatever_name_of_their_folder(
    is_slave: bool,
) -> None:
    """What a slave has, it copied from its master some time before."""
    dated = {COMMIT + f"g T {n} broker-x": [(10 * s, s) for s in range(1, 90)] for n in range(3)}
    copies = [
        (OFFSETS, at_s, {COMMIT + f"g T {n} a": [(0, offset)] for n in range(3)})
        for at_s, offset in ((265, 20), (472, 40))
    ]
    folder = BrokerFolder("broker-x", "brokers/a" if is_slave else "broker-x", not is_slave)
    found = off((CLIENT_LOG, 0, dated), *copies, clocks=replace(CLOCKS, folders={"a": folder}))
    assert found[STORES].compared is not is_slave


def test_where_nothing_compares_the_clock_may_be_off() -> None:
    """Times of documents without a log of what they show are those of their names alone."""
    log: tuple[str, int, dict[str, list[tuple[int, int]]]] = (BROKER_LOG, 0, {})
    assert off(log, listing(310, "x")) == {DUMPS: ALONE}
    assert off(log, listing(310, "x"), (OFFSETS, 300, {})) == {DUMPS: ALONE, STORES: ALONE}
    assert off(LOG, listing(200, "x"), (OFFSETS, 300, {})) == {STORES: ALONE}


def test_numbers_of_queues_date_a_store() -> None:
    """No copy that was made later shows what a topic had before its broker's log changes it."""
    log = {QUEUES + "T 4": [(200, -1)], QUEUES + "T 6": [(200, 1)]}
    log |= {QUEUES + "U 4": [(400, -1)], QUEUES + "U 8": [(400, 1)]}

    def copy(at_s: int, *shown: str) -> tuple[str, int, dict[str, list[tuple[int, int]]]]:
        return OFFSETS, at_s, {QUEUES + name: [(0, 1)] for name in shown}

    early, late = ("T 4", "U 4"), ("T 6", "U 4", "V 1")
    assert off((BROKER_LOG, 0, log), copy(190, *early), copy(390, *late)) == {}
    found = off((BROKER_LOG, 0, log), copy(250, *early), copy(450, *late))
    assert -50_000 <= found[STORES].behind_ms <= -30_000


def test_a_store_is_not_older_than_its_last_change() -> None:
    store = (OFFSETS, 300, {VERSION: [(360, 0)]})
    log: tuple[str, int, dict[str, list[tuple[int, int]]]] = (BROKER_LOG, 0, {})
    found = off(log, store, (OFFSETS, 400, {VERSION: [(460, 0)]}))
    assert found == {STORES: ClockOff(0, None)}, "how far it is off is not known"
    old = (OFFSETS, 300, {QUEUES + "T 4": [(0, 1)]}), (OFFSETS, 400, {QUEUES + "T 4": [(0, 1)]})
    changed = {QUEUES + "T 4": [(200, -1)], QUEUES + "T 6": [(200, 1)]}
    assert off((BROKER_LOG, 0, changed), *old) == {}, "a copy of an old export"
    # what the second copy lacks was committed at 500 s
    commits = {COMMIT + "g T a 0": [*((s, s) for s in range(100, 500, 10)), (500, 500)]}
    copy = (OFFSETS, 400, {VERSION: [(460, 0)], COMMIT + "g T a 0": [(0, 490)]})
    (known,) = off(log, (CLIENT_LOG, 0, commits), store, copy).values()
    assert 58_000 <= known.behind_ms <= 120_000
    assert off(store, store) == {STORES: ALONE}, "the broker's own clock is not known"


def test_one_statement_of_a_hundred_bounds_no_clock() -> None:
    """A broker that is stopped answers late, and what it lists came after the dump began."""
    commits = {COMMIT + f"g T {n} a": [(10 * s, s) for s in range(1, 90)] for n in range(60)}
    late = {COMMIT + "g U 0 a": [(216, 10), (300, 20), (400, 30)]}
    copy = (OFFSETS, 265, {name: [(0, 20)] for name in (*commits, *late)})
    again = (OFFSETS, 472, {name: [(0, 40)] for name in commits})
    found = off((CLIENT_LOG, 0, commits | late), copy, again)
    assert abs(found[STORES].behind_ms + 60_000) <= (found[STORES].error_ms or 0)


def test_a_clock_that_no_difference_explains_is_unsure() -> None:
    """It was set in the middle."""
    commits = {f"{COMMIT}g T a {n}": [(10 * s, s) for s in range(1, 90)] for n in range(3)}
    log = (CLIENT_LOG, 0, commits)

    def dump(true_s: int, named_s: int) -> tuple[str, int, dict[str, list[tuple[int, int]]]]:
        return ADMIN, named_s, {name: [(0, true_s // 10)] for name in commits}

    first = [dump(true, true - 100) for true in (220, 270, 320, 370)]
    second = [dump(true, true + 100) for true in (520, 570, 620, 670)]
    (known,) = off(log, *first).values()
    assert abs(known.behind_ms - 100_000) <= 15_000
    copies = off(log, *first, *second)
    assert copies == {DUMPS: ClockOff(0, None)}
    (row,) = offset_findings(ClockShifts(copies=copies))
    assert "by the same difference: its times are not corrected" in row["summary"]
    covered: Any = {"role": "ADMIN", "host": "mqadmin", "kind": ADMIN, "note": CLOCK_UNSURE}
    times = {"from_ms": 1, "to_ms": 1, "complete": True, "clock_offset_ms": None}
    assert coverage_of([covered | times], {}).clock_off
