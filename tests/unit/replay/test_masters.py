"""What the loss of a master alone changes: who may take orderly queues, and windows."""

from typing import Any

import pytest

from rebalance_core.model.events import MASTER_MODES, Event
from rebalance_core.replay.masters import MasterOutage, MasterOutages
from tests.unit.replay.histories import (
    diffs,
    event,
    join,
    leave,
    owners,
    replay,
    topic,
    windows,
)

DOWN_MS, JOINED_MS, UP_MS = 200_000, 300_000, 400_000
MODES = (None, *MASTER_MODES)
LOCKLESS = (None, "REFUSED", "SLAVE_READ")


def down(at_ms: int = DOWN_MS, detail: str | None = None, broker: str = "a") -> Event:
    return event(at_ms, "MASTER_DOWN", broker_name=broker, detail=detail)


def up(at_ms: int = UP_MS, broker: str = "a") -> Event:
    return event(at_ms, "MASTER_UP", broker_name=broker)


def story(*more: Event, **settings: Any) -> Any:
    """x has a0, a1, b0 and b1; y joins while a has no master, so a1 is x's and b is y's."""
    return replay(
        topic(0, 2),
        topic(0, 2, broker="b"),
        join(1_000, "x"),
        join(JOINED_MS, "y"),
        *more,
        **settings,
    )


def without(tables: Any, column: str) -> list[Any]:
    return [{k: v for k, v in row.items() if k != column} for row in tables["epochs"]]


@pytest.mark.parametrize("mode", MODES)
def test_a_master_alone_changes_no_epoch_and_no_owner(mode: str | None) -> None:
    plain, told = story(), story(down(detail=mode), up())
    assert without(told, "masterless_queues") == without(plain, "masterless_queues")
    assert told["ownership"] == plain["ownership"]
    assert [row["masterless_queues"] for row in told["epochs"]] == [2, 2]
    assert [row["masterless_queues"] for row in plain["epochs"]] == [0, 0]


def test_the_count_is_of_epochs_that_an_outage_touches_and_of_readable_queues() -> None:
    ends = story(down(), up(JOINED_MS))
    assert [row["masterless_queues"] for row in ends["epochs"]] == [2, 0]
    starts = story(down(JOINED_MS))
    assert [row["masterless_queues"] for row in starts["epochs"]] == [0, 2]
    gone = story(down(), event(250_000, "BROKER_DOWN", broker_name="a"))
    assert [row["masterless_queues"] for row in gone["epochs"]] == [2, 0, 0]
    at_once = story(down(), up(DOWN_MS))
    assert [row["masterless_queues"] for row in at_once["epochs"]] == [0, 0]


@pytest.mark.parametrize("mode", LOCKLESS)
def test_an_orderly_queue_that_moves_without_a_master_waits_for_it(mode: str | None) -> None:
    tables = replay(
        topic(0, 4), join(1_000, "x"), down(detail=mode), join(JOINED_MS, "y"), up(), ordered=True
    )
    assert [row["causes"] for row in tables["epochs"]] == [
        ["CONSUMER_JOIN"],
        ["MASTER_DOWN"],
        ["CONSUMER_JOIN"],
        ["MASTER_UP"],
    ]
    assert diffs(tables, 1) == []
    assert owners(tables, 2) == {"a0": "x", "a1": "x", "a2": "-", "a3": "-"}
    assert diffs(tables, 2) == ["DROP a2 x VOLUNTARY", "DROP a3 x VOLUNTARY"]
    assert diffs(tables, 3) == ["ADD a2 y NEW", "ADD a3 y NEW"]
    assert owners(tables) == {"a0": "x", "a1": "x", "a2": "y", "a3": "y"}
    assert windows(tables) == {"ADD a2": 144_000, "ADD a3": 144_000}  # 83 s, and a lock's life
    assert [row["orphaned"] for row in tables["epochs"]] == [0, 0, 2, 0]
    assert [row["masterless_queues"] for row in tables["epochs"]] == [0, 4, 4, 0]
    orphans = [row["minimum_moves"] for row in tables["group_metrics"] if row["epoch"] == 2]
    assert orphans == [None, None]


