"""Order locks that are stuck, and orderly messages that block."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from rebalance_core.audit.findings import run_rules
from rebalance_core.audit.group_snapshot import GroupSnapshot, KeptLock
from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import MessageQueue
from tests.unit.audit.snapshots import (
    Row,
    fact,
    findings_of,
    join,
    leave,
    listed_at,
    ms,
    severities,
    snapshot_of,
    topic,
)

STUCK, WAIT = "STUCK_ORDER_LOCK", "LOCK_WAIT"
ORDERLY = GroupSettings(ordered=True)
EVENTS = topic(), join("x"), join("y", at=100)  # y takes queues 2 and 3


def refused(at: float, until: float, owner: str = "x", number: int = 2, times: int = 25) -> Row:
    where: Row = {"topic": "T", "broker_name": "a", "queue_id": number}
    return fact("LOCK_REFUSED", at, until, times, client_id="y", owner=owner, **where)


def group(
    *facts: Row, events: tuple[Event, ...] = EVENTS, members: Iterable[Row] = ()
) -> GroupSnapshot:
    return snapshot_of(*events, settings=ORDERLY, facts=facts, members=members)


def test_a_lock_that_is_refused_long_after_the_hand_over() -> None:
    (one,) = findings_of(STUCK, group(refused(101, 600)))
    assert "x has it, and y should hold the queue" in one.summary
    assert findings_of(WAIT, group(refused(101, 600))) == []


def test_the_log_of_the_client_that_keeps_the_lock_shows_why() -> None:
    queue = MessageQueue("T", "a", 2)
    kept = KeptLock("host-x", ms(120), ms(580), 24)
    snapshot = group(refused(101, 600))
    run = replace(snapshot.run, unlock_failed={queue: (kept,)})
    (one,) = findings_of(STUCK, replace(snapshot, run=run))
    assert "clients/host-x keeps the lock while its listener is processing messages" in one.summary
    over = replace(snapshot.run, unlock_failed={queue: (kept._replace(last_ms=ms(90)),)})
    (one,) = findings_of(STUCK, replace(snapshot, run=over))
    assert "clients/host-x" not in one.summary


def test_a_ghost_that_is_no_member() -> None:
    assert severities(STUCK, group(refused(300, 600, owner="ghost"))) == ["ERROR"]


def test_waiting_for_a_hand_over_is_normal() -> None:
    snapshot = group(refused(101, 150))
    assert findings_of(STUCK, snapshot) == []
    (one,) = findings_of(WAIT, snapshot)
    assert "explained by CONSUMER_JOIN of y" in one.summary


@pytest.mark.parametrize(("language", "keeps"), [("GO", True), ("JAVA", False), ("CPP", False)])
def test_a_go_member_keeps_the_locks_of_what_it_gives_up(language: str, keeps: bool) -> None:
    members = [*listed_at("a", 500, "x", language=language), *listed_at("a", 500, "y")]
    (one,) = findings_of(WAIT, group(refused(101, 155), members=members))
    text = (
        "x (GO) does not unlock the queues that it gives "
        "up: no member reads such a queue for 40 s to 60 s."
    )
    assert (text in one.summary) == keeps
    assert (one.evidence.get("lock_kept_by") == "x") == keeps
    assert (one.remedy is not None) == keeps


def test_of_equal_waits_the_first_queue_is_named_in_any_order_of_the_facts() -> None:
    waits = refused(101, 150, number=3), refused(101, 150, number=2)
    for facts in (waits, waits[::-1]):
        (one,) = findings_of(WAIT, group(*facts))
        assert "most often y for T a:2 (25 times)" in one.summary


def test_two_hand_overs_in_one_line_of_refusals() -> None:
    snapshot = group(
        refused(101, 640), events=(*EVENTS, leave("y", 500), join("y", at=600, channel="n"))
    )
    assert findings_of(STUCK, snapshot) == []


def test_a_lock_that_an_owner_has_in_a_later_dump_is_stuck_no_more() -> None:
    where: Row = {"topic": "T", "broker_name": "a", "queue_id": 2, "client_id": "y"}

    def judged(at: float, *, locked: bool) -> Row:
        dump = fact("HELD_QUEUE", at, locked=locked, dropped=False, **where)
        rows = run_rules(group(refused(101, 600), dump))["findings"]
        (row,) = (row for row in rows if row["rule_id"] == STUCK)
        return row

    healed = judged(900, locked=True)
    assert (healed["severity"], healed["last_ms"]) == ("INFO", ms(900))
    assert healed["summary"].endswith("y has the lock.")
    for at, locked in ((900, False), (500, True)):
        assert judged(at, locked=locked)["severity"] == "ERROR"


def test_the_newest_refusals_of_a_queue_decide() -> None:
    """A dump between two of them ended the first ones alone."""
    where: Row = {"topic": "T", "broker_name": "a", "queue_id": 2, "client_id": "y"}
    between = fact("HELD_QUEUE", 500, locked=True, dropped=False, **where)
    twice = refused(101, 400), between, refused(600, 900)
    assert severities(STUCK, group(*twice)) == ["ERROR"]
    (one,) = findings_of(STUCK, group(*twice))
    assert (one.first_ms, one.ended_by) == (ms(600), "")


def test_two_refusals_far_apart() -> None:
    assert findings_of(STUCK, group(refused(300, 550, owner="ghost", times=2))) == []


def test_refused_by_the_one_that_should_have_it() -> None:
    assert findings_of(STUCK, group(refused(300, 600, number=0))) == []


def held(at: float, **own: Any) -> Row:
    where: Row = {"topic": "T", "broker_name": "a", "queue_id": 2, "client_id": "x"}
    return fact("HELD_QUEUE", at, **where, **own)


def test_a_dropped_queue_that_cannot_be_unlocked() -> None:
    stuck = group(held(500, dropped=True, try_unlock_times=5))
    assert severities(STUCK, stuck) == ["ERROR"]
    assert findings_of(STUCK, group(held(130, dropped=True, try_unlock_times=5))) == []
    assert findings_of(STUCK, group(held(500, dropped=False, try_unlock_times=0))) == []


def test_what_mqadmin_warns_of() -> None:
    where: Row = {"topic": "T", "broker_name": "a", "queue_id": 2, "client_id": "x"}
    warned = fact("STUCK_QUEUE", 500, **where, trouble="lock", count=1)
    assert severities(STUCK, group(warned)) == ["ERROR"]
    blocked = fact("STUCK_QUEUE", 500, **where, trouble="consume", count=1)
    assert findings_of(STUCK, group(blocked)) == []
