"""Offsets and groups that nobody uses."""

from dataclasses import replace
from typing import Any

import pytest

from rebalance_core.audit.coverage import Coverage, LogSpan
from rebalance_core.audit.findings import run_rules
from rebalance_core.audit.known_issues import KNOWN
from rebalance_core.audit.rules import rules_by_id
from rebalance_core.model.events import CONSUMER_LOST, EXPIRED, REQUEST_MODE, TOPIC_DELETED, Event
from rebalance_core.model.times import utc
from tests.unit.audit.snapshots import (
    Row,
    broker_logs,
    client_logs,
    commit,
    end,
    event,
    fact,
    findings_of,
    join,
    judge_cluster,
    leave,
    listed_at,
    ms,
    of_member,
    severities,
    snapshot_of,
    topic,
)

LEFTOVER, OFFLINE = "LEFTOVER_OFFSETS", "OFFLINE_WITH_LAG"
CONFIG = fact("GROUP_CONFIG", 0, 1000, broker_name="a")
GONE = topic(), join("x"), leave("x", 100)
BEHIND: dict[str, Any] = {"commits": [commit(0, 4)], "ends": [end(0, 9)]}


def test_offsets_of_a_group_that_was_deleted() -> None:
    deleted = fact("GROUP_DELETED", 200, broker_name="a")
    group = snapshot_of(*GONE, facts=[deleted], **BEHIND)
    (one,) = findings_of(LEFTOVER, group)
    assert "keeps its offsets of 1 queue of T" in one.summary
    assert findings_of(OFFLINE, group) == []


@pytest.mark.parametrize("rule", [OFFLINE, LEFTOVER])
def test_no_remedy_deletes_before_whole_logs_show_a_day_without_clients(rule: str) -> None:
    def remedy(days: float, missing: float = 0) -> str:
        until = 100 + days * 86_400
        config = fact("GROUP_CONFIG", 0, until, broker_name="a")
        if rule == LEFTOVER:
            config = fact("GROUP_DELETED", 200, broker_name="a")
        ends, commits = [end(0, 9, at=until)], [commit(0, 4, at=until)]
        group = snapshot_of(*GONE, facts=[config], until=until, ends=ends, commits=commits)
        spans = (
            LogSpan(0, ms(40_000), from_start=True),
            LogSpan(ms(40_000 + missing), ms(until), from_start=False),
        )
        covered = Coverage(broker_logs(a=spans), known=True)
        (one,) = findings_of(rule, replace(group, run=replace(group.run, coverage=covered)))
        return one.remedy or rules_by_id()[rule].remedy

    assert "deleteSubGroup" in remedy(1.1)
    assert "deleteSubGroup" not in remedy(0.9)
    assert "deleteSubGroup" not in remedy(1.1, missing=3_600)


def test_what_servers_went_through_when_the_last_member_went_is_named() -> None:
    lost = of_member(CONSUMER_LOST, "x", 100)
    group = snapshot_of(topic(), join("x"), lost, facts=[CONFIG], **BEHIND)
    starts = [fact("PROXY_STARTED", at, proxy="p1") for at in (-500, 100, 101)]
    run, _ = judge_cluster(starts)
    run = replace(group.run, moments=run.moments, proxies=run.proxies)
    (one,) = findings_of(OFFLINE, replace(group, run=run))
    when = utc(ms(100))
    assert f"(brokers lost x; within 30 s: p1 restarted at {when})" in one.summary
    assert "delete nothing" in (one.remedy or "")


