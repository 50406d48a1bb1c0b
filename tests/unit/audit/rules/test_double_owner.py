import pytest

from rebalance_core.model.events import CONSUMER_SUSPEND
from tests.unit.audit.cases import (
    Row,
    case_of,
    fact,
    findings_of,
    join,
    leave,
    ms,
    of_member,
    queue_row,
    severities,
    topic,
)

RULE = "DOUBLE_OWNER"
MIXED = join("x"), join("y", strategy="AVG_BY_CIRCLE")


def held(client: str, at: float, number: int = 0) -> Row:
    return queue_row("T", "a", number, at, client_id=client)


def test_two_ids_hold_a_queue() -> None:
    (one,) = findings_of(RULE, case_of(topic(), *MIXED))
    assert "1 queue of T (a:1)" in one.summary
    assert one.queue_id == 1


def test_one_id_twice() -> None:
    case = case_of(topic(), join("x"), join("x", channel="x:2"))
    assert "by x (2 processes)" in findings_of(RULE, case)[0].summary


def test_broadcasting_and_a_change_under_way() -> None:
    each = join("x", message_model="BROADCASTING"), join("y", message_model="BROADCASTING")
    assert findings_of(RULE, case_of(topic(), *each)) == []
    late = join("x", at=998), join("x", at=998, channel="x:2")
    assert findings_of(RULE, case_of(topic(), *late)) == []


def test_a_suspended_holder_reads_nothing() -> None:
    paused = of_member(CONSUMER_SUSPEND, "x", 50)
    assert findings_of(RULE, case_of(topic(), join("x"), paused, join("y", at=100))) == []


def test_dumps_that_show_two_owners_at_rest() -> None:
    case = case_of(topic(), join("x"), join("y"), owned=[held("x", 500), held("y", 500)])
    assert severities(RULE, case) == ["ERROR"]
    assert "as dumps show, by x, y" in findings_of(RULE, case)[0].summary


@pytest.mark.parametrize(("dumped", "severity"), [(900, "WARNING"), (700, "ERROR")])
def test_what_dumps_showed_is_over_when_one_of_the_two_went(dumped: int, severity: str) -> None:
    seen, dump = [held("x", 500), held("y", 500)], fact("DUMP", dumped, command="consumerStatus")
    happened = topic(), join("x"), join("y"), leave("y", 800)
    (one,) = findings_of(RULE, case_of(*happened, owned=seen, facts=[dump]))
    assert (one.severity, one.last_ms) == (severity, ms(800) if severity == "WARNING" else None)


def test_a_client_that_is_seen_again_after_another() -> None:
    observations = [held("x", 500), held("y", 520), held("x", 540)]
    assert severities(RULE, case_of(topic(), join("x"), join("y"), owned=observations)) == ["ERROR"]
    handed_over = [held("x", 500), held("y", 520), held("y", 540)]
    assert findings_of(RULE, case_of(topic(), join("x"), join("y"), owned=handed_over)) == []


def test_dumps_before_and_after_a_change() -> None:
    observations = [held("y", 500), held("x", 520)]
    case = case_of(topic(), join("y"), join("x", at=510), owned=observations)
    assert findings_of(RULE, case) == []
    apart = [held("x", 500), held("y", 700)]
    assert findings_of(RULE, case_of(topic(), join("x"), join("y"), owned=apart)) == []
