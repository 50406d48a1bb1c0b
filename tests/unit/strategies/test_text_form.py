from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies import AllocationStrategy, make_strategy, parse_strategy
from rebalance_core.strategies.config import Config
from rebalance_core.strategies.parameters import escape, unescape

WORD = st.text("%|,:()=/ ab-é😀\n\x00\u2028\u3000", max_size=6)
ROOMS = st.dictionaries(WORD, WORD, max_size=3)
NODES = st.fixed_dictionaries({}, optional={"virtual_nodes": st.integers(0, 100_000)})
IDCS = st.fixed_dictionaries({}, optional={"consumer_idcs": st.lists(WORD, max_size=3)})
# Neither broker names nor topics hold the separator of this parameter.
PART = WORD.map(lambda word: word.replace("|", ""))
QUEUE = st.builds(lambda t, b, i: MessageQueue(t, b, i), WORD, PART, st.integers(-1, 99))
LISTS = st.fixed_dictionaries({}, optional={"config": st.lists(QUEUE, max_size=3)})
SIMPLE: st.SearchStrategy[tuple[str, dict[str, Any]]] = st.one_of(
    st.tuples(st.sampled_from(["AVG", "AVG_BY_CIRCLE"]), st.just({})),
    st.tuples(st.just("CONSISTENT_HASH"), NODES),
    st.tuples(st.just("MACHINE_ROOM"), IDCS),
    st.tuples(st.just("CONFIG"), LISTS),
)
NEARBY_PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "room_separator": WORD.filter(bool),
        "client_rooms": ROOMS,
        "broker_rooms": ROOMS,
    },
)
NEARBY = st.builds(
    lambda inner, rooms: (f"MACHINE_ROOM_NEARBY-{inner[0]}", inner[1] | rooms),
    SIMPLE,
    NEARBY_PARAMS,
)
STRATEGIES = st.one_of(SIMPLE, NEARBY).map(lambda pair: make_strategy(*pair))


@given(STRATEGIES)
def test_printing_and_parsing_round_trip(strategy: AllocationStrategy) -> None:
    assert parse_strategy(str(strategy)) == strategy
    assert str(parse_strategy(str(strategy))) == str(strategy)


@given(WORD)
def test_escapes_round_trip(word: str) -> None:
    escaped = escape(word)
    assert unescape(escaped) == word
    assert not set(escaped.replace("%", "")) & set("|,:()=")


def test_every_special_character_is_escaped() -> None:
    assert escape("% | , : ( ) =") == "%25 %7C %2C %3A %28 %29 %3D"
    assert escape(" a b ") == "%20a b%20"


@pytest.mark.parametrize(
    "text",
    [
        "AVG",
        "CONFIG",
        "MACHINE_ROOM",
        "CONSISTENT_HASH(virtual_nodes=10)",
        "MACHINE_ROOM(consumer_idcs=room1|room2)",
        "MACHINE_ROOM(consumer_idcs=)",
        "MACHINE_ROOM_NEARBY-AVG(room_separator=-)",
        "MACHINE_ROOM_NEARBY-AVG(client_rooms=10.0.0.1:room1|10.0.0.2:room2,"
        " broker_rooms=broker-a:room1)",
        "MACHINE_ROOM_NEARBY-CONSISTENT_HASH(virtual_nodes=3, room_separator=@)",
        "MACHINE_ROOM_NEARBY-MACHINE_ROOM_NEARBY-AVG(room_separator=-)",
        "CONFIG(queues=T/broker-a/0|T/broker-a/1)",
        "CONFIG(queues=%25RETRY%25g/room1@broker-a/0)",
    ],
)
def test_these_texts_print_as_they_are_written(text: str) -> None:
    assert str(parse_strategy(text)) == text


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("CONSISTENT_HASH", "CONSISTENT_HASH(virtual_nodes=10)"),
        ("MACHINE_ROOM_NEARBY-AVG", "MACHINE_ROOM_NEARBY-AVG(room_separator=-)"),
        (" CONSISTENT_HASH ( virtual_nodes = 7 ) ", "CONSISTENT_HASH(virtual_nodes=7)"),
        ("AVG()", "AVG"),
        ("MACHINE_ROOM(consumer_idcs=%61%c3%a9)", "MACHINE_ROOM(consumer_idcs=aé)"),
    ],
)
def test_other_ways_to_write(text: str, same: str) -> None:
    assert str(parse_strategy(text)) == same


def test_a_broker_name_may_hold_a_slash() -> None:
    assert parse_strategy("CONFIG(queues=T/a/b/1)") == Config((MessageQueue("T", "a/b", 1),))


def test_the_charset_of_4_9_is_kept() -> None:
    text = "CONSISTENT_HASH(virtual_nodes=10, platform_charset=GBK)"
    assert str(parse_strategy(text, version="4.9.7")) == text
    assert str(parse_strategy(text)) == "CONSISTENT_HASH(virtual_nodes=10)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unknown strategy: ''"),
        ("AVGG(x=1)", "did you mean AVG"),
        ("AVG(x=1)", "unknown parameter of AVG: 'x'; known: none"),
        ("CONSISTENT_HASH(virtual_nods=1)", "did you mean virtual_nodes"),
        ("CONSISTENT_HASH(virtual_nodes=x)", "not an integer"),
        ("CONSISTENT_HASH(virtual_nodes)", "not key=value"),
        ("CONSISTENT_HASH(virtual_nodes=1,)", "not key=value"),
        ("CONSISTENT_HASH(virtual_nodes=1", r"the closing '\)' is missing"),
        ("CONSISTENT_HASH(virtual_nodes=1))", "%29"),
        ("CONSISTENT_HASH(virtual_nodes=1, virtual_nodes=2)", "used twice"),
        ("MACHINE_ROOM(consumer_idcs=a=b)", "%3D"),
        ("MACHINE_ROOM(consumer_idcs=a:b)", "%3A"),
        ("MACHINE_ROOM(consumer_idcs=a%zz)", "%25"),
        ("MACHINE_ROOM(consumer_idcs=%ff)", "not UTF-8"),
        ("MACHINE_ROOM_NEARBY-AVG(client_rooms=::1:r)", "not prefix:room"),
        ("MACHINE_ROOM_NEARBY-AVG(client_rooms=a:r|a:s)", "'a' is used twice"),
        ("CONFIG(queues=T/0)", "not topic/broker/queue id"),
        ("CONFIG(queues=T/a/x)", "queue id 'x'"),
        ("POP", "not a strategy of a client"),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_strategy(text)
