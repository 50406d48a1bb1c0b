import pytest

from rebalance_core.model.group_settings import GroupSettings
from tests.unit.audit.cases import case_of, findings_of, join, leave, severities, topic
from tests.unit.audit.sharing import BROKER, PROXY, mode

RULE = "POP_IGNORED"
TWO = join("x"), join("y")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (GroupSettings(), "clientRebalance = true"),
        (GroupSettings(rebalance_mode="BROKER", ordered=True), "an orderly listener"),
        (GroupSettings(rebalance_mode="BROKER", client_version="4.9"), "client version 4.9"),
        (GroupSettings(rebalance_mode="BROKER", message_model="BROADCASTING"), "broadcasting"),
        (GroupSettings(consumer_type="LITE_PULL"), "only push consumers"),
    ],
)
def test_a_mode_without_effect(settings: GroupSettings, why: str) -> None:
    (one,) = findings_of(RULE, case_of(topic(), *TWO, mode(), settings=settings))
    assert why in one.summary
    assert "(x, y)" in one.summary
    assert one.topic == "T"


def test_each_member_with_its_own_reason() -> None:
    members = join("x", version="4.9.7"), join("y")
    (one,) = findings_of(RULE, case_of(topic(), *members, mode()))
    assert one.evidence["client version 4.9.7 knows no POP"] == "x"
    assert one.evidence["clientRebalance = true, the default"] == "y"


def test_a_mode_that_somebody_follows() -> None:
    some = *TWO, join("z", rebalance_mode="CLIENT")
    assert findings_of(RULE, case_of(topic(), *some, mode(), settings=BROKER)) == []
    assert findings_of(RULE, case_of(topic(), *TWO, mode(), settings=PROXY)) == []


def test_pull_nobody_left_and_a_mode_set_just_now() -> None:
    assert findings_of(RULE, case_of(topic(), *TWO, mode(), mode("PULL", at=30))) == []
    gone = leave("x", 40), leave("y", 41)
    assert findings_of(RULE, case_of(topic(), *TWO, mode(), *gone)) == []
    assert findings_of(RULE, case_of(topic(), *TWO, mode(at=999))) == []
    assert findings_of(RULE, case_of(topic(), *TWO, mode(name="%RETRY%g"))) == []
    assert severities(RULE, case_of(topic(), *TWO, mode())) == ["WARNING"]
