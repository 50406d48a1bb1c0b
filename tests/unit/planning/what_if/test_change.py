"""Changes: built, joined, read from a mapping; client ids in parts; every mistake of the input
named.
"""

import re
import tomllib
from ipaddress import IPv4Address
from typing import Any

import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.planning import (
    Change,
    add_consumers,
    lose_broker,
    remove_consumers,
    set_queues,
    switch_strategy,
    what_if,
)
from rebalance_core.planning.scenario.group_life import newcomer, restarted
from rebalance_core.planning.what_if.change import (
    address_of,
    addresses_from,
    addresses_of_network,
    host_of,
    new_client_ids,
    read_change,
    read_made_id,
)
from rebalance_core.synthetic.draws import Draws

# Changes: built, joined, read from a mapping, and every mistake of the input named.

QUEUES = {"orders": {"broker-a": 4}}


def mistakes(*arguments: Any, **keywords: Any) -> list[str]:
    with pytest.raises(UsageError) as caught:
        what_if(*arguments, **keywords)
    return str(caught.value).splitlines()


def test_functions_and_mappings_say_the_same() -> None:
    built = (
        add_consumers(2, "web-{n}") | remove_consumers(["x", "y"]) | lose_broker("broker-b")
        | set_queues({"orders": {"broker-a": 8}}) | switch_strategy("STICKY_BALANCED")
    )  # fmt: skip
    toml = """
        add_consumers = 2
        client_id_template = "web-{n}"
        remove_consumers = ["x", "y"]
        lose_broker = "broker-b"
        strategy = "STICKY_BALANCED"
        [queues.orders]
        broker-a = 8
    """
    assert read_change(tomllib.loads(toml)) == built
    assert str(built) == (
        "+2 consumers, without x, y, broker broker-b lost, orders: 8 queues on broker-a,"
        " strategy STICKY_BALANCED"
    )
    assert read_change({}) == Change()
    assert str(Change()) == "no change"


def test_joined_changes_add_up_and_the_last_word_holds() -> None:
    joined = (
        add_consumers(1) | add_consumers(2) | remove_consumers(1) | remove_consumers(1)
        | lose_broker("a") | lose_broker("a", "b") | switch_strategy("AVG")
        | set_queues({"T": {"a": 1, "b": 1}}) | set_queues({"T": {"b": 2}})
        | switch_strategy("AVG_BY_CIRCLE") | add_consumers(0)
    )  # fmt: skip
    assert (joined.add_consumers, joined.remove_consumers) == (3, 2)
    assert joined.lose_broker == ("a", "b")
    assert joined.queues == {"T": {"a": 1, "b": 2}}
    assert str(joined.strategy) == "AVG_BY_CIRCLE"
    with pytest.raises(UsageError, match="not both"):
        remove_consumers(1) | remove_consumers("x")


def test_every_mistake_is_named_at_once() -> None:
    found = mistakes(
        [1, "x"], {"orders": {"a": -1, "b": True}, "": {}, "pay": 3}, "AVGG",
        {"ad_consumers": 1, "remove_consumers": -2, "strategy": "MACHINEROOM"},
        message_model="BROADCAST",
    )  # fmt: skip
    expected = (
        "queues.orders.a = -1", "queues.orders.b = True", "queues: ''", "queues.pay = 3",
        "members: 1", "message_model = 'BROADCAST'", "strategy = 'AVGG'", "did you mean add_c",
        "remove_consumers = -2", "strategy = 'MACHINEROOM'",
    )  # fmt: skip
    assert len(found) == len(expected)
    assert all(part in line for part, line in zip(expected, found, strict=True)), found


