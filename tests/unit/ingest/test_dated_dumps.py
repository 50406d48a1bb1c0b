"""How far off the clock of a dump or copy each statement allows, in seconds."""

from dataclasses import replace
from typing import Any

import pytest

from rebalance_core.audit.coverage import coverage_of
from rebalance_core.audit.unknowns import CLOCK_OFF
from rebalance_core.contracts.observed import CLOCK_UNSURE
from rebalance_core.ingest.admin_clock import DUMPS, STORES, ClockOff, LogClocks, clocks_off
from rebalance_core.ingest.broker_folders import BrokerFolder
from rebalance_core.ingest.clock_offsets import ClockShifts, offset_findings
from rebalance_core.ingest.collection import ADMIN, BROKER_LOG, CLIENT_LOG, OFFSETS, CollectedFile
from rebalance_core.ingest.file_reader import COMMIT, LIST, MEMBER, QUEUES, VERSION, FileStats

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


def test_what_is_not_logged_dates_nothing() -> None:
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
    assert "the difference was constant: its times are not corrected" in row["summary"]
    covered: Any = {"role": "ADMIN", "host": "mqadmin", "kind": ADMIN, "note": CLOCK_UNSURE}
    times = {"from_ms": 1, "to_ms": 1, "complete": True, "clock_offset_ms": None}
    (clock,) = coverage_of([covered | times], {}).clocks_of(())
    assert clock.gap(0, 0) is CLOCK_OFF
