from rebalance_core.model.events import CONSUMER_LOST, Event
from tests.unit.audit.cases import case_of, findings_of, join, leave, of_member, severities, topic

RULE = "MEMBER_FLAPS"
STEADY = topic(), join("10.0.0.9@1#1")


def restarts(times: int, step: float, stay: float) -> list[Event]:
    """Processes of one host, each there for ``stay`` seconds."""
    happened = []
    for number in range(times):
        client, at = f"10.0.0.1@{number}#1", 20 + number * step
        happened += [join(client, at=at), leave(client, at + stay)]
    return happened


def test_a_container_in_a_crash_loop() -> None:
    case = case_of(*STEADY, *restarts(6, 60, 20))
    (one,) = findings_of(RULE, case)
    assert "6 processes of 10.0.0.1 joined and went 6 times" in one.summary
    assert severities(RULE, case) == ["WARNING"]


def test_a_connection_that_keeps_breaking() -> None:
    happened = []
    for number in range(5):
        at, channel = 20 + 40 * number, f"channel-{number}"
        happened.append(join("x", at=at, channel=channel))
        happened.append(of_member(CONSUMER_LOST, "x", at + 10, channel))
    (one,) = findings_of(RULE, case_of(*STEADY, *happened))
    assert one.client_id == "x"
    assert "x connected anew and was gone again 5 times" in one.summary


def test_long_ago_is_for_information() -> None:
    assert severities(RULE, case_of(*STEADY, *restarts(6, 60, 20), until=9000)) == ["INFO"]


def test_restarts_that_stay_or_are_few_or_far_apart() -> None:
    for happened in (restarts(4, 60, 20), restarts(6, 200, 180), restarts(6, 4000, 20)):
        assert findings_of(RULE, case_of(*STEADY, *happened, until=30_000)) == []


def test_connections_of_one_process_that_overlap_are_one_stay() -> None:
    happened = []
    for number in range(6):
        at, channel = 20 + 10 * number, f"channel-{number}"
        happened.append(join("x", at=at, channel=channel))
        happened.append(of_member(CONSUMER_LOST, "x", at + 15, channel))
    assert findings_of(RULE, case_of(*STEADY, *happened)) == []
