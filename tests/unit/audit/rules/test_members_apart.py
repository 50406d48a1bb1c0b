from rebalance_core.model.group_settings import GroupSettings
from tests.unit.audit.cases import (
    case_of,
    fact,
    findings_of,
    join,
    listed_at,
    ms,
    severities,
    topic,
)
from tests.unit.audit.sharing import listed_by

RULE = "MEMBERS_APART"
TWO = topic(), topic(broker="b"), join("x"), join("y", at=20)
AT_BROKERS = [*listed_at("a", 500, "x"), *listed_at("b", 501, "x")]


def test_neither_side_lists_the_other_s_members() -> None:
    case = case_of(*TWO, members=AT_BROKERS, facts=listed_by("p1", 502, "y"))
    (one,) = findings_of(RULE, case)
    assert severities(RULE, case) == ["ERROR"]
    assert "1 member at brokers (x) and 1 behind proxies (y)" in one.summary
    assert (one.first_ms, one.last_ms) == (ms(500), None)


def test_later_all_are_on_one_side() -> None:
    later = [*listed_by("p1", 502, "y"), *listed_by("p1", 802, "x", "y")]
    nobody = fact("GROUP_AT_BROKER", 800, broker_name="a", members=0)
    case = case_of(*TWO, members=AT_BROKERS, facts=[*later, nobody])
    (one,) = findings_of(RULE, case)
    assert severities(RULE, case) == ["WARNING"]
    assert one.last_ms == ms(800)


def test_grpc_clients_divide_nothing() -> None:
    mixed = topic(), join("x"), join("y", at=20, rebalance_mode="PROXY")
    case = case_of(*mixed, members=listed_at("a", 500, "x"), facts=listed_by("p1", 502, "y"))
    assert findings_of(RULE, case) == []


def test_a_proxy_inside_a_broker_lists_the_broker_s_members() -> None:
    case = case_of(*TWO, members=AT_BROKERS, facts=listed_by("p1", 502, "x", "y"))
    assert findings_of(RULE, case) == []


def test_sides_asked_at_different_times_and_broadcasting() -> None:
    apart = case_of(*TWO, members=AT_BROKERS, facts=listed_by("p1", 800, "y"))
    assert findings_of(RULE, apart) == []
    news = GroupSettings(message_model="BROADCASTING")
    model = "BROADCASTING"
    both = topic(), join("x", message_model=model), join("y", at=20, message_model=model)
    facts = listed_by("p1", 502, "y")
    case = case_of(*both, members=AT_BROKERS, facts=facts, settings=news)
    assert findings_of(RULE, case) == []
