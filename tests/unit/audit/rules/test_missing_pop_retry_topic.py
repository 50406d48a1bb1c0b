import pytest

from tests.unit.audit.cases import (
    Row,
    case_of,
    commit,
    fact,
    findings_of,
    join,
    leave,
    severities,
    topic,
)
from tests.unit.audit.sharing import BROKER

RULE = "MISSING_POP_RETRY_TOPIC"
ASKING = topic(), join("x")


def missing(until: float = 900, times: int = 800, name: str = "%RETRY%g_T") -> Row:
    return fact("MISSING_ROUTE", 100, until, times, topic=name, log="app-1", pid="7")


@pytest.mark.parametrize("name", ["%RETRY%g_T", "%RETRY%g+T"])
def test_a_pass_every_second(name: str) -> None:
    case = case_of(*ASKING, settings=BROKER, facts=[missing(name=name)])
    (one,) = findings_of(RULE, case)
    assert severities(RULE, case) == ["WARNING"]
    assert f"{name} did not exist" in one.summary
    assert (one.topic, one.evidence["seen_in"]) == ("T", "app-1")


def test_it_is_there_by_now() -> None:
    facts = [missing(until=500, times=390)]
    case = case_of(*ASKING, settings=BROKER, facts=facts, commits=[commit(0, 3, name="%RETRY%g_T")])
    (one,) = findings_of(RULE, case)
    assert "it is there now" in one.summary
    assert severities(RULE, case) == ["INFO"]
    gone = case_of(*ASKING, leave("x", 950), settings=BROKER, facts=facts)
    assert severities(RULE, gone) == ["INFO"]


def test_short_now_and_then_or_another_topic() -> None:
    for fact_ in (missing(until=130, times=30), missing(times=3), missing(name="%RETRY%g_U")):
        assert findings_of(RULE, case_of(*ASKING, settings=BROKER, facts=[fact_])) == []


def test_clients_before_5_2_do_not_pass_sooner() -> None:
    """Recorded on 5.0.0 and 5.1.4: the topic is asked for every 20 s, as always."""
    old = topic(), join("x", version="5.1.4")
    assert findings_of(RULE, case_of(*old, settings=BROKER, facts=[missing()])) == []
    mixed = *old, join("y", version="5.2.0")
    assert len(findings_of(RULE, case_of(*mixed, settings=BROKER, facts=[missing()]))) == 1
