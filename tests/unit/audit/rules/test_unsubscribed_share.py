from rebalance_core.model.events import UNSUBSCRIBE
from tests.unit.audit.cases import case_of, end, findings_of, join, of_member, topic

RULE = "UNSUBSCRIBED_SHARE"
TOPICS = topic("A"), topic("B")
BOTH = join("x", "A", "B"), join("y", "A", "B")


def test_the_share_of_a_member_that_unsubscribed() -> None:
    less = of_member(UNSUBSCRIBE, "y", 100, topic="B")
    ends = [end(n, 10, name="B") for n in range(4)]
    (one,) = findings_of(RULE, case_of(*TOPICS, *BOTH, less, ends=ends))
    assert (one.topic, one.client_id) == ("B", "y")
    assert "2 queues is read by nobody: a:2-3 (20 messages behind)" in one.summary


def test_a_topic_that_all_dropped_is_nobody_s_share() -> None:
    less = [of_member(UNSUBSCRIBE, who, 100, topic="B") for who in "xy"]
    assert findings_of(RULE, case_of(*TOPICS, *BOTH, *less)) == []


def test_just_unsubscribed_may_still_settle() -> None:
    less = of_member(UNSUBSCRIBE, "y", 990, topic="B")
    assert findings_of(RULE, case_of(*TOPICS, *BOTH, less)) == []
