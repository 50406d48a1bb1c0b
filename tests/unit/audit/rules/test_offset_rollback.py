"""Offsets that went back, and resets that were not kept."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.audit.coverage import Coverage
from rebalance_core.audit.findings import run_rules
from rebalance_core.audit.group_snapshot import GroupSnapshot
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
    return fact("OFFSET_WENT_BACK", at, topic="T", broker_name="a", queue_id=1,
                client_host="1.2.3.4:5", highest_stored=30, lowest_asked=10)  # fmt: skip


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
    assert "not sure: the clock of a client may be off" in one["summary"]
    same = [commit(0, 30, at=500, client="x"), commit(0, 10, at=700, client="x")]
    assert severities(OFFSET_ROLLBACK, snapshot_of(*TWO, commits=same)) == ["WARNING"]


# RESET_NOT_KEPT: a reset that a broker took and that no later commit shows.

RESET_NOT_KEPT = "RESET_NOT_KEPT"


def reset(at: float, offset: int) -> Row:
    return fact("OFFSET_RESET", at, topic="T", broker_name="a", queue_id=0, offset=offset)


def snapshot(to: int, *commits: tuple[int, float]) -> GroupSnapshot:
    observations = [commit(0, offset, at=at) for offset, at in commits]
    return snapshot_of(topic(), join("x"), commits=observations, facts=[reset(500, to)])


def test_a_commit_below_an_offset_that_was_to_be_skipped_to() -> None:
    (one,) = findings_of(RESET_NOT_KEPT, snapshot(90, (30, 400), (35, 530)))
    assert "most from 30, set to 90, committed 35" in one.summary
    assert severities(RESET_NOT_KEPT, snapshot(90, (30, 400), (35, 530))) == ["WARNING"]


def test_a_group_that_was_to_go_back_and_did_not_may_have_read_again() -> None:
    assert severities(RESET_NOT_KEPT, snapshot(10, (30, 400), (35, 530))) == ["INFO"]
    assert severities(RESET_NOT_KEPT, snapshot(10, (30, 400), (35, 700))) == []


def test_a_reset_that_was_kept() -> None:
    assert findings_of(RESET_NOT_KEPT, snapshot(90, (30, 400), (91, 530), (35, 900))) == []
    assert findings_of(RESET_NOT_KEPT, snapshot(10, (30, 400), (12, 530), (35, 700))) == []


@pytest.mark.parametrize(
    ("later", "severity"),
    [((95, 700), "INFO"), ((40, 700), "WARNING"), ((95, 602), "WARNING"), (None, "WARNING")],
)
def test_a_second_reset_makes_up_for_the_first_where_a_look_shows_it(
    later: tuple[int, float] | None, severity: str
) -> None:
    observations = [(30, 200.0), (35, 400.0), *([later] if later else ())]
    group = snapshot_of(
        topic(),
        join("x"),
        commits=[commit(0, offset, at=at) for offset, at in observations],
        facts=[reset(300, 90), reset(600, 90)],
    )
    assert severities(RESET_NOT_KEPT, group) == [severity]


def test_nothing_is_said_without_a_commit_before_and_a_look_after_it() -> None:
    assert findings_of(RESET_NOT_KEPT, snapshot(90, (35, 530))) == []
    assert findings_of(RESET_NOT_KEPT, snapshot(90, (30, 400))) == []
    # the store that was copied may be older than the reset
    assert findings_of(RESET_NOT_KEPT, snapshot(90, (30, 400), (30, 505))) == []


def test_what_a_client_commits_is_no_look_at_the_broker() -> None:
    observations = [commit(0, 30, at=400), commit(0, 35, at=530, client="x")]
    assert (
        findings_of(
            RESET_NOT_KEPT,
            snapshot_of(topic(), join("x"), commits=observations, facts=[reset(500, 90)]),
        )
        == []
    )


def test_the_broker_s_line_is_the_fact(tmp_path: Path) -> None:
    log = tmp_path / "brokers" / "a" / "broker.log"
    log.parent.mkdir(parents=True)
    log.write_text(
        "2026-11-21 11:28:55 INFO AdminBrokerThread_1 - Reset offset, topic=T, group=g, "
        'queues={"offsetTable":{{"brokerName":"a","queueId":2,"topic":"T"}:90}}\n'
    )
    (tmp_path / "collection.toml").write_text('cluster = "C"\n')
    rows = ingest_collection(tmp_path).tables["observed_facts"]
    (row,) = [row for row in rows if row["kind"] == "OFFSET_RESET"]
    assert (row["consumer_group"], row["topic"], row["broker_name"], row["queue_id"]) == (
        "g", "T", "a", 2,
    )  # fmt: skip
    assert row["details"] == {"offset": "90"}


def test_a_fall_that_a_broker_logged_is_not_found_again_when_it_is_seen_late() -> None:
    """Two members commit one queue while it moves; the next look at it is much later."""
    went = fact(
        "OFFSET_WENT_BACK",
        500,
        520,
        topic="T",
        broker_name="a",
        queue_id=0,
        client_host="10.0.0.1",
        highest_stored=25,
        lowest_asked=20,
    )
    commits = [
        commit(0, 25, at=518, client="x"),
        commit(0, 20, at=521, client="y"),
        commit(0, 20, at=990, client="y"),
    ]
    (one,) = findings_of(OFFSET_ROLLBACK, snapshot_of(*TWO, facts=[went], commits=commits))
    assert (one.first_ms, one.last_ms) == (ms(500), ms(520))
