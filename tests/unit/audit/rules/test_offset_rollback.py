"""Offsets that went back."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.audit.coverage import Coverage
from rebalance_core.audit.findings import run_rules
from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.model.times import utc
from tests.unit.audit.snapshots import (
    Row,
    commit,
    fact,
    findings_of,
    join,
    judge_cluster,
    leave,
    ms,
    severities,
    snapshot_of,
    topic,
)

OFFSET_ROLLBACK = "OFFSET_ROLLBACK"
TWO = topic(), join("x"), join("y")


def logged(at: float) -> Row:
    return fact(
        "OFFSET_WENT_BACK",
        at,
        topic="T",
        broker_name="a",
        queue_id=1,
        client_host="1.2.3.4:5",
        highest_stored=30,
        lowest_asked=10,
    )


def test_a_commit_that_went_back() -> None:
    (one,) = findings_of(OFFSET_ROLLBACK, snapshot_of(*TWO, facts=[logged(600)]))
    assert "from 30 to 10" in one.summary
    assert "20 messages are consumed again" in one.summary
    assert one.evidence["committed_by"] == "1.2.3.4:5"
    assert severities(OFFSET_ROLLBACK, snapshot_of(*TWO, facts=[logged(600)])) == ["WARNING"]


def test_the_largest_of_several_falls_and_their_sum(tmp_path: Path) -> None:
    """A queue that goes on between its falls does not fall from its last offset to its first."""
    log = tmp_path / "brokers" / "a" / "broker.log"
    log.parent.mkdir(parents=True)
    falls = [(65, 66), (278, 300), (520, 522), (879, 900)]
    log.write_text(
        "".join(
            f"2026-11-21 11:2{minute}:00 WARN ConsumerManageThread_1 - [NOTIFYME]update consumer "
            f"offset less than store. clientHost=1.2.3.4:5, key=T@g, queueId=1, "
            f"requestOffset={asked}, storeOffset={stored}\n"
            for minute, (asked, stored) in enumerate(falls)
        )
    )
    (tmp_path / "collection.toml").write_text('cluster = "C"\n')
    rows = ingest_collection(tmp_path).tables["observed_facts"]
    went_back = [row for row in rows if row["kind"] == "OFFSET_WENT_BACK"]
    (one,) = findings_of(OFFSET_ROLLBACK, snapshot_of(*TWO, facts=went_back))
    assert "most from 300 to 278" in one.summary
    assert "22 messages are consumed again, 46 in all 4 falls" in one.summary


def test_a_fall_that_a_broker_logged_is_not_counted_again_where_its_store_shows_it() -> None:
    fell = [commit(1, 30, at=500), commit(1, 10, at=605)]
    (one,) = findings_of(OFFSET_ROLLBACK, snapshot_of(*TWO, facts=[logged(600)], commits=fell))
    assert "20 messages are consumed again;" in one.summary


def fell(at: float, stored: int, asked: int) -> Row:
    of_queue: Row = {"topic": "T", "broker_name": "a", "queue_id": 1}
    offsets: Row = {"highest_stored": stored, "lowest_asked": asked, "steps": 1}
    return fact("OFFSET_WENT_BACK", at, client_host="1.2.3.4:5", **of_queue, **offsets)


STEADY = [commit(1, 300, at=300), commit(1, 900, at=900)]
"""One message a second."""


@pytest.mark.parametrize(
    ("facts", "commits", "happened", "found"),
    [
        ([fell(600, 602, 601)], STEADY, [], 0),  # two commits crossed
        ([fell(600, 602, 590)], STEADY, [], 1),  # by more than it finishes in five seconds
        ([fell(600, 602, 601), fell(700, 702, 701)], STEADY, [], 1),  # again and again
        ([fell(600, 602, 601)], STEADY, [leave("x", at=590)], 1),  # the owner changed
        ([fell(600, 902, 901)], STEADY, [], 1),  # and was not committed again
        ([fell(600, 602, 601)], [], [], 1),  # how fast it reads is unknown
        # it stayed lower: no commit that came late
        ([], [*STEADY, commit(1, 602, at=600), commit(1, 601, at=630)], [], 1),
    ],
)
def test_two_commits_of_one_owner_that_cross_are_no_rollback(
    facts: list[Row], commits: list[Row], happened: list[Any], found: int
) -> None:
    group = snapshot_of(*TWO, *happened, facts=facts, commits=commits)
    assert len(findings_of(OFFSET_ROLLBACK, group)) == found


def test_what_the_brokers_went_through_is_named() -> None:
    group = snapshot_of(*TWO, facts=[logged(600)])
    (plain,) = findings_of(OFFSET_ROLLBACK, group)
    assert "no event that this program reads explains it." in plain.summary
    facts = [fact("BROKER_STARTED", at, broker_name="a") for at in (530, 900)]
    gone: Any = {
        "event_ms": ms(610),
        "sequence": 0,
        "event_type": "BROKER_DOWN",
        "broker_name": "a",
        "detail": "CLOSED",
    }
    of_b = [fact("BROKER_STARTED", 600, broker_name="b")]
    run, _ = judge_cluster([*facts, *of_b], [], [gone], 6)
    (near,) = findings_of(
        OFFSET_ROLLBACK, replace(group, run=replace(group.run, moments=run.moments))
    )
    when = utc(ms(530)), utc(ms(610))
    assert f"(within two minutes: a started at {when[0]}, a went at {when[1]})" in near.summary


def test_after_a_logged_event_it_has_a_cause() -> None:
    assert severities(OFFSET_ROLLBACK, snapshot_of(*TWO, facts=[logged(60)])) == ["INFO"]


def test_duplicate_ids_explain_it() -> None:
    duplicate = topic(), join("x"), join("x", channel="x:2")
    (one,) = findings_of(OFFSET_ROLLBACK, snapshot_of(*duplicate, facts=[logged(600)]))
    assert "the duplicate client id x" in one.summary
    assert one.severity == "INFO"


def test_looks_at_the_store_that_fall() -> None:
    fell = [commit(0, 30, at=500), commit(0, 10, at=700)]
    assert severities(OFFSET_ROLLBACK, snapshot_of(*TWO, commits=fell)) == ["WARNING"]
    assert (
        findings_of(
            OFFSET_ROLLBACK,
            snapshot_of(*TWO, commits=[commit(0, 10, at=500), commit(0, 30, at=700)]),
        )
        == []
    )


def test_a_store_that_is_older_than_the_log() -> None:
    near = [commit(0, 30, at=500, client="x"), commit(0, 10, at=505)]
    assert findings_of(OFFSET_ROLLBACK, snapshot_of(*TWO, commits=near)) == []


def test_a_client_s_log_and_a_store_have_two_clocks() -> None:
    far = [commit(0, 30, at=500, client="x"), commit(0, 10, at=700)]
    group = snapshot_of(*TWO, commits=far)
    assert severities(OFFSET_ROLLBACK, group) == ["WARNING"]
    unknown = Coverage(known=False, client_clock_unknown=True)
    judged = run_rules(replace(group, run=replace(group.run, coverage=unknown)))
    (one,) = (row for row in judged["findings"] if row["rule_id"] == OFFSET_ROLLBACK)
    assert one["severity"] == "INFO"
    assert "uncertain: the clock of a client may be off" in one["summary"]
    same = [commit(0, 30, at=500, client="x"), commit(0, 10, at=700, client="x")]
    assert severities(OFFSET_ROLLBACK, snapshot_of(*TWO, commits=same)) == ["WARNING"]