@pytest.mark.parametrize(
    ("language", "mode", "starts", "known"),
    [
        ("GO", "PROXY", (-500, 100), "apache/rocketmq-clients#1137, client GO"),
        ("JAVA", "PROXY", (-500, 100), ""),
        ("GO", "CLIENT", (-500, 100), ""),
        ("GO", "PROXY", (-500, 300), ""),
    ],
)
def test_go_clients_that_a_restarted_proxy_does_not_know(
    language: str, mode: str, starts: tuple[int, ...], known: str
) -> None:
    lost = of_member(CONSUMER_LOST, "x", 100)
    members = listed_at("a", 50, "x", language=language)
    happened = (topic(), join("x", rebalance_mode=mode), lost)
    group = snapshot_of(*happened, facts=[CONFIG], members=members, **BEHIND)
    run, _ = judge_cluster([fact("PROXY_STARTED", at, proxy="p1") for at in starts])
    run = replace(group.run, moments=run.moments, proxies=run.proxies)
    rows = run_rules(replace(group, run=run))["findings"]
    (row,) = (row for row in rows if row["rule_id"] == "OFFLINE_WITH_LAG")
    assert row["evidence"].get(KNOWN, "") == known


def test_how_a_group_that_is_offline_ended() -> None:
    def ended(*events: Event) -> dict[str, str]:
        group = snapshot_of(topic(), *events, facts=[CONFIG], **BEHIND)
        (one,) = findings_of(OFFLINE, group)
        return {
            name: str(one.evidence[name]) for name in ("ended", "popped") if name in one.evidence
        }

    lost = of_member(CONSUMER_LOST, "x", 100)
    assert ended(join("x"), replace(lost, detail=EXPIRED)) == {"ended": EXPIRED}
    assert ended(join("x"), lost) == ended(join("x"), leave("x", 100)) == {}
    mode = event(REQUEST_MODE, -5, topic="T", broker_name="a", detail="POP(share_queue_num=1)")
    popping = join("x", rebalance_mode="BROKER")
    assert ended(mode, popping, leave("x", 100)) == {"popped": "T"}


def test_a_lag_of_what_was_popped_is_known_only_where_no_message_came_since() -> None:
    """apache/rocketmq#10949 is a lag that stays: one that grows is unread."""
    mode = event(REQUEST_MODE, -5, topic="T", broker_name="a", detail="POP(share_queue_num=1)")

    def known(*ends: Row) -> bool:
        group = snapshot_of(
            topic(),
            mode,
            join("x", rebalance_mode="BROKER"),
            leave("x", 100),
            facts=[CONFIG],
            commits=[commit(0, 4)],
            ends=ends,
        )
        (one,) = findings_of(OFFLINE, group)
        return "ends" in one.evidence

    assert known(end(0, 9, at=90), end(0, 9, at=900))
    assert known(end(0, 7, at=50), end(0, 9, at=90), end(0, 9, at=900))
    assert not known(end(0, 9, at=90), end(0, 369, at=900))
    assert not known(end(0, 9, at=900))


def test_a_configured_group_and_a_store_that_was_not_collected() -> None:
    assert findings_of(LEFTOVER, snapshot_of(*GONE, facts=[CONFIG], **BEHIND)) == []
    assert findings_of(LEFTOVER, snapshot_of(*GONE, stores=(), **BEHIND)) == []


def test_offsets_that_the_newest_copy_of_the_store_lacks_were_removed() -> None:
    """That they are gone shows only where the offset was last seen in a copy of that store."""

    def left(*copies: float, seen: float = 500, broker: str = "a") -> int:
        group = snapshot_of(topic(), join("x"), facts=[CONFIG], commits=[commit(7, 4, at=seen)])
        coverage = Coverage(offset_stores={broker: tuple(ms(at) for at in copies)})
        return len(findings_of(LEFTOVER, replace(group, run=replace(group.run, coverage=coverage))))

    assert left(500, 900) == 0
    assert left() == left(500) == left(500, 520) == 1
    assert left(500, 900, broker="b") == 1
    assert left(500, 900, seen=550) == 1  # a broker's line, or another store


