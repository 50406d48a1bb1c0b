from tests.unit.audit.cases import Row, case_of, fact, findings_of, join, severities, topic

RULE = "INCONSISTENT_TAGS"
MEMBERS = topic(), join("x"), join("y")


def said(client: str, expression: str, at: float = 500) -> Row:
    return fact("CLIENT_TOPIC", at, topic="T", client_id=client, expression=expression)


def flip(old: str, new: str, at: float, until: float | None = None, times: int = 1) -> Row:
    return fact("TAGS_CHANGED", at, until, times, topic="T", broker_name="a", old=old, new=new)


def test_clients_with_different_expressions() -> None:
    (one,) = findings_of(RULE, case_of(*MEMBERS, facts=[said("x", "red"), said("y", "blue")]))
    assert one.topic == "T"
    assert "'blue' of y" in one.summary


def test_they_differ_since_they_joined() -> None:
    facts = [said("x", "red", at=10), said("y", "blue", at=11)]
    assert severities(RULE, case_of(*MEMBERS, facts=facts)) == ["ERROR"]
    late = topic(), join("x"), join("y", at=985)
    assert severities(RULE, case_of(*late, facts=facts)) == ["INFO"]


def test_the_order_of_tags_does_not_matter() -> None:
    assert (
        findings_of(RULE, case_of(*MEMBERS, facts=[said("x", "a || b"), said("y", "b||a")])) == []
    )


def test_a_client_that_is_gone_does_not_count() -> None:
    assert findings_of(RULE, case_of(*MEMBERS, facts=[said("x", "a"), said("old", "b")])) == []


def test_an_expression_that_flips() -> None:
    flips = [flip("a", "b", 100, 995, 30), flip("b", "a", 115, 980, 30)]
    assert severities(RULE, case_of(*MEMBERS, facts=flips)) == ["ERROR"]


def test_flips_while_members_are_replaced_have_a_cause() -> None:
    flips = [flip("a", "b", 12, 15, 2), flip("b", "a", 13)]
    assert severities(RULE, case_of(*MEMBERS, facts=flips)) == ["INFO"]


def test_a_single_change_is_no_flip() -> None:
    assert findings_of(RULE, case_of(*MEMBERS, facts=[flip("a", "b", 500)])) == []
