from rebalance_core.model.events import UNSUBSCRIBE
from tests.unit.audit.cases import case_of, findings_of, join, leave, of_member, topic

RULE = "TRANSIENT_OWNERSHIP"
TOPICS = topic("A"), topic("B")


def test_queues_without_an_owner_for_a_moment() -> None:
    case = case_of(*TOPICS, join("x", "A", "B"), join("y", "A", at=100), leave("y", 140))
    (one,) = findings_of(RULE, case)
    assert "2 queues without an owner for a while" in one.summary
    assert "for 40 s; explained by CONSUMER_JOIN of y" in one.summary


def test_persistent_offline_or_duplicate_ids_are_not_transient() -> None:
    less = of_member(UNSUBSCRIBE, "y", 100, topic="B")
    standing = case_of(*TOPICS, join("x", "A", "B"), join("y", "A", "B"), less)
    assert findings_of(RULE, standing) == []
    offline = case_of(topic(), join("x"), leave("x", 100), join("x", at=150, channel="n"))
    assert findings_of(RULE, offline) == []
    duplicate = topic(), join("x"), join("x", at=100, channel="n"), leave("x", 140, "n")
    assert findings_of(RULE, case_of(*duplicate)) == []
