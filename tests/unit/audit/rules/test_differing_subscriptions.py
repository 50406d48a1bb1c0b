"""Subscriptions that differ within a group."""

from dataclasses import replace

import pytest

from rebalance_core.audit.coverage import Coverage, LogSpan
from rebalance_core.audit.findings import run_rules
from rebalance_core.model.events import (
    BROKER_DOWN,
    CONSUMER_JOIN,
    OBSERVED,
    SUBSCRIBE,
    UNSUBSCRIBE,
)
from tests.unit.audit.snapshots import (
    Row,
    broker_logs,
    end,
    event,
    fact,
    findings_of,
    join,
    leave,
    ms,
    of_member,
    severities,
    snapshot_of,
    topic,
    with_rows,
)

INCONSISTENT_SUBSCRIPTION = "INCONSISTENT_SUBSCRIPTION"
TOPICS = topic("A"), topic("B")


def held(topic_name: str, queue: int, holder: str | None, *, unread: int = 0) -> Row:
    where: Row = {"topic": topic_name, "broker_name": "a", "queue_id": queue}
    offsets: Row = {"broker_offset": 9, "consumer_offset": 9 - unread, "with_clients": "true"}
    return fact("QUEUE_PROGRESS", 900, **where, **offsets, client_ip=holder or "")


def test_who_holds_queues_of_one_topic_holds_none_of_another() -> None:
    apart = held("A", 0, "x"), held("A", 1, None, unread=3), held("B", 1, "y")
    left = held("B", 0, None, unread=3)
    (one,) = findings_of(INCONSISTENT_SUBSCRIPTION, snapshot_of(facts=[*apart, left]))
    assert one.severity == "WARNING"
    assert "(x: A; y: B), and the remaining queues have no holder: A a:1, B a:0" in one.summary
    # of B nothing is left; what is left has nothing to read; x holds queues of both
    for near_miss in (apart, (*apart, held("B", 0, None)), (*apart, left, held("B", 2, "x"))):
        assert not findings_of(INCONSISTENT_SUBSCRIPTION, snapshot_of(facts=[*near_miss]))


def test_members_with_different_topics() -> None:
    (one,) = findings_of(
        INCONSISTENT_SUBSCRIPTION,
        snapshot_of(
            *TOPICS,
            join("x", "A"),
            join("y", "B"),
            facts=[fact("NO_SUBSCRIPTION", 50, times=7, topic="A")],
        ),
    )
    assert "x: A" in one.summary
    assert "4 queues without a reader" in one.summary
    assert one.evidence["no_subscription"] == "7 times: A"
    assert one.last_ms is None


def test_a_topic_subscribed_at_runtime_by_one_member() -> None:
    more = of_member(SUBSCRIBE, "x", 100, topic="B")
    assert severities(
        INCONSISTENT_SUBSCRIPTION, snapshot_of(*TOPICS, join("x", "A"), join("y", "A"), more)
    ) == ["ERROR"]


def test_what_is_unknown_is_no_difference_and_leaves_no_queue_unowned() -> None:
    unknown = event(CONSUMER_JOIN, 10, "y", channel_id="y:1")
    group = snapshot_of(*TOPICS, join("x", "A"), unknown)
    for rule in (
        INCONSISTENT_SUBSCRIPTION,
        "ORPHAN_QUEUES",
        "IDLE_MEMBER",
        "FROZEN_GROUP",
        "UNSUBSCRIBED_SHARE",
    ):
        assert findings_of(rule, group) == []
    different = snapshot_of(*TOPICS, join("x", "A"), join("z", "B"), unknown)
    (one,) = findings_of(INCONSISTENT_SUBSCRIPTION, different)
    assert "not known" in one.summary


def test_unsubscribed_at_runtime_is_another_rule() -> None:
    less = of_member(UNSUBSCRIBE, "y", 100, topic="B")
    group = snapshot_of(*TOPICS, join("x", "A", "B"), join("y", "A", "B"), less)
    assert findings_of(INCONSISTENT_SUBSCRIPTION, group) == []


def test_all_members_dropping_a_topic_one_by_one_is_no_difference() -> None:
    less = [of_member(UNSUBSCRIBE, who, 100 + n, topic="B") for n, who in enumerate("xy")]
    late = join("z", "A", at=300)
    group = snapshot_of(*TOPICS, join("x", "A", "B"), join("y", "A", "B"), *less, late)
    assert findings_of(INCONSISTENT_SUBSCRIPTION, group) == []


