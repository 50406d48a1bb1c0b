from rebalance_core.model.events import CONSUMER_LOST, EXPIRED, Event
from tests.unit.audit.cases import case_of, findings_of, join, of_member, severities, topic

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


def test_a_closed_connection_another_process_and_a_fixed_name() -> None:
    closed = pause(ID, 200, 224, None)
    new = [of_member(CONSUMER_LOST, ID, 200, detail=EXPIRED), join("10.0.0.1@8#2", at=224)]
    for happened in (closed, new):
        assert findings_of(RULE, case_of(topic(), join(ID), join("y"), *happened)) == []
    for name in ("10.0.0.1@svc", "10.0.0.1@svc#1"):
        fixed = pause(name, 200, 224)
        assert findings_of(RULE, case_of(topic(), join(name), *fixed)) == []
