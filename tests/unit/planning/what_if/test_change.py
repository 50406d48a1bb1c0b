"""Changes: built, joined, read from a mapping, and every mistake of the input named."""

import re
import tomllib
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
from rebalance_core.planning.scenario.file import parse_scenario
from rebalance_core.planning.what_if.change import (
    read_change,
)

QUEUES = {"orders": {"broker-a": 4}}


def mistakes(*arguments: Any, **keywords: Any) -> list[str]:
    with pytest.raises(UsageError) as caught:
        what_if(*arguments, **keywords)
    return str(caught.value).splitlines()


def test_functions_and_mappings_say_the_same() -> None:
    built = (
        add_consumers(2, "web-{n}")
        | remove_consumers(["x", "y"])
        | lose_broker("broker-b")
        | set_queues({"orders": {"broker-a": 8}})
        | switch_strategy("STICKY_BALANCED")
    )
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
        add_consumers(1)
        | add_consumers(2)
        | remove_consumers(1)
        | remove_consumers(1)
        | lose_broker("a")
        | lose_broker("a", "b")
        | switch_strategy("AVG")
        | set_queues({"T": {"a": 1, "b": 1}})
        | set_queues({"T": {"b": 2}})
        | switch_strategy("AVG_BY_CIRCLE")
        | add_consumers(0)
    )
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
        (["x"], QUEUES, {"remove_consumers": ["x", "x"]}, "'x' is not, or no longer, a member"),
        (["x"], QUEUES, {"add_consumers": True}, "add_consumers = True"),
        (["x"], QUEUES, {"add_consumers": 1, "client_id_template": "{m}"}, "field {m}"),
        (["x"], QUEUES, {"add_consumers": 1, "client_id_template": "{"}, "client_id_template"),
        (["x"], QUEUES, {"add_consumers": 1, "client_id_template": 1}, "client_id_template = 1"),
        (["x"], QUEUES, {"add_consumers": 1, "client_id_template": "{n:q}"}, "{n:q}"),
        (["x"], QUEUES, {"add_consumers": 2, "client_id_template": "y"}, "'y' already exists"),
        (["x"], QUEUES, {"add_consumers": 1, "client_id_template": "x"}, "'x' already exists"),
        (["x"], QUEUES, {"queues": {"orders": {"broker-a": 70_000}}}, "0 to 65,536"),
        (["x"], QUEUES, {"strategy": 7}, "strategy = 7"),
    ],
)
def test_a_mistake_states_what_is_wrong(members: Any, queues: Any, change: Any, named: str) -> None:
    (found,) = mistakes(members, queues, "AVG", change)
    assert named in found


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


def test_a_scenario_and_a_change_read_values_alike() -> None:
    """A language, and names, are wrong by the same words; names may be one or a list."""
    whole = read_change({"lose_broker": ["a", "b"], "language": "GO"})
    assert (whole.lose_broker, whole.language) == (("a", "b"), "GO")
    wrong = {"language": "COBOL", "lose_broker": [""]}
    scenario = "".join(
        f"[[edit]]\nkind = {kind!r}\n{line}\n"
        for kind, line in (
            ("add_consumers", "group = 'g'\ncount = 1\nlanguage = 'COBOL'"),
            ("lose_broker", "broker = ['']"),
        )
    )
    found: list[str] = []
    parse_scenario(f"name = 'n'\ndescription = 'd'\n{scenario}", "f", found)
    with pytest.raises(UsageError) as refused:
        read_change(wrong)
    behind = [text.split(": ", 1)[1] for text in str(refused.value).splitlines()]
    assert [text.split(": ", 2)[2] for text in found] == behind


def test_an_edit_goes_by_its_name_in_scenarios_too() -> None:
    plain = {"queues": {"T": {"a": 2}}, "strategy": "AVG", "request_modes": {"T": "PULL"}}
    named = dict(
        zip(("new_topic", "switch_strategy", "switch_request_mode"), plain.values(), strict=True)
    )
    assert read_change(named) == read_change(plain)
    with pytest.raises(UsageError, match="new_topic is queues; use only one of them"):
        read_change({"queues": {}, "new_topic": {}})


def test_none_leaves_what_is() -> None:
    assert read_change({"strategy": None, "language": None}) == Change()
    with pytest.raises(UsageError, match="add_consumers = None"):
        read_change({"add_consumers": None})