def test_a_rolling_change_is_not_held_against_the_group() -> None:
    group = snapshot_of(*TOPICS, join("x", "A"), join("y", "A", "B", at=100), leave("x", 160))
    assert findings_of(INCONSISTENT_SUBSCRIPTION, group) == []


def test_a_rolling_change_that_took_minutes_is_for_information() -> None:
    steps = [join(f"new{n}", "A", "B", at=100 + 60 * n) for n in range(4)]
    gone = [leave(f"old{n}", 110 + 60 * n) for n in range(4)]
    old = [join(f"old{n}", "A") for n in range(4)]
    assert severities(INCONSISTENT_SUBSCRIPTION, snapshot_of(*TOPICS, *old, *steps, *gone)) == [
        "INFO"
    ]


def test_a_long_difference_that_is_over_is_for_information() -> None:
    group = snapshot_of(*TOPICS, join("x", "A"), join("y", "A", "B", at=100), leave("x", 600))
    assert severities(INCONSISTENT_SUBSCRIPTION, group) == ["INFO"]


@pytest.mark.parametrize(
    ("begins", "ends", "detail", "known"),
    [(0, 1000, None, True), (100, 1000, None, False), (0, 800, None, False),
     (0, 1000, OBSERVED, False)],
)  # fmt: skip
def test_one_may_have_unsubscribed_where_no_log_shows(
    begins: float, ends: float, detail: str | None, known: bool
) -> None:
    group = snapshot_of(
        *TOPICS, join("x", "A", "B"), join("y", "A", detail=detail), facts=[fact("DUMP", 950)]
    )
    log = (LogSpan(ms(begins), ms(ends), from_start=False),)
    coverage = Coverage(broker_logs(a=log), known=True)
    group = replace(group, run=replace(group.run, coverage=coverage))
    (one,) = findings_of(INCONSISTENT_SUBSCRIPTION, group)
    assert (one.first_ms is not None) is known
    assert ("no log shows since when, or whether a member unsubscribed" in one.summary) is not known
    assert severities(INCONSISTENT_SUBSCRIPTION, group) == ["ERROR"]


@pytest.mark.parametrize(
    ("source", "known"),
    [("mqadmin/1-consumerConnection-g-a.txt:2", False), ("brokers/a/broker.log:7", True)],
)
def test_a_member_of_which_a_dump_alone_shows_the_join_may_have_unsubscribed(
    source: str, known: bool
) -> None:
    """Recorded: the lines of a join and of an unsubscribe() were lost."""
    group = snapshot_of(*TOPICS, join("x", "A", "B"), join("y", "A"), facts=[fact("DUMP", 950)])
    events = [row | {"source": source} for row in group.tables["cluster_events"]]
    group = with_rows(group, cluster_events=events)
    log = (LogSpan(ms(0), ms(1000), from_start=False),)
    coverage = Coverage(broker_logs(a=log), known=True)
    group = replace(group, run=replace(group.run, coverage=coverage))
    (one,) = findings_of(INCONSISTENT_SUBSCRIPTION, group)
    assert (one.first_ms is not None) is known


INCONSISTENT_TAGS = "INCONSISTENT_TAGS"
MEMBERS = topic(), join("x"), join("y")


def said(client: str, expression: str, at: float = 500) -> Row:
    return fact("CLIENT_TOPIC", at, topic="T", client_id=client, expression=expression)


def flip(old: str, new: str, at: float, until: float | None = None, times: int = 1) -> Row:
    return fact("TAGS_CHANGED", at, until, times, topic="T", broker_name="a", old=old, new=new)


def test_clients_with_different_expressions() -> None:
    (one,) = findings_of(
        INCONSISTENT_TAGS, snapshot_of(*MEMBERS, facts=[said("x", "red"), said("y", "blue")])
    )
    assert one.topic == "T"
    assert "'blue' of y" in one.summary


def test_they_differ_since_they_joined() -> None:
    facts = [said("x", "red", at=10), said("y", "blue", at=11)]
    assert severities(INCONSISTENT_TAGS, snapshot_of(*MEMBERS, facts=facts)) == ["ERROR"]
    late = topic(), join("x"), join("y", at=985)
    assert severities(INCONSISTENT_TAGS, snapshot_of(*late, facts=facts)) == ["INFO"]


