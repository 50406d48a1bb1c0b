"""Masters that went: queues not read, queues not owned, and offsets that fell back."""

from dataclasses import replace
from typing import Any

import pytest

from rebalance_core.audit.coverage import ALWAYS
from rebalance_core.audit.rules import rules_by_id
from rebalance_core.audit.subjects import gap_of
from rebalance_core.audit.unknowns import return_unlogged
from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.timeline import EVER_MS
from tests.unit.audit.snapshots import (
    commit,
    end,
    event,
    findings_of,
    join,
    ms,
    severities,
    snapshot_of,
    topic,
)

NOT_READ, LOCKS, FELL_BACK = "MASTER_GONE_NOT_READ", "MASTER_GONE_LOCKS", "OFFSETS_FELL_BACK"
ORDERLY = GroupSettings(ordered=True)


def down(at: float = 100, detail: str | None = "REFUSED") -> Event:
    return event("MASTER_DOWN", at, broker_name="a", detail=detail)


def up(at: float = 400) -> Event:
    return event("MASTER_UP", at, broker_name="a")


def test_queues_that_no_member_could_read() -> None:
    group = snapshot_of(topic(), join("x"), down(), up())
    (found,) = findings_of(NOT_READ, group)
    assert "4 queues of a could not be read for 5 min" in found.summary
    assert (found.first_ms, found.last_ms) == (ms(100), ms(400))
    assert severities(NOT_READ, group) == ["WARNING"]


def test_how_long_it_was_gone_is_not_known_by_a_dump_that_has_it_again() -> None:
    group = snapshot_of(topic(), join("x"), down(), join("y", at=200), up(), settings=ORDERLY)
    stops = {"a": ALWAYS.put(ms(100), ms(400) + 1, return_unlogged("a", ms(100)))}
    other = {"b": stops["a"]}
    for rule_id in (NOT_READ, LOCKS):
        (found,) = findings_of(rule_id, group)
        for run, known in ((stops, False), (other, True)):
            of_run = replace(group, run=replace(group.run, stops=run))
            reads = rules_by_id()[rule_id].reads
            assert all(gap_of(of_run, one, found) is None for one in reads) is known


def test_queues_without_an_owner_are_uncertain_where_a_master_may_be_back() -> None:
    group = snapshot_of(topic(), join("x"), down(), join("y", at=200), settings=ORDERLY)
    found = findings_of("ORPHAN_QUEUES", group)
    assert found
    stops = {"a": ALWAYS.put(ms(100), EVER_MS, return_unlogged("a", ms(100)))}
    for run, known in ((stops, False), ({"b": stops["a"]}, True)):
        of_run = replace(group, run=replace(group.run, stops=run))
        reads = rules_by_id()["ORPHAN_QUEUES"].reads
        assert all(gap_of(of_run, one, found[0]) is None for one in reads) is known


def test_a_master_that_is_still_gone_is_an_error_with_its_backlog() -> None:
    group = snapshot_of(
        topic(read=1), join("x"), down(), ends=[end(0, 50)], commits=[commit(0, 20)]
    )
    (found,) = findings_of(NOT_READ, group)
    assert "30 messages unread" in found.summary
    assert (found.last_ms, severities(NOT_READ, group)) == (None, ["ERROR"])


@pytest.mark.parametrize("mode", ["SLAVE_READ", "ACTING", None])
def test_slaves_that_are_or_may_be_read_are_no_finding(mode: str | None) -> None:
    assert findings_of(NOT_READ, snapshot_of(topic(), join("x"), down(detail=mode), up())) == []


def test_queues_without_a_member_have_no_owner() -> None:
    assert findings_of(NOT_READ, snapshot_of(topic(), down(), up(), join("x", at=500))) == []


def test_orderly_queues_that_moved_without_a_master() -> None:
    group = snapshot_of(topic(), join("x"), down(), join("y", at=200), up(), settings=ORDERLY)
    (found,) = findings_of(LOCKS, group)
    assert found.summary.startswith("2 orderly queues of a moved")
    assert severities(LOCKS, group) == ["WARNING"]
    lasting = snapshot_of(topic(), join("x"), down(), join("y", at=200), settings=ORDERLY)
    assert severities(LOCKS, lasting) == ["ERROR"]
    unknown = snapshot_of(
        topic(), join("x"), down(detail=None), join("y", at=200), settings=ORDERLY
    )
    assert "which no file shows" in findings_of(LOCKS, unknown)[0].summary


@pytest.mark.parametrize(
    ("mode", "settings", "moves"),
    [("ACTING", ORDERLY, True), ("REFUSED", GroupSettings(), True), ("REFUSED", ORDERLY, False)],
)
def test_locks_that_no_member_missed(mode: str, settings: GroupSettings, moves: bool) -> None:
    moved = [join("y", at=200)] if moves else []
    group = snapshot_of(topic(), join("x"), down(detail=mode), *moved, up(), settings=settings)
    assert findings_of(LOCKS, group) == []


@pytest.mark.parametrize(
    ("commits", "fell"),
    [
        ([commit(0, 42, 350), commit(0, 16, 420)], 26),  # the master that is back
        ([commit(0, 42, 90), commit(0, 30, 110)], 12),  # the slave's older copy
        ([commit(0, 42, 350), commit(0, 43, 420)], 0),
        ([commit(0, 42, 600), commit(0, 16, 700)], 0),  # later, and so by something else
    ],
)
def test_offsets_that_fell_with_the_role(commits: list[Any], fell: int) -> None:
    group = snapshot_of(topic(read=1), join("x"), down(detail="SLAVE_READ"), up(), commits=commits)
    found = findings_of(FELL_BACK, group)
    assert [one.evidence["messages"] for one in found] == ([fell] if fell else [])
    by_something_else = findings_of("OFFSET_ROLLBACK", group)
    assert bool(by_something_else) == (commits[0]["observed_ms"] == ms(600))


@pytest.mark.parametrize("up_s", [100.001, 101.999])
def test_a_switch_within_two_seconds_is_no_time_without_a_master(up_s: float) -> None:
    switch = down(100), up(up_s)
    group = snapshot_of(
        topic(read=1), join("x"), *switch, commits=[commit(0, 42, 90), commit(0, 30, 130)]
    )
    assert findings_of(NOT_READ, group) == []
    assert findings_of(NOT_READ, snapshot_of(topic(read=1), join("x"), down(100), up(102)))
    (fell,) = findings_of(FELL_BACK, group)
    assert "from 42 to 30" in fell.summary
    assert findings_of("OFFSET_ROLLBACK", group) == []


def test_a_copy_that_is_older_than_a_slave_s_is_a_warning() -> None:
    """RocketMQ 5 copies offsets each minute, 4 and DLedger each 10 s."""
    switch = topic(read=1), join("x"), down(100), up(100.001)
    expected = [(30, "5.3.3", "WARNING"), (60, "5.3.3", "INFO"), (60, "4.8.0", "WARNING")]
    for seen, version, severity in expected:
        group = snapshot_of(*switch, commits=[commit(0, 42, seen), commit(0, 30, 130)])
        group = replace(group, run=replace(group.run, versions={"a": version}))
        assert severities(FELL_BACK, group) == [severity]
        elected = replace(group, run=replace(group.run, elected=frozenset("a")))
        assert severities(FELL_BACK, elected) == ["WARNING"]
