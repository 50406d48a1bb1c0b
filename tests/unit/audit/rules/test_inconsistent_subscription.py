from rebalance_core.model.events import CONSUMER_JOIN, SUBSCRIBE, UNSUBSCRIBE
from tests.unit.audit.cases import (
    case_of,
    event,
    fact,
    findings_of,
    join,
    leave,
    of_member,
    severities,
    topic,
)

RULE = "INCONSISTENT_SUBSCRIPTION"
TOPICS = topic("A"), topic("B")


def test_members_with_different_topics() -> None:
    (one,) = findings_of(
        RULE,
        case_of(*TOPICS, join("x", "A"), join("y", "B"),
                facts=[fact("NO_SUBSCRIPTION", 50, times=7, topic="A")]),
    )  # fmt: skip
    assert "x: A" in one.summary
    assert "4 queues nobody reads" in one.summary
    assert one.evidence["no_subscription"] == "7 times: A"
    assert one.last_ms is None


def test_a_topic_subscribed_at_runtime_by_one_member() -> None:
    more = of_member(SUBSCRIBE, "x", 100, topic="B")
    assert severities(RULE, case_of(*TOPICS, join("x", "A"), join("y", "A"), more)) == ["ERROR"]


def test_what_nobody_knows_is_no_difference_and_leaves_no_queue_to_nobody() -> None:
    unknown = event(CONSUMER_JOIN, 10, "y", channel_id="y:1")
    case = case_of(*TOPICS, join("x", "A"), unknown)
    for rule in (RULE, "ORPHAN_QUEUES", "IDLE_MEMBER", "FROZEN_GROUP", "UNSUBSCRIBED_SHARE"):
        assert findings_of(rule, case) == []
    different = case_of(*TOPICS, join("x", "A"), join("z", "B"), unknown)
    (one,) = findings_of(RULE, different)
    assert "not known" in one.summary


def test_unsubscribed_at_runtime_is_another_rule() -> None:
    less = of_member(UNSUBSCRIBE, "y", 100, topic="B")
    case = case_of(*TOPICS, join("x", "A", "B"), join("y", "A", "B"), less)
    assert findings_of(RULE, case) == []


def test_all_members_dropping_a_topic_one_by_one_is_no_difference() -> None:
    less = [of_member(UNSUBSCRIBE, who, 100 + n, topic="B") for n, who in enumerate("xy")]
    late = join("z", "A", at=300)
    case = case_of(*TOPICS, join("x", "A", "B"), join("y", "A", "B"), *less, late)
    assert findings_of(RULE, case) == []


def test_a_rolling_change_is_not_held_against_the_group() -> None:
    case = case_of(*TOPICS, join("x", "A"), join("y", "A", "B", at=100), leave("x", 160))
    assert findings_of(RULE, case) == []


def test_a_rolling_change_that_took_minutes_is_for_information() -> None:
    steps = [join(f"new{n}", "A", "B", at=100 + 60 * n) for n in range(4)]
    gone = [leave(f"old{n}", 110 + 60 * n) for n in range(4)]
    old = [join(f"old{n}", "A") for n in range(4)]
    assert severities(RULE, case_of(*TOPICS, *old, *steps, *gone)) == ["INFO"]


def test_a_long_difference_that_is_over_is_a_warning() -> None:
    case = case_of(*TOPICS, join("x", "A"), join("y", "A", "B", at=100), leave("x", 600))
    assert severities(RULE, case) == ["WARNING"]
