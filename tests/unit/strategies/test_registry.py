import re
from typing import Any

import pytest

from rebalance_core.model.errors import AllocationError, UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.known_strategies import (
    HYPOTHETICAL,
    LEAGUE_STRATEGIES,
    planning_strategy,
)
from rebalance_core.strategies import (
    AllocationStrategy,
    StrategyRefusedError,
    make_strategy,
    name_of_class,
    parse_strategy,
    registry,
)
from rebalance_core.strategies.config import Config
from rebalance_core.strategies.consistent_hash import ConsistentHash
from rebalance_core.strategies.formula import Question
from tests.unit.strategies.groups import EIGHT, MEMBERS


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("AVG_BY_CIRCEL", {}, f"known: {', '.join(registry.KNOWN_NAMES)}; did"),
        ("AVG_BY_CIRCEL", {}, "did you mean AVG_BY_CIRCLE?"),
        ("avg", {}, "did you mean AVG?"),
        ("AllocateMessageQueueAveragely", {}, "did you mean AVG?"),
        ("com.x.AllocateMessageQueueAveragelyByCircle@1f", {}, "did you mean AVG_BY_CIRCLE?"),
        ("AllocateMachineRoomNearby", {}, "did you mean MACHINE_ROOM_NEARBY-AVG?"),
        ("MACHINE_ROOM_NEARBY", {}, "needs a client strategy inside"),
        ("MACHINE_ROOM_NEARBY-POP", {}, "needs a client strategy inside"),
        ("MACHINE_ROOM_NEARBY-AVGG", {}, "unknown strategy: 'AVGG'"),
        ("MACHINE_ROOM_NEARBY-AVG", {"inner": "CONFIG"}, "inner='CONFIG' contradicts"),
        ("MACHINE_ROOM_NEARBY-AVG", {"virtual_nodes": 1}, "known: inner, room_separator"),
        ("MACHINE_ROOM_NEARBY-AVG", {"room_separator": ""}, "room_separator is empty"),
        ("MACHINE_ROOM_NEARBY-AVG", {"client_rooms": ["a"]}, "must map prefixes to rooms"),
        ("CONSISTENT_HASH", {"virtual_node": 1}, "did you mean virtual_nodes?"),
        ("CONSISTENT_HASH", {"virtual_nodes": "10"}, "must be an integer, not '10'"),
        ("CONSISTENT_HASH", {"virtual_nodes": True}, "must be an integer, not True"),
        ("CONSISTENT_HASH", {"virtual_nodes": 2**31}, "outside Java's int"),
        ("MACHINE_ROOM", {"consumer_idcs": "room1"}, "must be a list of strings"),
        ("CONFIG", {"config": ["T|broker-a"]}, "is not 'topic|broker|qid'"),
        ("CONFIG", {"config": ["T|broker-a|x"]}, "queue id 'x' is not an integer"),
        ("POP", {"inner": "CONFIG"}, "AVG, AVG_BY_CIRCLE"),
        ("AVG", {"virtual_nodes": 1}, "unknown parameter of AVG: 'virtual_nodes'; known: none"),
    ],
)
def test_mistakes_say_what_is_valid(name: str, params: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        make_strategy(name, params)


def test_an_unknown_charset_is_named() -> None:
    with pytest.raises(UsageError, match="platform_charset 'klingon' is unknown"):
        make_strategy("CONSISTENT_HASH", {"platform_charset": "klingon"}, "4.9.7")


@pytest.mark.parametrize("name", ["CONSISTENT_HASH", "MACHINE_ROOM_NEARBY-CONSISTENT_HASH"])
def test_negative_virtual_nodes_are_refused_as_the_constructor_does(name: str) -> None:
    with pytest.raises(StrategyRefusedError) as raised:
        make_strategy(name, {"virtual_nodes": -1})
    assert raised.value.java_message == "illegal virtualNodeCnt :-1"
    assert isinstance(raised.value, AllocationError)
    assert raised.value.exit_code == UsageError.exit_code


def test_inner_may_stand_in_the_params() -> None:
    params = {"inner": "CONSISTENT_HASH", "virtual_nodes": 3}
    strategy = make_strategy("MACHINE_ROOM_NEARBY", params)
    assert strategy.name == "MACHINE_ROOM_NEARBY-CONSISTENT_HASH"
    assert strategy == make_strategy("MACHINE_ROOM_NEARBY-CONSISTENT_HASH", params)


def test_a_topic_may_hold_a_bar() -> None:
    strategy = make_strategy("CONFIG", {"config": ["a|b|broker|1"]})
    assert strategy == Config((MessageQueue("a|b", "broker", 1),))


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("org.apache.rocketmq.client.consumer.rebalance.", "AVG"),
        ("com.alibaba.rocketmq.client.consumer.rebalance.", "AVG"),
        ("com.x.shade.com.alibaba.rocketmq.client.consumer.rebalance.", "AVG"),
        ("org.example.rebalance.", None),
        ("", None),
    ],
)
def test_classes_are_known_behind_every_package_of_rocketmq(package: str, name: str | None) -> None:
    assert name_of_class(package + "AllocateMessageQueueAveragely") == name
    assert name_of_class(package + "AllocateByUser") is None


