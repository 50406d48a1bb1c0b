"""Where the first pop of a queue starts that members begin to share (rocketmq.md §2.8)."""

from typing import Any

import pytest

from rebalance_core.model.events import Event
from tests.unit.replay.histories import (
    Tables,
    commit,
    event,
    join,
    leave,
    replay,
    seen,
    short,
    topic,
)

FIRST = "CONSUME_FROM_FIRST_OFFSET"
FEW = [seen("a0", 500, 0, 7), seen("a0", 90_000, 0, 20)]
CUT = [seen("a0", 500, 3, 7), seen("a0", 90_000, 5, 20)]


def pop(at_ms: int, share: int = -1) -> Event:
    return event(at_ms, "REQUEST_MODE", topic="T", detail=f"POP(share_queue_num={share})")


def broker(*events: Event, **settings: Any) -> Tables:
    return replay(*events, **{"rebalance_mode": "BROKER"} | settings)


def starts(tables: Tables) -> dict[str, tuple[object, ...]]:
    """Queue and epoch -> rule, estimate and bounds."""
    return {
        f"{short(row)}@{row['epoch']}": (
            row["rule"],
            row["start_offset"],
            row["start_offset_low"],
            row["start_offset_high"],
        )
        for row in tables["pop_starts"]
    }


@pytest.mark.parametrize(
    ("where", "version", "offsets", "start"),
    [
        (FIRST, "5.0", CUT, ("POP_MIN", 3, 3, 5)),
        ("CONSUME_FROM_LAST_OFFSET", "5.1.3", FEW, ("POP_LAST", 6, 6, 19)),
        ("CONSUME_FROM_LAST_OFFSET", "5.1.4", FEW, ("POP_ZERO", 0, 0, 19)),
        ("CONSUME_FROM_TIMESTAMP", "5.5", CUT, ("POP_LAST", 6, 6, 19)),
        ("CONSUME_FROM_LAST_OFFSET", "5.1.3", [], ("POP_LAST", None, 0, None)),
        ("CONSUME_FROM_LAST_OFFSET", "5.5", [], (None, None, 0, None)),
    ],
)
def test_a_queue_that_the_group_reads_for_the_first_time(
    where: str, version: str, offsets: list[Any], start: tuple[object, ...]
) -> None:
    events = topic(0, 1), pop(0), join(1_000, "x", consume_from_where=where)
    tables = broker(*events, offsets=offsets, commits=[], broker_version=version)
    assert starts(tables) == {"a0@0": start}


def test_what_the_last_message_leaves_out_is_skipped() -> None:
    events = topic(0, 1), pop(0), join(1_000, "x")
    tables = broker(*events, offsets=CUT, commits=[], broker_version="5.5")
    assert tables["pop_starts"][0]["skipped"] == 3


def test_behind_a_proxy_first_offset_is_not_heard() -> None:
    joins = join(1_000, "x", consume_from_where=FIRST, rebalance_mode="PROXY")
    tables = replay(topic(0, 1), joins, offsets=CUT, commits=[], broker_version="5.5")
    assert starts(tables) == {"a0@0": ("POP_LAST", 6, 6, 19)}


def test_members_with_both_modes_leave_the_rule_open() -> None:
    joins = join(1_000, "x", consume_from_where=FIRST), join(1_000, "y")
    tables = broker(topic(0, 1), pop(0), *joins, offsets=CUT, commits=[], broker_version="5.5")
    assert starts(tables) == {"a0@0": (None, None, 0, 19)}


def test_a_switch_continues_from_the_commit_that_owners_still_move() -> None:
    events = topic(0, 1), join(1_000, "x"), pop(30_000)
    commits = [commit("a0", 20_000, 4), commit("a0", 31_000, 5, "x")]
    tables = broker(*events, offsets=FEW, commits=commits)
    assert starts(tables) == {"a0@1": ("STORED", 4, 4, 20)}
    (row,) = tables["pop_starts"]
    assert (row["stored_offset"], row["skipped"]) == (4, 0)


def test_a_reset_that_was_kept_is_a_commit() -> None:
    events = topic(0, 1), pop(0), join(1_000, "x"), leave(10_000, "x"), join(40_000, "x")
    commits = [commit("a0", 9_000, 6), commit("a0", 20_000, 0)]
    tables = broker(*events, offsets=FEW, commits=commits)
    assert starts(tables)["a0@2"] == ("STORED", 0, 0, 20)


def test_a_queue_read_before_without_a_known_commit() -> None:
    events = topic(0, 1), join(1_000, "x"), pop(30_000)
    tables = broker(*events, offsets=FEW, commits=[])
    assert starts(tables) == {"a0@1": ("STORED", None, 0, 20)}
    assert tables["pop_starts"][0]["status"] == "UNKNOWN"


def test_a_queue_that_is_added_starts_alone() -> None:
    events = topic(0, 1), pop(0), join(1_000, "x"), topic(60_000, 2)
    tables = broker(*events, offsets=[], commits=[])
    assert [*starts(tables)] == ["a0@0", "a1@1"]


def test_a_topic_made_anew_opens_the_bounds() -> None:
    gone = event(25_000, "TOPIC_DELETED", topic="T", broker_name="a")
    events = topic(0, 1), pop(0), join(1_000, "x"), gone, topic(30_000, 1)
    tables = broker(*events, offsets=FEW, commits=[commit("a0", 20_000, 4)])
    assert starts(tables)["a0@2"][2:] == (0, None)


def test_without_commits_as_input_and_from_the_beginning_nothing_is_known() -> None:
    tables = broker(topic(0, 1), pop(0), join(1_000, "x"), offsets=FEW)
    assert starts(tables) == {"a0@0": (None, None, None, None)}
    observed = topic(0, 1, detail="OBSERVED"), pop(0), join(0, "x", detail="OBSERVED")
    assert starts(broker(*observed, offsets=FEW, commits=[])) == {}
