from rebalance_core.model.events import CONSUMER_SUSPEND
from rebalance_core.model.group_settings import BROADCASTING, LITE_PULL, GroupSettings
from tests.unit.audit.cases import case_of, findings_of, join, of_member, severities, topic

RULE = "RESTLESS_PASSES"
BY_HAND = "CONFIG(queues=T/a/0)"


def test_lists_by_hand_from_5_2_on() -> None:
    old = join("old", strategy=BY_HAND, version="5.1.4")
    new = join("new", strategy=BY_HAND, version="5.2.0")
    case = case_of(topic(), old, new)
    (one,) = findings_of(RULE, case)
    assert one.client_id == "new"
    assert severities(RULE, case) == ["INFO"]


def test_other_strategies_models_and_consumers() -> None:
    by_hand = join("x", strategy=BY_HAND, version="5.3.3")
    assert findings_of(RULE, case_of(topic(), join("x", version="5.3.3"))) == []
    for settings in (
        GroupSettings(message_model=BROADCASTING),
        GroupSettings(consumer_type=LITE_PULL),
    ):
        assert findings_of(RULE, case_of(topic(), by_hand, settings=settings)) == []
    paused = of_member(CONSUMER_SUSPEND, "x", 50)
    assert findings_of(RULE, case_of(topic(), by_hand, paused)) == []