def test_offsets_of_a_deleted_topic() -> None:
    deleted = event(TOPIC_DELETED, 300, topic="T", broker_name="a")
    group = snapshot_of(topic(), join("x"), deleted, facts=[CONFIG], commits=[commit(0, 4)])
    assert "the topic was deleted there" in findings_of(LEFTOVER, group)[0].summary
    before = snapshot_of(
        topic(), join("x"), deleted, facts=[CONFIG], commits=[commit(0, 4, at=250)]
    )
    assert findings_of(LEFTOVER, before) == []


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("4.9.4", 1),
        ("5.1.4", 0),
        (None, 1),
        ("4.8.0", 1),
        ("3.0.0.BETA1", 1),
        ("5.3.4.SNAPSHOT", 0),
        ("HIGHER.VERSION", 0),
        ("-", 1),
    ],
)
def test_what_clients_commit_of_a_deleted_topic_5_x_brokers_refuse(
    version: str | None, found: int
) -> None:
    deleted = event(TOPIC_DELETED, 300, topic="T", broker_name="a")
    commits = [commit(0, 4, at=250), commit(0, 4, client="x")]
    group = snapshot_of(topic(), join("x"), deleted, facts=[CONFIG], commits=commits)
    versions = {} if version is None else {"a": version}
    group = replace(group, run=replace(group.run, versions=versions))
    assert len(findings_of(LEFTOVER, group)) == found


def test_queues_beyond_those_of_the_topic() -> None:
    extra: dict[str, Any] = {"facts": [CONFIG], "commits": [commit(7, 4)]}
    assert severities(LEFTOVER, snapshot_of(topic(), join("x"), **extra)) == ["WARNING"]
    scaled_in = topic(read=8), join("x"), topic(read=4, at=300)
    assert severities(LEFTOVER, snapshot_of(*scaled_in, **extra)) == ["INFO"]
    inside: dict[str, Any] = {"facts": [CONFIG], "commits": [commit(3, 4)]}
    assert findings_of(LEFTOVER, snapshot_of(topic(), join("x"), **inside)) == []


def test_no_member_reads_and_messages_wait() -> None:
    (one,) = findings_of(OFFLINE, snapshot_of(*GONE, facts=[CONFIG], **BEHIND))
    assert "5 messages unread: T 5" in one.summary


def test_what_brokers_deleted_while_no_member_read_is_stated() -> None:
    ends = [end(0, 1000, 950)]
    (one,) = findings_of(OFFLINE, snapshot_of(*GONE, facts=[CONFIG], **BEHIND | {"ends": ends}))
    offset = BEHIND["commits"][0]["committed_offset"]
    assert "50 messages unread: T 50" in one.summary
    assert one.summary.endswith(f"before the group committed them: T a:0 {offset} to 949.")
    assert one.evidence["deleted_unread"] == 950 - offset


@pytest.mark.parametrize(
    "later", [topic(read=9, at=990), topic(broker="b", at=990)], ids=["queues", "broker"]
)
def test_a_group_is_offline_since_its_last_member_whatever_changes_later(later: Event) -> None:
    snapshot = snapshot_of(*GONE, later, facts=[CONFIG], **BEHIND)
    assert [row["from_ms"] for row in snapshot.epochs[-2:]] == [ms(100), ms(990)]
    (finding,) = findings_of(OFFLINE, snapshot)
    assert (finding.first_ms, finding.severity) == (ms(100), None)


def test_what_was_committed_long_before_all_went_does_not_tell_what_is_left() -> None:
    gone = topic(), join("x"), leave("x", 500)
    lost = topic(), join("x"), replace(of_member(CONSUMER_LOST, "x", 500), detail=EXPIRED)
    for events, at, severity in (
        (gone, 480, "INFO"),
        (gone, 495, "WARNING"),
        (lost, 380, "WARNING"),
        (lost, 300, "INFO"),
    ):
        own: dict[str, Any] = {"commits": [commit(0, 4, at=at)], "ends": [end(0, 9)]}
        assert severities(OFFLINE, snapshot_of(*events, facts=[CONFIG], **own)) == [severity]


def test_offline_without_lag_just_gone_or_online() -> None:
    done: dict[str, Any] = {"facts": [CONFIG], "commits": [commit(0, 9)], "ends": [end(0, 9)]}
    assert findings_of(OFFLINE, snapshot_of(*GONE, **done)) == []
    just = topic(), join("x"), leave("x", 999)
    assert findings_of(OFFLINE, snapshot_of(*just, facts=[CONFIG], **BEHIND)) == []
    while_ago = topic(), join("x"), leave("x", 970)
    assert severities(OFFLINE, snapshot_of(*while_ago, facts=[CONFIG], **BEHIND)) == ["INFO"]
    assert findings_of(OFFLINE, snapshot_of(*GONE[:2], facts=[CONFIG], **BEHIND)) == []


