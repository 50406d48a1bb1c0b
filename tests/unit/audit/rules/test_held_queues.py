from typing import Any

import pytest

from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.times import utc
from tests.unit.audit.snapshots import (
    Row,
    commit,
    end,
    fact,
    findings_of,
    join,
    leave,
    ms,
    severities,
    snapshot_of,
    topic,
)

BLOCKED, ZOMBIE, SILENT = "CONSUMER_BLOCKED", "ZOMBIE_QUEUE", "NOT_PULLING"
EXPIRED = "PULL_EXPIRED"
ALONE = topic(), join("x")


def held(at: float, client: str = "x", number: int = 0, **own: Any) -> Row:
    usual: Row = {"dropped": False, "cached_messages": 3, "commit_offset": 10,
             "last_pull_ms": ms(at - 1), "last_consume_ms": ms(at - 1)}  # fmt: skip
    where: Row = {"topic": "T", "broker_name": "a", "queue_id": number, "client_id": client}
    return fact("HELD_QUEUE", at, **where, **usual | own)


def group(*facts: Row) -> GroupSnapshot:
    return snapshot_of(*ALONE, facts=facts)


def test_messages_that_nothing_happens_with() -> None:
    (one,) = findings_of(BLOCKED, group(held(300), held(400)))
    assert one.client_id == "x"
    assert "T a:0" in one.summary


def test_a_listener_that_commits_or_has_nothing_to_do() -> None:
    assert findings_of(BLOCKED, group(held(300), held(400, commit_offset=11))) == []
    idle: Row = {"cached_messages": 0}
    assert findings_of(BLOCKED, group(held(300, **idle), held(400, **idle))) == []
    assert findings_of(BLOCKED, group(held(300), held(330))) == []


def test_mqadmin_reports_blocked() -> None:
    where: Row = {"topic": "T", "broker_name": "a", "queue_id": 1, "client_id": "x"}
    assert severities(BLOCKED, group(fact("STUCK_QUEUE", 500, trouble="consume", **where)))


def test_a_dropped_queue_of_its_own() -> None:
    (one,) = findings_of(ZOMBIE, group(held(500, dropped=True)))
    assert "should read 1 queue but has dropped them" in one.summary
    assert one.queue_id == 0


def test_dropped_in_the_window_or_by_another() -> None:
    assert findings_of(ZOMBIE, group(held(11, dropped=True))) == []
    assert findings_of(ZOMBIE, group(held(500, client="y", dropped=True))) == []


def test_a_queue_that_is_not_pulled() -> None:
    (one,) = findings_of(SILENT, group(held(500, last_pull_ms=ms(300))))
    assert "has not pulled them for 3 min" in one.summary


def test_pulled_lately_dropped_or_taken_just_now() -> None:
    assert findings_of(SILENT, group(held(500))) == []
    assert findings_of(SILENT, group(held(500, last_pull_ms=ms(300), dropped=True))) == []
    assert findings_of(SILENT, group(held(100, last_pull_ms=ms(-300)))) == []
    assert findings_of(SILENT, group(held(500, client="y", last_pull_ms=ms(300)))) == []
    by_another_clock = held(500, last_pull_ms=ms(500) - 8 * 3_600_000)
    assert findings_of(SILENT, group(by_another_clock)) == []


def test_mqadmin_reports_for_how_long_it_is_blocked() -> None:
    where: Row = {"topic": "T", "broker_name": "a", "queue_id": 1, "client_id": "x"}
    (one,) = findings_of(
        BLOCKED, group(fact("STUCK_QUEUE", 900, trouble="consume", count=597_688, **where))
    )
    assert one.first_ms == ms(900) - 597_688
    assert f"since {utc(ms(900) - 597_688)}" in one.summary


def test_queues_taken_anew_because_nothing_was_pulled() -> None:
    where: Row = {"topic": "T", "broker_name": "a", "client_id": "x", "log": "c1"}
    facts = [fact("PULL_EXPIRED", 300, 420, 2, queue_id=0, **where)]
    (one,) = findings_of(EXPIRED, group(*facts))
    assert severities(EXPIRED, group(*facts)) == ["WARNING"]
    assert one.summary.startswith("x dropped and retook 1 queue of its own, 2 times since ")
    assert (one.client_id, one.topic, one.broker_name, one.queue_id) == ("x", "T", "a", 0)
    assert (one.first_ms, one.last_ms, one.ended_by) == (ms(300), ms(420), "")
    (gone,) = findings_of(EXPIRED, snapshot_of(*ALONE, leave("x", 700), facts=facts))
    assert (gone.last_ms, gone.ended_by) == (ms(700), "x went")
    other = fact("PULL_EXPIRED", 500, queue_id=1, **where | {"client_id": None})
    assert [found.client_id for found in findings_of(EXPIRED, group(*facts, other))] == [None, "x"]
    assert "the client that wrote clients/c1" in findings_of(EXPIRED, group(other))[0].summary
    assert findings_of(EXPIRED, group()) == []


HUNG: Row = {"last_consume_ms": ms(438)}