@pytest.mark.parametrize(
    "text",
    [
        "CONSISTENT_HASH(virtual_nodes=100001)",
        "GO_CONSISTENT_HASH(virtual_nodes=2000000000)",
        "MACHINE_ROOM_NEARBY-CONSISTENT_HASH(virtual_nodes=100001)",
        "CONSISTENT_HASH_BOUNDED(virtual_nodes=100001)",
    ],
)
def test_a_ring_of_too_many_points_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"virtual_nodes \d+ is above 100000, the largest"):
        planning_strategy(text)
    assert str(planning_strategy(re.sub(r"\d{6,}", "100000", text)))


def test_a_ring_of_too_many_points_is_refused_where_it_is_made() -> None:
    for make in (
        lambda: make_strategy("CONSISTENT_HASH", {"virtual_nodes": 100_001}),
        lambda: make_strategy("GO_CONSISTENT_HASH", {"virtual_nodes": 100_001}),
        lambda: ConsistentHash(100_001),
    ):
        with pytest.raises(UsageError, match="virtual_nodes 100001 is above 100000"):
            make()


@pytest.mark.parametrize(
    "queues",
    ["T/a/0;T/a/1", "T/a/0 T/a/1", "T/a/0&T/a/1&T/b/2", "T/a/0/T/a/1", "T/a", "T/a/0|T/a"],
)
def test_a_list_of_queues_of_another_form_is_refused_with_the_valid_form(queues: str) -> None:
    with pytest.raises(UsageError, match=r"is not topic/broker/queue id; .*queues=T/broker-a/0\|T"):
        parse_strategy(f"CONFIG(queues={queues})")


def test_a_slash_in_a_name_is_read_back() -> None:
    strategy = make_strategy("CONFIG", {"config": [MessageQueue("a/b", "c/d", 0)]})
    assert str(strategy) == "CONFIG(queues=a%2Fb/c%2Fd/0)"
    assert parse_strategy(str(strategy)) == strategy


@pytest.mark.parametrize(
    "text",
    ["CONSISTENT_HASH(virtual_nodes=DIGITS)", "CONFIG(queues=T/a/DIGITS)"],
)
def test_a_number_of_5000_digits_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is outside Java's int") as caught:
        parse_strategy(text.replace("DIGITS", "9" * 5_000))
    assert len(str(caught.value)) < 300


def test_what_classes_declare_is_what_the_rest_knows() -> None:
    assert {"AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"} <= {*registry.CANDIDATES}
    for text in registry.CANDIDATES:
        parse_strategy(text)
    assert {str(planning_strategy(text)) for text in LEAGUE_STRATEGIES} >= {
        "AVG",
        "AVG_BY_CIRCLE",
        "CONSISTENT_HASH(virtual_nodes=10)",
        "CONSISTENT_HASH(virtual_nodes=100)",
        "CONSISTENT_HASH(virtual_nodes=500)",
        "MACHINE_ROOM_NEARBY-AVG(room_separator=-)",
        "STICKY_BALANCED",
        "CONSISTENT_HASH_BOUNDED(epsilon=0.25, virtual_nodes=10)",
    }
    declared = [one.NAME for one in registry.STRATEGIES] + [one.NAME for one in HYPOTHETICAL]
    assert len(set(declared)) == len(declared)


@pytest.mark.parametrize("strategy", registry.STRATEGIES, ids=lambda one: str(one.NAME))
def test_every_strategy_has_a_formula_of_its_own(strategy: type[AllocationStrategy]) -> None:
    """POP's depends on who pops: `rebalance_core.strategies.pop.pop_formula`."""
    assert ("formula" in vars(strategy)) == (strategy.NAME != "POP")


TEXTS = {
    "CONSISTENT_HASH": "CONSISTENT_HASH(virtual_nodes=10)",
    "GO_CONSISTENT_HASH": "GO_CONSISTENT_HASH(virtual_nodes=3)",
    "GO_MACHINE_ROOM": "GO_MACHINE_ROOM(consumer_idcs=broker-a)",
    "MACHINE_ROOM": "MACHINE_ROOM(consumer_idcs=broker-a)",
    "MACHINE_ROOM_NEARBY": "MACHINE_ROOM_NEARBY(inner=AVG, room_separator=-)",
}
"""A text of each strategy that needs parameters."""


ASKED = [one for one in registry.STRATEGIES if one.NAME not in ("CONFIG", "POP")]
"""Not CONFIG, whose list each member has for itself, nor POP, where it depends on who pops."""


@pytest.mark.parametrize("strategy", ASKED, ids=lambda one: str(one.NAME))
def test_every_formula_answers_what_the_strategy_allocates(
    strategy: type[AllocationStrategy],
) -> None:
    made = parse_strategy(TEXTS.get(strategy.NAME, strategy.NAME))
    for queue in EIGHT:
        owners = [one for one in MEMBERS if queue in made.allocate(one, EIGHT, MEMBERS)]
        formula = made.formula(Question(queue, EIGHT, MEMBERS))
        assert formula.owner == next(iter(owners), None)
        assert len(owners) < 2
        assert formula.values.get("queueIndex") in (None, EIGHT.index(queue))
