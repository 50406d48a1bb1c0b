"""RESET_NOT_KEPT: a reset that a broker took and that no later commit shows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.model.group_settings import GroupSettings
from tests.unit.audit.snapshots import (
    Row,
    commit,
    fact,
    findings_of,
    join,
    ms,
    severities,
    snapshot_of,
    topic,
)

OFFSET_ROLLBACK = "OFFSET_ROLLBACK"
TWO = topic(), join("x"), join("y")


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
        "g",
        "T",
        "a",
        2,
    )
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


def asked(at: float, name: str = "T") -> Row:
    return fact("RESET_ASKED", at, topic=name, broker_name="a")


GRPC = GroupSettings(rebalance_mode="PROXY")


def test_a_reset_that_was_left_to_grpc_clients_has_no_effect() -> None:
    """AdminBrokerProcessor.resetOffset to 5.1.4; ProxyChannel has no case for the request."""
    group = snapshot_of(topic(), join("x"), settings=GRPC, facts=[asked(500), asked(600)])
    (one,) = findings_of(RESET_NOT_KEPT, group)
    assert (one.topic, one.broker_name, one.first_ms, one.last_ms) == ("T", "a", ms(500), ms(600))
    assert one.evidence["reason"] == "left to gRPC clients"
    assert severities(RESET_NOT_KEPT, group) == ["WARNING"]
    later = snapshot_of(topic(), join("x"), settings=GRPC, facts=[asked(500), reset(700, 9)])
    (over,) = findings_of(RESET_NOT_KEPT, later)
    assert (over.last_ms, over.ended_by) == (ms(700), "a later reset took effect")


@pytest.mark.parametrize(
    ("settings", "facts", "own"),
    [
        (GRPC, [asked(500), reset(500, 9)], {}),
        (GRPC, [asked(500, "other")], {}),
        (GRPC, [asked(5)], {}),
        (GroupSettings(), [asked(500)], {}),
        (GRPC, [asked(500)], {"rebalance_mode": "CLIENT"}),
    ],
)
def test_a_reset_that_the_broker_keeps_or_a_client_takes(
    settings: GroupSettings, facts: list[Row], own: dict[str, Any]
) -> None:
    members = join("x"), join("y", **own)
    group = snapshot_of(topic(), *members, settings=settings, facts=facts)
    assert findings_of(RESET_NOT_KEPT, group) == []


def test_a_broker_does_not_know_the_clients_of_a_proxy_of_its_own() -> None:
    group = snapshot_of(topic(), join("x"), settings=GRPC, facts=[asked(500)])
    behind = replace(group, run=replace(group.run, proxies=frozenset({"proxy-1"})))
    assert findings_of(RESET_NOT_KEPT, behind) == []
