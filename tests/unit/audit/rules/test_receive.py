"""SimpleConsumers that come round to a broker too rarely."""

from dataclasses import replace

import pytest

from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import GroupSettings
from tests.unit.audit.snapshots import (
    findings_of,
    join,
    leave,
    severities,
    snapshot_of,
    topic,
)

RULE = "RECEIVE_STARVES"
SIMPLE = GroupSettings(consumer_type="PULL", rebalance_mode="PROXY")
TWO = topic(), topic(broker="b")


def test_one_client_and_two_brokers() -> None:
    group = snapshot_of(*TWO, join("x"), settings=SIMPLE)
    (one,) = findings_of(RULE, group)
    assert severities(RULE, group) == ["INFO"]
    assert (one.topic, one.broker_name) == ("T", "a")
    assert "waits up to 80 s (99 of 100 at most 78 s)" in one.summary
    assert (one.evidence["queues"], one.evidence["empty_calls"]) == ("8", "4")


def test_the_broker_with_the_fewest_queues_is_asked_most_rarely() -> None:
    brokers = topic(), topic(broker="b", read=1)
    (one,) = findings_of(RULE, snapshot_of(*brokers, join("x"), settings=SIMPLE))
    assert (one.broker_name, one.evidence["longest_s"]) == ("b", "80")


def test_several_topics_take_turns() -> None:
    more = [topic(f"T{n}") for n in range(5)]
    names = [one.topic or "" for one in more]
    found = findings_of(RULE, snapshot_of(*more, join("x", *names), settings=SIMPLE))
    assert [one.evidence["longest_s"] for one in found] == ["80"] * 5
    some = [topic(f"T{n}") for n in range(3)]
    names = [one.topic or "" for one in some]
    assert findings_of(RULE, snapshot_of(*some, join("x", *names), settings=SIMPLE)) == []


def test_a_broker_that_is_down_is_not_asked() -> None:
    group = snapshot_of(*TWO, join("x"), settings=SIMPLE)
    down = replace(group, run=replace(group.run, down=frozenset({"b"})))
    assert findings_of(RULE, down) == []


@pytest.mark.parametrize(
    ("settings", "happened"),
    [
        (SIMPLE, (topic(read=8), join("x"))),
        (SIMPLE, (*TWO, *(join(f"c{n}") for n in range(4)))),
        (SIMPLE, (*TWO, join("x"), leave("x", 500))),
        (SIMPLE, (topic(), topic(broker="b", perm=2), join("x"))),
        (SIMPLE, (topic(read=2), topic(broker="b", read=2), join("x"))),
        (GroupSettings(rebalance_mode="PROXY"), (*TWO, join("x"))),
        (GroupSettings(consumer_type="PULL"), (*TWO, join("x"))),
    ],
)
def test_who_waits_for_no_long(settings: GroupSettings, happened: tuple[Event, ...]) -> None:
    assert findings_of(RULE, snapshot_of(*happened, settings=settings)) == []
