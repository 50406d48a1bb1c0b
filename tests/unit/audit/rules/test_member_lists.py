"""Lists of members that differ, and members that nobody saw."""

from dataclasses import replace
from typing import Any

import pytest

from rebalance_core.audit.coverage import Coverage, LogSpan
from rebalance_core.audit.group_snapshot import GroupSnapshot, RefusedHeartbeat
from rebalance_core.audit.rules import rules_by_id
from rebalance_core.model.events import (
    BROKER_DOWN,
    BROKER_UP,
    CONSUMER_JOIN,
    CONSUMER_LOST,
    EXPIRED,
    Event,
)
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

DIFFER, NOT_LISTED, NO_LIST = "MEMBER_LISTS_DIFFER", "NOT_IN_MEMBER_LIST", "NO_MEMBER_LIST"
TWO = topic(), topic(broker="b"), join("x"), join("y")
SHORT = [*listed_at("a", 500, "x", "y"), *listed_at("b", 501, "x")]


def test_a_member_that_one_broker_does_not_know() -> None:
    (one,) = findings_of(DIFFER, snapshot_of(*TWO, members=SHORT))
    assert (one.broker_name, one.client_id) == ("b", "y")
    assert severities(DIFFER, snapshot_of(*TWO, members=SHORT)) == ["ERROR"]


def test_a_broker_that_reports_that_no_member_is_online() -> None:
    empty = fact("GROUP_AT_BROKER", 501, broker_name="b", members=0)
    said = fact("NOT_ONLINE", 501, broker_name="b")
    members = listed_at("a", 500, "x", "y")
    (one,) = findings_of(DIFFER, snapshot_of(*TWO, members=members, facts=[empty, said]))
    assert "b does not list 2 members" in one.summary


def test_an_output_without_a_word_where_others_list_members_may_be_a_failure() -> None:
    empty = fact("GROUP_AT_BROKER", 501, broker_name="b", members=0)
    members = listed_at("a", 500, "x", "y")
    assert findings_of(DIFFER, snapshot_of(*TWO, members=members, facts=[empty])) == []


def test_a_broker_without_a_topic_of_the_group() -> None:
    alone = topic(), join("x"), join("y")
    assert findings_of(DIFFER, snapshot_of(*alone, members=SHORT)) == []


def test_equal_lists_and_dumps_at_different_times() -> None:
    same = [*listed_at("a", 500, "x", "y"), *listed_at("b", 501, "y", "x")]
    assert findings_of(DIFFER, snapshot_of(*TWO, members=same)) == []
    apart = [*listed_at("a", 300, "x", "y"), *listed_at("b", 501, "x")]
    assert findings_of(DIFFER, snapshot_of(*TWO, members=apart)) == []


def test_in_the_window_of_a_join_or_a_broker_s_return() -> None:
    late = topic(), topic(broker="b"), join("x"), join("y", at=490)
    assert findings_of(DIFFER, snapshot_of(*late, members=SHORT)) == []
    back = event(BROKER_DOWN, 200, broker_name="b"), event(BROKER_UP, 460, broker_name="b")
    assert findings_of(DIFFER, snapshot_of(*TWO, *back, members=SHORT)) == []


def test_lists_that_are_equal_again() -> None:
    same = [*listed_at("a", 800, "x", "y"), *listed_at("b", 801, "x", "y")]
    assert severities(DIFFER, snapshot_of(*TWO, members=[*SHORT, *same])) == ["INFO"]


