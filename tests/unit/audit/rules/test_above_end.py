from dataclasses import replace
from typing import Any

import pytest

from rebalance_core.audit.confidence import borne_out
from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.audit.rules import rules_by_id
from rebalance_core.audit.rules.above_end import SET_OFFSETS
from rebalance_core.model.events import MASTER_DOWN, MASTER_UP, TOPIC_DELETED
from tests.unit.audit.snapshots import (
    Row,
    commit,
    end,
    event,
    fact,
    findings_of,
    join,
    leave,
    ms,
    severities,
    snapshot_of,
    topic,
)

RULE = "COMMITS_ABOVE_END"
ONE = topic(read=1), join("x")
LOST: dict[str, Any] = {"ends": [end(0, 14_600, at=300), end(0, 900, at=900)]}
"""The end of a queue before and after its store was lost."""


def corrected(asked: int, given: int) -> Row:
    return fact("OFFSET_CORRECTED", 600, topic="T", broker_name="a", asked=asked, given=given)


def of_version(version: str, group: GroupSnapshot) -> GroupSnapshot:
    return replace(group, run=replace(group.run, versions={"a": version}))


def test_the_end_went_back_and_the_commit_lies_above_it() -> None:
    group = snapshot_of(*ONE, commits=[commit(0, 14_568, at=890)], **LOST)
    (one,) = findings_of(RULE, group)
    assert severities(RULE, group) == ["ERROR"]
    assert (one.topic, one.broker_name) == ("T", "a")
    assert "moved back from 14600 to 900" in one.summary
    assert "up to 13,668 messages above the end" in one.summary


def test_a_topic_that_was_deleted_and_made_again_on_all_brokers_is_one_finding() -> None:
    anew = (
        topic(read=1),
        topic(read=1, broker="b"),
        join("x"),
        event(TOPIC_DELETED, 500, topic="T", broker_name="a"),
        event(TOPIC_DELETED, 501, topic="T", broker_name="b"),
        topic(at=540, read=1),
        topic(at=540, read=1, broker="b"),
    )
    ends = [end(0, high, at=at, broker=b) for b in "ab" for high, at in ((5_000, 300), (12, 900))]
    commits = [commit(0, 4_990, at=890, broker=b) for b in "ab"]
    group = snapshot_of(*anew, commits=commits, ends=ends)
    (one,) = findings_of(RULE, group)
    assert one.broker_name is None
    assert "T was deleted at" in one.summary
    assert "and recreated at" in one.summary
    assert "store lost" not in one.summary
    (gone,) = findings_of("TOPIC_GONE", group)
    assert one.evidence["deleted_from"] == gone.evidence["deleted_from"]
    assert one.severity == "ERROR"
    # a group that has read on since has nothing to reset
    read_on = [
        commit(0, offset, at=at, broker=b) for b in "ab" for offset, at in ((4_990, 290), (12, 890))
    ]
    (one,) = findings_of(RULE, snapshot_of(*anew, commits=read_on, ends=ends))
    assert (one.severity, (one.remedy or "").split(":")[0]) == ("INFO", "Nothing")
    (one,) = findings_of(RULE, snapshot_of(*anew, commits=read_on[:3], ends=ends))
    assert one.severity == "WARNING", "of b, nothing shows a commit since"
    # what fell before is no consequence of the deletion
    earlier = [end(0, high, at=at, broker="a") for high, at in ((5_000, 300), (12, 400))]
    (one,) = findings_of(RULE, snapshot_of(*anew, commits=commits[:1], ends=earlier))
    assert one.broker_name == "a"
    assert "store lost or topic recreated" in one.summary


