from dataclasses import replace

from rebalance_core.audit.case import GroupCase
from rebalance_core.model.events import (
    BROKER_DOWN,
    BROKER_UP,
    CONSUMER_JOIN,
    CONSUMER_LOST,
    EXPIRED,
    Event,
)
from rebalance_core.model.times import utc
from tests.unit.audit.cases import (
    Row,
    case_of,
    commit,
    event,
    fact,
    findings_of,
    join,
    leave,
    listed_at,
    ms,
    severities,
    topic,
)

DIFFER, NOT_LISTED, NO_LIST = "MEMBER_LISTS_DIFFER", "NOT_IN_MEMBER_LIST", "NO_MEMBER_LIST"
TWO = topic(), topic(broker="b"), join("x"), join("y")
SHORT = [*listed_at("a", 500, "x", "y"), *listed_at("b", 501, "x")]


def test_a_member_that_one_broker_does_not_know() -> None:
    (one,) = findings_of(DIFFER, case_of(*TWO, members=SHORT))
    assert (one.broker_name, one.client_id) == ("b", "y")
    assert severities(DIFFER, case_of(*TWO, members=SHORT)) == ["ERROR"]


def test_a_broker_that_says_that_nobody_is_online() -> None:
    empty = fact("GROUP_AT_BROKER", 501, broker_name="b", members=0)
    said = fact("NOT_ONLINE", 501, broker_name="b")
    members = listed_at("a", 500, "x", "y")
    (one,) = findings_of(DIFFER, case_of(*TWO, members=members, facts=[empty, said]))
    assert "b does not list 2 members" in one.summary


def test_an_output_without_a_word_where_others_list_members_may_be_a_failure() -> None:
    empty = fact("GROUP_AT_BROKER", 501, broker_name="b", members=0)
    members = listed_at("a", 500, "x", "y")
    assert findings_of(DIFFER, case_of(*TWO, members=members, facts=[empty])) == []


def test_a_broker_without_a_topic_of_the_group() -> None:
    alone = topic(), join("x"), join("y")
    assert findings_of(DIFFER, case_of(*alone, members=SHORT)) == []


def test_equal_lists_and_dumps_at_different_times() -> None:
    same = [*listed_at("a", 500, "x", "y"), *listed_at("b", 501, "y", "x")]
    assert findings_of(DIFFER, case_of(*TWO, members=same)) == []
    apart = [*listed_at("a", 300, "x", "y"), *listed_at("b", 501, "x")]
    assert findings_of(DIFFER, case_of(*TWO, members=apart)) == []


def test_in_the_window_of_a_join_or_a_broker_s_return() -> None:
    late = topic(), topic(broker="b"), join("x"), join("y", at=490)
    assert findings_of(DIFFER, case_of(*late, members=SHORT)) == []
    back = event(BROKER_DOWN, 200, broker_name="b"), event(BROKER_UP, 460, broker_name="b")
    assert findings_of(DIFFER, case_of(*TWO, *back, members=SHORT)) == []


def test_lists_that_are_equal_again() -> None:
    same = [*listed_at("a", 800, "x", "y"), *listed_at("b", 801, "x", "y")]
    assert severities(DIFFER, case_of(*TWO, members=[*SHORT, *same])) == ["WARNING"]


def test_a_list_that_still_has_who_left_is_stale() -> None:
    """The broker dropped the event; who unregistered at another one is gone."""
    left = case_of(*TWO, leave("y", 440), members=SHORT)
    (one,) = findings_of(DIFFER, left)
    assert severities(DIFFER, left) == ["ERROR"]
    assert (one.broker_name, one.client_id, one.first_ms) == ("a", "y", ms(440))
    assert f"by {utc(ms(440 + 130))}" in one.summary
    assert "overloaded" not in one.summary
    busy = replace(left, run=replace(left.run, overloads={"a": ((ms(442), ms(450)),)}))
    assert "it is overloaded" in findings_of(DIFFER, busy)[0].summary
    later = [*SHORT, *listed_at("a", 800, "x"), *listed_at("b", 801, "x")]
    assert severities(DIFFER, case_of(*TWO, leave("y", 440), members=later)) == ["INFO"]
    # a list of the very moment, or one that all brokers share, is no finding
    assert findings_of(DIFFER, case_of(*TWO, leave("y", 498), members=SHORT)) == []
    both = [*listed_at("a", 500, "x", "y"), *listed_at("b", 501, "x", "y")]
    assert findings_of(DIFFER, case_of(*TWO, leave("y", 440), members=both)) == []


def test_a_connection_that_one_broker_saw_close() -> None:
    def closed(at: float, broker: str = "b", *commits: Row) -> str:
        seen = fact("CONNECTION_CLOSED", at, broker_name=broker, client_id="y")
        case = case_of(*TWO, members=SHORT, facts=[seen], commits=commits)
        (one,) = findings_of(DIFFER, case)
        return str(one.broker_name)

    assert closed(440) == "a", "it is gone, and a does not know yet"
    assert closed(480) == "b", "it may connect again"
    assert closed(300) == "b", "a has heard of it since"
    assert closed(440, "a") == "b", "a lists it again"
    assert closed(440, "b", commit(0, 5, at=490, client="y")) == "b", "it lives"


def test_a_client_that_was_not_in_its_list() -> None:
    def said(at: float) -> GroupCase:
        return case_of(*TWO, facts=[fact("NOT_IN_MEMBER_LIST", at, client_id="x", listed="y")])

    assert severities(NOT_LISTED, said(600)) == ["WARNING"]
    assert severities(NOT_LISTED, said(60)) == ["INFO"]
    assert "CONSUMER_JOIN of x, y at" in findings_of(NOT_LISTED, said(60))[0].summary


def test_no_list_for_long_or_for_a_moment() -> None:
    def refused(at: float, until: float, times: int) -> GroupCase:
        return case_of(*TWO, facts=[fact(NO_LIST, at, until, times, topic="T", client_id="x")])

    assert severities(NO_LIST, refused(300, 700, 20)) == ["WARNING"]
    assert severities(NO_LIST, refused(300, 340, 2)) == ["INFO"]
    assert severities(NO_LIST, refused(300, 590, 2)) == ["INFO"]  # two moments, not a long time
    assert findings_of(NO_LIST, refused(12, 20, 2)) == []  # a join explains it


def test_a_retry_topic_that_does_not_exist() -> None:
    def refused(*also: Event) -> GroupCase:
        told = fact(NO_LIST, 300, 700, 20, topic="%RETRY%g", client_id="x")
        return case_of(*TWO, *also, facts=[told])

    assert findings_of(NO_LIST, refused()) == []
    assert severities(NO_LIST, refused(topic("%RETRY%g"))) == ["WARNING"]


def test_a_member_that_the_broker_gave_up_itself() -> None:
    """Its own scan says why its list is short: other brokers go on listing the member."""
    lost = event(CONSUMER_LOST, 100, "y", broker_name="b", detail=EXPIRED)
    back = event(CONSUMER_JOIN, 130, "y", broker_name="b")
    plain, gave_up, again = (
        findings_of(DIFFER, case_of(*TWO, *events, members=SHORT))[0]
        for events in ((), (lost,), (lost, back))
    )
    assert plain.summary.startswith("b does not list 1 member")
    assert gave_up.summary.startswith("b gave up 1 member that other brokers go on listing")
    assert "heartbeatBrokerInterval" in (gave_up.remedy or "")
    assert again.summary == plain.summary