def test_a_list_that_still_has_who_left_is_stale() -> None:
    """The broker dropped the event; who unregistered at another one is gone."""
    left = snapshot_of(*TWO, leave("y", 440), members=SHORT)
    (one,) = findings_of(DIFFER, left)
    assert severities(DIFFER, left) == ["ERROR"]
    assert (one.broker_name, one.client_id, one.first_ms) == ("a", "y", ms(440))
    assert f"by {utc(ms(440 + 130))}" in one.summary
    assert "overloaded" not in one.summary
    busy = replace(left, run=replace(left.run, overloads={"a": ((ms(442), ms(450)),)}))
    assert "it is overloaded" in findings_of(DIFFER, busy)[0].summary
    later = [*SHORT, *listed_at("a", 800, "x"), *listed_at("b", 801, "x")]
    assert severities(DIFFER, snapshot_of(*TWO, leave("y", 440), members=later)) == ["INFO"]
    # a list of the very moment, or one that all brokers share, is no finding
    assert findings_of(DIFFER, snapshot_of(*TWO, leave("y", 498), members=SHORT)) == []
    both = [*listed_at("a", 500, "x", "y"), *listed_at("b", 501, "x", "y")]
    assert findings_of(DIFFER, snapshot_of(*TWO, leave("y", 440), members=both)) == []


def test_a_connection_that_one_broker_saw_close() -> None:
    def closed(at: float, broker: str = "b", *commits: Row) -> str:
        seen = fact("CONNECTION_CLOSED", at, broker_name=broker, client_id="y")
        group = snapshot_of(*TWO, members=SHORT, facts=[seen], commits=commits)
        (one,) = findings_of(DIFFER, group)
        return str(one.broker_name)

    assert closed(440) == "a", "it is gone, and a does not know yet"
    assert closed(480) == "b", "it may connect again"
    assert closed(300) == "b", "a has heard of it since"
    assert closed(440, "a") == "b", "a lists it again"
    assert closed(440, "b", commit(0, 5, at=490, client="y")) == "b", "it lives"


def test_a_client_that_was_not_in_its_list() -> None:
    def said(at: float) -> GroupSnapshot:
        return snapshot_of(*TWO, facts=[fact("NOT_IN_MEMBER_LIST", at, client_id="x", listed="y")])

    assert severities(NOT_LISTED, said(600)) == ["WARNING"]
    assert severities(NOT_LISTED, said(60)) == ["INFO"]
    assert "CONSUMER_JOIN of x, y at" in findings_of(NOT_LISTED, said(60))[0].summary


def test_members_missing_from_their_lists_are_one_finding_a_group() -> None:
    def missed(*said: tuple[str, float]) -> GroupSnapshot:
        return snapshot_of(
            *TWO, facts=[fact("NOT_IN_MEMBER_LIST", at, client_id=who) for who, at in said]
        )

    (one,) = findings_of(NOT_LISTED, missed(("x", 600), ("y", 700)))
    assert one.summary.startswith("x, y did not find themselves in the member list")
    assert "2 times" in one.summary
    assert one.client_id is None
    (one,) = findings_of(NOT_LISTED, missed(("x", 60), ("y", 700)))  # a join explains x's
    assert (one.severity, one.client_id) == ("WARNING", "y")
    assert "1 time " in one.summary


def test_no_list_for_long_or_for_a_moment() -> None:
    def refused(at: float, until: float, times: int) -> GroupSnapshot:
        return snapshot_of(*TWO, facts=[fact(NO_LIST, at, until, times, topic="T", client_id="x")])

    assert severities(NO_LIST, refused(300, 700, 20)) == ["WARNING"]
    assert severities(NO_LIST, refused(300, 340, 2)) == ["INFO"]
    assert severities(NO_LIST, refused(300, 590, 2)) == ["INFO"]  # two moments, not a long time
    assert findings_of(NO_LIST, refused(12, 20, 2)) == []  # a join explains it


def test_a_retry_topic_that_does_not_exist() -> None:
    def refused(*also: Event) -> GroupSnapshot:
        unreported = fact(NO_LIST, 300, 700, 20, topic="%RETRY%g", client_id="x")
        return snapshot_of(*TWO, *also, facts=[unreported])

    assert findings_of(NO_LIST, refused()) == []
    assert severities(NO_LIST, refused(topic("%RETRY%g"))) == ["WARNING"]