def test_the_order_of_tags_does_not_matter() -> None:
    assert (
        findings_of(
            INCONSISTENT_TAGS,
            snapshot_of(*MEMBERS, facts=[said("x", "a || b"), said("y", "b||a")]),
        )
        == []
    )


def test_a_client_that_is_gone_does_not_count() -> None:
    assert (
        findings_of(
            INCONSISTENT_TAGS, snapshot_of(*MEMBERS, facts=[said("x", "a"), said("old", "b")])
        )
        == []
    )


def test_an_expression_that_flips() -> None:
    flips = [flip("a", "b", 100, 995, 30), flip("b", "a", 115, 980, 30)]
    assert severities(INCONSISTENT_TAGS, snapshot_of(*MEMBERS, facts=flips)) == ["ERROR"]


def test_flips_while_members_are_replaced_have_a_cause() -> None:
    flips = [flip("a", "b", 12, 15, 2), flip("b", "a", 13)]
    assert severities(INCONSISTENT_TAGS, snapshot_of(*MEMBERS, facts=flips)) == ["INFO"]


def test_a_broker_that_goes_does_not_explain_what_members_subscribe_to() -> None:
    two_brokers = topic(), topic(broker="b"), join("x"), join("y")
    down = event(BROKER_DOWN, 985, broker_name="b")
    differing = [said("x", "red", at=990), said("y", "blue", at=991)]
    flips = [flip("a", "b", 985, 995, 2), flip("b", "a", 990)]
    for facts in (differing, flips):
        group = snapshot_of(*two_brokers, down, facts=facts)
        assert severities(INCONSISTENT_TAGS, group) == ["ERROR"]


def test_a_single_change_is_no_flip() -> None:
    assert findings_of(INCONSISTENT_TAGS, snapshot_of(*MEMBERS, facts=[flip("a", "b", 500)])) == []


UNSUBSCRIBED_SHARE = "UNSUBSCRIBED_SHARE"
BOTH = join("x", "A", "B"), join("y", "A", "B")


def test_the_share_of_a_member_that_unsubscribed() -> None:
    less = of_member(UNSUBSCRIBE, "y", 100, topic="B")
    ends = [end(n, 10, name="B") for n in range(4)]
    (one,) = findings_of(UNSUBSCRIBED_SHARE, snapshot_of(*TOPICS, *BOTH, less, ends=ends))
    assert (one.topic, one.client_id) == ("B", "y")
    assert "2 queues has no reader: a:2-3 (20 messages behind)" in one.summary


def test_a_topic_that_all_dropped_is_in_no_share() -> None:
    less = [of_member(UNSUBSCRIBE, who, 100, topic="B") for who in "xy"]
    assert findings_of(UNSUBSCRIBED_SHARE, snapshot_of(*TOPICS, *BOTH, *less)) == []


def test_just_unsubscribed_may_still_settle() -> None:
    less = of_member(UNSUBSCRIBE, "y", 990, topic="B")
    assert findings_of(UNSUBSCRIBED_SHARE, snapshot_of(*TOPICS, *BOTH, less)) == []


@pytest.mark.parametrize(("log_ends", "severity"), [(1000, "INFO"), (650, "ERROR"), (None, "INFO")])
def test_expressions_that_changed_back_and_forth_and_do_no_more(
    log_ends: float | None, severity: str
) -> None:
    """It has ended where the broker's log goes on for three heartbeats without a change."""
    flips = [flip("red", "blue", 300, 600, 10), flip("blue", "red", 301, 601, 10)]
    group = snapshot_of(*MEMBERS, facts=flips)
    if log_ends is not None:
        log = (LogSpan(ms(0), ms(log_ends), from_start=True),)
        coverage = Coverage(broker_logs(a=log), known=True)
        group = replace(group, run=replace(group.run, coverage=coverage))
    (row,) = (r for r in run_rules(group)["findings"] if r["rule_id"] == INCONSISTENT_TAGS)
    assert row["severity"] == severity
    assert row["last_ms"] == (ms(601) if severity == "INFO" else None)
    assert ("ended at" in row["summary"]) is (severity == "INFO")
