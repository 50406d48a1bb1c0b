"""Own strategies, hash functions and room resolvers: named, checked, asked."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from rebalance_core import MessageQueue, allocate_group, make_strategy, parse_strategy
from rebalance_core.model.errors import AllocationError, UsageError
from rebalance_core.strategies import as_strategy, custom
from rebalance_core.strategies.registry import (
    register_hash_function,
    register_room_resolver,
    register_strategy,
)
from tests.plugins import (
    Asking,
    BeforeTheDash,
    NamesMore,
    OwnAverage,
    Sticky,
    ThrowsForThree,
    at_random,
    upstream_hash,
)

pytestmark = pytest.mark.usefixtures("registered_plugins")

QUEUES = [MessageQueue("T", broker, n) for broker in ("r1-a", "r2-b") for n in range(5)]
IDS = ["r1-x", "r2-y", "r3-z"]
TURN = count()
GREY = "com.acme.GreyStrategy"


def test_an_object_is_as_good_as_a_text() -> None:
    assert allocate_group(OwnAverage(), QUEUES, IDS) == allocate_group("AVG", QUEUES, IDS)
    assert str(as_strategy(OwnAverage())) == "OWN_AVG"
    assert parse_strategy("OWN_AVG").name == "OWN_AVG"


def test_a_name_is_read_back_and_the_first_name_of_an_object_is_shown() -> None:
    register_strategy(GREY, "tests.plugins:OwnAverage")
    register_strategy("GREY", "tests.plugins:OwnAverage")
    assert parse_strategy("GREY") == parse_strategy(GREY)
    assert str(parse_strategy("GREY")) == GREY
    assert custom.names(custom.STRATEGIES) == (GREY,)


def test_the_later_object_of_a_name_counts() -> None:
    register_strategy("GREY", OwnAverage())
    before = allocate_group("GREY", QUEUES, IDS)
    register_strategy("GREY", Sticky())
    assert allocate_group("GREY", QUEUES, IDS) != before


@pytest.mark.parametrize("ids", [IDS, IDS[:1], [*IDS, "r1-x"]])
def test_an_own_hash_function_and_an_own_resolver_do_what_rocketmq_s_do(ids: list[str]) -> None:
    register_room_resolver("com.acme.Rooms", BeforeTheDash())
    ring = make_strategy("CONSISTENT_HASH", {"hash_function": upstream_hash})
    assert str(ring) == "CONSISTENT_HASH(virtual_nodes=10, hash_function=upstream_hash)"
    own = [str(ring), "MACHINE_ROOM_NEARBY-AVG(room_resolver=com.acme.Rooms)"]
    plain = ["CONSISTENT_HASH", "MACHINE_ROOM_NEARBY-AVG(room_separator=-)"]
    for one, other in zip(own, plain, strict=True):
        assert allocate_group(one, QUEUES, ids) == allocate_group(other, QUEUES, ids)
        assert str(parse_strategy(one)) == one


def test_an_own_strategy_inside_of_rooms() -> None:
    register_strategy("OWN", OwnAverage())
    rooms = "(room_separator=-)"
    assert allocate_group(f"MACHINE_ROOM_NEARBY-OWN{rooms}", QUEUES, IDS) == allocate_group(
        f"MACHINE_ROOM_NEARBY-AVG{rooms}", QUEUES, IDS
    )


def test_what_it_raises_is_the_member_s_exception() -> None:
    strategy = as_strategy(ThrowsForThree())
    with pytest.raises(AllocationError, match=r"^ValueError: three are a crowd$"):
        strategy.allocate("c1", QUEUES, ["c1", "c2", "c3"])
    assert strategy.allocate("c1", QUEUES, ["c1"]) == QUEUES


def test_the_checks_of_the_base_class_come_first() -> None:
    strategy = as_strategy(OwnAverage())
    assert strategy.allocate("nobody", QUEUES, IDS) == []
    for arguments in (("", QUEUES, IDS), (IDS[0], [], IDS), (IDS[0], QUEUES, [])):
        with pytest.raises(AllocationError, match="IllegalArgumentException"):
            strategy.allocate(*arguments)


def test_queues_that_it_was_not_given_are_taken_as_rocketmq_takes_them() -> None:
    owners = allocate_group(NamesMore(), QUEUES, IDS)
    assert owners[MessageQueue("T", "r1-a", 77)] == ("r1-x",)
    assert owners[MessageQueue("elsewhere", "b", 0)] == ("r1-x",)


def test_it_gets_lists_of_its_own_and_is_asked_once_more_for_each_question() -> None:
    asked = []

    def share(client_id: str, queues: Any, client_ids: Any) -> list[MessageQueue]:
        asked.append(client_id)
        found = [queues.pop()] if client_id == client_ids.pop() else []
        queues.clear()
        return found

    strategy = as_strategy(Asking("GREEDY", share))
    asked.clear()
    for _ in range(5):
        assert strategy.allocate_all(QUEUES, IDS) == {"r1-x": [], "r2-y": [], "r3-z": QUEUES[-1:]}
    assert asked == [one for one in IDS for _ in range(2)]


def test_chance_that_the_first_check_does_not_see_is_the_member_s_exception() -> None:
    turn = count()

    def share(client_id: str, queues: Any, client_ids: Any) -> list[MessageQueue]:
        return queues[:1] if len(queues) < 10 else queues[: next(turn)]

    with pytest.raises(AllocationError, match="NotDeterministic: BY_TURN gives different results"):
        as_strategy(Asking("BY_TURN", share)).allocate(IDS[0], QUEUES, IDS)


def remembers() -> Callable[..., Any]:
    """A sticky one of the wrong kind: it keeps what it gave before."""
    before: dict[str, Any] = {}

    def share(client_id: str, queues: Any, client_ids: Any) -> Any:
        mine = OwnAverage().allocate(client_id, queues, client_ids)
        kept = [queue for queue in before.get(client_id, []) if queue in mine]
        before[client_id] = kept or mine
        return before[client_id]

    return share


class Needs:
    """It cannot be made without an argument."""

    def __init__(self, what: str) -> None:
        self.what = what


class OneArgument:
    name = "ONE"

    def allocate(self, queues: Any) -> Any:
        return queues


WRONG: tuple[tuple[Any, str], ...] = (
    (object(), "has no allocate(client_id, queues, client_ids)"),
    (
        OneArgument(),
        "allocate(client_id, queues, client_ids): too many",
    ),
    (Needs, "Needs() raises TypeError"),
    (Asking("N", lambda *_: None), "returned None, which is not a list of queues; [] for no queue"),
    (Asking("N", lambda *_: "broker-a"), "returned 'broker-a', which is not a list of queues"),
    (Asking("N", lambda *_: ["broker-a/0"]), "returned 'broker-a/0', which is not a MessageQueue"),
    (Asking("N", at_random), "gives different results for the same arguments"),
    (Asking("N", remembers()), "gives different results for the same arguments"),
    ("acme.rebalance", "expected module:attribute, e.g. acme.rebalance:Grey"),
    ("no_such_module:Grey", "no_such_module cannot be imported (ModuleNotFoundError"),
    ("tests.plugins:OwnAvarage", "has no OwnAvarage; did you mean OwnAverage?"),
)


@pytest.mark.parametrize(("given", "said"), WRONG, ids=[said[:40] for _, said in WRONG])
def test_a_wrong_strategy_is_reported_when_it_is_named(given: Any, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        register_strategy(GREY, given)
    assert str(caught.value).startswith(f"strategies: {GREY}")
    assert said in str(caught.value)
    assert custom.find(custom.STRATEGIES, GREY) is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda key: key, "not a whole number within Java's long"),
        (lambda key: 2**63, "not a whole number within Java's long"),
        (lambda: 3, "its method must accept the call (key)"),
        (lambda key: next(TURN), "gives different results for the same arguments"),
        (7, "7 has no (key)"),
    ],
)
def test_a_wrong_hash_function_is_reported_when_it_is_named(given: Any, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        register_hash_function("h", given)
    assert str(caught.value).startswith("hash_functions: h")
    assert said in str(caught.value)


def test_a_wrong_resolver_is_reported_when_it_is_named() -> None:
    for given, said in (
        (BadRooms(), "not a name of a room, nor None"),
        (upstream_hash, r"has no broker_room\(queue\)"),
    ):
        with pytest.raises(UsageError, match=said):
            register_room_resolver("r", given)


class BadRooms(BeforeTheDash):
    def client_room(self, client_id: str) -> Any:
        return 7


@pytest.mark.parametrize(
    "name",
    [
        "AVG",
        "POP",
        "STICKY_BALANCED",
        "MACHINE_ROOM_NEARBY-AVG",
        "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely",
    ],
)
def test_a_name_of_rocketmq_s_is_not_free(name: str) -> None:
    with pytest.raises(UsageError, match="is already a name in RocketMQ or in plans; use another"):
        register_strategy(name, OwnAverage())


@pytest.mark.parametrize("name", ["", "a b", "a(b)", "a,b", "a=b"])
def test_a_name_stands_in_a_text(name: str) -> None:
    with pytest.raises(UsageError, match="is not a valid name"):
        register_strategy(name, OwnAverage())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("com.acme.Other", "name a custom strategy in [strategies] of the configuration"),
        ("OWN_AVGG", "did you mean OWN_AVG?"),
        ("CONSISTENT_HASH(hash_function=fnv)", "name it in [hash_functions] of the configuration"),
        ("MACHINE_ROOM_NEARBY-AVG(room_resolver=R)", "name it in [room_resolvers]"),
        ("OWN_AVG(virtual_nodes=1)", "unknown parameter of OWN_AVG"),
    ],
)
def test_an_unknown_name_states_where_to_name_it(text: str, said: str) -> None:
    register_strategy("OWN_AVG", OwnAverage())
    with pytest.raises(UsageError) as caught:
        parse_strategy(text)
    assert said in str(caught.value)


def test_rooms_by_settings_and_by_an_own_resolver_exclude_each_other() -> None:
    register_room_resolver("R", BeforeTheDash())
    with pytest.raises(UsageError, match="room_resolver and room_separator exclude each other"):
        parse_strategy("MACHINE_ROOM_NEARBY-AVG(room_resolver=R, room_separator=-)")


def test_the_sticky_one_of_the_docs_moves_few_and_stays_even() -> None:
    queues = [MessageQueue("T", "a", n) for n in range(60)]
    ids = [f"c{n}" for n in range(6)]
    before, after = (allocate_group(Sticky(), queues, some) for some in (ids[1:], ids))
    moved = sum(before[queue] != after[queue] for queue in queues)
    avg = [allocate_group("AVG", queues, some) for some in (ids[1:], ids)]
    assert 10 <= moved < sum(avg[0][queue] != avg[1][queue] for queue in queues)
    sizes = [sum(owner == (one,) for owner in after.values()) for one in ids]
    assert max(sizes) == 10