def test_a_member_that_the_broker_gave_up_itself() -> None:
    """Its own scan says why its list is short: other brokers go on listing the member."""
    lost = event(CONSUMER_LOST, 100, "y", broker_name="b", detail=EXPIRED)
    back = event(CONSUMER_JOIN, 130, "y", broker_name="b")
    plain, gave_up, again = (
        findings_of(DIFFER, snapshot_of(*TWO, *events, members=SHORT))[0]
        for events in ((), (lost,), (lost, back))
    )
    assert plain.summary.startswith("b does not list 1 member")
    assert gave_up.summary.startswith("b expired 1 member that other brokers still list")
    assert "heartbeatBrokerInterval" in (gave_up.remedy or "")
    assert again.summary == plain.summary


RULE, UNLISTED, OFFLINE = "PROXY_GROUP_UNSEEN", "RUNNING_NOT_LISTED", "OFFLINE_WITH_LAG"
DENIED = [
    fact("NOT_ONLINE", 500, broker_name="a"),
    fact("GROUP_AT_BROKER", 500, broker_name="a", members=0),
]


def commits(*offsets: int, name: str = "T", client: str | None = None) -> list[Row]:
    return [
        commit(0, offset, at=100 * number, name=name, client=client)
        for number, offset in enumerate(offsets, 1)
    ]


def unseen(
    *rows: Row, facts: list[Row] = DENIED, members: list[Row] | None = None
) -> GroupSnapshot:
    return snapshot_of(
        topic(), facts=facts, commits=rows, ends=[end(0, 500)], stores=(), members=members or ()
    )


def test_offsets_that_advance_with_no_member_there() -> None:
    group = unseen(*commits(10, 20, 30))
    (one,) = findings_of(RULE, group)
    assert severities(RULE, group) == ["WARNING"]
    assert "Offsets of 1 queue of T advanced" in one.summary
    assert "a answered that no member is online" in one.summary
    assert findings_of("OFFLINE_WITH_LAG", group) == []


def test_one_step_may_be_a_reset() -> None:
    group = unseen(*commits(10, 20))
    assert severities(RULE, group) == ["INFO"]
    assert severities("OFFLINE_WITH_LAG", group) == ["WARNING"]


def test_a_pop_retry_topic_shows_that_it_pops() -> None:
    group = unseen(*commits(10, 20), *commits(1, 1, name="%RETRY%g_T"))
    assert severities(RULE, group) == ["WARNING"]


def test_dumps_of_progress_count_as_well() -> None:
    progress = [
        fact("QUEUE_PROGRESS", at, topic="T", broker_name="a", queue_id=0, consumer_offset=offset)
        for at, offset in ((150, 12), (250, 25))
    ]
    assert severities(RULE, unseen(*commits(10), facts=[*DENIED, *progress])) == ["WARNING"]


def test_groups_that_stand_still_or_have_members() -> None:
    assert findings_of(RULE, unseen(*commits(10, 10, 10))) == []
    assert findings_of(RULE, unseen(*commits(30, 20, 10))) == []
    assert findings_of(RULE, unseen(*commits(10, 20, 30, client="x"))) == []
    assert findings_of(RULE, unseen(*commits(1, 2, 3, name="SCHEDULE_TOPIC_XXXX"))) == []
    listed = unseen(*commits(10, 20, 30), members=listed_at("a", 300, "x"))
    assert findings_of(RULE, listed) == []
    gone = snapshot_of(topic(), join("x"), leave("x", 400), commits=commits(10, 20, 30))
    assert findings_of(RULE, gone) == []


LOST = of_member(CONSUMER_LOST, "x", 300, detail="EXPIRED")
"""A broker gave the client up."""
CONFIG = fact("GROUP_CONFIG", 0, 1000, broker_name="a")


def given_up(
    *also: Event,
    end_of_it: Event = LOST,
    last: float = 990,
    facts: tuple[Row, ...] = (),
    members: list[Row] | None = None,
) -> GroupSnapshot:
    commits_of_x = [commit(0, 5, at=290, client="x"), commit(0, 6, at=last, client="x")]
    return snapshot_of(
        topic(read=1),
        join("x"),
        end_of_it,
        *also,
        commits=commits_of_x,
        ends=[end(0, 50)],
        facts=(CONFIG, *facts),
        members=members or (),
    )