@pytest.mark.parametrize(
    ("members", "queues", "change", "named"),
    [
        ("x", QUEUES, {}, "members = 'x'"),
        (["x"], [], {}, "queues = []"),
        (["x"], ["T"], {}, "'T' is not a MessageQueue"),
        (["x"], {}, {}, "queues = {}"),
        ({"x": ["ordes"]}, QUEUES, {}, "did you mean orders?"),
        ({"x": "orders"}, QUEUES, {}, "expected a list of topics"),
        (["x"], QUEUES, 5, "change = 5"),
        (["x"], QUEUES, {"lose_broker": "broker-b"}, "did you mean broker-a?"),
        (["x"], QUEUES, {"lose_broker": 3}, "lose_broker = 3"),
        (["x"], QUEUES, {"remove_consumers": 2}, "has only 1"),
        (["x"], QUEUES, {"remove_consumers": ["x", "x"]}, "'x' is not there"),
        (["x"], QUEUES, {"add_consumers": True}, "add_consumers = True"),
        (["x"], QUEUES, {"add_consumers": 1, "client_id_template": "{m}"}, "field {m}"),
        (["x"], QUEUES, {"add_consumers": 1, "client_id_template": "{"}, "client_id_template"),
        (["x"], QUEUES, {"add_consumers": 1, "client_id_template": 1}, "client_id_template = 1"),
        (["x"], QUEUES, {"add_consumers": 1, "client_id_template": "{n:q}"}, "{n:q}"),
        (["x"], QUEUES, {"add_consumers": 2, "client_id_template": "y"}, "'y' is there already"),
        (["x"], QUEUES, {"add_consumers": 1, "client_id_template": "x"}, "'x' is there already"),
        (["x"], QUEUES, {"queues": {"orders": {"broker-a": 70_000}}}, "0 to 65,536"),
        (["x"], QUEUES, {"strategy": 7}, "strategy = 7"),
    ],
)
def test_a_mistake_says_what_is_wrong(members: Any, queues: Any, change: Any, named: str) -> None:
    (found,) = mistakes(members, queues, "AVG", change)
    assert named in found


def test_made_up_ids_follow_the_addresses_that_are_there() -> None:
    made = new_client_ids(3, ["10.0.0.253@1#1", "host@2#2"])
    assert [client_id.partition("@")[0] for client_id in made] == [
        "10.0.0.254", "10.0.1.1", "10.0.1.2",
    ]  # fmt: skip
    assert made == new_client_ids(3, ["host@2#2", "10.0.0.253@1#1"])


# Client ids in parts, and that both kinds of plans make ids of these parts.

IDS = ("10.0.0.9@711#81", "10.0.0.9@1#81@unit", "pod-a@711#81", "a@b@711#81")


@pytest.mark.parametrize("client_id", IDS)
def test_parts_make_the_id_again(client_id: str) -> None:
    assert str(read_made_id(client_id)) == client_id


@pytest.mark.parametrize("client_id", ["10.0.0.9@app", "10.0.0.9", "", "x@711#", "x@711#81@"])
def test_an_id_of_another_form_has_no_parts(client_id: str) -> None:
    assert read_made_id(client_id) is None


@pytest.mark.parametrize("client_id", IDS)
def test_whatever_a_plan_makes_has_the_parts(client_id: str) -> None:
    key = (client_id, "10.0.0.9:40000")
    old = read_made_id(client_id)
    assert old is not None
    [added] = new_client_ids(1, [client_id])
    joined, _ = newcomer(key, 5, {key}, 1, Draws(1, "test"))
    again, _ = restarted(key, 1, 5, {key}, Draws(1, "test"))
    for made in (added, joined, again):
        assert read_made_id(made) is not None
        assert made != client_id
        if made != added:
            assert made.endswith(old.ending)
    assert again.startswith(f"{old.host}@")


def test_hosts() -> None:
    assert [host_of(client_id) for client_id in IDS] == ["10.0.0.9", "10.0.0.9", "pod-a", "a"]
    assert address_of("10.0.0.9") == IPv4Address("10.0.0.9")
    assert [address_of(host) for host in ("pod-a", "10.0.0", "10.0.0.256", "")] == [None] * 4


def test_no_host_ends_in_0_or_255() -> None:
    hosts = addresses_from(IPv4Address("10.0.0.253"))
    assert [next(hosts) for _ in range(3)] == ["10.0.0.253", "10.0.0.254", "10.0.1.1"]
    near = addresses_of_network(IPv4Address("255.255.255.9"))
    assert (len(near), near[0], near[-1]) == (254, "255.255.255.1", "255.255.255.254")
    beside = addresses_of_network(IPv4Address("10.0.7.9"), 3)
    assert (len(beside), beside[0], beside[-1]) == (254, "10.0.3.1", "10.0.3.254")


@pytest.mark.parametrize(
    ("given", "form"),
    [
        (("t", {"broker-b": 0}), "write set_queues({'t': {'broker-b': 0}})"),
        (({"t": 4},), "write set_queues({'T': {'broker-a': 8}})"),
        (("t",), "expected one mapping, topic -> broker -> number of queues"),
    ],
)
def test_set_queues_names_the_form_that_it_expects(given: tuple[Any, ...], form: str) -> None:
    with pytest.raises(UsageError, match=re.escape(form)):
        set_queues(*given)
