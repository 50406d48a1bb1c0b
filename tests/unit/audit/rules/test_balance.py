"""Balance: skew, idle members, queues that a strategy never reaches."""

from dataclasses import replace

import pytest

from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.model.events import CONSUMER_SUSPEND
from rebalance_core.model.group_settings import GroupSettings
from tests.unit.audit.sharing import BROKER, PROXY, mode
from tests.unit.audit.snapshots import (
    end,
    findings_of,
    join,
    of_member,
    severities,
    snapshot_of,
    topic,
)

TOPICS = [f"T{n}" for n in range(4)]


def test_the_surplus_of_many_topics_falls_to_the_first() -> None:
    members = [join(f"c{n}", *TOPICS) for n in range(4)]
    group = snapshot_of(*(topic(name, read=5) for name in TOPICS), *members)
    (one,) = findings_of("SURPLUS_SKEW", group)
    assert "c0 hold 8 queues" in one.summary


def test_an_even_division_is_no_skew() -> None:
    members = [join(f"c{n}", *TOPICS) for n in range(4)]
    assert (
        findings_of("SURPLUS_SKEW", snapshot_of(*(topic(n, read=8) for n in TOPICS), *members))
        == []
    )
    few = [join(f"c{n}", *TOPICS[:2]) for n in range(4)]
    assert (
        findings_of("SURPLUS_SKEW", snapshot_of(*(topic(n, read=1) for n in TOPICS[:2]), *few))
        == []
    )


def hashed(nodes: int, language: str = "JAVA") -> GroupSnapshot:
    text = f"CONSISTENT_HASH(virtual_nodes={nodes})"
    members = (join(f"10.0.0.{n}@1", strategy=text, language=language) for n in range(8))
    return snapshot_of(topic(read=64), *members)


@pytest.mark.parametrize("language", ["JAVA", "GO"])
def test_a_ring_with_few_points(language: str) -> None:
    (one,) = findings_of("HASH_IMBALANCE", hashed(1, language))
    assert "of 64 queues; the mean of 8 members is 8.0" in one.summary


def test_a_ring_with_many_points_and_other_strategies() -> None:
    assert findings_of("HASH_IMBALANCE", hashed(500)) == []
    assert findings_of("HASH_IMBALANCE", snapshot_of(topic(read=1), join("x"), join("y"))) == []


def test_members_without_any_queue_are_another_rule() -> None:
    members = [join(f"c{n:02}", *TOPICS) for n in range(20)]
    assert (
        findings_of(
            "SURPLUS_SKEW", snapshot_of(*(topic(name, read=2) for name in TOPICS), *members)
        )
        == []
    )


IDLE_MEMBER = "IDLE_MEMBER"
THREE = join("x"), join("y"), join("z")


def test_more_members_than_queues() -> None:
    (one,) = findings_of(IDLE_MEMBER, snapshot_of(topic(read=2), *THREE))
    assert one.client_id == "z"
    assert "3 members share T 2 queues" in one.summary


def test_enough_queues() -> None:
    assert findings_of(IDLE_MEMBER, snapshot_of(topic(read=3), *THREE)) == []


def test_suspended_broadcasting_and_config_members_are_not_idle() -> None:
    paused = of_member(CONSUMER_SUSPEND, "z", 50)
    assert findings_of(IDLE_MEMBER, snapshot_of(topic(read=2), *THREE, paused)) == []
    alone = join("x", strategy="CONFIG"), join("y", strategy="CONFIG(queues=T/a/0)")
    assert findings_of(IDLE_MEMBER, snapshot_of(topic(read=1), *alone)) == []


def test_members_that_subscribe_nothing_read_what_their_applications_name() -> None:
    named = replace(join("x"), subscriptions=())
    pulls = GroupSettings(consumer_type="LITE_PULL")
    assert findings_of(IDLE_MEMBER, snapshot_of(topic(read=2), named, settings=pulls)) == []


def test_a_member_that_came_just_now() -> None:
    assert findings_of(IDLE_MEMBER, snapshot_of(topic(read=2), *THREE[:2], join("z", at=999))) == []


def test_a_strategy_that_leaves_a_member_out() -> None:
    many = [join(f"c{n}", strategy="CONSISTENT_HASH(virtual_nodes=1)") for n in range(8)]
    group = snapshot_of(topic(read=8), *many)
    assert severities(IDLE_MEMBER, group) == ["WARNING"]
    assert "although there are enough" in findings_of(IDLE_MEMBER, group)[0].summary


POP_UNREACHED_QUEUE = "POP_UNREACHED_QUEUE"
HASH = "CONSISTENT_HASH"


def test_a_strategy_that_brokers_do_not_know() -> None:
    members = join("x", strategy=HASH), join("y", strategy=HASH)
    group = snapshot_of(
        topic(), mode(at=1), *members, settings=BROKER, ends=[end(n, 5) for n in range(4)]
    )
    (one,) = findings_of(POP_UNREACHED_QUEUE, group)
    assert severities(POP_UNREACHED_QUEUE, group) == ["ERROR"]
    assert "4 queues of T (a:0-3): 20 messages behind" in one.summary
    assert "brokers do not know the strategy CONSISTENT_HASH" in one.summary


def test_a_member_that_does_not_subscribe_the_topic() -> None:
    """It counts: its part is popped by its neighbours only."""
    members = [join("a"), *(join(name, "U") for name in "bcd")]
    group = snapshot_of(
        topic(), topic("U"), mode("POP(share_queue_num=1)", at=1), *members, settings=BROKER
    )
    (one,) = findings_of(POP_UNREACHED_QUEUE, group)
    assert one.evidence["queues"] == "a:2-3"
    assert one.evidence["behind"] == "unknown"


def test_everything_is_reached() -> None:
    many = [join(name) for name in "abcdef"]
    for share in (-1, 0, 1, 2, 4):
        for members in (many[:1], many[:2], many[:3], many):
            happened = topic(), mode(f"POP(share_queue_num={share})", at=1), *members
            assert findings_of(POP_UNREACHED_QUEUE, snapshot_of(*happened, settings=BROKER)) == []
    assert findings_of(POP_UNREACHED_QUEUE, snapshot_of(topic(), *many, settings=PROXY)) == []


def test_just_now() -> None:
    late = join("x", strategy=HASH, at=999)
    assert (
        findings_of(POP_UNREACHED_QUEUE, snapshot_of(topic(), mode(at=1), late, settings=BROKER))
        == []
    )