def test_a_client_that_commits_after_it_was_lost_runs_and_is_not_listed() -> None:
    group = given_up()
    (one,) = findings_of(UNLISTED, group)
    assert severities(UNLISTED, group) == ["ERROR"]
    assert "x keeps running" in one.summary
    assert "44 messages unread" in one.summary
    assert one.client_id == "x"
    assert findings_of(OFFLINE, group) == []


def test_the_log_of_a_client_that_was_lost_goes_on() -> None:
    says = fact("NO_MEMBER_LIST", 310, 985, 30, topic="T", client_id="x")
    assert severities(UNLISTED, given_up(last=295, facts=(says,))) == ["ERROR"]


def test_beside_members_it_reads_what_others_have() -> None:
    assert severities(UNLISTED, given_up(join("y"))) == ["WARNING"]


def test_who_was_lost_and_is_silent_or_left_or_came_back() -> None:
    silent, left = given_up(last=350), given_up(end_of_it=leave("x", 300))
    back, listed = given_up(join("x", at=400)), given_up(members=listed_at("a", 800, "x"))
    for group in (silent, left, back, listed):
        assert findings_of(UNLISTED, group) == []
    assert severities(OFFLINE, silent) == ["WARNING"]


def test_who_went_on_and_stopped_may_still_run() -> None:
    group = given_up(last=600)
    assert severities(UNLISTED, group) == ["INFO"]
    (offline,) = findings_of(OFFLINE, group)
    assert "delete nothing" in str(offline.remedy)


def test_after_the_end_of_a_broker_s_log_nothing_proves_that_it_is_not_listed() -> None:
    group = given_up()
    logs = broker_logs(a=[LogSpan(ms(0), ms(320), from_start=True)])
    ended = replace(group, run=replace(group.run, coverage=Coverage(logs, known=True)))
    assert findings_of(UNLISTED, ended) == []


def test_pulls_that_a_broker_refuses_while_the_group_has_no_member() -> None:
    def refused(at: float, until: float) -> GroupSnapshot:
        return given_up(last=295, facts=(fact("GROUP_NOT_KNOWN", at, until, 20, broker_name="a"),))

    (one,) = findings_of(UNLISTED, refused(940, 997))
    assert "Clients pull for g" in one.summary
    assert "a from" in one.summary
    assert findings_of(OFFLINE, refused(940, 997)) == []
    assert findings_of(UNLISTED, refused(301, 301)) == []  # a pull that the broker still held
    online = snapshot_of(topic(), join("x"), facts=[fact("GROUP_NOT_KNOWN", 940, broker_name="a")])
    assert findings_of(UNLISTED, online) == []
    for torn, severity in ((False, "ERROR"), (True, "INFO")):  # its lines may show members
        log = (LogSpan(0, ms(1_000), from_start=True, torn=torn),)
        group = refused(940, 997)
        run = replace(group.run, coverage=Coverage(broker_logs(a=log), known=True))
        assert severities(UNLISTED, replace(group, run=run)) == [severity]


def no_list(at: float, until: float, **own: Any) -> Row:
    return fact("NO_MEMBER_LIST", at, until, 30, topic="T", log="app", **own)


def failed(reason: str, at: float = 310, until: float = 990, **own: Any) -> Row:
    named = {"request": "PULL", "reason": reason, "address": "", "log": "app"} | own
    return fact("REQUEST_FAILED", at, until, 30, **named)


