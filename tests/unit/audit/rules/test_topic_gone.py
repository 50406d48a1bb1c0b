from rebalance_core.model.events import TOPIC_DELETED, Event
from tests.unit.audit.cases import case_of, event, findings_of, join, leave, severities, topic

RULE = "TOPIC_GONE"


def deleted(at: float, broker: str = "a") -> Event:
    return event(TOPIC_DELETED, at, topic="T", broker_name=broker)


def test_the_topic_of_a_member() -> None:
    (one,) = findings_of(RULE, case_of(topic(), join("x"), deleted(100)))
    assert "T, subscribed by x, was deleted from a" in one.summary


def test_the_topic_of_the_last_members() -> None:
    case = case_of(topic(), join("x"), leave("x", 50), deleted(100))
    assert severities(RULE, case) == ["WARNING"]


def test_a_route_that_still_has_it() -> None:
    case = case_of(topic(), topic(broker="b"), join("x"), leave("x", 50), deleted(100),
                   topic(at=900))  # fmt: skip
    (one,) = findings_of(RULE, case)
    assert "b still has it; a has it again, or the route does" in one.summary


def test_created_again_for_members_that_run() -> None:
    two = topic(), topic(broker="b"), join("x")
    assert severities(RULE, case_of(*two, deleted(100))) == ["WARNING"]
    assert severities(RULE, case_of(*two, deleted(100), topic(at=200))) == ["INFO"]


def test_a_topic_that_nobody_asked_for() -> None:
    other = event(TOPIC_DELETED, 100, topic="Other", broker_name="a")
    assert findings_of(RULE, case_of(topic(), topic("Other"), join("x"), other)) == []