@pytest.mark.parametrize("happened", [(), (leave("x", 200),)])
@pytest.mark.parametrize(
    ("commits", "severity"),
    [
        # a later store has the commit from before
        (((4_990, 290), (4_990, 890)), "WARNING"),
        # the group may have committed between the first store and the deletion
        (((4_990, 290), (4_995, 890)), "WARNING"),
        (((4_990, 890),), "WARNING"),
        (((4_990, 290), (700, 890)), "INFO"),
        (((4_990, 290), (10, 620), (6_000, 890)), "INFO"),
        (((10, 890),), "INFO"),
    ],
)
def test_only_a_commit_that_fell_is_from_after_the_deletion(
    happened: tuple[Any, ...], commits: tuple[tuple[int, int], ...], severity: str
) -> None:
    deleted = event(TOPIC_DELETED, 500, topic="T", broker_name="a")
    anew = topic(read=1), join("x"), deleted, topic(at=540, read=1), *happened
    ends = [end(0, high, at=at) for high, at in ((5_000, 300), (12, 600), (9_000, 900))]
    group = snapshot_of(*anew, commits=[commit(0, o, at=at) for o, at in commits], ends=ends)
    (one,) = findings_of(RULE, group)
    assert one.severity == severity
    assert (one.remedy == SET_OFFSETS) == (severity == "WARNING")


def test_where_the_broker_sends_the_group_follows_from_its_log_else_from_its_version() -> None:
    above: dict[str, Any] = {"commits": [commit(0, 14_568, at=890)], **LOST}
    plain, logged = (
        snapshot_of(*ONE, **above),
        snapshot_of(*ONE, facts=[corrected(14_568, 0)], **above),
    )
    for group, words in (
        (of_version("5.3.3", logged), "pulls from 14568 were redirected to 0"),
        (of_version("5.3.3", plain), "to the end: it skips the stored messages"),
        (of_version("4.9.2", plain), "to 0: it reads the stored messages again"),
    ):
        (one,) = findings_of(RULE, group)
        assert words in one.summary
    (one,) = findings_of(RULE, of_version("3.2.6", plain))
    assert "sends" not in one.summary, "no rules of that version are known"


def test_what_consumer_progress_prints_is_an_end_too() -> None:
    where: Row = {"topic": "T", "broker_name": "a", "queue_id": 0}
    shown = fact("QUEUE_PROGRESS", 900, **where, broker_offset=900, consumer_offset=14_568)
    group = snapshot_of(*ONE, commits=[commit(0, 14_568, at=900)], facts=[shown])
    assert severities(RULE, group) == ["ERROR"]


def test_the_offsets_of_one_answer_are_read_one_after_the_other() -> None:
    where: Row = {"topic": "T", "broker_name": "a", "queue_id": 0}
    for ahead, found in ((3, []), (101, ["ERROR"])):
        shown = fact("QUEUE_PROGRESS", 900, **where, broker_offset=900, consumer_offset=900 + ahead)
        group = snapshot_of(*ONE, commits=[commit(0, 900 + ahead, at=900)], facts=[shown])
        assert severities(RULE, group) == found
    # an end that was seen after the commit is no such read
    later = snapshot_of(*ONE, commits=[commit(0, 903, at=890)], ends=[end(0, 900, at=900)])
    assert severities(RULE, later) == ["ERROR"]


def test_the_last_copy_of_the_commits_may_be_dated_after_every_end() -> None:
    def found(last: int) -> list[str]:
        commits = [commit(0, 14_568, at=890), commit(0, last, at=905)]
        return severities(RULE, snapshot_of(*ONE, commits=commits, **LOST))

    assert found(14_568) == found(14_600) == ["ERROR"]
    assert found(880) == ["WARNING"]  # they were reset


def test_a_group_that_goes_on_is_healthy() -> None:
    commits = [commit(0, 10, at=400), commit(0, 20, at=950)]
    ends = [end(0, 12, at=300), end(0, 19, at=900)]
    assert findings_of(RULE, snapshot_of(*ONE, commits=commits, ends=ends)) == []
    # the clock of a client may be behind
    ahead = [commit(0, 14, at=899, client="x")]
    assert findings_of(RULE, snapshot_of(*ONE, commits=ahead, ends=[end(0, 12)])) == []


