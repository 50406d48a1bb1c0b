import pytest

from rebalance_core.model.group_settings import GroupSettings
from tests.unit.audit.cases import Row, case_of, fact, findings_of, join, severities, topic

RULE = "NOTICES_OFF"


def config(broker: str, switch: str, at: float = 1000) -> Row:
    details: Row = {"notify_consumer_ids_changed_enable": switch}
    return fact("GROUP_CONFIG", at, at, broker_name=broker, **details)


def test_a_group_that_is_not_told_of_changes_is_named_with_what_it_means() -> None:
    case = case_of(topic(), join("x"), facts=[config("a", "false"), config("b", "true")])
    (one,) = findings_of(RULE, case)
    assert severities(RULE, case) == ["INFO"]
    assert "changes take up to 23 s; windows and `propagate` do not know yet" in one.summary
    assert (one.broker_name, one.evidence) == ("a", {"brokers": "a"})


@pytest.mark.parametrize(
    ("facts", "settings"),
    [
        ([config("a", "true")], GroupSettings()),
        ([config("a", "")], GroupSettings()),  # that version has no such field
        ([config("a", "false", 500), config("a", "true")], GroupSettings()),
        ([config("a", "false")], GroupSettings(message_model="BROADCASTING")),
    ],
)
def test_nothing_is_said_where_members_are_told_or_need_not_be(
    facts: list[Row], settings: GroupSettings
) -> None:
    assert findings_of(RULE, case_of(topic(), join("x"), facts=facts, settings=settings)) == []
