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


def of(language: str, client: str = "x", *topics: str) -> Event:
    return replace(join(client, *topics), language=language)


def test_pythons_client_asks_queues_at_random() -> None:
    (one,) = findings_of(RULE, snapshot_of(*TWO, of("PYTHON"), settings=SIMPLE))
    assert "waits at most 114 s in 99 of 100 cases (there is no upper bound) while" in one.summary
    assert one.evidence["turns"] == "RANDOM_QUEUES"
    assert "longest_s" not in one.evidence


def test_gos_client_asks_topics_at_random() -> None:
    topics = topic("T0"), topic("T1")
    both = "T0", "T1"
    several = [*topics, topic("T0", broker="b"), topic("T1", broker="b")]
    found = findings_of(RULE, snapshot_of(*several, of("GO", "x", *both), settings=SIMPLE))
    assert {one.evidence["turns"] for one in found} == {"RANDOM_TOPICS"}
    assert all("topics at random" in one.summary for one in found)
    (alone,) = findings_of(RULE, snapshot_of(*TWO, of("GO"), settings=SIMPLE))
    assert (alone.evidence["longest_s"], alone.evidence["turns"]) == ("80", "IN_TURN")


def test_nodes_client_asks_one_queue_of_each_broker() -> None:
    assert findings_of(RULE, snapshot_of(*TWO, of("NODE_JS"), settings=SIMPLE)) == []
    many = [topic(broker=name) for name in "abcde"]
    (one,) = findings_of(RULE, snapshot_of(*many, of("NODE_JS"), settings=SIMPLE))
    assert (one.evidence["longest_s"], one.evidence["queues"]) == ("80", "20")
    assert "only queue 0 of each broker" in one.summary


def test_a_client_that_asks_in_turn_bounds_the_wait_for_the_others() -> None:
    both = of("PYTHON"), of("JAVA", "y")
    assert findings_of(RULE, snapshot_of(*TWO, *both, settings=SIMPLE)) == []
    (one,) = findings_of(RULE, snapshot_of(*TWO, topic(broker="c"), *both, settings=SIMPLE))
    assert (one.evidence["longest_s"], one.evidence["clients"]) == ("160", "2")
    assert one.evidence["turns"] == "IN_TURN, RANDOM_QUEUES"
    assert (
        "going through the queues of the route or selecting topics in turn and queues at random; "
        "here 2 clients with one call at a time cover 12 queues" in one.summary
    )


@pytest.mark.parametrize(
    "languages",
    [
        ("JAVA", "JAVA", "GO", "GO"),
        (None, None, "JAVA", "JAVA"),
        ("JAVA", "GO", "DOTNET", "RUST"),
    ],
)
def test_clients_that_select_alike_count_together(languages: tuple[str | None, ...]) -> None:
    clients = [replace(join(f"c{n}"), language=one) for n, one in enumerate(languages)]
    assert findings_of(RULE, snapshot_of(*TWO, *clients[:4], settings=SIMPLE)) == []
    (two,) = findings_of(RULE, snapshot_of(*TWO, *clients[1:3], settings=SIMPLE))
    assert two.evidence["clients"] == "2"
    assert "(99 of 100 at most 64 s)" in two.summary


def test_topics_of_one_broker_are_asked_in_turn() -> None:
    names = [f"T{n}" for n in range(5)]
    group = snapshot_of(*map(topic, names), of("PYTHON", "x", *names), settings=SIMPLE)
    found = findings_of(RULE, group)
    assert {(one.evidence["longest_s"], one.evidence["turns"]) for one in found} == {
        ("80", "IN_TURN")
    }
    assert all("no upper bound" not in one.summary for one in found)