def test_an_acting_master_gives_locks() -> None:
    told = story(down(detail="ACTING"), up(), ordered=True)
    assert without(told, "masterless_queues") == without(story(ordered=True), "masterless_queues")
    assert owners(told) == {"a0": "x", "a1": "x", "b0": "y", "b1": "y"}


def test_a_slave_that_begins_to_act_gives_locks_from_then_on() -> None:
    acting = down(350_000, "ACTING")
    tables = replay(
        topic(0, 2), join(1_000, "x"), down(), join(JOINED_MS, "y"), acting, ordered=True
    )
    assert owners(tables, 2) == {"a0": "x", "a1": "-"}
    assert owners(tables, 3) == {"a0": "x", "a1": "y"}
    assert tables["epochs"][3]["causes"] == ["MASTER_DOWN"]


def test_who_holds_a_queue_keeps_it_while_it_is_his() -> None:
    tables = replay(
        topic(0, 2),
        join(1_000, "x"),
        join(100_000, "y"),
        down(),
        leave(JOINED_MS, "y"),
        join(350_000, "y"),
        ordered=True,
    )
    assert owners(tables, 2) == {"a0": "x", "a1": "y"}
    assert owners(tables, 3) == {"a0": "x", "a1": "-"}
    assert owners(tables, 4) == {"a0": "x", "a1": "-"}


def test_whoever_reads_all_queues_needs_no_lock() -> None:
    tables = replay(
        topic(0, 1), down(), join(JOINED_MS, "x"), ordered=True, message_model="BROADCASTING"
    )
    assert owners(tables) == {"a0": "x"}


@pytest.mark.parametrize(
    ("turn", "join_ms", "window"),
    [
        (down(JOINED_MS - 10_000), JOINED_MS, 43_000),  # 53 s: the route names the slaves alone
        (up(JOINED_MS - 10_000), JOINED_MS, 73_000),  # 83 s: and each client's heartbeat
        (up(JOINED_MS + 1_000), JOINED_MS, 84_000),  # while the pass may still be to come
        (up(JOINED_MS + 4_000), JOINED_MS, 3_000),
        (down(JOINED_MS - 60_000), JOINED_MS, 3_000),
    ],
)
def test_windows_last_until_passes_of_all_see_the_same(
    turn: Event, join_ms: int, window: int
) -> None:
    before = down() if turn.event_type == "MASTER_UP" else up(DOWN_MS)
    tables = replay(topic(0, 2), join(1_000, "x"), before, join(join_ms, "y"), turn)
    assert windows(tables) == {"ADD a1": window, "DROP a1": window}


def test_a_broker_without_queues_of_the_group_does_not_matter() -> None:
    tables = replay(
        topic(0, 2),
        topic(0, 2, "U", "b"),
        join(1_000, "x"),
        join(JOINED_MS, "y"),
        down(JOINED_MS - 1_000, broker="b"),
        ordered=True,
    )
    assert len(tables["epochs"]) == 2
    assert windows(tables) == {"ADD a1": 64_000, "DROP a1": 3_000}
    assert [row["masterless_queues"] for row in tables["epochs"]] == [0, 0]


def test_outages_of_a_broker() -> None:
    turns = [up(10), down(20), down(30, "ACTING"), up(40), up(50), down(60, "REFUSED")]
    found = MasterOutages(turns)
    assert found.outages_of("a") == [
        MasterOutage(20, 40, "ACTING"),
        MasterOutage(60, None, "REFUSED"),
    ]
    assert found.outages_of("b") == []
    first, last = found.outages_of("a")
    assert [first.overlaps(0, 20), first.overlaps(0, 21), first.overlaps(39, None)] == [
        False,
        True,
        True,
    ]
    assert [first.overlaps(40, None), last.overlaps(70, 80), last.over(90)] == [False, True, False]
