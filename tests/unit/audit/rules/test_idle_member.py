from dataclasses import replace

from rebalance_core.model.events import CONSUMER_SUSPEND
from rebalance_core.model.group_settings import GroupSettings
from tests.unit.audit.cases import case_of, findings_of, join, of_member, severities, topic

RULE = "IDLE_MEMBER"
THREE = join("x"), join("y"), join("z")


def test_more_members_than_queues() -> None:
    (one,) = findings_of(RULE, case_of(topic(read=2), *THREE))
    assert one.client_id == "z"
    assert "3 members share T 2 queues" in one.summary


def test_enough_queues() -> None:
    assert findings_of(RULE, case_of(topic(read=3), *THREE)) == []


def test_suspended_broadcasting_and_config_members_are_not_idle() -> None:
    paused = of_member(CONSUMER_SUSPEND, "z", 50)
    assert findings_of(RULE, case_of(topic(read=2), *THREE, paused)) == []
    alone = join("x", strategy="CONFIG"), join("y", strategy="CONFIG(queues=T/a/0)")
    assert findings_of(RULE, case_of(topic(read=1), *alone)) == []


def test_members_that_subscribe_nothing_read_what_their_applications_name() -> None:
    named = replace(join("x"), subscriptions=())
    pulls = GroupSettings(consumer_type="LITE_PULL")
    assert findings_of(RULE, case_of(topic(read=2), named, settings=pulls)) == []


def test_a_member_that_came_just_now() -> None:
    assert findings_of(RULE, case_of(topic(read=2), *THREE[:2], join("z", at=999))) == []


def test_a_strategy_that_leaves_a_member_out() -> None:
    many = [join(f"c{n}", strategy="CONSISTENT_HASH(virtual_nodes=1)") for n in range(8)]
    case = case_of(topic(read=8), *many)
    assert severities(RULE, case) == ["WARNING"]
    assert "although there are enough" in findings_of(RULE, case)[0].summary
