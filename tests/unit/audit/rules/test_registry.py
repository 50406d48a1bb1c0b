import pytest

from rebalance_core.audit.group_snapshot import GroupSnapshot, Rule
from rebalance_core.audit.rules import CLUSTER_RULES, RULES, rules_by_id
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.verdicts import SEVERITIES
from tests.unit.audit.sharing import BROKER, PROXY, listed_by, mode, status
from tests.unit.audit.snapshots import (
    end,
    fact,
    findings_of,
    join,
    listed_at,
    severities,
    snapshot_of,
    topic,
)


def test_an_id_stands_for_one_rule() -> None:
    assert len(rules_by_id()) == len(RULES) + len(CLUSTER_RULES)
    with pytest.raises(ValueError, match="two rules have this id"):
        rules_by_id((RULES[0], RULES[0]))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.rule_id)
def test_every_rule_states_what_it_means_and_what_to_do(rule: Rule) -> None:
    assert rule.rule_id == rule.rule_id.upper()
    assert rule.severity in SEVERITIES
    for text in (rule.meaning, rule.remedy):
        assert len(text.split()) >= 8
        assert text.endswith(".")
    assert rule.seen_by


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.rule_id)
def test_nothing_is_found_where_nothing_is_known(rule: Rule) -> None:
    assert findings_of(rule.rule_id, snapshot_of()) == []


HEALTHY = {
    "push": snapshot_of(
        topic(),
        topic(broker="b"),
        join("x"),
        join("y", at=20),
        members=[*listed_at("a", 500, "x", "y"), *listed_at("b", 501, "x", "y")],
        ends=[end(n, 50) for n in range(4)],
        facts=[fact("GROUP_CONFIG", 0, 1000, broker_name=b, retry_queue_nums=1) for b in "ab"],
    ),
    "orderly": snapshot_of(
        topic(), join("x"), join("y", at=20), settings=GroupSettings(ordered=True), stores=()
    ),
    "broadcasting": snapshot_of(
        topic(),
        join("x", message_model="BROADCASTING"),
        settings=GroupSettings(message_model="BROADCASTING"),
        stores=(),
    ),
    "popping": snapshot_of(
        topic(),
        topic(broker="b"),
        mode(at=1),
        join("x"),
        join("y", at=20),
        settings=BROKER,
        members=[*listed_at("a", 500, "x", "y"), *listed_at("b", 501, "x", "y")],
        facts=[
            *status("x", 800, "a:-1 b:-1", retry="a"),
            *status("y", 801, "a:-1 b:-1", retry="b"),
        ],
        stores=(),
    ),
    "popping, more members than queues": snapshot_of(
        topic(read=2),
        mode("POP(share_queue_num=1)", at=1),
        *(join(c) for c in "xyz"),
        settings=BROKER,
        stores=(),
    ),
    "behind a proxy": snapshot_of(
        topic(),
        topic(broker="b"),
        join("x"),
        join("y", at=20),
        settings=PROXY,
        facts=[
            *(fact("GROUP_AT_BROKER", 499, broker_name=b, members=0) for b in "ab"),
            *listed_by("proxy-1", 500, "x", "y", language="GO"),
            *listed_by("proxy-2", 501, "x", "y"),
        ],
        stores=(),
    ),
    "remoting clients behind a proxy": snapshot_of(
        topic(),
        topic(broker="b"),
        join("x"),
        join("y", at=20),
        facts=[
            *(fact("GROUP_AT_BROKER", 499, broker_name=b, members=0) for b in "ab"),
            *listed_by("proxy-1", 500, "x", "y"),
            *listed_by("proxy-2", 501, "x", "y"),
        ],
        stores=(),
    ),
    "joined just now": snapshot_of(
        topic(), join("x"), join("y", at=999), join("y", at=999.5, channel="n"), stores=()
    ),
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.rule_id)
@pytest.mark.parametrize("group", HEALTHY.values(), ids=HEALTHY)
def test_a_healthy_group_has_no_warning(rule: Rule, group: GroupSnapshot) -> None:
    assert set(severities(rule.rule_id, group)) <= {"INFO"}