def test_a_log_that_names_no_client_is_a_sign_of_life_all_the_same() -> None:
    group = given_up(end_of_it=leave("x", 300), last=295, facts=(no_list(290, 990),))
    (one,) = findings_of(UNLISTED, group)
    assert severities(UNLISTED, group) == ["INFO"], "a broker whose log is missing may list it"
    logs = Coverage(broker_logs(a=[LogSpan(0, ms(1_000), from_start=True)]), known=True)
    covered = replace(group, run=replace(group.run, coverage=logs))
    assert severities(UNLISTED, covered) == ["ERROR"]
    assert "the client that writes clients/app keeps running" in one.summary
    assert one.evidence["logs"] == "app"
    assert findings_of(OFFLINE, group) == []


def test_the_log_of_a_client_that_never_was_a_member() -> None:
    group = snapshot_of(
        topic(),
        facts=[CONFIG, failed("CODE 1: no permission")],
        commits=[commit(0, 4, at=5)],
        ends=[end(0, 9)],
    )
    (one,) = findings_of(UNLISTED, group)
    assert "requests fail: CODE 1: no permission" in one.summary
    assert "Do not delete the group" in rules_by_id()[UNLISTED].remedy
    refused = failed("CODE 26: subscription group [g] does not exist")
    unconfigured = snapshot_of(topic(), facts=[no_list(310, 990), refused])
    assert findings_of(UNLISTED, unconfigured) == []
    assert len(findings_of("GROUP_NOT_CONFIGURED", unconfigured)) == 1


def test_what_brokers_answer_to_heartbeats_is_the_reason() -> None:
    group = given_up(end_of_it=leave("x", 300), last=295, facts=(no_list(290, 990),))
    refused = RefusedHeartbeat("1.1.1.1:1", "CODE 1: no permission", ms(980))
    before = refused._replace(reason="CODE 2: busy", last_ms=ms(200))

    def said(**by_log: tuple[RefusedHeartbeat, ...]) -> str:
        run = replace(group.run, heartbeats_refused=by_log)
        (one,) = findings_of(UNLISTED, replace(group, run=run))
        return one.summary

    assert "requests fail: 1.1.1.1:1: CODE 1: no permission" in said(app=(refused, before))
    assert "busy" not in said(app=(refused, before))
    assert "requests fail" not in said(other=(refused,))


def test_a_log_of_a_group_with_members_or_that_ends_with_them_is_none() -> None:
    assert findings_of(UNLISTED, given_up(join("y"), last=295, facts=(no_list(310, 990),))) == []
    soon = given_up(end_of_it=leave("x", 300), last=295, facts=(no_list(290, 380),))
    assert findings_of(UNLISTED, soon) == []
    assert severities(OFFLINE, soon) == ["WARNING"]


@pytest.mark.parametrize(("asked", "old"), [("10.0.0.1:1", True), ("10.0.0.9:1", False)])
def test_a_client_that_asks_an_address_that_its_broker_has_left(asked: str, old: bool) -> None:
    starts = [
        fact("BROKER_STARTED", at, broker_name="a", address=address)
        for at, address in ((-500, "10.0.0.1:1"), (310, "10.0.0.2:1"))
    ]
    run, _ = judge_cluster(starts)
    group = given_up(last=295, facts=(no_list(310, 990, client_id="x"), failed(f"dial {asked}")))
    (one,) = findings_of(UNLISTED, replace(group, run=replace(group.run, moments=run.moments)))
    where = f"a started with another address (10.0.0.1:1 → 10.0.0.2:1) at {utc(ms(310))}"
    assert f"within 30 s of that: {where}" in one.summary
    assert ("keeps asking 10.0.0.1:1, which no broker uses" in (one.remedy or "")) is old


def test_two_folders_of_one_broker_have_two_addresses() -> None:
    """A master and a slave by turns each keep their own."""
    starts = [
        fact("BROKER_STARTED", at, broker_name="a", address=address)
        | {"source": f"brokers/{folder}/broker.log:1"}
        for at, folder, address in ((1, "a1", "1.1.1.1:1"), (2, "a2", "2.2.2.2:1"))
    ]
    run, _ = judge_cluster(starts)
    assert [what for _, what in run.moments["a"]] == ["started", "started"]