def test_the_end_of_an_absence_is_shown_with_what_waited_until_members_came_back() -> None:
    gone = topic(), join("x"), leave("x", 300)
    waited: dict[str, Any] = {"commits": [commit(0, 4, at=299)], "ends": [end(0, 9, at=500)]}
    (finding,) = findings_of(OFFLINE, snapshot_of(*gone, join("y", at=600), **waited))
    assert (finding.first_ms, finding.last_ms) == (ms(300), ms(600))
    assert "at least 5 messages unread: T 5" in finding.summary
    assert finding.ended_by == "members joined"
    assert severities(OFFLINE, snapshot_of(*gone, join("y", at=600), **waited)) == ["INFO"]

    read: dict[str, Any] = {"commits": [commit(0, 9, at=299)], "ends": [end(0, 9, at=500)]}
    assert findings_of(OFFLINE, snapshot_of(*gone, join("y", at=600), **read)) == []
    assert findings_of(OFFLINE, snapshot_of(*gone, join("y", at=350), **waited)) == []
    brokers_came = topic(broker="b", at=400), join("y", at=600)
    (longer,) = findings_of(OFFLINE, snapshot_of(*gone, *brokers_came, **waited))
    assert longer.first_ms == ms(300)


def test_an_absence_that_the_logs_do_not_cover_has_no_end() -> None:
    gone = topic(), join("x"), leave("x", 300), join("y", at=600)
    waited: dict[str, Any] = {"commits": [commit(0, 4, at=299)], "ends": [end(0, 9, at=500)]}
    spans = LogSpan(ms(0), ms(400), True), LogSpan(ms(550), ms(1000), False)
    whole = replace(snapshot_of(*gone, **waited))
    coverage = Coverage(broker_logs(a=spans), known=True)
    cut = replace(whole, run=replace(whole.run, coverage=coverage))
    assert len(findings_of(OFFLINE, whole)) == 1
    assert findings_of(OFFLINE, cut) == []


def test_a_group_that_was_never_online() -> None:
    no_member = fact("GROUP_AT_BROKER", 900, broker_name="a", members=0)
    assert severities(OFFLINE, snapshot_of(topic(), facts=[CONFIG, no_member], **BEHIND)) == [
        "WARNING"
    ]
    assert severities(OFFLINE, snapshot_of(topic(), facts=[CONFIG], **BEHIND)) == ["INFO"]


def test_who_commits_and_never_came_by_any_line_may_run_on() -> None:
    no_member = fact("GROUP_AT_BROKER", 900, broker_name="a", members=0)
    own: dict[str, Any] = {"commits": [commit(0, 4, client="x")], "ends": [end(0, 9)]}
    assert severities(OFFLINE, snapshot_of(topic(), facts=[CONFIG, no_member], **own)) == ["INFO"]


def test_the_difference_that_consumer_progress_prints_is_enough() -> None:
    def behind(*offsets: int, **own: Any) -> Row:
        where: Row = {"topic": "T", "broker_name": "a", "queue_id": 0}
        told = dict(zip(("broker_offset", "consumer_offset"), offsets, strict=True))
        return fact("QUEUE_PROGRESS", 900, **where, **told, **own)

    def severity(*facts: Row) -> list[str]:
        return severities(OFFLINE, snapshot_of(*GONE, facts=[CONFIG, *facts]))

    assert severity(behind(2009, 9)) == ["WARNING"]
    assert severity(behind(9, 9)) == severity(behind(9, 12)) == severity() == []
    assert severity(behind(2009, 9, names_cut=True)) == []
    made: dict[str, Any] = {"ends": [end(0, 0, at=5)]}  # the topic was new then
    assert severities(OFFLINE, snapshot_of(*GONE, facts=[CONFIG, behind(2009, 9)], **made))
    absent = fact("NOT_ONLINE", 900, broker_name="a")
    alone = snapshot_of(topic(), facts=[CONFIG, behind(2009, 9), absent])
    assert severities(OFFLINE, alone) == ["WARNING"]


