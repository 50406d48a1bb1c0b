from rebalance_core.audit.case import GroupCase
from rebalance_core.model.events import CONSUMER_RESUME, CONSUMER_SUSPEND
from tests.unit.audit.cases import case_of, findings_of, join, leave, of_member, severities, topic

RULE = "MEMBER_SUSPENDED"
BASE = topic(), join("x"), join("y"), of_member(CONSUMER_SUSPEND, "x", 100)


def test_suspended_at_the_end() -> None:
    (one,) = findings_of(RULE, case_of(*BASE))
    assert "it keeps 3 queues" in one.summary  # two of T, one of the retry topic
    assert one.last_ms is None


def test_who_else_holds_its_queues() -> None:
    (one,) = findings_of(RULE, case_of(*BASE, leave("y", 200), join("z", at=300)))
    assert "T a:0-1" in one.summary


def test_long_and_short_suspensions_that_are_over() -> None:
    def until(at: float) -> GroupCase:
        return case_of(*BASE, of_member(CONSUMER_RESUME, "x", at))

    assert severities(RULE, until(161)) == ["WARNING"]
    assert severities(RULE, until(130)) == ["INFO"]


def test_nobody_is_suspended() -> None:
    assert findings_of(RULE, case_of(*BASE[:-1])) == []
