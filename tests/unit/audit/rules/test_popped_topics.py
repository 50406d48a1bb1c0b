import pytest

from rebalance_core.audit.comparison.compare import compare
from rebalance_core.model.events import REQUEST_MODE, Event
from rebalance_core.model.group_settings import GroupSettings
from tests.unit.audit.cases import case_of, event, fact, findings_of, join, leave, severities, topic

RULE = "POP_NOT_MODELLED"
BROKER = GroupSettings(rebalance_mode="BROKER")
POP = "POP(share_queue_num=0)"
TWO = join("x"), join("y")


def mode(detail: str = POP, name: str = "T", at: float = 20) -> Event:
    return event(REQUEST_MODE, at, topic=name, detail=detail)


def test_a_topic_that_is_popped_is_named_and_not_compared() -> None:
    case = case_of(topic(), *TWO, mode(), settings=BROKER)
    (one,) = findings_of(RULE, case)
    assert (one.topic, one.severity, one.evidence["mode"]) == ("T", "INFO", POP)
    assert "2 members of g pop T" in one.summary
    assert (compare(case).verdict, compare(case).reason) == ("UNKNOWN", "POP")


def test_members_that_pull_beside_the_others() -> None:
    case = case_of(topic(), *TWO, join("z", rebalance_mode="CLIENT"), mode(), settings=BROKER)
    (one,) = findings_of(RULE, case)
    assert severities(RULE, case) == ["WARNING"]
    assert "z pull a share of their own" in one.summary
    assert (one.evidence["pop"], one.evidence["pull"]) == ("x, y", "z")


@pytest.mark.parametrize(
    "settings",
    [
        GroupSettings(),
        GroupSettings(rebalance_mode="BROKER", ordered=True),
        GroupSettings(rebalance_mode="BROKER", client_version="4.9"),
    ],
)
def test_a_mode_without_effect(settings: GroupSettings) -> None:
    case = case_of(topic(), *TWO, mode(), settings=settings)
    assert findings_of(RULE, case) == []
    assert compare(case).reason != "POP"


def test_back_to_pull_and_nobody_left() -> None:
    assert (
        findings_of(RULE, case_of(topic(), *TWO, mode(), mode("PULL", at=30), settings=BROKER))
        == []
    )
    gone = leave("x", 40), leave("y", 41)
    assert findings_of(RULE, case_of(topic(), *TWO, mode(), *gone, settings=BROKER)) == []


def test_members_that_pop_are_not_idle() -> None:
    case = case_of(topic(), *TWO, mode(), settings=BROKER)
    assert findings_of("IDLE_MEMBER", case) == []
    assert findings_of("ORPHAN_QUEUES", case) == []


def test_retry_topics_of_pop_are_not_compared() -> None:
    """Members that ask the broker read what is left there once the topic is pulled again."""
    observation = fact("DUMP", 800, command="consumerStatus", client_id="x")
    held = [
        fact("HELD_QUEUE", 800, topic=name, broker_name="a", queue_id=number, client_id="x",
             dropped=False)
        for name, number in (("T", 0), ("T", 1), ("%RETRY%g_T", 0), ("%RETRY%g", 0))
    ]  # fmt: skip
    case = case_of(topic(read=2), join("x"), settings=BROKER, facts=[observation, *held])
    assert compare(case).verdict == "EQUAL"