def test_an_address_that_a_broker_has_left_is_of_none() -> None:
    listed = [
        fact("BROKER_IN_CLUSTER", 5, broker_name=broker, addr=address)
        for broker, address in (("a", "1.1.1.1:1"), ("b", "2.2.2.2:1"))
    ]
    started = fact("BROKER_STARTED", 300, broker_name="a", address="3.3.3.3:1")
    run, _ = judge_cluster([*listed, started])
    assert run.addresses == {"3.3.3.3:1": "a", "2.2.2.2:1": "b"}


def with_log(group: GroupSnapshot, until: float) -> GroupSnapshot:
    """The snapshot with a log in clients/app that has lines until these seconds."""
    log = [LogSpan(ms(0), ms(until), from_start=True)]
    return replace(
        group, run=replace(group.run, coverage=Coverage(known=True, clients=client_logs(app=log)))
    )


NONE_FOR_LONG = fact(NO_LIST, 300, 600, 20, topic="T", client_id="x", log="app")
NOT_THERE = fact("NOT_IN_MEMBER_LIST", 600, client_id="x", listed="y", log="app")


def test_no_list_is_over_where_the_client_s_log_goes_on_without() -> None:
    (one,) = findings_of(NO_LIST, with_log(snapshot_of(*TWO, facts=[NONE_FOR_LONG]), 900))
    assert (one.last_ms, "clients/app continues until" in one.ended_by) == (ms(600), True)
    ends_with_it = with_log(snapshot_of(*TWO, facts=[NONE_FOR_LONG]), 620)
    assert severities(NO_LIST, ends_with_it) == ["WARNING"]
    assert severities(NO_LIST, with_log(snapshot_of(*TWO, facts=[NONE_FOR_LONG]), 900)) == ["INFO"]


def test_no_list_is_over_where_the_client_went_or_commits_on() -> None:
    gone = snapshot_of(*TWO, leave("x", 700), facts=[NONE_FOR_LONG])
    assert [one.ended_by for one in findings_of(NO_LIST, gone)] == ["x left"]
    other = snapshot_of(*TWO, leave("y", 700), facts=[NONE_FOR_LONG])
    assert severities(NO_LIST, other) == ["WARNING"]
    commits = [commit(0, 5, at=900, client="x")]
    assert severities(NO_LIST, snapshot_of(*TWO, facts=[NONE_FOR_LONG], commits=commits)) == [
        "INFO"
    ]
    soon = [commit(0, 5, at=630, client="x"), commit(1, 5, at=900, client="y")]
    assert severities(NO_LIST, snapshot_of(*TWO, facts=[NONE_FOR_LONG], commits=soon)) == [
        "WARNING"
    ]


def test_no_list_lasts_while_one_of_two_clients_has_none() -> None:
    still = fact(NO_LIST, 300, 900, 30, topic="T", client_id="y", log="app-2")
    group = with_log(snapshot_of(*TWO, facts=[NONE_FOR_LONG, still]), 900)
    assert severities(NO_LIST, group) == ["WARNING"]


def test_a_client_that_all_brokers_list_later_is_in_its_list() -> None:
    def listed(*members: Row) -> GroupSnapshot:
        return snapshot_of(*TWO, facts=[NOT_THERE], members=members)

    both = [*listed_at("a", 800, "x", "y"), *listed_at("b", 801, "x", "y")]
    (one,) = findings_of(NOT_LISTED, listed(*both))
    assert (one.last_ms, one.ended_by) == (ms(801), "all brokers of its topics list x")
    assert severities(NOT_LISTED, listed(*listed_at("a", 800, "x", "y"))) == ["WARNING"]
    short = [*listed_at("a", 800, "x", "y"), *listed_at("b", 801, "y")]
    assert severities(NOT_LISTED, listed(*short)) == ["WARNING"]
    before = [*listed_at("a", 500, "x", "y"), *listed_at("b", 501, "x", "y")]
    assert severities(NOT_LISTED, listed(*before)) == ["WARNING"]
