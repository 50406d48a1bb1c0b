from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import GroupSettings
from tests.unit.audit.cases import (
    Row,
    case_of,
    end,
    fact,
    findings_of,
    join,
    leave,
    severities,
    topic,
)

REFUSED, START = "BROADCASTING_REFUSED", "BROADCAST_START"
ALL = GroupSettings(message_model="BROADCASTING")


def member(client: str = "h@1", at: float = 100) -> Event:
    return join(client, at=at, message_model="BROADCASTING")


def config(allowed: bool) -> Row:
    return fact("GROUP_CONFIG", 0, 1000, broker_name="a", consume_broadcast_enable=allowed)


def test_a_configuration_that_forbids_it() -> None:
    (one,) = findings_of(REFUSED, case_of(topic(), member(), settings=ALL, facts=[config(False)]))
    assert "a forbid it" in one.summary
    assert (
        findings_of(REFUSED, case_of(topic(), member(), settings=ALL, facts=[config(True)])) == []
    )
    assert findings_of(REFUSED, case_of(topic(), join("x"), facts=[config(False)])) == []


def test_pulls_that_were_refused() -> None:
    said = fact("BROADCAST_REFUSED", 100, 200, 50, client_id="x")
    assert "refused 50 times" in findings_of(REFUSED, case_of(topic(), facts=[said]))[0].summary


def test_a_new_member_without_a_store() -> None:
    case = case_of(topic(read=1), member(), settings=ALL, ends=[end(0, 50, low=20, at=50)])
    assert severities(START, case) == ["INFO"]
    assert "left out 30 messages" in findings_of(START, case)[0].summary


def test_a_member_whose_id_changed_lost_its_store() -> None:
    again = member(), leave("h@1", 200), member("h@2", 300)
    case = case_of(topic(read=1), *again, settings=ALL, ends=[end(0, 50, low=20, at=50)])
    assert severities(START, case) == ["WARNING"]


def test_nothing_was_left_out() -> None:
    case = case_of(topic(read=1), member(), settings=ALL, ends=[end(0, 0, at=50)])
    assert findings_of(START, case) == []