MISSING, BACK = "GROUP_NOT_CONFIGURED", "GROUP_CAME_BACK"
ONE = topic(), join("x")


def test_members_of_a_group_that_no_broker_knows() -> None:
    (one,) = findings_of(MISSING, snapshot_of(*ONE))
    assert "none of a, which have its topics" in one.summary


def test_clients_that_no_broker_lists() -> None:
    asked = fact("NO_MEMBER_LIST", 100, 990, 90, topic="T", client_id="x")
    group = snapshot_of(topic(), facts=[asked])
    assert severities(MISSING, group) == ["ERROR"]


def test_a_client_whose_log_goes_on_without_the_group_was_mended() -> None:
    asked = fact("NO_MEMBER_LIST", 100, 600, 25, topic="T", client_id="x", log="app")
    for until, severity in ((900, "INFO"), (620, "ERROR")):
        log = [LogSpan(ms(0), ms(until), from_start=True)]
        group = snapshot_of(topic(), facts=[asked])
        run = replace(group.run, coverage=Coverage(known=True, clients=client_logs(app=log)))
        assert severities(MISSING, replace(group, run=run)) == [severity]


def test_a_client_whose_log_ended_before_the_collection_may_have_stopped() -> None:
    for client_id, host in (("x", "x"), (None, "app")):
        asked = fact("NO_MEMBER_LIST", 100, 600, 25, topic="T", client_id=client_id, log="app")
        dumped = fact("DUMP", 990, command="consumerConnection")
        for until, sure in ((990, True), (941, True), (939, False)):
            last = asked | {"last_ms": ms(until)}
            (one,) = findings_of(MISSING, snapshot_of(topic(), facts=[last, dumped]))
            assert (one.unknown is None) == sure, until
        assert one.unknown is not None
        assert f"no file shows {host} as a client of the group after" in one.unknown.why


def test_configured_not_collected_or_just_begun() -> None:
    assert findings_of(MISSING, snapshot_of(*ONE, facts=[CONFIG])) == []
    assert findings_of(MISSING, snapshot_of(*ONE, stores=("b",))) == []
    assert findings_of(MISSING, snapshot_of(topic(), join("x", at=990))) == []


def deleted(at: float = 300) -> Row:
    return fact("GROUP_DELETED", at, broker_name="a")


def test_a_group_that_came_back_by_itself() -> None:
    again = fact("GROUP_CREATED", 301, broker_name="a", by="auto")
    (one,) = findings_of(BACK, snapshot_of(*ONE, facts=[deleted(), again]))
    assert "is back on a" in one.summary
    assert severities(BACK, snapshot_of(*ONE, facts=[deleted(), CONFIG])) == ["WARNING"]


def test_only_what_was_set_up_after_it_came_back_on_every_broker_is_meant() -> None:
    both = topic(), topic(broker="b"), join("x")
    facts = [fact("GROUP_DELETED", 300, broker_name=name) for name in "ab"]
    facts += [fact("GROUP_CREATED", 400, broker_name=name, by="auto") for name in "ab"]
    for brokers, at, severity in (
        ("ab", 500, "INFO"),
        ("a", 500, "WARNING"),
        ("ab", 350, "WARNING"),
    ):
        set_up = [fact("GROUP_UPDATED", at, broker_name=name) for name in brokers]
        assert severities(BACK, snapshot_of(*both, facts=[*facts, *set_up])) == [severity]


def test_created_by_hand_or_gone_for_good() -> None:
    again = fact("GROUP_CREATED", 400, broker_name="a", by="admin")
    assert severities(BACK, snapshot_of(*ONE, facts=[deleted(), again])) == ["INFO"]
    assert findings_of(BACK, snapshot_of(*ONE, facts=[deleted()])) == []
    before = fact("GROUP_CREATED", 100, broker_name="a", by="auto")
    assert findings_of(BACK, snapshot_of(*ONE, facts=[before, deleted()])) == []
