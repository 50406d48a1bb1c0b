from dataclasses import replace
from typing import Any

import pytest

from rebalance_core.audit.coverage import Coverage, LogSpan
from rebalance_core.audit.findings import run_rules
from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.model.events import OBSERVED
from rebalance_core.model.group_settings import GroupSettings
from tests.unit.audit.snapshots import (
    Row,
    broker_logs,
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
    with_rows,
)

SKIPPED, REPLAYED, FAILED = "START_SKIPPED", "START_REPLAYED", "START_FAILED"
FIRST = GroupSettings(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
ONE = topic(read=1), join("x", at=100)


def test_a_new_group_jumps_to_the_end_as_it_asked() -> None:
    group = snapshot_of(*ONE, ends=[end(0, 50, low=20, at=50)])
    (one,) = findings_of(SKIPPED, group)
    assert "30 messages of T skipped" in one.summary
    assert one.severity == "INFO"


def test_new_queues_of_a_known_topic() -> None:
    ends = [end(1, 40, low=5, at=290), end(0, 9, at=50)]
    group = snapshot_of(*ONE, topic(read=2, at=300), ends=ends, commits=[commit(0, 9, at=50)])
    assert severities(SKIPPED, group) == ["WARNING"]
    assert "35 messages" in findings_of(SKIPPED, group)[0].summary


def test_a_mode_that_is_not_what_it_states() -> None:
    own = join("x", at=100, consume_from_where="CONSUME_FROM_MIN_OFFSET")
    group = snapshot_of(topic(read=1), own, ends=[end(0, 50, low=20, at=50)])
    assert severities(SKIPPED, group) == ["WARNING"]


def test_a_stored_offset_skips_nothing() -> None:
    group = snapshot_of(*ONE, ends=[end(0, 50, low=20, at=50)], commits=[commit(0, 30, at=50)])
    assert findings_of(SKIPPED, group) == []


def test_a_new_group_reads_everything_from_zero() -> None:
    (one,) = findings_of(REPLAYED, snapshot_of(*ONE, ends=[end(0, 50, at=50)]))
    assert "50 messages of T from before the group existed" in one.summary
    assert "CONSUME_FROM_LAST_OFFSET" in one.summary


def test_who_asks_for_the_first_offset_or_finds_nothing() -> None:
    assert findings_of(REPLAYED, snapshot_of(*ONE, ends=[end(0, 50, at=50)], settings=FIRST)) == []
    assert findings_of(REPLAYED, snapshot_of(*ONE, ends=[end(0, 0, at=50)])) == []


def test_queues_that_are_new_themselves() -> None:
    ends = [end(1, 4, at=301), end(0, 9, at=50)]
    group = snapshot_of(*ONE, topic(read=2, at=300), ends=ends, commits=[commit(0, 9, at=50)])
    assert findings_of(REPLAYED, group) == []


def test_a_queue_that_is_younger_than_the_group_holds_nothing_from_before_it() -> None:
    """It was an orphan until the member that does not subscribe the topic left."""
    other = join("y", "U", at=100)
    ends = [end(0, 9, at=50), end(1, 0, at=300), end(1, 5, at=350)]
    group = snapshot_of(
        *ONE,
        other,
        topic(read=2, at=300),
        leave("y", 400),
        ends=ends,
        commits=[commit(0, 9, at=50)],
    )
    (start,) = [row for row in group.tables["pull_starts"] if row["queue_id"] == 1]
    assert (start["rule"], start["start_offset"], start["max_offset"]) == ("BROKER_ZERO", 0, 5)
    assert findings_of(REPLAYED, group) == []


def test_a_timestamp_before_all_messages_asks_for_all() -> None:
    def since(seconds: float) -> GroupSnapshot:
        settings = GroupSettings(
            consume_from_where="CONSUME_FROM_TIMESTAMP", consume_timestamp_ms=ms(seconds)
        )
        ends = [end(0, 20, at=20), end(0, 50, at=50)]
        return snapshot_of(*ONE, ends=ends, settings=settings)

    assert findings_of(REPLAYED, since(10)) == []
    assert "20 messages" in findings_of(REPLAYED, since(30))[0].summary


def test_a_start_that_fails() -> None:
    member = join("x", strategy="CONFIG(queues=T/a/0|T/a/9)", at=100)
    (one,) = findings_of(FAILED, snapshot_of(topic(read=1), member))
    assert "T (a:9)" in one.summary
    assert findings_of(FAILED, snapshot_of(*ONE)) == []


def test_a_failed_start_that_a_newer_fact_ends() -> None:
    failing = topic(read=1), join("x", strategy="CONFIG(queues=T/a/0|T/a/9)", at=100)

    def ended(*observations: Row, **own: Any) -> str:
        (one,) = findings_of(FAILED, snapshot_of(*failing, commits=observations, **own))
        return one.ended_by

    assert ended() == ""
    assert ended(commit(9, 3, at=700)) == "3 is committed on T a:9"
    # what another one committed before, and a store that was copied again, is no progress
    assert ended(commit(9, 3, at=50), commit(9, 3, at=700)) == ""
    assert ended(commit(0, 3, at=700)) == ""
    own = fact("HELD_QUEUE", 700, topic="T", broker_name="a", queue_id=9, client_id="x")
    assert ended(facts=[own]) == "x reads T a:9 according to its own dump"
    assert ended(facts=[own | {"client_id": "y"}]) == ""


def test_one_of_two_queues_that_is_read_ends_nothing_of_the_other() -> None:
    failing = topic(read=1), join("x", strategy="CONFIG(queues=T/a/8|T/a/9)", at=100)
    (one,) = findings_of(FAILED, snapshot_of(*failing, commits=[commit(9, 3, at=700)]))
    assert (one.evidence["queues"], one.last_ms) == ("a:8", None)


@pytest.mark.parametrize(
    ("source", "severity"),
    [("brokers/a/broker.log:7", "WARNING"), ("mqadmin/9-topicRoute-T.txt", "INFO")],
)
def test_a_start_on_queues_that_a_dump_alone_shows_later(source: str, severity: str) -> None:
    member = join("x", strategy="CONFIG(queues=T/a/0)", at=100)
    later = topic(read=1, at=200, source=source)
    assert severities(FAILED, snapshot_of(topic("T", "b", read=1), member, later)) == [severity]


def in_collection(group: GroupSnapshot, **first_store: float) -> GroupSnapshot:
    """The snapshot of a collection with these consumerOffset.json."""
    stores = {broker: ms(at) for broker, at in first_store.items()}
    return replace(group, run=replace(group.run, offsets_ms=stores))


def test_without_an_earlier_store_it_is_unknown_that_nothing_was_committed() -> None:
    group = snapshot_of(*ONE, ends=[end(0, 50, at=50)])
    assert severities(REPLAYED, in_collection(group, a=90)) == ["WARNING"]
    assert severities(REPLAYED, in_collection(group, a=200)) == []
    assert severities(REPLAYED, in_collection(group)) == []
    jumped = snapshot_of(*ONE, ends=[end(0, 50, low=20, at=50)])
    assert severities(SKIPPED, in_collection(jumped, a=90)) == ["INFO"]
    assert severities(SKIPPED, in_collection(jumped)) == []


def test_a_new_group_and_a_new_queue_had_no_commit() -> None:
    created = fact("GROUP_CREATED", 60, broker_name="a")
    new_group = snapshot_of(*ONE, ends=[end(0, 50, at=50)], facts=[created])
    assert severities(REPLAYED, in_collection(new_group)) == ["WARNING"]
    new_queue = snapshot_of(*ONE, ends=[end(0, 0, at=40), end(0, 50, at=50)])
    assert severities(REPLAYED, in_collection(new_queue)) == ["WARNING"]


@pytest.mark.parametrize(
    ("begins", "found"), [(0, ["WARNING"]), (80, ["WARNING"]), (95, []), (100, [])]
)
def test_a_commit_after_the_store_may_be_in_the_part_of_a_log_that_is_missing(
    begins: float, found: list[str]
) -> None:
    group = in_collection(snapshot_of(*ONE, ends=[end(0, 50, at=50)]), a=90)
    log = (LogSpan(ms(begins), ms(1000), from_start=False),)
    covered = Coverage(broker_logs(a=log), known=True)
    assert severities(REPLAYED, replace(group, run=replace(group.run, coverage=covered))) == found


def test_that_messages_are_older_than_the_group_needs_a_look_from_before_it() -> None:
    events = *ONE, join("y", "U", at=100), topic(read=2, at=300), leave("y", 400)
    group = snapshot_of(
        *events, ends=[end(0, 9, at=50), end(1, 5, at=350)], commits=[commit(0, 9, at=50)]
    )
    (one,) = (row for row in run_rules(group)["findings"] if row["rule_id"] == REPLAYED)
    assert severities(REPLAYED, group) == [one["severity"]] == ["INFO"]
    assert "no dump shows the queues before the group existed" in one["summary"]
    for detail, severity in ((None, "WARNING"), (OBSERVED, "INFO")):
        there = join("x", at=100, detail=detail), join("y", "U", at=100, detail=detail)
        group = snapshot_of(topic(read=2), *there, leave("y", 400), ends=[end(1, 5, at=50)])
        assert severities(REPLAYED, group) == [severity]


def test_a_start_is_said_with_its_bounds() -> None:
    """No file shows whether the first message of a queue was in memory."""
    ends = [end(0, 50, at=50), end(0, 55, at=900)]
    (one,) = findings_of(REPLAYED, snapshot_of(*ONE, ends=ends))
    assert "up to 50 messages of T from before the group existed" in one.summary
    assert one.summary.endswith("began at 0 by the estimate (bounds: 0 to 55).")


@pytest.mark.parametrize("rule", [SKIPPED, REPLAYED])
def test_where_a_consume_from_where_is_assumed_no_start_is_a_finding(rule: str) -> None:
    low = 20 if rule == SKIPPED else 0
    group = snapshot_of(*ONE, ends=[end(0, 50, low=low, at=50)])
    assert findings_of(rule, group)
    assumed = {"rule_id": "INGEST_ASSUMED", "evidence": {"consume_from_where": "…"}}
    assert findings_of(rule, with_rows(group, findings=[assumed])) == []
