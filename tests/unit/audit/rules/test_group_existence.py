from tests.unit.audit.cases import Row, case_of, fact, findings_of, join, severities, topic

MISSING, BACK = "GROUP_NOT_CONFIGURED", "GROUP_CAME_BACK"
CONFIG = fact("GROUP_CONFIG", 0, 1000, broker_name="a")
ONE = topic(), join("x")


def test_members_of_a_group_that_no_broker_knows() -> None:
    (one,) = findings_of(MISSING, case_of(*ONE))
    assert "none of a, which have its topics" in one.summary


def test_clients_that_no_broker_lists() -> None:
    asked = fact("NO_MEMBER_LIST", 100, 990, 90, topic="T", client_id="x")
    case = case_of(topic(), facts=[asked])
    assert severities(MISSING, case) == ["ERROR"]


def test_configured_not_collected_or_just_begun() -> None:
    assert findings_of(MISSING, case_of(*ONE, facts=[CONFIG])) == []
    assert findings_of(MISSING, case_of(*ONE, stores=("b",))) == []
    assert findings_of(MISSING, case_of(topic(), join("x", at=990))) == []


def deleted(at: float = 300) -> Row:
    return fact("GROUP_DELETED", at, broker_name="a")


def test_a_group_that_came_back_by_itself() -> None:
    again = fact("GROUP_CREATED", 301, broker_name="a", by="auto")
    (one,) = findings_of(BACK, case_of(*ONE, facts=[deleted(), again]))
    assert "is back on a" in one.summary
    assert severities(BACK, case_of(*ONE, facts=[deleted(), CONFIG])) == ["WARNING"]


def test_created_by_hand_or_gone_for_good() -> None:
    again = fact("GROUP_CREATED", 400, broker_name="a", by="admin")
    assert severities(BACK, case_of(*ONE, facts=[deleted(), again])) == ["INFO"]
    assert findings_of(BACK, case_of(*ONE, facts=[deleted()])) == []
    before = fact("GROUP_CREATED", 100, broker_name="a", by="auto")
    assert findings_of(BACK, case_of(*ONE, facts=[before, deleted()])) == []