def test_one_dump_shows_a_listener_that_hangs() -> None:
    (one,) = findings_of(BLOCKED, group(held(500, **HUNG)))
    assert (one.first_ms, one.client_id) == (ms(438), "x")
    assert "T a:0" in one.summary
    assert findings_of(BLOCKED, group(held(500, last_consume_ms=ms(440)))) == []


@pytest.mark.parametrize(
    "own",
    [
        {"cached_messages": 0},
        {"dropped": True},
        {"last_consume_ms": 0},
        {"last_pull_ms": ms(490) - 300_000, "last_consume_ms": ms(480) - 300_000},  # dump is late
    ],
)
def test_no_listener_hangs_that_has_nothing_to_do_or_whose_dump_is_dated_late(own: Row) -> None:
    assert findings_of(BLOCKED, group(held(500, **HUNG | own))) == []


def test_what_came_just_now_or_was_committed_later_waits_for_no_listener() -> None:
    hung = held(500, **HUNG)
    for ends, commits in (([end(0, 10, at=480)], []), ([], [commit(0, 11, at=510)])):
        group = snapshot_of(*ALONE, facts=[hung], ends=ends, commits=commits)
        assert findings_of(BLOCKED, group) == []
    for ends, commits in (([end(0, 10, at=400)], []), ([], [commit(0, 10, at=510)])):
        group = snapshot_of(*ALONE, facts=[hung], ends=ends, commits=commits)
        assert len(findings_of(BLOCKED, group)) == 1


def test_a_listener_that_gets_on_by_the_newest_dump() -> None:
    on = held(600, last_consume_ms=ms(599), commit_offset=12)
    where: Row = {"topic": "T", "broker_name": "a", "queue_id": 0, "client_id": "x"}
    said = fact("STUCK_QUEUE", 500, trouble="consume", **where)
    assert findings_of(BLOCKED, group(held(300), held(500, **HUNG), on)) == []
    assert findings_of(BLOCKED, group(said, held(600, cached_messages=0))) == []
    assert len(findings_of(BLOCKED, group(said, held(600)))) == 1


def test_an_orderly_listener_without_its_lock_and_a_pull_client_do_not_hang() -> None:
    for settings, locked, count in (
        (GroupSettings(ordered=True), False, 0),
        (GroupSettings(ordered=True), True, 1),
        (GroupSettings(consumer_type="LITE_PULL"), False, 0),
    ):
        group = snapshot_of(*ALONE, facts=[held(500, locked=locked, **HUNG)], settings=settings)
        assert len(findings_of(BLOCKED, group)) == count


def test_a_queue_that_is_pulled_or_no_longer_dropped_by_the_newest_dump() -> None:
    silent = held(500, last_pull_ms=ms(300))
    assert findings_of(SILENT, group(silent, held(600))) == []
    assert len(findings_of(SILENT, group(silent, held(600, last_pull_ms=ms(300))))) == 1
    assert findings_of(ZOMBIE, group(held(500, dropped=True), held(600))) == []


WHERE: Row = {"topic": "T", "broker_name": "a", "queue_id": 0, "client_id": "x"}


def said_blocked(at: float, for_s: float) -> Row:
    """mqadmin's words at a time: nothing finished for so many seconds."""
    return fact("STUCK_QUEUE", at, trouble="consume", count=int(for_s * 1000), **WHERE)


def with_commits(blocked: Row, *commits: tuple[float, int]) -> GroupSnapshot:
    rows = [commit(0, offset, at=at) for at, offset in commits]
    return snapshot_of(*ALONE, facts=[blocked], commits=rows)


def test_a_slow_listener_that_commits_in_bursts_is_not_blocked() -> None:
    """Bursts of a queue may be more than a minute apart, as seen on a live cluster."""
    blocked = said_blocked(500, 72)
    assert findings_of(BLOCKED, with_commits(blocked, (300, 10), (430, 20), (510, 28))) == []
    # two seconds after the dump it had not moved again yet, for less than two minutes
    assert findings_of(BLOCKED, with_commits(blocked, (300, 10), (430, 20), (502, 20))) == []


def test_a_listener_that_hung_for_long_is_named_until_its_commit_moved() -> None:
    blocked = said_blocked(500, 200)
    moves = (200, 10), (310, 20), (330, 20), (600, 28)
    (moved,) = findings_of(BLOCKED, with_commits(blocked, *moves))
    assert (moved.first_ms, moved.last_ms) == (ms(300), ms(600))
    assert moved.ended_by == f"the commit moved by {utc(ms(600))}"
    (still,) = findings_of(BLOCKED, with_commits(blocked, (200, 10), (310, 20), (600, 20)))
    assert still.last_ms is None
    # what was finished before it may be seen as late, in a store that is copied once a night
    (unsure,) = findings_of(BLOCKED, with_commits(blocked, (200, 10), (600, 20)))
    assert unsure.last_ms is None
    # mqadmin's words stand alone where no commit is known
    assert len(findings_of(BLOCKED, with_commits(said_blocked(500, 72)))) == 1
