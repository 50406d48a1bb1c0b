from tests.unit.audit.cases import case_of, findings_of, join, leave, ms, severities, topic
from tests.unit.audit.sharing import BROKER, PROXY, mode

RULE = "POP_MIXED_WITH_PULL"
TWO = join("x"), join("y")
PULLS = join("z", at=50, rebalance_mode="CLIENT")


def test_both_sides_are_named() -> None:
    case = case_of(topic(), *TWO, mode(), PULLS, settings=BROKER)
    (one,) = findings_of(RULE, case)
    assert severities(RULE, case) == ["ERROR"]
    assert "2 members (x, y) pop T while z pull a share" in one.summary
    assert (one.evidence["pop"], one.evidence["pull"]) == ("x, y", "z")
    assert (one.client_id, one.first_ms, one.last_ms) == ("z", ms(50), None)


def test_a_client_behind_a_proxy_beside_one_that_pulls() -> None:
    members = join("x"), join("y", rebalance_mode="CLIENT")
    (one,) = findings_of(RULE, case_of(topic(), *members, settings=PROXY))
    assert (one.evidence["behind_a_proxy"], one.evidence["pull"]) == ("x", "y")


def test_a_client_behind_a_proxy_and_one_that_asks_the_broker_in_pull_mode() -> None:
    members = join("x"), join("y", rebalance_mode="BROKER")
    assert len(findings_of(RULE, case_of(topic(), *members, settings=PROXY))) == 1
    assert findings_of(RULE, case_of(topic(), mode(at=5), *members, settings=PROXY)) == []


def test_long_ago() -> None:
    happened = *TWO, mode(), PULLS, leave("y", 300), leave("z", 500)
    case = case_of(topic(), *happened, settings=BROKER)
    (one,) = findings_of(RULE, case)
    assert one.evidence["pop"] == "x, y"
    assert severities(RULE, case) == ["WARNING"]
    assert "messages were consumed twice" in one.summary
    assert (one.evidence["pull"], one.last_ms) == ("z", ms(500))


def test_all_the_same_way_for_a_short_time_or_just_now() -> None:
    pop, pull = mode(), join("z", at=50)
    assert findings_of(RULE, case_of(topic(), *TWO, pop, pull, settings=BROKER)) == []
    assert findings_of(RULE, case_of(topic(), *TWO, pop, PULLS)) == []  # nobody pops
    short = case_of(topic(), *TWO, pop, PULLS, leave("z", 100), settings=BROKER)
    assert findings_of(RULE, short) == []
    now = join("z", at=999, rebalance_mode="CLIENT")
    assert findings_of(RULE, case_of(topic(), *TWO, pop, now, settings=BROKER)) == []


def test_one_who_pulls_another_topic() -> None:
    other = join("z", "U", at=50, rebalance_mode="CLIENT")
    case = case_of(topic(), topic("U"), *TWO, mode(), other, settings=BROKER)
    assert findings_of(RULE, case) == []
