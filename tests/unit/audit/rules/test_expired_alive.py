from rebalance_core.model.events import CONSUMER_JOIN, CONSUMER_LOST, EXPIRED, Event
from tests.unit.audit.cases import case_of, fact, findings_of, join, of_member, severities, topic

RULE = "EXPIRED_WHILE_ALIVE"
ID = "10.0.0.1@7#1"


def pause(client: str, at: float, back: float, detail: str | None = EXPIRED) -> list[Event]:
    gone = of_member(CONSUMER_LOST, client, at, detail=detail)
    return [gone, join(client, at=back, channel=f"{client}:{back}")]


def test_a_process_that_came_back() -> None:
    case = case_of(topic(), join(ID), join("y"), *pause(ID, 200, 224))
    (one,) = findings_of(RULE, case)
    assert one.client_id == ID
    assert "back up to 24 s later" in one.summary
    assert severities(RULE, case) == ["INFO"]


def test_again_and_again() -> None:
    again = of_member(CONSUMER_LOST, ID, 400, f"{ID}:224", detail=EXPIRED)
    back = join(ID, at=500, channel=f"{ID}:500")
    case = case_of(topic(), join(ID), join("y"), *pause(ID, 200, 224), again, back)
    assert severities(RULE, case) == ["WARNING"]


def test_one_pause_that_several_brokers_saw_is_one() -> None:
    lived = [
        of_member(CONSUMER_LOST, ID, 202, broker_name="a", detail=EXPIRED),
        of_member(CONSUMER_JOIN, ID, 225, broker_name="a"),
    ]
    case = case_of(topic(), join(ID), join("y"), *pause(ID, 200, 224), *lived)
    assert severities(RULE, case) == ["INFO"]


def test_a_closed_connection_another_process_and_a_fixed_name() -> None:
    closed = pause(ID, 200, 224, None)
    new = [of_member(CONSUMER_LOST, ID, 200, detail=EXPIRED), join("10.0.0.1@8#2", at=224)]
    for happened in (closed, new):
        assert findings_of(RULE, case_of(topic(), join(ID), join("y"), *happened)) == []
    for name in ("10.0.0.1@svc", "10.0.0.1@svc#1"):
        fixed = pause(name, 200, 224)
        assert findings_of(RULE, case_of(topic(), join(name), *fixed)) == []


def test_one_broker_alone_and_the_interval_that_explains_it() -> None:
    lived = [
        of_member(CONSUMER_LOST, ID, 200, broker_name="a", detail=EXPIRED),
        of_member(CONSUMER_JOIN, ID, 220, broker_name="a"),
    ]
    happened = (topic(), join(ID), join("y"), *lived)
    (one,) = findings_of(RULE, case_of(*happened))
    assert one.broker_name == "a"
    assert "given up 1 time by a although it lived" in one.summary
    assert severities(RULE, case_of(*happened)) == ["INFO"]
    for interval, severity in (("200000", "WARNING"), ("60000", "INFO")):
        beats = [fact("HEARTBEAT_INTERVAL", 500, client_id=ID, interval_ms=interval)]
        case = case_of(*happened, facts=beats)
        assert severities(RULE, case) == [severity]
        (one,) = findings_of(RULE, case)
        assert ("heartbeatBrokerInterval" in one.summary) == (severity == "WARNING")
        assert ("120 s" in (one.remedy or "")) == (severity == "WARNING")