def test_no_member_is_online_or_the_commits_are_right_again() -> None:
    above: dict[str, Any] = {"commits": [commit(0, 14_568, at=890)], **LOST}
    assert severities(RULE, snapshot_of(*ONE, leave("x", 100), **above)) == ["WARNING"]
    right: dict[str, Any] = {"commits": [commit(0, 14_568, at=290), commit(0, 880, at=890)], **LOST}
    group = snapshot_of(*ONE, **right)
    (one,) = findings_of(RULE, group)
    assert severities(RULE, group) == ["WARNING"]
    assert one.last_ms is not None


def test_pulls_that_were_sent_back() -> None:
    assert severities(RULE, snapshot_of(*ONE, facts=[corrected(14_568, 0)])) == ["WARNING"]
    assert severities(RULE, snapshot_of(*ONE, facts=[corrected(100, 7)])) == ["INFO"]
    assert (
        findings_of(RULE, snapshot_of(*ONE, facts=[corrected(0, 144)])) == []
    )  # old messages went


def test_a_slave_that_knows_an_older_copy_and_a_topic_that_was_deleted() -> None:
    down = event(MASTER_DOWN, 400, broker_name="a", detail="READABLE")
    up = event(MASTER_UP, 500, broker_name="a")
    fell: dict[str, Any] = {"ends": [end(0, 20, at=300), end(0, 18, at=450)]}
    assert severities(RULE, snapshot_of(*ONE, down, up, **fell)) == ["INFO"]
    gone = event(TOPIC_DELETED, 950, topic="T", broker_name="a")
    assert findings_of(RULE, snapshot_of(*ONE, gone, **LOST)) == []


def test_a_client_that_had_read_a_queue_and_finds_its_offset_gone_lost_messages() -> None:
    """Who takes a queue over asks for a commit, which may have been set above the end by hand."""
    named: Any = {"topic": "T", "broker_name": "a", "queue_id": 0, "client_id": "x"}
    illegal = {
        at: fact("OFFSET_ILLEGAL", at, **named, asked=15_619, given=7_358) for at in (5, 600)
    }
    group = snapshot_of(*ONE, facts=[illegal[600]])
    (one,) = findings_of(RULE, group)
    assert severities(RULE, group) == ["WARNING"]
    assert "pulls of T a:0 from 15619 were redirected to 7358" in one.summary
    assert "the store lost the messages between, or T was recreated" in one.summary
    begins = snapshot_of(*ONE, facts=[illegal[5]])
    assert severities(RULE, begins) == ["INFO"]
    assert "store lost" not in findings_of(RULE, begins)[0].summary


def test_an_end_that_fell_within_one_round_may_be_an_old_answer() -> None:
    fell: dict[str, Any] = {"ends": [end(0, 14_600, at=885), end(0, 900, at=890)]}
    group = snapshot_of(*ONE, **fell)
    (one,) = findings_of(RULE, group)
    assert one.unknown is not None
    (shown,) = borne_out(rules_by_id()[RULE], group, [one], "EQUAL")
    assert shown.severity == "INFO"
    assert "and one may be an old answer" in shown.summary
    assert [f.unknown for f in findings_of(RULE, snapshot_of(*ONE, **LOST))] == [None]
    # a start of the broker, a change of the topic and commits above the end explain it
    started = snapshot_of(*ONE, **fell)
    moments = {"a": ((ms(888), "started"),)}
    started = replace(started, run=replace(started.run, moments=moments))
    changed = snapshot_of(*ONE, topic(at=887, read=1), **fell)
    above = snapshot_of(*ONE, commits=[commit(0, 14_568, at=889)], **fell)
    for explained in (started, changed, above):
        assert [finding.unknown for finding in findings_of(RULE, explained)] == [None]
