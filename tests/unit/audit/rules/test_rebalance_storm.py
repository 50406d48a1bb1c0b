from rebalance_core.model.events import BROKER_DOWN, BROKER_UP, CONSUMER_LOST, UNSUBSCRIBE
from tests.unit.audit.cases import (
    Row,
    case_of,
    event,
    fact,
    findings_of,
    join,
    leave,
    of_member,
    severities,
    topic,
)  # fmt: skip

RULE = "REBALANCE_STORM"
TOPICS = topic("T"), topic("U")
UNLIKE = join("x", "T"), join("y", "U")
ALIKE = join("x", "T"), join("y", "T")


def told(at: float, until: float, times: int, broker: str | None = "a") -> Row:
    return fact("NOTIFIED", at, until, times, broker_name=broker, address="10.0.0.1:10911")


def test_members_that_subscribe_differently() -> None:
    case = case_of(*TOPICS, *UNLIKE, facts=[told(10, 990, 66)])
    (one,) = findings_of(RULE, case)
    assert one.last_ms is None
    assert one.broker_name == "a"
    assert "explain 4 at most; members subscribe different topics" in one.summary
    assert severities(RULE, case) == ["WARNING"]


def test_the_brokers_log_alone_shows_it() -> None:
    drops = [fact("TOPIC_DROPPED", 10, 990, 33, topic=name, broker_name="a") for name in "TU"]
    (one,) = findings_of(RULE, case_of(*TOPICS, *UNLIKE, facts=drops))
    assert one.evidence["seconds_with_change"] == "33"
    assert "took T, U out of the group's table 66 times" in one.summary


def test_a_member_that_unsubscribed() -> None:
    gone = of_member(UNSUBSCRIBE, "y", 100, topic="U")
    both = join("x", "T", "U"), join("y", "T", "U")
    (one,) = findings_of(RULE, case_of(*TOPICS, *both, gone, facts=[told(10, 990, 40)]))
    assert "y unsubscribed U, which others subscribe" in one.summary


def test_a_storm_that_nothing_explains() -> None:
    (one,) = findings_of(RULE, case_of(*TOPICS, *ALIKE, facts=[told(10, 990, 40, None)]))
    assert one.broker_name == "10.0.0.1:10911"
    assert "no event and no subscription explains it" in one.summary


def test_one_that_is_over_is_for_information() -> None:
    case = case_of(*TOPICS, *ALIKE, facts=[told(10, 600, 40)])
    assert severities(RULE, case) == ["INFO"]
    assert findings_of(RULE, case)[0].last_ms is not None


def test_comings_and_goings_explain_as_many() -> None:
    happened = [join(f"c{n}", "T", at=20 + 10 * n) for n in range(20)]
    happened += [leave(f"c{n}", 300 + 10 * n) for n in range(20)]
    assert findings_of(RULE, case_of(*TOPICS, *happened, facts=[told(20, 500, 80)])) == []
    assert severities(RULE, case_of(*TOPICS, *happened, facts=[told(20, 500, 90)])) == ["INFO"]


def test_a_broker_that_comes_back_is_told_by_each_member() -> None:
    back = event(BROKER_DOWN, 100, broker_name="a"), event(BROKER_UP, 300, broker_name="a")
    case = case_of(*TOPICS, *ALIKE, *back, facts=[told(300, 330, 5)])
    assert findings_of(RULE, case) == []


def test_few_or_rare_ones_are_no_storm() -> None:
    lost = of_member(CONSUMER_LOST, "y", 500)
    for quiet in (told(10, 40, 8), told(10, 990, 12)):
        assert findings_of(RULE, case_of(*TOPICS, *ALIKE, lost, facts=[quiet])) == []
